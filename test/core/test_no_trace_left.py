# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Learn, update and forget keep every index in step with the memories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from making import new, sql, tables_that_name

from robotmem_ros.core.errors import InvalidRequestError, NotFoundError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Near, Pose, Query
from robotmem_ros.core.store import Store

CONTEXT = {
    "robot": {"id": "arm-7"},
    "spatial": {"object_position": [1.0, 2.0, 3.0], "flat": [1, 2]},
    "params": {"force": {"value": 12.5, "unit": "N"}},
}
POSE = Pose("map", (1.0, 2.0, 3.0))
INDEXES = {"memories", "texts", "documents", "keywords", "memory_entities", "attributes"}


def indexed(path: str, memory_id: int) -> set[str]:
    return tables_that_name(path, memory_id)


def rows(path: str, query: str, *values: Any) -> list[Any]:
    with sql(path) as connection:
        return connection.execute(query, values).fetchall()


def assert_indexes_are_sound(path: str) -> None:
    """Check the indexes against what SQLite itself knows of them, and against each other."""
    with sql(path) as connection:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        connection.execute("INSERT INTO keywords (keywords, rank) VALUES ('integrity-check', 1)")
        assert connection.execute("SELECT rtreecheck('places')").get == "ok"
        total = connection.execute("SELECT count(*) FROM memories").get
        words = connection.execute("SELECT count(*), coalesce(sum(length), 0) FROM documents").get
        assert connection.execute("SELECT documents, tokens FROM corpus").get == words
        assert words[0] == total
        assert connection.execute("SELECT count(*) FROM texts").get == total
        waiting = connection.execute("SELECT count(*) FROM unembedded").get
        assert waiting + connection.execute("SELECT count(*) FROM vectors").get == total
        for table in ("memory_entities", "attributes", "vectors", "unembedded", "places"):
            strays = f"SELECT memory_id FROM {table} EXCEPT SELECT id FROM memories"
            assert connection.execute(strays).fetchall() == []


def test_a_learned_memory_is_in_every_index(memory: RobotMemory, db_path: str) -> None:
    number = memory.learn(Experience("arm-7 lifts a cup", CONTEXT, pose=POSE)).memory.id
    assert indexed(db_path, number) == INDEXES | {"unembedded", "places"}
    assert len(rows(db_path, "SELECT 1 FROM places WHERE memory_id = ?", number)) == 3
    assert_indexes_are_sound(db_path)


def test_a_forgotten_memory_is_in_no_table(memory: RobotMemory, db_path: str) -> None:
    number = memory.learn(Experience("arm-7 lifts a cup", CONTEXT, pose=POSE)).memory.id
    kept = memory.learn(Experience("arm-8 lifts a box")).memory.id
    memory.forget(number, "it was wrong")
    assert indexed(db_path, number) == set()
    assert [row[1:] for row in rows(db_path, "SELECT uuid, reason FROM forgotten")] == [
        ("it was wrong",)
    ]
    assert_indexes_are_sound(db_path)
    assert memory.get(ids=[number, kept])[1] == [number]
    with pytest.raises(NotFoundError):
        memory.forget(number)


def test_a_forgotten_vector_is_gone(db_path: str) -> None:
    store = Store(db_path)
    store.use_model("m", 4)
    store.add(new("x", context=CONTEXT, pose=POSE))
    store.put_vectors("m", [(1, "x", np.ones(4, np.float32))])
    assert indexed(db_path, 1) == INDEXES | {"vectors", "places"}
    store.forget(1, "", 1)
    assert indexed(db_path, 1) == set()
    store.close()


def test_the_number_of_a_forgotten_memory_is_never_given_again(memory: RobotMemory) -> None:
    number = memory.learn(Experience("one")).memory.id
    memory.forget(number)
    assert memory.learn(Experience("one")).memory.id > number


def test_one_live_memory_is_found_among_sixty_forgotten(memory: RobotMemory) -> None:
    context = {"task": {"name": "grasp"}, "spatial": {"p": [0, 0, 0]}}
    for i in range(60):
        text = f"grip force was right for the cup number {i}"
        memory.forget(memory.learn(Experience(text, context, pose=POSE)).memory.id)
    live = memory.learn(Experience("grip force of the cup", context, pose=POSE)).memory.id
    for query in (
        Query("grip force"),
        Query("*"),
        Query("cup", context_filter={"task.name": "grasp"}),
        Query("cup", spatial_sort={"field": "spatial.p", "target": [0, 0, 0]}),
        Query("cup", near=Near("map", (1, 2, 3), 1.0)),
    ):
        assert [found.memory.id for found in memory.recall(query).memories] == [live]


