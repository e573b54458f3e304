# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Each index may break alone: the others answer, nothing learned is lost, reindex mends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from making import by_keywords, by_vector, new, sql

from robotmem_ros.core import search
from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import RobotMemoryError, SearchError, StoreError
from robotmem_ros.core.filters import Conditions
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Fusion, Mode, Near, Pose, Query
from robotmem_ros.core.store import Store, Wanted, schema
from robotmem_ros.core.store import store as store_module

VECTOR = np.array([1, 0, 0, 0], np.float32)
CONTEXT = {"task": {"name": "grasp"}, "spatial": {"p": [1, 2, 3]}}
KEYWORD_TABLES = ["keywords", "documents", "corpus", "words"]
VECTOR_TABLES = ["vectors"]
LOGS = ["vector_changes", "document_changes"]
OTHER_TABLES = [
    *("memory_entities", "entities", "attributes", "paths", "places", "place_names"),
    *("unembedded", "embedder"),
]


@pytest.fixture
def store(db_path: str) -> Iterator[Store]:
    opened = Store(db_path)
    opened.use_model("m", len(VECTOR))
    for i in range(5):
        opened.add(
            new(f"grasp cup {i}", context=CONTEXT, pose=Pose("map", (i, 0, 0)), stamp=i + 1)
        )
        opened.put_vectors("m", [(i + 1, f"grasp cup {i}", VECTOR)])
    yield opened
    opened.close()


def drop(path: str, table: str) -> None:
    with sql(path) as connection:
        connection.execute(f"DROP TABLE {table}")


def recall(store: Store, vector: np.ndarray | None = VECTOR, **fields: Any) -> search.Ranking:
    config = Config(embed_backend="none")
    request = search.check(Query("grasp cup", **fields), config, 1, 1)
    with store.snapshot() as snapshot:
        return search.rank(snapshot, request, vector, config)


@pytest.mark.parametrize("warm", [True, False], ids=["used before", "first use"])
@pytest.mark.parametrize("fusion", Fusion)
@pytest.mark.parametrize("table", KEYWORD_TABLES)
def test_vectors_answer_without_the_keyword_index(
    store: Store, table: str, fusion: Fusion, warm: bool
) -> None:
    if warm:
        assert recall(store).mode is Mode.HYBRID
    drop(store.path, table)
    found = recall(store, fusion=fusion)
    assert found.mode is Mode.VEC_ONLY
    assert found.ids == [1, 2, 3, 4, 5]
    with store.snapshot() as snapshot:
        assert "call ~/reindex" in snapshot.keyword_problem()
        assert snapshot.vector_problem() == ""


@pytest.mark.parametrize("warm", [True, False], ids=["used before", "first use"])
@pytest.mark.parametrize("fusion", Fusion)
def test_keywords_answer_without_the_vectors(store: Store, fusion: Fusion, warm: bool) -> None:
    if warm:
        assert recall(store).mode is Mode.HYBRID
    drop(store.path, "vectors")
    found = recall(store, fusion=fusion)
    assert found.mode is Mode.BM25_ONLY
    assert found.ids == [1, 2, 3, 4, 5]
    with store.snapshot() as snapshot:
        assert "call ~/reindex" in snapshot.vector_problem()
        assert snapshot.keyword_problem() == ""


def test_only_both_together_are_an_error(store: Store) -> None:
    drop(store.path, "keywords")
    with pytest.raises(SearchError, match="reindex"):
        recall(store, vector=None)
    drop(store.path, "vectors")
    with pytest.raises(SearchError, match="reindex"):
        recall(store)


@pytest.mark.parametrize("fusion", Fusion)
@pytest.mark.parametrize("table", OTHER_TABLES + LOGS)
def test_a_recall_answers_or_says_what_to_do(store: Store, table: str, fusion: Fusion) -> None:
    """Also with the other indexes broken, and with conditions that need them."""
    drop(store.path, table)
    for fields in (
        {},
        {"context_filter": {"task.name": "grasp"}},
        {"spatial_sort": {"field": "spatial.p", "target": [1, 2, 3]}},
        {"near": Near("map", (0, 0, 0))},
    ):
        said = ""
        try:
            found = recall(store, fusion=fusion, **fields).ids
        except RobotMemoryError as error:
            found, said = [], str(error)
        assert found or "call ~/reindex" in said


@pytest.mark.parametrize("table", [*KEYWORD_TABLES, *VECTOR_TABLES, *LOGS, *OTHER_TABLES])
def test_nothing_learned_is_lost_and_reindex_mends(store: Store, table: str) -> None:
    recall(store)
    drop(store.path, table)
    number, created = store.add(
        new("grasp a cup late", context=CONTEXT, pose=Pose("map", (9, 0, 0)))
    )
    assert created
    with store.snapshot() as snapshot:
        assert snapshot.memories([number])[number].content == "grasp a cup late"
    progress: list[tuple[int, int]] = []
    assert store.reindex(lambda done, total: progress.append((done, total))) == 6
    assert progress[-1] == (6, 6)
    assert number in {waiting for waiting, _ in store.unembedded(10)}
    assert_whole(store, number)
    second = Store(store.path)
    assert_whole(second, number)
    second.close()


