# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The columns in memory tell what the tables hold, whoever changed these and however much."""

from __future__ import annotations

import dataclasses
import math
import random
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import EVERYTHING, new, sql

from robotmem_ros.core import filters
from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.filters import NANOSECONDS_PER_DAY, Conditions, Place
from robotmem_ros.core.model import Pose
from robotmem_ros.core.store import Store, attribute_columns, eligibility, facts, poses

VALUES = (1, 2, 2.5, -3, 10**30, True, False, None, "a", "b", "a\x00", [1], {})
WALL_TIME = 100 * NANOSECONDS_PER_DAY


def eligible(store: Store, conditions: Conditions) -> list[int]:
    with store.snapshot() as snapshot:
        return sorted(snapshot.all_ids(snapshot.eligible(conditions)))


def some_conditions(source: random.Random) -> Conditions:
    paths = ("task.value", "task.other", "task.none")
    tests = filters.parse_context_filter(
        {
            path: source.choice(
                [
                    {"$exists": source.random() < 0.5},
                    {"$gte": source.choice([1, 2.5, "a", -10])},
                    {"$in": source.sample(VALUES[:11], 3)},
                    {"$ne": source.choice(VALUES)},
                    source.choice(VALUES),
                ]
            )
            for path in source.sample(paths, source.randint(0, 2))
        },
        10_000,
        10,
    )
    maybe = source.random
    place = None
    if maybe() < 0.5:
        radius = source.choice([0.0, 5.0, 5.000001, 13.0, 1e200, math.inf])
        frame = source.choice(["map", "odom", "unknown"])
        place = Place(frame, (), source.choice([(0.0, 0.0, 0.0), (3.0, 4.0, 0.0)]), radius)
    return Conditions(
        place=place,
        collection=source.choice([None, "default", "c1", "unknown"]),
        session_id="s1" if maybe() < 0.3 else None,
        other_than_session=source.choice([None, "s2", "unknown"]),
        since=source.choice([0, 3]),
        until=source.choice([0, 7]),
        min_confidence=source.choice([0.0, 0.5, 0.9]),
        decay_rate=source.choice([0.0, 0.01, 1.0]),
        wall_time=WALL_TIME,
        alive_at=source.choice([None, 5]),
        tests=tests,
    )


def a_position(source: random.Random) -> tuple[float, float, float]:
    """Return a place at distances that squares of whole numbers make, and that squares exceed."""
    axis = (0.0, 3.0, 4.0, -4.0, 5.0, 12.0, 0.1, 1e-200, 1e200, -1.7e308)
    return source.choice(axis), source.choice(axis[:6]), source.choice(axis[:3])


def change(store: Store, source: random.Random, known: list[int]) -> None:
    kind = source.random()
    context = {"task": {"value": source.choice(VALUES)}}
    if source.random() < 0.5:
        context["task"]["other"] = source.random()
    if kind < 0.6 or not known:
        memory = new(
            f"text {source.random()}",
            context=context,
            collection=source.choice(["default", "c1"]),
            session_id=source.choice(["", "s1", "s2"]),
            stamp=source.randint(1, 9),
            confidence=source.choice([0.9, 0.9, 0.4]),
            expires=source.choice([0, 0, 4, 6]),
            pose=source.choice([None, Pose(source.choice(["map", "odom"]), a_position(source))]),
            now=source.choice([0, 1, 50, 99, 100]) * NANOSECONDS_PER_DAY,
        )
        known.append(store.add(memory)[0])
    elif kind < 0.75:
        number = source.choice(known)
        store.update(number, None, context, 1)
    elif kind < 0.85:
        store.forget(known.pop(source.randrange(len(known))), "", 1)
    else:
        store.touch({source.choice(known): (1, 1, source.randint(0, WALL_TIME))})


@given(
    seed=st.integers(0, 2**32),
    cells=st.sampled_from([0, 60, 10**7]),
    many=st.sampled_from([0, 3, 50_000]),
)
def test_two_stores_on_a_file_agree_with_one_that_was_just_opened(
    fast_folder: Path, seed: int, cells: int, many: int
) -> None:
    """Each follows what the other changes: memories, contexts, confidence, expiry, touches."""
    source = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=fast_folder) as folder, pytest.MonkeyPatch.context() as m:
        m.setattr(attribute_columns, "MAX_CELLS", cells)
        m.setattr(attribute_columns, "_MANY_CHANGES", many)
        m.setattr(facts, "_MANY_CHANGES", many)
        m.setattr(poses, "_MANY_CHANGES", many)
        path = f"{folder}/memories.db"
        both = Store(path), Store(path)
        known: list[int] = []
        for _ in range(6):
            for _ in range(source.randint(1, 6)):
                change(source.choice(both), source, known)
            conditions = some_conditions(source)
            fresh = Store(path)
            expected = plainly(fresh, conditions)
            for store in (*both, fresh):
                assert eligible(store, conditions) == expected
                with store.snapshot() as snapshot:
                    planned = snapshot.eligible(conditions)
                    assert sorted(snapshot.keep(planned, range(1, 99))) == expected
                    unplanned = snapshot.positions(conditions, range(1, 99))
                    assert set(unplanned) <= set(expected)
                    if conditions.place is not None:
                        near = snapshot.nearest(planned, conditions.place, 1)
                        assert set(near) == set(expected)  # fewer than are looked at
            fresh.close()
        for store in both:
            store.close()


