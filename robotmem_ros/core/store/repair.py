# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Recover the memories of a damaged database into a new file; the damaged one is only read.

What is recovered is made whole: each memory is compared with the digest it was stored with, what
points to something lost is cut off, the indexes are made anew, and the result is checked.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass, field
from typing import Any

from robotmem_ros.core import context as ctx
from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.model import PerceptionType
from robotmem_ros.core.store import backup, files, records, rows, schema
from robotmem_ros.core.store.access import translated_errors
from robotmem_ros.core.store.backup import Progress
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.pages import Pages
from robotmem_ros.core.store.salvage import Salvage

RECOVERED = "recovered"
"""Collection of the memories of which only text and context were left."""

_AT_ONCE = 500


@dataclass(slots=True)
class Repaired:
    """What became of a damaged database.

    Attributes
    ----------
    lost: memories that were there and are not now, as far as that is known.
    altered: numbers of memories that are no longer exactly what was learned.
    bare: memories of which only text and context were left.
    vectors: memories whose vector was recovered; the node makes those of the others.
    """

    path: str
    memories: int = 0
    episodes: int = 0
    vectors: int = 0
    lost: int = 0
    altered: list[int] = field(default_factory=list)
    bare: int = 0


def repair(path: str, output: str, progress: Progress = backup.nothing) -> Repaired:
    """Recover what can be read of a database into a new file, for its owner alone.

    Raises
    ------
    StoreError: nothing was recovered, the new file cannot be written or is there already, or
        another process has the damaged one open.
    """
    files.refuse_existing(output)
    try:
        pages = Pages(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    with contextlib.closing(pages), files.held(path):
        version = _version(pages, path)
        with files.written(output) as partial, translated_errors(output):
            connection = Connection(partial)
            try:
                repaired = _fill(pages, connection, version, output, progress)
            finally:
                connection.close()
            if not repaired.memories and not repaired.episodes:
                raise StoreError(f"{path} holds no memory that can be read; restore a backup")
    return repaired


def _fill(
    pages: Pages, connection: Connection, version: int, output: str, progress: Progress
) -> Repaired:
    # Nothing is lost if this is interrupted, and the whole file is put on disk at the end.
    connection.pragma("journal_mode", "memory")
    connection.pragma("synchronous", "off")
    connection.pragma("temp_store", "memory")
    # The tables as they were; later versions of them are made of these when they are filled.
    schema.migrate(connection, last=version)
    repaired = Repaired(output)
    with connection:
        salvage = Salvage(pages, connection, progress)
        salvage.run()
        _take_spare_texts(connection)
        _join(connection, repaired)
        _keep_good_vectors(connection)
        connection.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'memories'",
            (salvage.last_number,),
        )
    schema.migrate(connection)
    with connection:
        _compare(connection, repaired)
        schema.renew_indexes(connection)
    done, total = 0, connection.execute("SELECT count(*) FROM unindexed").get
    with connection:
        while count := records.index_some(connection, _AT_ONCE):
            done += count
            progress(done, int(total))
    if connection.execute("PRAGMA integrity_check (1)").get != "ok":
        raise StoreError(f"{output} could not be made whole")
    counts: Any = connection.execute(
        "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM sessions WHERE opened), "
        "(SELECT count(*) FROM vectors)"
    ).get
    repaired.memories, repaired.episodes, repaired.vectors = counts
    repaired.lost = max(repaired.lost, salvage.expected - repaired.memories)
    connection.pragma("journal_mode", "delete")
    return repaired


def _version(pages: Pages, path: str) -> int:
    """Return the version of the schema, from what was recorded of its making if need be."""
    version = pages.header.version
    if pages.header.is_sqlite and 0 < version <= schema.VERSION:
        return version
    known = [name for name, _ in schema.MIGRATIONS]
    root = pages.roots({"migrations"}).get("migrations", 0)
    names = [row[1][0] for number in pages.tree(root) for row in pages.rows(number)]
    if len(names) > len(known) and names[: len(known)] == known:
        schema.refuse_newer(path, len(names))
    return len(names) if names and names == known[: len(names)] else schema.VERSION


def _take_spare_texts(connection: Connection) -> None:
    """Where a text does not fit its memory, take the one that does, if it was found elsewhere."""
    spare: Any = connection.execute("SELECT memory_id, content, context FROM spare_texts")
    for memory_id, content, context in spare.fetchall():
        row = _row(connection, memory_id)
        if row is None or _is_unchanged(connection, memory_id, row):
            continue
        before = row[4:6]
        replace = "UPDATE texts SET content = ?, context = ? WHERE memory_id = ?"
        connection.execute(replace, (content, context, memory_id))
        row = _row(connection, memory_id)
        if row is None or not _is_unchanged(connection, memory_id, row):
            connection.execute(replace, (*before, memory_id))