def assert_whole(store: Store, late: int) -> None:
    """Check that every index finds the memory that was learned while one was broken."""
    with store.snapshot() as snapshot:
        assert snapshot.keyword_problem() == snapshot.vector_problem() == ""
    assert late in dict(by_keywords(store, ["late"]))
    store.use_model("m", len(VECTOR))
    for number, text in store.unembedded(10):
        store.put_vectors("m", [(number, text, VECTOR)])
    for fields in (
        {},
        {"context_filter": {"task.name": "grasp"}},
        {"context_filter": {"spatial.p": {"$exists": True}}},
        {"spatial_sort": {"field": "spatial.p", "target": [1, 2, 3], "max_distance": 1}},
        {"near": Near("map", (0, 0, 0), 100.0)},
    ):
        found = recall(store, n=10, **fields)
        assert found.mode is Mode.HYBRID
        assert sorted(found.ids) == [1, 2, 3, 4, 5, late]
    assert [number for number, _ in _nearest(store)] == [1, 2, 3, 4, 5, late]


def _nearest(store: Store) -> list[tuple[int, float]]:
    return by_vector(store, VECTOR, 10)


@pytest.mark.parametrize("log", LOGS)
def test_a_log_made_anew_is_followed(store: Store, log: str) -> None:
    """Copies in memory, of this store and another, must not wait for the old numbers."""
    other = Store(store.path)
    for each in (store, other):
        recall(each)
    drop(store.path, log)
    store.reindex(lambda done, total: None)
    store.forget(1, "", 1)
    number, _ = store.add(new("grasp cup anew"))
    store.put_vectors("m", [(number, "grasp cup anew", VECTOR)])
    for each in (store, other):
        assert recall(each, n=10).ids == [2, 3, 4, 5, number]
        assert [found for found, _ in by_keywords(each, ["anew"])] == [number]
        assert [found for found, _ in _nearest(each)] == [2, 3, 4, 5, number]
    other.close()


def test_update_and_forget_mend_a_broken_index_too(store: Store) -> None:
    drop(store.path, "documents")
    store.update(1, "reworded", None, 1)
    assert store.was_mended
    assert store.index_waiting(lambda done, total: None) == 4
    assert by_keywords(store, ["reword"])
    drop(store.path, "attributes")
    store.forget(2, "", 1)
    store.index_waiting(lambda done, total: None)
    assert sorted(recall(store, context_filter={"task.name": "grasp"}).ids) == [1, 3, 4, 5]


def test_the_face_reports_and_mends(memory: RobotMemory, db_path: str) -> None:
    memory.learn(Experience("grasp the cup"))
    drop(db_path, "keywords")
    assert "call ~/reindex" in memory.status().keyword_reason
    with pytest.raises((SearchError, StoreError), match="reindex"):
        memory.recall(Query("cup"))
    assert "started" in memory.reindex()
    deadline = time.monotonic() + 10
    while memory.status().task:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    status = memory.status()
    assert (status.task_result, status.keyword_reason) == ("reindexed 1 memories", "")
    assert memory.recall(Query("cup")).mode is Mode.BM25_ONLY


def test_nobody_waits_for_a_reindex_and_filters_hold_meanwhile(store: Store) -> None:
    learned: list[int] = []

    def progress(done: int, total: int) -> None:
        learned.append(store.add(new(f"learned at {done}"))[0])  # would wait for ever if locked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_INDEXED_AT_ONCE", 1)
        assert store.reindex(progress) == 5
    assert len(learned) == 5
    found = by_keywords(store, ["learn"])
    assert sorted(number for number, _ in found) == sorted(learned)


def test_filters_hold_for_memories_that_are_not_indexed_yet(store: Store) -> None:
    with store._database.write() as connection:
        schema.renew_indexes(connection)
    for fields in (
        {"context_filter": {"task.name": "grasp"}},
        {"spatial_sort": {"field": "spatial.p", "target": [1, 2, 3], "max_distance": 1}},
        {"near": Near("map", (0, 0, 0), 100.0)},
    ):
        assert sorted(recall(store, n=10, **fields).ids) == [1, 2, 3, 4, 5]
    with store.snapshot() as snapshot:
        assert "5 memories to go" in snapshot.keyword_problem()


