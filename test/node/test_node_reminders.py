# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""~/reminders: what went wrong at a place speaks up when the robot comes near, and only then."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from driving import POSES, Driver, pose_at  # noqa: E402

from robotmem_ros import msg, qos  # noqa: E402

FAILURES = json.dumps({"task.success": False})
REMINDING = {**POSES, "remind_radius": 0.7, "remind_rate": 10.0, "remind_filter": FAILURES}


def start(start_node: Callable[..., Any], caller: Any, **parameters: Any) -> tuple[Any, list[Any]]:
    quoted = json.dumps(parameters.pop("remind_filter"))  # text to YAML, not an object
    process = start_node(remind_filter=quoted, **parameters)
    robot = harness.Robot(caller, process.name).wait_ready()
    return robot, caller.listen(msg.Memory, f"{process.name}/reminders", qos.REMINDERS)


def learn(robot: Any, text: str, x: float, frame: str = "map", **fields: Any) -> None:
    context = json.dumps({"task": {"success": fields.pop("success", False)}})
    pose = pose_at(x, frame=frame)
    answer = robot.learn(insight=text, context=context, has_pose=True, pose=pose, **fields)
    assert answer.success, answer.message


def test_three_hazards_passed_twice(start_node: Callable[..., Any], caller: Any) -> None:
    robot, heard = start(start_node, caller, **REMINDING)
    for x in (2, 4, 6):
        learn(robot, f"hazard {x}", x)
        learn(robot, f"another frame {x}", x, frame="odom")
        learn(robot, f"another collection {x}", x, collection="elsewhere")
        learn(robot, f"it worked {x}", x, success=True)
    assert robot.learn(insight="no place", context='{"task": {"success": false}}').success
    driver = Driver(caller, robot.name)
    way = [0.1 * step for step in range(81)]
    driver.along(way)
    driver.along(reversed(way))
    time.sleep(0.5)
    assert [m.content for m in heard] == [
        "hazard 2", "hazard 4", "hazard 6", "hazard 6", "hazard 4", "hazard 2",
    ]  # fmt: skip
    assert all(0.3 < m.distance <= 0.7 for m in heard)
    assert all(m.has_pose and m.header.frame_id == "map" for m in heard)


def test_the_nearest_comes_first_and_not_too_many_at_once(
    start_node: Callable[..., Any], caller: Any
) -> None:
    robot, heard = start(start_node, caller, **{**REMINDING, "remind_rate": 1.0})
    for x in (0.3, 0.5, 0.1, 0.6):
        learn(robot, f"at {x}", x)
    driver = Driver(caller, robot.name)
    arrivals = []
    end = time.monotonic() + 15.0
    while len(heard) < 4 and time.monotonic() < end:
        driver.at(0.0)
        time.sleep(0.1)
        arrivals += [time.monotonic()] * (len(heard) - len(arrivals))
    assert [m.content for m in heard] == ["at 0.1", "at 0.3", "at 0.5", "at 0.6"]
    assert [round(m.distance, 6) for m in heard] == [0.1, 0.3, 0.5, 0.6]
    assert all(later - earlier > 0.8 for earlier, later in itertools.pairwise(arrivals))


def test_what_is_learned_meanwhile_elsewhere_reminds_and_what_is_forgotten_does_not(
    start_node: Callable[..., Any], caller: Any
) -> None:
    robot, heard = start(start_node, caller, **REMINDING)
    driver = Driver(caller, robot.name)
    learn(robot, "will be forgotten", 3.0)
    driver.along([0.0, 0.1, 0.2])
    learn(robot, "new, over there", 2.0)
    assert robot.forget(memory_id=1).success
    driver.along([0.1 * step for step in range(2, 40)])
    harness.wait_for(lambda: heard)
    learn(robot, "made here, so it is known", 3.9)
    driver.along([3.9, 3.95, 3.9, 3.95])
    time.sleep(0.3)
    assert [m.content for m in heard] == ["new, over there"]


def test_reminding_does_not_delay_requests(start_node: Callable[..., Any], caller: Any) -> None:
    robot, heard = start(start_node, caller, **{**REMINDING, "remind_rate": 100.0})
    for x in range(50):
        learn(robot, f"hazard {x}", 0.1 * x)
    driver = Driver(caller, robot.name)
    slowest = 0.0
    for step in range(100):
        driver.at(0.05 * step)
        begin = time.perf_counter()
        assert robot.get(memory_ids=[1 + step % 50]).success
        slowest = max(slowest, time.perf_counter() - begin)
        time.sleep(0.02)
    assert harness.wait_for(lambda: len(heard) > 20)
    assert slowest < 0.5  # on a busy computer; a few milliseconds on a free one


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"remind_filter": '{"task.success": {"$no": 1}}'}, ("remind_filter", "$no")),
        ({"remind_filter": "{"}, ("remind_filter",)),
        ({"remind_filter": "{", "remind_radius": 0.0}, ("remind_filter",)),
        ({"pose_source": ""}, ("remind_radius", "pose_source")),
        ({"remind_radius": -1.0}, ("remind_radius", "-1")),
        ({"remind_rate": 0.0}, ("remind_rate",)),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_line(
    start_node: Callable[..., Any], parameters: dict[str, Any], words: tuple[str, ...]
) -> None:
    given = {**REMINDING, **parameters}
    given["remind_filter"] = json.dumps(given["remind_filter"])
    process = start_node(**given)
    assert process.wait() == 2
    assert len(process.stderr.strip().splitlines()) == 1
    assert all(word in process.stderr for word in words)
