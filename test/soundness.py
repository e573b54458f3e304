# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Compare every table of a store with what its memories say must stand there."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import apsw
import numpy as np
import sqlite_vec

from robotmem_ros.core import entities
from robotmem_ros.core.model import Memory
from robotmem_ros.core.store import attributes, codes, places, records, rows, vectors
from robotmem_ros.core.text import index_tokens


@contextlib.contextmanager
def opened(path: str) -> Iterator[apsw.Connection]:
    """Open a database file beside the store."""
    connection = apsw.Connection(path)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # leave the log to its owner
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.set_busy_timeout(30_000)
    try:
        yield connection
    finally:
        connection.close()


def stored(connection: apsw.Connection) -> dict[int, Memory]:
    """Return all memories by number."""
    found = connection.execute(f"SELECT {rows.COLUMNS} FROM memories AS m {rows.JOINS}")
    return {row[0]: rows.memory(row) for row in found}


def problems(connection: apsw.Connection) -> list[str]:
    """Return what is wrong with a store, in a sentence each; nothing in a sound one."""
    # FTS5 checks itself by way of an INSERT: who only reads could not begin it once another wrote.
    connection.execute("BEGIN IMMEDIATE")
    try:
        memories = stored(connection)
        found = [*_of_sqlite(connection), *_of_counts(connection, memories)]
        found += _of_memories(connection, memories)
        found += _of_vectors(connection, memories)
        found += _of_episodes(connection)
    finally:
        connection.execute("ROLLBACK")
    return found


def _all(connection: apsw.Connection, sql: str) -> list[Any]:
    return connection.execute(sql).fetchall()


def _of_sqlite(connection: apsw.Connection) -> Iterator[str]:
    for check in ("PRAGMA integrity_check", "SELECT rtreecheck('places')"):
        found = connection.execute(check).get
        if found != "ok":
            yield f"{check}: {found}"
    try:
        connection.execute("INSERT INTO keywords (keywords, rank) VALUES ('integrity-check', 1)")
    except apsw.Error as error:
        yield f"the keyword index: {error}"


def _of_counts(connection: apsw.Connection, memories: dict[int, Memory]) -> Iterator[str]:
    rows_there = connection.execute("SELECT count(*) FROM memories").get
    if rows_there != len(memories):
        yield f"of {rows_there} memories only {len(memories)} are whole"
    by_collection = Counter(memory.collection for memory in memories.values())
    counted = dict(_all(connection, "SELECT name, memories FROM collections WHERE memories"))
    if counted != by_collection:
        yield f"collections are counted as {counted}, and are {by_collection}"
    words = connection.execute("SELECT count(*), coalesce(sum(length), 0) FROM documents").get
    corpus = connection.execute("SELECT documents, tokens FROM corpus").get
    if corpus != words or words[0] != len(memories):
        yield f"{len(memories)} memories, documents and words {words}, counted as {corpus}"
    for table, column in (
        *(("texts", "memory_id"), ("documents", "memory_id"), ("memory_entities", "memory_id")),
        *(("attributes", "memory_id"), ("places", "memory_id"), ("vectors", "memory_id")),
        *(("unembedded", "memory_id"), ("codes", "memory_id"), ("unindexed", "memory_id")),
    ):
        strays = {row[0] for row in _all(connection, f"SELECT {column} FROM {table}")}
        strays -= memories.keys()
        if strays:
            yield f"{table} names {sorted(strays)[:5]}, which are no memories"
    doubled = [name for name, n in Counter(m.uuid for m in memories.values()).items() if n > 1]
    if doubled:
        yield f"doubled: {doubled}"


def _of_memories(connection: apsw.Connection, memories: dict[int, Memory]) -> Iterator[str]:
    documents = {
        row[0]: row[1:]
        for row in _all(connection, "SELECT memory_id, content, entities, length FROM documents")
    }
    named = defaultdict(set)
    for number, name in _all(
        connection,
        "SELECT l.memory_id, e.name FROM memory_entities AS l "
        "JOIN entities AS e ON e.id = l.entity_id",
    ):
        named[number].add(name)
    valued = defaultdict(set)
    for number, path, value in _all(
        connection,
        "SELECT a.memory_id, p.path, a.value FROM attributes AS a "
        "JOIN paths AS p ON p.id = a.path_id",
    ):
        valued[number].add((path, value))
    placed = defaultdict(list)
    for number, name in _all(
        connection,
        "SELECT p.memory_id, n.name FROM places AS p JOIN place_names AS n ON n.id = p.place_min",
    ):
        placed[number].append(name)
    waiting = {row[0] for row in _all(connection, "SELECT memory_id FROM unindexed")}
    kept = dict(_all(connection, "SELECT id, identity FROM memories"))
    for number, memory in memories.items():
        if number in waiting:
            continue
        words = index_tokens(memory.content)
        names = entities.from_context(memory.context)
        name_words = index_tokens(" ".join(names))
        document = (" ".join(words), " ".join(name_words), len(words) + len(name_words))
        entries = attributes.entries(memory.context)
        in_index = memory.context if entries is not None else {}
        positions = [name for name, _ in places._positions(memory.pose, in_index)]
        for what, found, wanted in (
            ("words", documents.get(number), document),
            ("names", named[number], {*names, *entities.from_text(memory.content)}),
            ("attributes", valued[number], set(entries or ())),
            ("places", sorted(placed[number]), sorted(positions)),
            ("identity", kept[number], records.identity(memory)),
        ):
            if found != wanted:
                yield f"memory {number}: its {what} are {found!r}, and should be {wanted!r}"


def _of_vectors(connection: apsw.Connection, memories: dict[int, Memory]) -> Iterator[str]:
    made = dict(_all(connection, "SELECT memory_id, vector FROM vectors"))
    waiting = {row[0] for row in _all(connection, "SELECT memory_id FROM unembedded")}
    if made.keys() & waiting or made.keys() | waiting != memories.keys():
        yield "some memories have a vector and wait for one, or neither"
    known = connection.execute("SELECT dimension FROM embedder").get
    wrong = [number for number, blob in made.items() if known is None or len(blob) != 4 * known]
    if wrong:
        yield f"vectors of a wrong length: {wrong[:5]}"
    middle = codes.centre(connection)
    coded = dict(_all(connection, "SELECT memory_id, code FROM codes"))
    if middle is None:
        if coded:
            yield "there are codes without a centre"
        return
    centre, coded_to = middle
    for number, blob in made.items():
        if number not in coded:
            if coded_to is None or number <= coded_to:
                yield f"memory {number} has no code"
            continue
        vector = vectors.unit(np.frombuffer(blob, "<f4"))
        if codes.of(vector[np.newaxis], centre)[0].tobytes() != coded[number]:
            yield f"memory {number} has the code of another vector"


def _of_episodes(connection: apsw.Connection) -> Iterator[str]:
    for name, ended, count in _all(
        connection,
        "SELECT s.session_id, s.ended, (SELECT count(*) FROM memories AS m "
        "WHERE m.session_id = s.id AND m.type = 'episode') FROM sessions AS s "
        "WHERE s.opened AND s.owner NOT NULL",
    ):
        if count != (ended > 0):
            yield f"episode {name}, which ended at {ended}, has {count} episode memories"