def plainly(store: Store, conditions: Conditions) -> list[int]:
    """Return the eligible memories, each read and looked at."""
    with store.snapshot() as snapshot:
        memories = snapshot.memories(range(1, 99))
    return [
        memory.id
        for memory in memories.values()
        if conditions.collection in (None, memory.collection)
        and conditions.session_id in (None, memory.session_id)
        and is_of_another_session(conditions.other_than_session, memory.session_id, memories)
        and memory.stamp >= conditions.since
        and (not conditions.until or memory.stamp <= conditions.until)
        and (
            conditions.alive_at is None
            or not memory.expires
            or memory.expires > conditions.alive_at
        )
        and filters.effective_confidence(
            memory.stored_confidence, conditions.decay_rate, memory.last_access, WALL_TIME
        )
        >= conditions.min_confidence
        and filters.meets_tests(memory.context, conditions.tests)
        and is_near(conditions.place, memory.pose)
    ]


def is_near(place: Place | None, pose: Pose | None) -> bool:
    if place is None:
        return True
    if pose is None or pose.frame_id != place.frame_id:
        return False
    return math.dist(pose.position, place.target) <= place.max_distance


def is_of_another_session(name: str | None, session_id: str, memories: Any) -> bool:
    return name is None or session_id not in ("", name)


def test_values_that_come_late_are_found_until_the_column_is_read_anew(
    db_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column was read with few distinct values; then thousands of others come."""
    store = Store(db_path)
    store.add_many([new("first", context={"task": {"n": 0.5}})])
    count = 0

    def at_least(low: float) -> list[int]:
        tests = filters.parse_context_filter({"task.n": {"$gte": low}}, 1000, 10)
        return eligible(store, dataclasses.replace(EVERYTHING, tests=tests))

    assert at_least(0) == [1]
    for _ in range(4):
        many = [new(f"text {count + i}", context={"task": {"n": count + i}}) for i in range(400)]
        store.add_many(many)
        count += len(many)
        assert at_least(count - 10) == list(range(count - 8, count + 2))
        assert len(at_least(1)) == count - 1
    store.update(5, None, {"task": {"n": -1}}, 1)
    store.forget(6, "", 1)
    assert at_least(0)[:5] == [1, 2, 3, 4, 7]
    store.close()


@pytest.mark.parametrize("listed", [0, 20_000])
def test_an_unindexed_context_is_read(
    db_path: str, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    """It has more values than the index takes."""
    monkeypatch.setattr(eligibility, "LISTED", listed)
    store = Store(db_path)
    store.add(new("large", context={"task": {f"k{i}": i for i in range(500)}}))
    store.add(new("small", context={"task": {"k7": 7}}))
    store.add(new("other", context={"task": {"k7": 8}}))
    tests = filters.parse_context_filter({"task.k7": 7}, 1000, 10)
    assert eligible(store, dataclasses.replace(EVERYTHING, tests=tests)) == [1, 2]
    missing = filters.parse_context_filter({"task.k9": {"$exists": False}}, 1000, 10)
    assert eligible(store, dataclasses.replace(EVERYTHING, tests=missing)) == [2, 3]
    store.close()


def test_a_store_whose_log_of_memories_is_lost_still_answers(db_path: str) -> None:
    store = Store(db_path)
    store.add(new("one"))
    assert eligible(store, EVERYTHING) == [1]
    with sql(db_path) as connection:
        connection.execute("DROP TABLE memory_changes")
    assert eligible(store, EVERYTHING) == [1]
    assert store.add(new("two")) == (2, True)  # mends the log
    assert store.was_mended
    assert eligible(store, EVERYTHING) == [1, 2]
    store.close()


def test_closing_ends_what_is_being_read(db_path: str) -> None:
    store = Store(db_path)
    reading, problems = threading.Event(), list[Exception]()

    def read_for_ever() -> None:
        try:
            with store.snapshot() as snapshot:
                reading.set()
                snapshot._connection.execute(
                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                    "SELECT count(*) FROM n"
                ).fetchall()
        except StoreError as error:
            problems.append(error)

    thread = threading.Thread(target=read_for_ever)
    thread.start()
    reading.wait()
    store.close()
    thread.join()
    assert "was closed" in str(problems)


def test_opening_a_memory_and_closing_it_at_once_leaves_no_thread(db_path: str) -> None:
    before = set(threading.enumerate())
    for _ in range(20):
        store = Store(db_path)
        store.warm()
        store.close()
    assert set(threading.enumerate()) == before


def test_a_file_whose_arrays_were_not_told_apart_learns_to(db_path: str) -> None:
    store = Store(db_path)
    for value in ([1, 2], [1, 3], {"x": 1}, "text", 7):
        store.add(new(f"text {value}", context={"task": {"v": value, "n": 1}}))
    store.close()
    with sql(db_path) as connection:
        connection.execute(
            "UPDATE attributes SET value = substr(value, 1, 1) "
            "WHERE hex(substr(value, 1, 1)) IN ('06', '07')"
        )
        connection.pragma("user_version", 2)
    store = Store(db_path)
    for value, expected in (([1, 2.0], [1]), ({"x": 1}, [3]), ("text", [4]), (7, [5]), ([], [])):
        tests = filters.parse_context_filter({"task.v": {"$eq": value}}, 1000, 10)
        assert eligible(store, dataclasses.replace(EVERYTHING, tests=tests)) == expected
    store.close()


def test_a_memory_that_comes_back_is_told_to_those_who_follow(db_path: str) -> None:
    """One that another had replaced, when that one is forgotten: reminders and markers follow."""
    store = Store(db_path)
    store.add_many([new("old"), new("new")])
    with sql(db_path) as connection:
        connection.execute("UPDATE memories SET superseded_by = 2 WHERE id = 1")
    with store.snapshot() as snapshot:
        change, _ = snapshot.changed_since(-1)
    store.forget(2, "", 1)
    with store.snapshot() as snapshot:
        assert snapshot.changed_since(change)[1] == {1, 2}
    store.close()
