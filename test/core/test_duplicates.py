# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Only the very same experience is one memory; nothing is lost because it looks like another."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import (
    Experience,
    LearnStatus,
    MemoryType,
    PerceptionType,
    Pose,
    Query,
)

BASE = Experience("the gripper slipped", {"params": {"force": 10}}, session_id="s", stamp=5)


def test_the_same_experience_is_one_memory(memory: RobotMemory) -> None:
    first = memory.learn(BASE)
    again = memory.learn(BASE)
    assert (first.status, again.status) == (LearnStatus.CREATED, LearnStatus.DUPLICATE)
    assert again.memory.id == first.memory.id
    assert again.memory.uuid == first.memory.uuid
    assert again.memory.last_access > first.memory.last_access
    assert memory.status().memories == 1


@pytest.mark.parametrize(
    "same",
    [
        {"content": "  the gripper slipped\n"},
        {"context": '{"params":   {"force": 10}}'},
        {"stamp": 99},
        {"confidence": 0.5},
        {"expires": 10**18},
        {"collection": "default"},
    ],
)
def test_when_and_how_surely_do_not_make_another_memory(
    memory: RobotMemory, same: dict[str, Any]
) -> None:
    memory.learn(BASE)
    assert memory.learn(dataclasses.replace(BASE, **same)).status is LearnStatus.DUPLICATE


@pytest.mark.parametrize(
    "other",
    [
        {"content": "the gripper slipped!"},
        {"content": "The gripper slipped"},
        {"context": {"params": {"force": 11}}},
        {"context": {"params": {"force": 10.5}}},
        {"context": {"params": {"force": "10"}}},
        {"context": {"params": {"force": True}}},
        {"context": {"params": {"force": 10, "speed": None}}},
        {"context": ""},
        {"session_id": "s2"},
        {"session_id": ""},
        {"collection": "other"},
        {"pose": Pose("map", (0.0, 0.0, 0.0))},
        {"type": MemoryType.PERCEPTION, "perception_type": PerceptionType.TACTILE},
        {"type": MemoryType.EPISODE},
    ],
)
def test_any_difference_makes_another_memory(memory: RobotMemory, other: dict[str, Any]) -> None:
    memory.learn(BASE)
    assert memory.learn(dataclasses.replace(BASE, **other)).status is LearnStatus.CREATED
    assert memory.status().memories == 2


@pytest.mark.parametrize(
    "pose",
    [
        Pose("odom", (1.0, 0.0, 0.0)),
        Pose("map", (1.0, 0.0, 1e-9)),
        Pose("map", (1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)),
    ],
)
def test_another_pose_makes_another_memory(memory: RobotMemory, pose: Pose) -> None:
    memory.learn(dataclasses.replace(BASE, pose=Pose("map", (1.0, 0.0, 0.0))))
    assert memory.learn(dataclasses.replace(BASE, pose=pose)).status is LearnStatus.CREATED


def test_a_sweep_of_200_forces_is_200_memories(memory: RobotMemory) -> None:
    for tenth in range(100, 300):
        learned = memory.learn(Experience(f"grip force {tenth / 10:.1f} N"))
        assert learned.status is LearnStatus.CREATED
    assert memory.status().memories == 200
    best = memory.recall(Query("grip force 17.3 N", n=1)).memories[0]
    assert best.memory.content == "grip force 17.3 N"


def test_a_negation_is_another_memory(memory: RobotMemory) -> None:
    memory.learn(Experience("enter room 4"))
    assert memory.learn(Experience("do not enter room 4")).status is LearnStatus.CREATED
    assert memory.learn(Experience("不要进入4号房间")).status is LearnStatus.CREATED
    assert memory.learn(Experience("进入4号房间")).status is LearnStatus.CREATED


def test_a_forgotten_experience_can_be_learned_again(memory: RobotMemory) -> None:
    memory.forget(memory.learn(BASE).memory.id)
    assert memory.learn(BASE).status is LearnStatus.CREATED


def test_a_memory_that_became_the_same_by_an_update_counts_as_that(memory: RobotMemory) -> None:
    number = memory.learn(Experience("first wording")).memory.id
    memory.update(number, "second wording")
    assert memory.learn(Experience("second wording")).memory.id == number
    assert memory.learn(Experience("first wording")).status is LearnStatus.CREATED


def test_where_and_when_a_value_was_sensed_makes_no_second_memory(memory: RobotMemory) -> None:
    first = memory.learn(
        Experience("stood still", context={"robot": {"speed": 0}, "ros": {"odom": {"age": 0.1}}})
    )
    again = memory.learn(
        Experience("stood still", context={"robot": {"speed": 0}, "ros": {"odom": {"age": 0.2}}})
    )
    moved = memory.learn(
        Experience("stood still", context={"robot": {"speed": 1}, "ros": {"odom": {"age": 0.1}}})
    )
    assert again.status is LearnStatus.DUPLICATE
    assert again.memory.id == first.memory.id
    assert moved.status is LearnStatus.CREATED


def test_an_expired_memory_is_no_twin(memory: RobotMemory) -> None:
    memory.learn(Experience("valve 7 sticks", stamp=5, expires=10))
    again = memory.learn(Experience("valve 7 sticks", stamp=20))
    assert again.status is LearnStatus.CREATED
    assert [item.memory.id for item in memory.recall(Query("valve")).memories] == [again.memory.id]


def test_a_twin_renews_confidence_and_expiry(memory: RobotMemory) -> None:
    memory.learn(Experience("pump 8 leaks", stamp=5, confidence=0.1, expires=2**62))
    again = memory.learn(Experience("pump 8 leaks", stamp=6, confidence=0.95))
    assert again.status is LearnStatus.DUPLICATE
    assert (again.memory.stored_confidence, again.memory.expires) == (0.95, 0)
    assert memory.recall(Query("pump")).memories
    less = memory.learn(Experience("pump 8 leaks", stamp=7, confidence=0.2, expires=9))
    assert (less.memory.stored_confidence, less.memory.expires) == (0.95, 0)
