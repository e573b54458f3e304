# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the end of an episode merges, and above all what it does not."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest
from episode_making import made

from robotmem_ros.core.consolidation import is_lasting, merges, plain
from robotmem_ros.core.errors import NotFoundError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import (
    Experience,
    LearnStatus,
    MemoryType,
    PerceptionType,
    Pose,
    Query,
)


def at(x: float, y: float = 0.0, angle: float = 0.0, frame_id: str = "map") -> Pose:
    turned = (0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2))
    return Pose(frame_id, (x, y, 0.0), turned)


def learn(memory: RobotMemory, *contents: str, context: str = "") -> list[int]:
    return [memory.learn(Experience(text, context)).memory.id for text in contents]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Grip slipped.", "grip slipped"),
        ("GRIP slipped", "grip   SLIPPED!"),
        ("the cup fell. Then it broke.", "The cup fell; then it broke"),
        ("抓取失败。", "抓取失败"),
        ("杯子滑落！重试", "杯子滑落 重试"),
        ("é", "e\u0301"),
        ("moved 12.5 mm.", "Moved 12.5 mm"),
    ],
)
def test_the_same_words_are_one(one: str, other: str) -> None:
    first, second = made(one), made(other)
    assert merges([first, second]) == {first.id: second.id}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("do not enter", "enter"),
        ("door is open", "door is not open"),
        ("不进入", "进入"),
        ("no, enter", "no enter"),
        ("不,要", "不要"),
        ("force 5 N", "force 6 N"),
        ("force 5 N", "force 5 kN"),
        ("force 5 mN", "force 5 MN"),
        ("force -5 N", "force 5 N"),
        ("force 5 N", "force 5.0 N"),
        ("force <5 N", "force >5 N"),
        ("force 1.5 N", "force 15 N"),
        ("10² grains", "102 grains"),
        ("from dock-1 to dock-2", "from dock-2 to dock-1"),
        ("door open?", "door open."),
        ("grasping", "grasp"),
        ("schön", "schon"),
        ("50% full", "50 full"),
        ("it succeeded", "it failed"),
        ("grip slipped", "grip slipped twice"),
        ("grip", "grip grip"),
        ("v1.2", "v12"),
    ],
)
def test_what_means_something_else_is_two(one: str, other: str) -> None:
    assert plain(one) != plain(other)
    assert merges([made(one), made(other)]) == {}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"params": {"force": 5}}, {"params": {"force": 6}}),
        ({"params": {"force": 5}}, {}),
        ({"task": {"success": True}}, {"task": {"success": False}}),
        ({"task": {"success": True}}, {"task": {"success": 1}}),
        ({"spatial": {"p": [1.0, 2.0]}}, {"spatial": {"p": [1.0, 2.001]}}),
        ({"env": {"ros": 1}}, {"env": {"ros": 2}}),
        ({"params": {"force": 5, "unit": "N"}}, {"params": {"force": 5, "unit": "kN"}}),
    ],
)
def test_other_contexts_are_two(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert merges([made("grip slipped", one), made("grip slipped", other)]) == {}


def test_where_a_value_came_from_does_not_matter() -> None:
    first = made("slip", {"params": {"f": 1}, "ros": {"f": {"age": 0.1}}})
    second = made("slip", {"params": {"f": 1}, "ros": {"f": {"age": 0.2}}})
    third = made("slip", {"params": {"f": 1}})
    assert merges([first, second, third]) == {first.id: third.id, second.id: third.id}


@pytest.mark.parametrize(
    "fields",
    [
        {"collection": "other"},
        {"expires": 5},
        {"type": MemoryType.PERCEPTION, "perception_type": PerceptionType.VISUAL},
        {"pose": at(0.0)},
    ],
)
def test_other_fields_are_two(fields: dict[str, Any]) -> None:
    assert merges([made("slip"), made("slip", **fields)]) == {}


def test_senses_are_kept_apart() -> None:
    seen, felt = (
        made("slip", type=MemoryType.PERCEPTION, perception_type=sense)
        for sense in (PerceptionType.VISUAL, PerceptionType.TACTILE)
    )
    assert merges([seen, felt]) == {}


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (at(0.0), at(0.049), True),
        (at(0.0), at(0.051), False),
        (at(-0.02, 7.01), at(0.02, 6.99), True),
        (at(0.0), at(0.0, angle=0.09), True),
        (at(0.0), at(0.0, angle=0.11), False),
        (at(0.0), at(0.0, frame_id="odom"), False),
        (at(0.0), None, False),
        (at(1e300), at(1e300), True),
        (at(1e308), at(-1e308), False),
    ],
)
def test_places_are_kept_apart(one: Pose, other: Pose | None, is_same: bool) -> None:
    assert bool(merges([made("slip", pose=one), made("slip", pose=other)])) is is_same


def test_a_chain_of_places_does_not_become_one_place() -> None:
    memories = [made("slip", pose=at(0.04 * i)) for i in range(100)]
    merged = merges(memories)
    where = {m.id: m.pose.position[0] for m in memories if m.pose}
    assert 0 < len(merged) < 100
    for gone, stays in merged.items():
        assert abs(where[gone] - where[stays]) <= 0.05
        assert stays not in merged


def test_the_surest_stays_then_the_newest() -> None:
    memories = [made("slip", stored_confidence=c) for c in (0.5, 0.9, 0.9, 0.7)]
    stays = memories[2].id
    assert merges(memories) == {m.id: stays for m in memories if m.id != stays}


