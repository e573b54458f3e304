# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Every vector of a large store has its code, however it came to be large."""

from __future__ import annotations

import numpy as np
import pytest
from making import by_vector, new, sql

from robotmem_ros.core.store import Store, check, codes, schema

DIMENSION = 70  # no multiple of 64: codes are padded
LIMIT = 20


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "EXACT_LIMIT", LIMIT)
    monkeypatch.setattr(codes, "_LOOKED_AT", 4)
    monkeypatch.setattr(codes, "_AT_ONCE", 3)


def put(store: Store, source: np.random.Generator, count: int) -> None:
    for _ in range(count):
        text = f"text {source.integers(2**60)}"
        (number,) = store.add_many([new(text)])
        vector = source.normal(size=DIMENSION).astype(np.float32)
        store.put_vectors("m", [(number, text, vector)])


def assert_codes_are_right(path: str, complete: bool) -> None:
    with sql(path) as connection:
        known = codes.centre(connection)
        assert known is not None
        centre, coded_to = known
        vectors = dict(connection.execute("SELECT memory_id, vector FROM vectors").fetchall())
        found = dict(connection.execute("SELECT memory_id, code FROM codes").fetchall())
    assert not complete or coded_to is None
    assert set(found) <= set(vectors)
    assert coded_to is not None or set(found) == set(vectors)
    for number, code in found.items():
        _, unit = codes.sound([(number, vectors[number])])
        assert code == codes.of(unit, centre).tobytes()


def nearest(store: Store, query: np.ndarray, exact: bool) -> list[int]:
    return [number for number, _ in by_vector(store, query, 5, exact)]


def test_a_store_that_grows_large_gets_codes_little_by_little(db_path: str) -> None:
    source = np.random.default_rng(1)
    stores = Store(db_path), Store(db_path)
    stores[0].use_model("m", DIMENSION)
    with sql(db_path) as connection:
        put(stores[0], source, LIMIT)
        assert codes.centre(connection) is None
        for step in range(30):
            put(stores[step % 2], source, 1)
            if step % 5 == 4:
                stores[step % 2].forget(step, "", 1)
            if codes.centre(connection) is not None:
                assert_codes_are_right(db_path, complete=False)
            for store in stores:  # fewer than are measured: the answer is exact
                query = source.normal(size=DIMENSION).astype(np.float32)
                assert nearest(store, query, False) == nearest(store, query, True)
    assert_codes_are_right(db_path, complete=True)
    for store in stores:
        store.close()


def test_another_model_begins_anew(db_path: str) -> None:
    source = np.random.default_rng(2)
    store = Store(db_path)
    store.use_model("m", DIMENSION)
    put(store, source, LIMIT + 20)
    assert_codes_are_right(db_path, complete=True)
    store.use_model("other", DIMENSION)
    with sql(db_path) as connection:
        assert codes.centre(connection) is None
        assert connection.execute("SELECT count(*) FROM codes").get == 0
    store.close()


def test_a_file_of_the_first_version_gets_codes_and_follows_its_memories(db_path: str) -> None:
    source = np.random.default_rng(3)
    store = Store(db_path)
    store.use_model("m", DIMENSION)
    put(store, source, LIMIT + 20)
    query = source.normal(size=DIMENSION).astype(np.float32)
    expected = nearest(store, query, True)
    store.close()
    with sql(db_path) as connection:
        for trigger in ("insert", "delete", "update"):
            connection.execute(f"DROP TRIGGER memories_logged_{trigger}")
        for table in ("memory_changes", "codes", "code_centre"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DELETE FROM migrations WHERE name <> 'create_tables'")
        connection.pragma("user_version", 1)
    store = Store(db_path)
    assert store.schema_version == schema.VERSION > 1
    assert_codes_are_right(db_path, complete=True)
    assert nearest(store, query, True) == nearest(store, query, False) == expected
    store.forget(expected[0], "", 1)
    assert expected[0] not in nearest(store, query, False)
    store.close()


@pytest.mark.parametrize("table", ["codes", "code_centre"])
def test_lost_codes_are_told_and_made_again(db_path: str, table: str) -> None:
    source = np.random.default_rng(4)
    store = Store(db_path)
    store.use_model("m", DIMENSION)
    put(store, source, LIMIT + 20)
    query = source.normal(size=DIMENSION).astype(np.float32)
    expected = nearest(store, query, True)
    store.close()
    with sql(db_path) as connection:
        connection.execute(f"DROP TABLE {table}")
    store = Store(db_path)
    with store.snapshot() as snapshot:
        assert "call ~/reindex" in snapshot.vector_problem()
    store.reindex(lambda done, total: None)
    assert nearest(store, query, False) == expected
    put(store, source, 30)
    assert_codes_are_right(db_path, complete=True)
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE codes SET code = zeroblob(16) WHERE memory_id = 7",
        "UPDATE codes SET code = 'text' WHERE memory_id = 7",
        "DELETE FROM codes WHERE memory_id = 7",
        "INSERT INTO codes VALUES (700, zeroblob(16))",
        "UPDATE code_centre SET centre = zeroblob(280)",
        "UPDATE code_centre SET centre = 'text'",
        "DELETE FROM code_centre",
    ],
)
def test_a_code_of_another_vector_is_found_and_made_anew(db_path: str, statement: str) -> None:
    store = Store(db_path)
    store.use_model("m", DIMENSION)
    put(store, np.random.default_rng(5), LIMIT + 20)
    store.close()
    assert check.check(db_path).disagreements == ()
    with sql(db_path) as connection:
        connection.execute(statement)
    found = check.check(db_path)
    assert found.damages == ()
    assert "code" in found.disagreements[0]
    store = Store(db_path)
    store.reindex(lambda done, total: None)
    put(store, np.random.default_rng(6), 30)
    store.close()
    assert check.check(db_path).disagreements == ()
    assert_codes_are_right(db_path, complete=True)