def test_an_update_replaces_the_words(memory: RobotMemory, db_path: str) -> None:
    number = memory.learn(Experience("old wording of E-217", CONTEXT, pose=POSE)).memory.id
    before, now = memory.update(number, "fresh phrase of E-300")
    assert before == "old wording of E-217"
    assert now.content == "fresh phrase of E-300"
    assert now.context == CONTEXT
    assert memory.recall(Query("old wording")).memories == ()
    assert memory.recall(Query("fresh phrase")).memories[0].memory.id == number
    names = rows(
        db_path,
        "SELECT name FROM entities JOIN memory_entities ON id = entity_id WHERE memory_id = ?",
        number,
    )
    assert {"e-300", "arm-7"} <= {name for (name,) in names}
    assert "e-217" not in {name for (name,) in names}
    assert_indexes_are_sound(db_path)


def test_an_update_replaces_the_context(memory: RobotMemory, db_path: str) -> None:
    number = memory.learn(Experience("lift", CONTEXT, pose=POSE)).memory.id
    text, now = memory.update(number, context='{"spatial": {"object_position": [9, 9, 9]}}')
    assert (text, now.content) == ("lift", "lift")
    assert now.context == {"spatial": {"object_position": [9, 9, 9]}}
    assert memory.recall(Query("lift", context_filter={"robot.id": "arm-7"})).memories == ()
    assert memory.recall(Query("arm-7")).memories == ()
    for target, found in ([1, 2, 3], 0), ([9, 9, 9], 1):
        place = {"field": "spatial.object_position", "target": target, "max_distance": 0.1}
        assert len(memory.recall(Query("lift", spatial_sort=place)).memories) == found
    assert_indexes_are_sound(db_path)


def test_an_update_of_the_words_makes_the_old_vector_unfindable(db_path: str) -> None:
    store = Store(db_path)
    store.use_model("m", 4)
    store.add(new("old"))
    store.put_vectors("m", [(1, "old", np.ones(4, np.float32))])
    store.update(1, None, {"a": 1}, 2)
    assert indexed(db_path, 1) >= {"vectors"}  # the same words keep theirs
    store.update(1, "new", None, 3)
    assert "vectors" not in indexed(db_path, 1)
    assert store.unembedded(9) == [(1, "new")]
    store.update(1, "newer", None, 4)
    assert store.unembedded(9) == [(1, "newer")]
    store.close()


def test_many_updates_and_a_forget_leave_nothing(memory: RobotMemory, db_path: str) -> None:
    number = memory.learn(Experience("word 0", CONTEXT, pose=POSE)).memory.id
    large = {"x": {str(i): i for i in range(300)}, "spatial": {"p": [1, 2, 3]}}
    for i, context in enumerate([{}, large, CONTEXT, large, {"a": [{"b": None}]}]):
        memory.update(number, f"word {i + 1}", context or '{"only": "this"}')
        assert_indexes_are_sound(db_path)
    memory.forget(number)
    assert indexed(db_path, number) == set()
    assert_indexes_are_sound(db_path)


@pytest.mark.parametrize("number", [0, -1, 12, 2**63, -(2**63) - 1, 10**30])
def test_what_is_not_stored_cannot_be_changed(memory: RobotMemory, number: int) -> None:
    with pytest.raises(NotFoundError, match=f"memory_id: {number} is not stored"):
        memory.forget(number)
    with pytest.raises(NotFoundError, match=f"memory_id: {number} is not stored"):
        memory.update(number, "text")
    assert memory.get(ids=[number]) == ([], [number])


def test_an_update_of_nothing_is_refused(memory: RobotMemory) -> None:
    number = memory.learn(Experience("x")).memory.id
    for content, context in ("", ""), ("  \n", ""), ("", "{"), ("", "[]"):
        with pytest.raises(InvalidRequestError):
            memory.update(number, content, context)
    assert memory.get(ids=[number])[0][0].content == "x"