@pytest.mark.parametrize(
    "text",
    [
        "The gripper must be open before it moves",
        "never push the blue cup",
        "Always home first",
        "Do not enter the kitchen",
        "Don’t enter",
        "Lesson: slower is better",
        "不要进入厨房",
        "必须先回零",
        "禁止通行",
        "教训：慢一点",
    ],
)
def test_constraints_and_lessons_stay(text: str) -> None:
    assert is_lasting(made(text))
    assert merges([made(text), made(text + ".")]) == {}


@pytest.mark.parametrize(
    "context",
    [
        {"constraint": True},
        {"lesson": "slower"},
        {"task": {"kind": "lesson"}},
        {"kind": "Constraint"},
        {"task": {"tags": ["fast", "lessons"]}},
        {"type": "constraint"},
    ],
)
def test_marked_constraints_and_lessons_stay(context: dict[str, Any]) -> None:
    assert merges([made("slip", context), made("Slip", context)]) == {}


@pytest.mark.parametrize(
    "context", [{"constraint": False}, {"lesson": None}, {"kind": "note"}, {"kind": 3}]
)
def test_what_is_not_marked_is_merged(context: dict[str, Any]) -> None:
    assert len(merges([made("slip", context), made("Slip", context)])) == 1


@pytest.mark.parametrize("text", ["mustard on the plate", "the whenever-clock", "ruler found"])
def test_a_part_of_a_word_is_no_mark(text: str) -> None:
    assert not is_lasting(made(text))


def test_episode_memories_and_merged_ones_are_left_alone() -> None:
    kind = {"type": MemoryType.EPISODE}
    assert merges([made("run", **kind), made("run", **kind)]) == {}
    assert merges([made("run", superseded_by="x"), made("run")]) == {}


def test_twenty_thousand_alike_take_little_time() -> None:
    memories = [made("slip", pose=at(0.2 * i)) for i in range(10_000)]
    memories += [made("Slip.", pose=at(0.2 * i)) for i in range(10_000)]
    start = time.perf_counter()
    assert len(merges(memories)) == 10_000
    assert time.perf_counter() - start < 3.0


def test_a_sweep_of_forces_loses_nothing(memory: RobotMemory) -> None:
    memory.start_session()
    for force in range(200):
        text = f"grip force {force / 10} N"
        memory.learn(Experience(text, {"params": {"grip_force": {"value": force / 10}}}))
    ended = memory.end_session()
    assert ended.consolidated_count == 0
    assert len(ended.episode.memories) == 201
    assert memory.status().superseded == 0


def test_the_end_of_an_episode_merges_the_same(memory: RobotMemory) -> None:
    before = learn(memory, "Grip slipped.")
    memory.start_session()
    one, other, third = learn(memory, "Grip slipped.", "grip slipped", "grip slipped twice")
    memory.recall(Query("grip slipped", n=10))
    ended = memory.end_session(summary="done")
    assert ended.consolidated_count == 1
    gone, stays, kept, last = ended.episode.memories
    assert (gone.id, stays.id, kept.id) == (one, other, third)
    assert gone.superseded_by == stays.uuid
    assert (stays.superseded_by, kept.superseded_by, last.superseded_by) == ("", "", "")
    found = {item.memory.id for item in memory.recall(Query("grip slipped", n=10)).memories}
    assert found - {last.id} == {*before, other, third}
    replay = memory.recall(Query("*", session_id=ended.episode.session_id, n=10)).memories
    assert [item.memory.id for item in replay] == [other, third, last.id]
    (still_there,), _ = memory.get(ids=[one])
    assert (still_there.content, still_there.superseded_by) == ("Grip slipped.", stays.uuid)
    assert (memory.status().memories, memory.status().superseded) == (4, 1)


def test_what_was_merged_can_be_restored(memory: RobotMemory) -> None:
    memory.start_session()
    one, other = learn(memory, "Grip slipped.", "grip slipped")
    memory.get(ids=[one])
    memory.end_session()
    restored = memory.restore(one)
    assert (restored.id, restored.superseded_by, restored.content) == (one, "", "Grip slipped.")
    found = {item.memory.id for item in memory.recall(Query("slipped", n=10)).memories}
    assert {one, other} <= found
    assert memory.restore(other).superseded_by == ""
    with pytest.raises(NotFoundError):
        memory.restore(999)


def test_forgetting_what_stays_brings_the_others_back(memory: RobotMemory) -> None:
    memory.start_session()
    one, other = learn(memory, "Grip slipped.", "grip slipped")
    memory.end_session(summary="done")
    memory.forget(other)
    assert memory.recall(Query("grip slipped")).memories[0].memory.id == one


def test_a_duplicate_of_what_stays_is_still_a_duplicate(memory: RobotMemory) -> None:
    session_id = memory.start_session().episode.session_id
    one, other = learn(memory, "Grip slipped.", "grip slipped")
    memory.end_session()
    again = memory.learn(Experience("grip slipped", session_id=session_id))
    assert (again.status, again.memory.id) == (LearnStatus.DUPLICATE, other)
    # What was merged away is not renewed: said again, it is a memory of its own.
    again = memory.learn(Experience("Grip slipped.", session_id=session_id))
    assert again.status is LearnStatus.CREATED
    assert again.memory.id not in (one, other)


def test_only_the_episode_that_ends_is_merged(memory: RobotMemory) -> None:
    memory.start_session()
    learn(memory, "grip slipped")
    memory.end_session()
    memory.start_session()
    learn(memory, "Grip slipped.")
    assert memory.end_session().consolidated_count == 0
