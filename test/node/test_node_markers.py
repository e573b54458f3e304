# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""~/markers as RViz sees it: the present state for whoever comes, and changes drawn together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from driving import POSES, Driver, pose_at  # noqa: E402
from visualization_msgs.msg import Marker, MarkerArray  # noqa: E402

from robotmem_ros import qos  # noqa: E402


def learn(robot: Any, text: str, x: float, **context: Any) -> int:
    answer = robot.learn(insight=text, context=json.dumps(context), has_pose=True, pose=pose_at(x))
    assert answer.success, answer.message
    return int(answer.memory_id)


def watch(caller: Any, process: Any) -> list[Any]:
    return caller.listen(MarkerArray, f"{process.name}/markers", qos.MARKERS)


def places(array: Any) -> dict[int, Any]:
    return {m.id: m for m in array.markers if m.ns == "default"}


def test_a_late_subscriber_gets_the_present_state(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(**POSES)
    robot = harness.Robot(caller, process.name).wait_ready()
    worked = learn(robot, "it worked", 1.0, task={"success": True})
    failed = learn(robot, "it failed", 2.0, task={"success": False})
    leak = learn(robot, "a leak", 3.0, env={"hazard": "water"})
    assert robot.learn(insight="nowhere").success
    assert robot.start_session().success
    driver = Driver(caller, process.name)
    driver.along([0.2 * step for step in range(20)], seconds=0.1)
    assert robot.end_session(has_outcome=True, outcome_score=1.0).success

    heard = watch(caller, process)
    harness.wait_for(lambda: heard)
    assert heard[-1].markers[0].action == Marker.DELETEALL
    shown = places(heard[-1])
    assert shown.keys() >= {worked, failed, leak}
    assert len(shown) == 4  # and where the episode ended
    assert shown[worked].color.g > shown[worked].color.r
    assert shown[failed].color.r > shown[failed].color.g
    assert shown[leak].type == Marker.CYLINDER
    assert shown[leak].header.frame_id == "map"
    lines = [m for m in heard[-1].markers if m.type == Marker.LINE_STRIP]
    assert [m.ns for m in lines] == ["default/trajectories"]
    assert len(lines[0].points) >= 3
    texts = [m.text for m in heard[-1].markers if m.type == Marker.TEXT_VIEW_FACING]
    assert {"it worked", "it failed", "a leak"} <= set(texts)

    again = watch(caller, process)  # latched: at once
    harness.wait_for(lambda: again, timeout=2.0)
    assert places(again[-1]).keys() == shown.keys()

    assert robot.forget(memory_id=failed).success
    harness.wait_for(lambda: failed not in places(heard[-1]))
    assert places(heard[-1]).keys() == shown.keys() - {failed}
    assert places(heard[-1])[worked] == shown[worked]
    assert robot.update(memory_id=worked, context='{"task": {"success": false}}').success
    harness.wait_for(lambda: places(heard[-1])[worked].color == shown[failed].color)


def test_changes_are_drawn_together_and_no_change_says_nothing(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node()
    robot = harness.Robot(caller, process.name).wait_ready()
    heard = watch(caller, process)
    harness.wait_for(lambda: heard)
    end = time.monotonic() + 3.0
    count = 0
    while time.monotonic() < end:
        learn(robot, f"number {count}", 0.1 * count)
        count += 1
        time.sleep(0.02)
    harness.wait_for(lambda: len(places(heard[-1])) == count)
    assert 2 <= len(heard) <= 6
    settled = len(heard)
    time.sleep(2.5)
    assert len(heard) == settled


def test_only_the_newest_are_shown(start_node: Callable[..., Any], caller: Any) -> None:
    process = start_node(markers_max=3)
    robot = harness.Robot(caller, process.name).wait_ready()
    numbers = [learn(robot, f"number {x}", x) for x in range(6)]
    heard = watch(caller, process)
    harness.wait_for(lambda: heard)
    assert sorted(places(heard[-1])) == numbers[-3:]