def test_an_interrupted_reindex_goes_on_at_the_next_start(
    memory: RobotMemory, db_path: str
) -> None:
    memory.learn(Experience("grasp the cup"))
    memory.close()
    store = Store(db_path)
    with store._database.write() as connection:
        schema.renew_indexes(connection)
    store.close()
    with RobotMemory(Config(db_path=db_path, embed_backend="none")) as again:
        deadline = time.monotonic() + 10
        while again.status().keyword_reason:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert len(again.recall(Query("cup")).memories) == 1


@pytest.mark.parametrize(
    "damage", ["DELETE FROM keywords_data", "DROP TABLE keywords_data", "DELETE FROM corpus"]
)
def test_a_damaged_keyword_index_leaves_the_vectors_and_loses_no_learn(
    store: Store, damage: str
) -> None:
    with sql(store.path) as connection:
        connection.execute(damage)
    assert recall(store).mode is Mode.VEC_ONLY
    number, created = store.add(new("grasp a cup late"))
    assert created
    store.index_waiting(lambda done, total: None)
    store.reindex(lambda done, total: None)
    with store.snapshot() as snapshot:
        assert number in snapshot.memories([number])
    assert by_keywords(store, ["late"])


@pytest.mark.parametrize("blob", ["x'00'", "zeroblob(8)", "zeroblob(4000)"])
def test_a_damaged_vector_is_left_out(store: Store, blob: str) -> None:
    with sql(store.path) as connection:
        connection.execute(f"UPDATE vectors SET vector = {blob} WHERE memory_id = 1")
    found = recall(store, n=10)
    assert set(found.ids) >= {2, 3, 4, 5}
    assert all(0.0 <= score <= 1.0 for score in found.scores)


@pytest.mark.parametrize("change", ["learn", "update", "forget"])
def test_whatever_finds_a_broken_index_has_it_made_anew(
    memory: RobotMemory, db_path: str, change: str
) -> None:
    first, second = (memory.learn(Experience(f"grasp the cup {i}")).memory.id for i in range(2))
    drop(db_path, "documents")
    if change == "learn":
        memory.learn(Experience("grasp the plate"))
    elif change == "update":
        memory.update(second, "grasp the plate")
    else:
        memory.forget(second)
    deadline = time.monotonic() + 10
    while memory.status().keyword_reason:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert first in {item.memory.id for item in memory.recall(Query("cup")).memories}


@pytest.mark.parametrize("version", range(1, schema.VERSION))
@pytest.mark.parametrize("table", ["vectors", "codes", *LOGS, *KEYWORD_TABLES[:3], *OTHER_TABLES])
def test_an_older_file_with_a_broken_index_is_opened(
    store: Store, version: int, table: str
) -> None:
    """Reindex can mend it only if it can be opened."""
    store.close()
    with sql(store.path) as connection:
        if version == 1:
            for event in ("insert", "delete", "update"):
                connection.execute(f"DROP TRIGGER memories_logged_{event}")
            for late in ("memory_changes", "codes", "code_centre"):
                connection.execute(f"DROP TABLE {late}")
        connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.pragma("user_version", version)
    opened = Store(store.path)
    number, _ = opened.add(new("grasp cup late", context=CONTEXT, pose=Pose("map", (0, 0, 0))))
    opened.reindex(lambda done, total: None)
    assert_whole(opened, number)
    opened.close()


def test_touches_mend_a_lost_log(store: Store) -> None:
    drop(store.path, "memory_changes")
    store.touch({1: (1, 1, 5)})
    assert store.was_mended
    with store.snapshot() as snapshot:
        assert snapshot.memories([1])[1].return_count == 1


def test_an_answer_says_that_words_do_not_find_everything_yet(store: Store) -> None:
    with sql(store.path) as connection:
        connection.execute("INSERT INTO unindexed VALUES (1), (2)")
    request = search.check(Query("grasp cup"), Config(embed_backend="none"), 1, 1)
    with store.snapshot() as snapshot:
        assert "words do not find 2 memories yet" in search.note(snapshot, request, 3)


def test_each_memory_keeps_its_own_bm25_while_others_wait_for_their_words(store: Store) -> None:
    """A memory found by its vector, far behind all that are indexed, must not shift the others."""
    for i in range(100):
        store.add(new(f"grasp another cup {i}"))
    seen = []

    def progress(done: int, total: int) -> None:
        with store.snapshot() as snapshot:
            snapshot.eligible(Conditions(), Wanted(["grasp", "3"]))
            alone = {number: snapshot.bm25([number]).get(number) for number in (105, 2, 4)}
            together = snapshot.bm25([105, 4, 2])
            seen.append((alone, {number: together.get(number) for number in alone}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_INDEXED_AT_ONCE", 5)
        store.reindex(progress)
    assert seen[0][0][105] is None
    assert seen[0][0][4] > seen[0][0][2] > 0
    assert all(alone == together for alone, together in seen)
