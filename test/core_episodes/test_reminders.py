# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the robot is reminded of on its way, and how often."""

from __future__ import annotations

import dataclasses
import math
import random
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from episode_making import made
from ros_clock import SECOND

from robotmem_ros.core.errors import ConfigError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Pose
from robotmem_ros.core.reminders import Reminders

Open = Callable[..., RobotMemory]

FAILED: dict[str, Any] = {"task": {"success": False}}
NOW = 1_000 * SECOND


class Ticks:
    """A steady clock that stands still until it is told."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def at(x: float, y: float = 0.0, frame_id: str = "map") -> Pose:
    return Pose(frame_id, (x, y, 0.0))


def place(memory: RobotMemory, content: str, pose: Pose, **fields: Any) -> int:
    return memory.learn(Experience(content, pose=pose, **fields)).memory.id


def drive(reminders: Reminders, poses: Sequence[Pose], now: int = NOW) -> list[str]:
    return [m.content for pose in poses for m, _ in reminders.update(pose, now)]


def along(start: float, end: float, frame_id: str = "map", step: float = 0.1) -> list[Pose]:
    count = round(abs(end - start) / step)
    return [at(start + (end - start) * i / count, frame_id=frame_id) for i in range(count + 1)]


def test_three_places_passed_twice_are_told_twice_each(memory: RobotMemory) -> None:
    for i, x in enumerate((2.0, 5.0, 8.0)):
        place(memory, f"hazard {i}", at(x, 0.5), context=FAILED)
    place(memory, "other frame", at(5.0, frame_id="odom"), context=FAILED)
    place(memory, "other collection", at(5.0), context=FAILED, collection="other")
    place(memory, "succeeded", at(5.0), context={"task": {"success": True}})
    place(memory, "nothing said", at(5.0))
    place(memory, "unsure", at(5.0), context=FAILED, confidence=0.2)
    place(memory, "expired", at(5.0), context=FAILED, expires=NOW - 1)
    place(memory, "far away", at(5.0, 3.0), context=FAILED)
    memory.learn(Experience("no pose", FAILED))
    reminders = memory.reminders(1.0, {"task.success": False}, rate=1000.0)
    told = drive(reminders, along(0.0, 10.0))
    assert told == ["hazard 0", "hazard 1", "hazard 2"]
    assert drive(reminders, along(10.0, 0.0)) == ["hazard 2", "hazard 1", "hazard 0"]
    assert drive(reminders, along(0.0, 10.0, "odom")) == ["other frame"]
    assert drive(reminders, along(0.0, 10.0, "base")) == []
    everything = memory.reminders(1.0, collection="*", min_confidence=0.0, rate=1000.0)
    assert len(drive(everything, along(0.0, 10.0))) == 7


def test_the_distance_and_the_memory_are_told_nearest_first(memory: RobotMemory) -> None:
    for x in (0.9, 0.3, 0.6):
        place(memory, f"at {x}", at(x))
    found = memory.reminders(1.0).update(at(0.0), NOW)
    assert [m.content for m, _ in found] == ["at 0.3", "at 0.6", "at 0.9"]
    assert [distance for _, distance in found] == [0.3, 0.6, 0.9]
    assert found[0][0].pose == at(0.3)
    assert found[0][0].confidence == 0.9


def test_leaving_has_a_hysteresis(memory: RobotMemory) -> None:
    place(memory, "hazard", at(0.0))
    reminders = memory.reminders(1.0, hysteresis=1.5)
    assert drive(reminders, [at(1.001)]) == []
    assert drive(reminders, [at(1.0)]) == ["hazard"]
    assert drive(reminders, [at(1.2), at(0.9), at(1.5), at(0.0), at(-1.5), at(0.0)]) == []
    assert drive(reminders, [at(1.501), at(1.001)]) == []
    assert drive(reminders, [at(0.999)]) == ["hazard"]


def test_too_many_come_later_nearest_first(memory: RobotMemory) -> None:
    for i in range(7):
        place(memory, f"{i}", at(0.1 * i))
    clock = Ticks()
    reminders = memory.reminders(1.0, rate=2.0, clock=clock)
    assert drive(reminders, [at(0.0)] * 3) == ["0", "1"]
    clock.time = 0.99
    assert drive(reminders, [at(0.0)]) == []
    clock.time = 1.0
    assert drive(reminders, [at(0.6)]) == ["6", "5"]  # where the robot is now
    clock.time = 2.0
    assert drive(reminders, [at(0.25)]) == ["2", "3"]
    clock.time = 3.0
    assert drive(reminders, [at(0.25)] * 3) == ["4"]
    clock.time = 9.0
    assert drive(reminders, [at(0.25)]) == []


def test_what_the_robot_has_left_meanwhile_is_not_told(memory: RobotMemory) -> None:
    place(memory, "near", at(0.0))
    place(memory, "missed", at(0.5))
    clock = Ticks()
    reminders = memory.reminders(1.0, rate=0.5, clock=clock)
    assert drive(reminders, [at(0.0)]) == ["near"]
    clock.time = 1.5
    assert drive(reminders, [at(5.0), at(9.0)]) == []
    clock.time = 2.0
    assert drive(reminders, [at(9.0)]) == []
    assert drive(reminders, [at(0.4)]) == ["missed"]


def test_no_second_has_more_than_the_rate(memory: RobotMemory) -> None:
    source = random.Random(3)
    for i in range(200):
        place(memory, f"{i}", at(source.random() * 20))
    clock = Ticks()
    reminders = memory.reminders(0.5, rate=3.0, clock=clock)
    times = []
    for pose in along(0.0, 20.0, step=0.02):
        clock.time += 0.05
        times += [clock.time] * len(reminders.update(pose, NOW))
    assert 100 < len(times) <= 150
    for earlier, later in zip(times, times[3:], strict=False):
        assert later - earlier >= 1.0 - 1e-9


def test_what_changes_in_the_store_counts_at_once(memory: RobotMemory) -> None:
    reminders = memory.reminders(1.0, {"task.success": False}, rate=1000.0)
    assert drive(reminders, [at(0.0)]) == []

    def heard(content: str, context: dict[str, Any]) -> int:
        memory.import_memory(
            made(content, context, uuid=str(uuid.uuid4()), pose=at(0.0), last_access=0)
        )
        return memory.status().memories

    bad = heard("heard of another robot", FAILED)
    good = heard("went well", {})
    assert drive(reminders, [at(0.0)] * 2) == ["heard of another robot"]
    memory.update(good, "went wrong after all", FAILED)
    assert drive(reminders, [at(0.0)] * 2) == ["went wrong after all"]
    memory.forget(bad)
    memory.update(good, context={"task": {"success": True}})
    assert drive(reminders, [at(9.0), at(0.0)]) == []


def test_what_was_merged_or_has_expired_since_is_not_told(memory: RobotMemory) -> None:
    clock = Ticks()
    memory.start_session()
    place(memory, "Slip.", at(0.0))
    place(memory, "slip", at(0.0))
    place(memory, "wet", at(0.1), expires=NOW + 5)
    reminders = memory.reminders(1.0, rate=1.0, clock=clock)
    assert drive(reminders, [at(2.0), at(0.2)]) == ["wet"]
    memory.end_session()
    clock.time = 1.0
    assert drive(reminders, [at(0.2)]) == ["slip"]
    clock.time = 2.0
    assert drive(reminders, [at(0.2)]) == []
    clock.time = 9.0
    reminders.reset()
    assert drive(reminders, [at(0.2)], NOW + 4) == ["wet"]
    clock.time = 10.0
    reminders.reset()
    assert drive(reminders, [at(0.2)], NOW + 5) == ["slip"]
    clock.time = 11.0
    assert drive(reminders, [at(0.2)], NOW + 5) == []


def test_the_robot_is_not_told_what_it_has_just_learned(memory: RobotMemory) -> None:
    reminders = memory.reminders(1.0)
    drive(reminders, [at(0.0)])
    place(memory, "just now", at(0.5))
    place(memory, "over there", at(2.0))
    assert drive(reminders, [at(0.1)]) == []
    assert drive(reminders, [at(1.1)]) == ["over there"]
    assert drive(reminders, [at(5.0), at(0.5)]) == ["just now"]
    memory.start_session()
    memory.add_trajectory([at(0.5)])
    assert memory.end_session(summary="done").episode.memories[-1].pose == at(0.5)
    assert drive(reminders, [at(0.5)]) == []


def test_after_a_reset_all_is_told_again(memory: RobotMemory) -> None:
    place(memory, "hazard", at(0.0))
    reminders = memory.reminders(1.0)
    assert drive(reminders, [at(0.0)] * 2) == ["hazard"]
    reminders.reset()
    assert drive(reminders, [at(0.0)] * 2) == ["hazard"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_pose_that_is_not_finite_tells_and_changes_nothing(
    memory: RobotMemory, value: float
) -> None:
    place(memory, "hazard", at(0.0))
    reminders = memory.reminders(1.0)
    assert drive(reminders, [at(0.0)]) == ["hazard"]
    assert drive(reminders, [at(value), at(0.0)]) == []


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"radius": 0.0}, "remind_radius"),
        ({"radius": -1.0}, "remind_radius"),
        ({"radius": math.nan}, "remind_radius"),
        ({"radius": math.inf}, "remind_radius"),
        ({"rate": 0.0}, "remind_rate"),
        ({"rate": math.nan}, "remind_rate"),
        ({"hysteresis": 0.9}, "hysteresis"),
        ({"context_filter": "{"}, "remind_filter"),
        ({"context_filter": '{"a": {"$near": 1}}'}, "remind_filter"),
        ({"context_filter": "[]"}, "remind_filter"),
    ],
)
def test_wrong_values_name_the_parameter(
    memory: RobotMemory, options: dict[str, Any], name: str
) -> None:
    with pytest.raises(ConfigError, match=f"^parameter {name}: "):
        memory.reminders(**{"radius": 1.0, **options})


def test_utm_coordinates_are_measured_exactly(memory: RobotMemory) -> None:
    x, y = 500_000.0, 5_400_000.0
    place(memory, "hazard", at(x, y))
    reminders = memory.reminders(0.1)
    assert drive(reminders, [at(x + 0.101, y)]) == []
    assert drive(reminders, [at(x + 0.0999, y)]) == ["hazard"]


def test_random_drives_equal_the_plain_rule(open_memory: Open) -> None:
    source = random.Random(11)
    memory = open_memory()
    places = {}
    for i in range(150):
        x, y = source.uniform(0, 6), source.uniform(0, 6)
        places[place(memory, f"{i}", at(x, y), context={"bad": bool(i % 3)})] = (x, y, i % 3 > 0)
    reminders = memory.reminders(0.7, {"bad": True}, rate=1e9, hysteresis=1.3)
    inside: set[int] = set()
    x = y = 3.0
    for _ in range(400):
        x, y = x + source.gauss(0, 0.3), y + source.gauss(0, 0.3)
        distances = {n: math.dist((x, y), (px, py)) for n, (px, py, bad) in places.items() if bad}
        inside = {n for n in inside if distances[n] <= 0.7 * 1.3}
        expected = {n for n, d in distances.items() if d <= 0.7} - inside
        inside |= expected
        found = [m.id for m, _ in reminders.update(at(x, y), NOW)]
        assert found == sorted(expected, key=lambda n: distances[n])


def test_the_context_need_not_be_indexed(memory: RobotMemory) -> None:
    large = {**FAILED, "x": {str(i): i for i in range(400)}}
    place(memory, "large", at(0.0), context=large)
    place(memory, "large and good", at(0.0), context={**large, "task": {"success": True}})
    assert drive(memory.reminders(1.0, {"task.success": False}), [at(0.0)]) == ["large"]


def test_settings_of_the_moment_count(memory: RobotMemory) -> None:
    heard = made("old", uuid=str(uuid.uuid4()), pose=at(0.0))
    month_ago = memory.learn(Experience("now")).memory.created_at - 30 * 86_400 * SECOND
    memory.import_memory(dataclasses.replace(heard, last_access=month_ago))
    reminders = memory.reminders(1.0, min_confidence=0.7)
    assert drive(reminders, [at(0.0)]) == []  # 0.9 * 0.99 ** 30
    memory.reconfigure(decay_rate=0.0)
    assert drive(reminders, [at(9.0), at(0.0)]) == ["old"]
