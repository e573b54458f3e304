# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Short ways to make what the tests of the store need."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import sqlite_vec

from robotmem_ros.core.filters import Conditions
from robotmem_ros.core.model import MemoryType
from robotmem_ros.core.store import NewMemory, Store, Wanted

_PLAIN = NewMemory(
    uuid="",
    type=MemoryType.FACT,
    perception_type=None,
    content="",
    context={},
    collection="default",
    session_id="",
    confidence=0.9,
    stamp=1,
    pose=None,
    expires=0,
    now=1,
)

EVERYTHING = Conditions()


def new(content: str, **fields: Any) -> NewMemory:
    """Return a memory to be stored, plain but for some fields."""
    return dataclasses.replace(_PLAIN, content=content, **fields)


def by_keywords(
    store: Store, terms: list[str], k: int = 100, exact: bool = False
) -> list[tuple[int, float]]:
    """Return the best of all memories by words, with their BM25."""
    with store.snapshot() as snapshot:
        everybody = snapshot.eligible(EVERYTHING, Wanted(terms, exact=exact))
        return snapshot.by_keywords(k, everybody)


def by_vector(
    store: Store, query: Any, k: int = 100, exact: bool = False
) -> list[tuple[int, float]]:
    """Return the nearest of all memories, with their cosine similarity."""
    with store.snapshot() as snapshot:
        everybody = snapshot.eligible(EVERYTHING, Wanted(vectors=True))
        return snapshot.by_vector(query, k, everybody, exact)


@contextmanager
def sql(path: str) -> Iterator[apsw.Connection]:
    """Open a database file beside the store."""
    connection = apsw.Connection(path)
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.set_busy_timeout(10_000)
    try:
        yield connection
    finally:
        connection.close()


def tables_that_name(path: str, memory_id: int) -> set[str]:
    """Return the tables that have a row of a memory."""
    found = set()
    with sql(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        for (table,) in tables.fetchall():
            columns = connection.execute(f"SELECT name FROM pragma_table_info('{table}')")
            for (column,) in columns.fetchall():
                is_id = column == "memory_id" or (table, column) == ("memories", "id")
                if is_id and not table.endswith("_changes"):
                    rows = f"SELECT 1 FROM {table} WHERE {column} = ?"
                    if connection.execute(rows, (memory_id,)).get:
                        found.add(table)
        if connection.execute("SELECT 1 FROM words WHERE doc = ? LIMIT 1", (memory_id,)).get:
            found.add("keywords")
    return found
