# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Confidence fades with disuse, reading is counted, memories expire."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest
from making import sql

from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Query

DAY = 86_400 * 10**9


def age(path: str, days: float) -> None:
    """Let the last access of all memories be so long ago."""
    with sql(path) as connection:
        connection.execute(
            "UPDATE memories SET last_access = ?", (time.time_ns() - int(days * DAY),)
        )


def test_confidence_fades_from_080_to_059_in_30_days(memory: RobotMemory, db_path: str) -> None:
    number = memory.learn(Experience("x", confidence=0.8)).memory.id
    age(db_path, 30)
    (read,), _ = memory.get(ids=[number])
    assert read.confidence == pytest.approx(0.8 * 0.99**30)
    assert read.confidence == pytest.approx(0.59, abs=0.005)
    assert read.stored_confidence == 0.8


def test_reading_often_does_not_compound_the_decay(
    open_memory: Callable[..., RobotMemory], db_path: str
) -> None:
    """Neither asking for the status, nor opening, nor computing it again and again."""
    first = open_memory()
    number = first.learn(Experience("x", confidence=0.8)).memory.id
    first.close()
    age(db_path, 30)
    for _ in range(5):
        reopened = open_memory()
        reopened.status()
        reopened.close()
    with sql(db_path) as connection:
        assert connection.execute("SELECT confidence FROM memories").get == 0.8
    last = open_memory()
    assert last.get(ids=[number])[0][0].confidence == pytest.approx(0.8 * 0.99**30)


def test_being_recalled_protects(open_memory: Callable[..., RobotMemory], db_path: str) -> None:
    memory = open_memory()
    number = memory.learn(Experience("grasp", confidence=0.8)).memory.id
    age(db_path, 30)
    memory.recall(Query("grasp"))
    memory.close()
    assert open_memory().get(ids=[number])[0][0].confidence == 0.8


def test_least_confidence_is_the_effective_one(memory: RobotMemory, db_path: str) -> None:
    memory.learn(Experience("grasp", confidence=0.8))
    assert memory.recall(Query("grasp", min_confidence=0.8)).memories
    age(db_path, 30)
    assert memory.recall(Query("grasp", min_confidence=0.6)).memories == ()
    assert memory.recall(Query("grasp", min_confidence=0.59)).memories


def test_zero_can_be_asked_for(memory: RobotMemory) -> None:
    memory.learn(Experience("grasp", confidence=0.0))
    assert memory.recall(Query("grasp")).memories == ()
    assert memory.recall(Query("grasp", min_confidence=0.0)).memories


def test_a_new_memory_has_its_full_confidence_all_day(memory: RobotMemory, db_path: str) -> None:
    memory.learn(Experience("grasp", confidence=0.9))
    age(db_path, 0.99)
    assert memory.recall(Query("grasp", min_confidence=0.9)).memories


def test_reads_are_counted_by_the_end_at_the_latest(
    open_memory: Callable[..., RobotMemory],
) -> None:
    memory = open_memory()
    number = memory.learn(Experience("grasp")).memory.id
    start = time.time_ns()
    for _ in range(3):
        memory.recall(Query("grasp"))
    memory.recall(Query("*"))
    memory.get(ids=[number])
    memory.close()
    (read,), _ = open_memory().get(ids=[number])
    assert (read.access_count, read.return_count) == (5, 4)
    assert start < read.last_access <= time.time_ns()


def test_reads_are_counted_while_running(memory: RobotMemory, db_path: str) -> None:
    memory.learn(Experience("grasp"))
    memory.recall(Query("grasp"))
    deadline = time.monotonic() + 10
    with sql(db_path) as connection:
        while not connection.execute("SELECT return_count FROM memories").get:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_counting_never_delays_an_answer(memory: RobotMemory, db_path: str) -> None:
    """Another process may hold the file for writing meanwhile; nothing is lost either."""
    memory.learn(Experience("grasp"))
    with sql(db_path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        for _ in range(5):
            assert memory.recall(Query("grasp")).memories
        assert time.monotonic() - start < 1.0
        time.sleep(0.5)
        connection.execute("COMMIT")
    memory.close()
    with sql(db_path) as connection:
        assert connection.execute("SELECT return_count FROM memories").get == 5


def test_expired_memories_are_not_recalled(open_memory: Callable[..., RobotMemory]) -> None:
    clock = [100]
    memory = open_memory(now=lambda: clock[0])
    for expires in (0, 150, 200):
        memory.learn(Experience(f"grasp until {expires}", expires=expires))

    def found(**options: bool) -> set[str]:
        results = [memory.recall(Query(text, **options)) for text in ("grasp", "*")]
        sets = [{item.memory.content[12:] for item in result.memories} for result in results]
        assert sets[0] == sets[1]
        return sets[0]

    assert found() == {"0", "150", "200"}
    clock[0] = 150
    assert found() == {"0", "200"}
    clock[0] = 10**18
    assert found() == {"0"}
    assert found(show_expired=True) == {"0", "150", "200"}


def test_without_ros_time_nothing_is_stored(open_memory: Callable[..., RobotMemory]) -> None:
    memory = open_memory(now=lambda: 0)
    with pytest.raises(InvalidRequestError, match="stamp: there is no ROS time yet"):
        memory.learn(Experience("x"))
    assert memory.status().memories == 0
    assert memory.learn(Experience("x", stamp=7)).memory.stamp == 7


def test_the_stamp_is_ros_time_and_the_wall_time_is_kept_too(
    open_memory: Callable[..., RobotMemory],
) -> None:
    before = time.time_ns()
    learned = open_memory(now=lambda: 42).learn(Experience("x")).memory
    assert learned.stamp == 42
    assert before <= learned.created_at <= time.time_ns()


def test_replay_has_its_three_orders(memory: RobotMemory) -> None:
    for stamp, session in (3, "s"), (1, "s"), (2, ""), (2, "s"):
        place = {"spatial": {"p": [float(stamp), 0, 0]}}
        text = f"at {stamp} in {session or 'none'}"
        memory.learn(Experience(text, place, session_id=session, stamp=stamp))

    def stamps(**fields: object) -> list[int]:
        result = memory.recall(Query("*", **fields))  # type: ignore[arg-type]
        assert result.mode.value == "replay"
        assert all(item.score == 1.0 for item in result.memories)
        return [item.memory.stamp for item in result.memories]

    assert stamps(session_id="s") == [1, 2, 3]
    assert stamps(session_id="s", n=2) == [1, 2]
    assert stamps(session_id="s", since=2) == [2, 3]
    assert stamps() == [3, 2, 2, 1]
    assert stamps(until=2, n=2) == [2, 2]
    nearest = {"field": "spatial.p", "target": [1.4, 0, 0]}
    assert stamps(spatial_sort=nearest) == [1, 2, 2, 3]
    distances = [
        item.distance for item in memory.recall(Query("*", spatial_sort=nearest)).memories
    ]
    assert distances == pytest.approx([0.4, 0.6, 0.6, 1.6])
    assert math.isnan(memory.recall(Query("*")).memories[0].distance)