def _join(connection: Connection, repaired: Repaired) -> None:
    """Give a stand-in to what points to something lost, or cut it off."""
    execute = connection.execute
    execute("DELETE FROM memories WHERE id NOT IN (SELECT memory_id FROM texts)")
    repaired.lost = connection.changes()
    known = "(SELECT id FROM memories)"
    execute(
        "DELETE FROM texts WHERE memory_id IN (SELECT memory_id FROM doubtful_texts) "
        f"AND memory_id NOT IN {known}"
    )
    _make_rows_of_bare_texts(connection, repaired)
    for column, table in (("collection_id", "collections"), ("session_id", "sessions")):
        name = "name" if table == "collections" else "session_id"
        execute(
            f"INSERT OR IGNORE INTO {table} (id, {name}) SELECT DISTINCT {column}, "
            f"'{RECOVERED}-' || {column} FROM memories WHERE {column} IS NOT NULL"
        )
    execute(
        f"INSERT OR IGNORE INTO collections (id, name) SELECT DISTINCT collection_id, "
        f"'{RECOVERED}-' || collection_id FROM sessions WHERE collection_id IS NOT NULL"
    )
    execute("DELETE FROM trajectory WHERE session_id NOT IN (SELECT id FROM sessions)")
    execute(f"UPDATE memories SET superseded_by = NULL WHERE superseded_by NOT IN {known}")
    execute(f"DELETE FROM awaited WHERE memory_id NOT IN {known}")


def _make_rows_of_bare_texts(connection: Connection, repaired: Repaired) -> None:
    """Make memories of texts of which nothing else is left, in a collection of their own."""
    found: Any = connection.execute(
        "SELECT memory_id FROM texts WHERE memory_id NOT IN (SELECT id FROM memories)"
    ).fetchall()
    if not found:
        return
    collection = records.number_of(connection, "collections", "name", RECOVERED)
    latest: Any = connection.execute(
        "SELECT coalesce(max(stamp), 1), coalesce(max(created_at), 1) FROM memories"
    ).get
    repaired.bare = len(found)
    for (memory_id,) in found:
        connection.execute(
            "INSERT INTO memories (id, uuid, identity, type, collection_id, stamp, expires, "
            "confidence, last_access, attributed, created_at, updated_at) "
            "VALUES (?1, ?2, x'', 'fact', ?3, ?4, 0, 0.9, ?5, 0, ?5, ?5)",
            (memory_id, str(uuid.uuid4()), collection, *latest),
        )


def _keep_good_vectors(connection: Connection) -> None:
    connection.execute("DELETE FROM embedder WHERE rowid <> (SELECT min(rowid) FROM embedder)")
    connection.execute(
        "DELETE FROM vectors WHERE memory_id NOT IN (SELECT id FROM memories) OR length(vector) "
        "IS NOT 4 * (SELECT dimension FROM embedder)"
    )


def _compare(connection: Connection, repaired: Repaired) -> None:
    """Make each memory one that can be read, and note those that are not what they were."""
    last = 0
    while True:
        batch: Any = connection.execute(
            "SELECT id FROM memories WHERE id > ? ORDER BY id LIMIT ?", (last, _AT_ONCE)
        ).fetchall()
        if not batch:
            return
        last = batch[-1][0]
        for (memory_id,) in batch:
            row = _row(connection, memory_id)
            if row is None or _is_unchanged(connection, memory_id, row):
                continue
            _make_readable(connection, memory_id, row)
            row = _row(connection, memory_id)
            identity = records.identity(rows.memory(row)) if row is not None else b""
            stored = connection.execute(
                "SELECT identity FROM memories WHERE id = ?", (memory_id,)
            ).get
            if stored != b"":  # not one of a bare text
                repaired.altered.append(memory_id)
            connection.execute(
                "UPDATE memories SET identity = ? WHERE id = ?", (identity, memory_id)
            )


def _make_readable(connection: Connection, memory_id: int, row: tuple[Any, ...]) -> None:
    """Replace what cannot be used by what can."""
    context = rows.context(row[5])
    try:
        text = ctx.write(context)
        text.encode()
    except ValueError:  # a number or a letter that JSON has not
        text = ctx.write({rows.DAMAGED: repr(row[5])})
    connection.execute("UPDATE texts SET context = ? WHERE memory_id = ?", (text, memory_id))
    if row[3] is not None and row[3] not in {kind.value for kind in PerceptionType}:
        connection.execute("UPDATE memories SET perception_type = NULL WHERE id = ?", (memory_id,))


def _row(connection: Connection, memory_id: int) -> tuple[Any, ...] | None:
    found: Any = connection.execute(
        f"SELECT {rows.COLUMNS} FROM memories AS m {rows.JOINS} WHERE m.id = ?", (memory_id,)
    ).get
    return tuple(found) if found is not None else None


def _is_unchanged(connection: Connection, memory_id: int, row: tuple[Any, ...]) -> bool:
    stored = connection.execute("SELECT identity FROM memories WHERE id = ?", (memory_id,)).get
    try:
        return bool(records.identity(rows.memory(row)) == stored)
    except (StoreError, ValueError):
        return False
