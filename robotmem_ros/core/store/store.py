# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What changes a store.

A memory, its words, its names, its attributes, its places and its place in the queue for a vector
change in one transaction, so they can never disagree.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from robotmem_ros.core import context as ctx
from robotmem_ros.core import entities
from robotmem_ros.core.errors import NotFoundError
from robotmem_ros.core.model import Context, Memory, MemoryType, PerceptionType, Pose
from robotmem_ros.core.store import (
    attributes,
    eligibility,
    keywords,
    places,
    rows,
    schema,
    vectors,
)
from robotmem_ros.core.store.database import BrokenIndexError, Connection, Database
from robotmem_ros.core.store.snapshot import Snapshot
from robotmem_ros.core.store.words import WordCopy

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A checked experience, ready to be stored; times as in model.Memory."""

    uuid: str
    type: MemoryType
    perception_type: PerceptionType | None
    content: str
    context: Context
    collection: str
    session_id: str
    confidence: float
    stamp: int
    pose: Pose | None
    expires: int
    now: int


class Store:
    """All memories of one database file; safe to use from any number of threads.

    Parameters
    ----------
    path: the file; made if it is not there.

    Raises
    ------
    ConfigError, StoreError: as database.Database.
    """

    def __init__(self, path: str) -> None:
        self._database = Database(path, eligibility.register)
        self._words = WordCopy()
        self._vectors = vectors.VectorSearch()

    @property
    def path(self) -> str:
        """The database file, absolute."""
        return self._database.path

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._database.size

    @property
    def schema_version(self) -> int:
        """Version of the tables, from 1."""
        return schema.VERSION

    def close(self) -> None:
        """Close the file; idempotent."""
        self._database.close()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Lend a view of one moment of the store, for one query."""
        with self._database.read() as connection:
            yield Snapshot(connection, self._words, self._vectors)

    def add(self, new: NewMemory) -> tuple[int, bool]:
        """Store a memory; return its number, and whether it is new.

        The very same memory is not stored twice: it is renewed and its number returned.
        """

        def action(connection: Connection) -> tuple[int, bool]:
            found = connection.execute(
                "SELECT min(id) FROM memories WHERE identity = ? AND superseded_by IS NULL",
                (_identity(new),),
            ).get
            if found is None:
                return self._insert(connection, new), True
            connection.execute(
                "UPDATE memories SET last_access = max(last_access, ?) WHERE id = ?",
                (new.now, found),
            )
            return int(found), False

        return self._write(action)

    def add_many(self, many: Sequence[NewMemory]) -> list[int]:
        """Store memories in one transaction, not looking for duplicates; return their numbers."""
        return self._write(lambda connection: [self._insert(connection, new) for new in many])

    def update(
        self, memory_id: int, content: str | None, context: Context | None, now: int
    ) -> str:
        """Change the text or the context of a memory; return the text before.

        Raises
        ------
        NotFoundError: there is no such memory.
        """

        def action(connection: Connection) -> str:
            old = _one(connection, memory_id)
            new = dataclasses.replace(
                old,
                content=old.content if content is None else content,
                context=old.context if context is None else context,
            )
            _unindex(connection, old)
            if new.content != old.content:
                vectors.remove(connection, memory_id)
                connection.execute("INSERT INTO unembedded VALUES (?)", (memory_id,))
            attributed = _index(connection, memory_id, new)
            connection.execute(
                "UPDATE memories SET identity = ?, attributed = ?, updated_at = ? WHERE id = ?",
                (_identity(new), attributed, now, memory_id),
            )
            connection.execute(
                "UPDATE texts SET content = ?, context = ? WHERE memory_id = ?",
                (new.content, ctx.write(new.context), memory_id),
            )
            return old.content

        return self._write(action)

    def forget(self, memory_id: int, reason: str, now: int) -> None:
        """Remove a memory from the store and from every index.

        Raises
        ------
        NotFoundError: there is no such memory.
        """

        def action(connection: Connection) -> None:
            old = _one(connection, memory_id)
            _unindex(connection, old)
            vectors.remove(connection, memory_id)
            connection.execute("DELETE FROM texts WHERE memory_id = ?", (memory_id,))
            connection.execute("DELETE FROM memories WHERE id = ?", (memory_id,))
            connection.execute(
                "UPDATE memories SET superseded_by = NULL WHERE superseded_by = ?", (memory_id,)
            )
            connection.execute("INSERT INTO forgotten VALUES (?, ?, ?)", (old.uuid, reason, now))

        self._write(action)

    def touch(self, touched: Mapping[int, tuple[int, int, int]]) -> None:
        """Record that memories were read.

        Parameters
        ----------
        touched: by number: times read, times returned by a recall, wall time of the last.
        """
        with self._database.write() as connection:
            connection.executemany(
                "UPDATE memories SET access_count = access_count + ?, return_count = "
                "return_count + ?, last_access = max(last_access, ?) WHERE id = ?",
                [(*times, number) for number, times in touched.items()],
            )

    def use_model(self, model: str, dimension: int) -> bool:
        """Record what makes the vectors; return whether older ones had to go.

        Vectors of another model or length are removed, and all memories wait for new ones.
        """
        with self._database.write() as connection:
            known = connection.execute("SELECT model, dimension FROM embedder").get
            if known == (model, dimension):
                return False
            connection.execute("DELETE FROM embedder")
            connection.execute("INSERT INTO embedder VALUES (?, ?)", (model, dimension))
            vectors.remove_all(connection)
            return known is not None

    def model(self) -> tuple[str, int] | None:
        """Return the model that the vectors are of, and their length; None before the first."""
        with self._database.read() as connection:
            known = connection.execute("SELECT model, dimension FROM embedder").get
            return (str(known[0]), int(known[1])) if known else None

    def unembedded(self, limit: int, but: Collection[int] = ()) -> list[tuple[int, str]]:
        """Return the newest memories that wait for their vector, but for some, with their text."""
        with self._database.read() as connection:
            found = connection.execute(
                "SELECT u.memory_id, t.content FROM unembedded AS u JOIN texts AS t "
                "ON t.memory_id = u.memory_id WHERE u.memory_id NOT IN "
                "(SELECT value FROM json_each(?)) ORDER BY u.memory_id DESC LIMIT ?",
                (json.dumps(list(but)), limit),
            )
            return [(int(number), str(content)) for number, content in found]

    def unembedded_among(self, ids: Collection[int]) -> list[tuple[int, str]]:
        """Return those of some memories that wait for their vector, with their text."""
        with self._database.read() as connection:
            found = connection.execute(
                "SELECT u.memory_id, t.content FROM json_each(?) AS j CROSS JOIN unembedded AS u "
                "ON u.memory_id = j.value JOIN texts AS t ON t.memory_id = u.memory_id",
                (json.dumps(list(ids)),),
            )
            return [(int(number), str(content)) for number, content in found]

    def put_vectors(self, model: str, made: Sequence[tuple[int, str, vectors.Vector]]) -> None:
        """Store vectors of a model, each with the memory and the text it was made from.

        Those of another model than the recorded one, and those of memories that were changed or
        forgotten in the meantime, are dropped.
        """
        with self._database.write() as connection:
            known = connection.execute("SELECT model, dimension FROM embedder").get
            for memory_id, text, vector in made:
                if known != (model, len(vector)):
                    continue
                current = connection.execute(
                    "SELECT content FROM texts WHERE memory_id = ?", (memory_id,)
                ).get
                if current == text:
                    vectors.put(connection, memory_id, vector)

    def reindex(self, progress: Callable[[int, int], None]) -> int:
        """Make all indexes anew from the memories; return the number of memories.

        Writers wait for it; searches go on in the old indexes until it is done.
        """
        with self._database.write() as connection:
            return _reindex(connection, progress)

    def _write(self, action: Callable[[Connection], _T]) -> _T:
        """Run a change as one transaction; if an index is broken, make it anew and try again.

        An experience must not be lost because an index is.
        """
        try:
            with self._database.write() as connection:
                return action(connection)
        except BrokenIndexError:
            with self._database.write() as connection:
                _reindex(connection, lambda done, total: None)
                return action(connection)

    def _insert(self, connection: Connection, new: NewMemory) -> int:
        pose = new.pose
        values = {
            "uuid": new.uuid or str(uuid.uuid4()),
            "identity": _identity(new),
            "type": new.type.value,
            "perception_type": new.perception_type and new.perception_type.value,
            "collection_id": _number_of(connection, "collections", "name", new.collection),
            "session_id": _number_of(connection, "sessions", "session_id", new.session_id)
            if new.session_id
            else None,
            "stamp": new.stamp,
            "expires": new.expires,
            "confidence": new.confidence,
            "last_access": new.now,
            "attributed": 0,
            "created_at": new.now,
            "updated_at": new.now,
        }
        if pose is not None:
            values |= {"frame_id": pose.frame_id, "pose_stamp": pose.stamp}
            values |= dict(zip(("x", "y", "z"), pose.position, strict=True))
            values |= dict(zip(("qx", "qy", "qz", "qw"), pose.orientation, strict=True))
        connection.execute(
            f"INSERT INTO memories ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
            tuple(values.values()),
        )
        memory_id = connection.last_insert_rowid()
        connection.execute(
            "INSERT INTO texts VALUES (?, ?, ?)", (memory_id, new.content, ctx.write(new.context))
        )
        if _index(connection, memory_id, new):
            connection.execute("UPDATE memories SET attributed = 1 WHERE id = ?", (memory_id,))
        connection.execute("INSERT INTO unembedded VALUES (?)", (memory_id,))
        return memory_id


def _index(connection: Connection, memory_id: int, memory: NewMemory | Memory) -> bool:
    """Put a memory into all indexes but that of vectors; return memories.attributed."""
    keywords.add(connection, memory_id, memory.content, memory.context)
    names = [*entities.from_context(memory.context), *entities.from_text(memory.content)]
    for name in names:
        connection.execute(
            "INSERT OR IGNORE INTO memory_entities VALUES (?, ?)",
            (memory_id, _number_of(connection, "entities", "name", name)),
        )
    attributed = attributes.add(connection, memory_id, memory.context)
    places.add(connection, memory_id, memory.pose, memory.context if attributed else {})
    return attributed


def _unindex(connection: Connection, memory: Memory) -> None:
    """Take a memory out of all indexes but that of vectors."""
    keywords.remove(connection, memory.id)
    connection.execute("DELETE FROM memory_entities WHERE memory_id = ?", (memory.id,))
    attributes.remove(connection, memory.id)
    places.remove(connection, memory.id, memory.pose, memory.context)


def _reindex(connection: Connection, progress: Callable[[int, int], None]) -> int:
    schema.renew_indexes(connection)
    total = int(connection.execute("SELECT count(*) FROM memories").get)
    done = 0
    last: Any = 0
    while batch := connection.execute(
        f"SELECT {rows.COLUMNS} FROM memories AS m {rows.JOINS} WHERE m.id > ? "
        "ORDER BY m.id LIMIT 500",
        (last,),
    ).fetchall():
        for memory in map(rows.memory, batch):
            attributed = _index(connection, memory.id, memory)
            connection.execute(
                "UPDATE memories SET attributed = ? WHERE id = ?", (attributed, memory.id)
            )
        done, last = done + len(batch), batch[-1][0]
        progress(done, total)
    return total


def _one(connection: Connection, memory_id: int) -> Memory:
    if not -(2**63) <= memory_id < 2**63:
        raise NotFoundError(f"memory_id: {memory_id} is not stored")
    row = connection.execute(
        f"SELECT {rows.COLUMNS} FROM memories AS m {rows.JOINS} WHERE m.id = ?", (memory_id,)
    ).get
    if row is None:
        raise NotFoundError(f"memory_id: {memory_id} is not stored")
    return rows.memory(row)


def _identity(memory: NewMemory | Memory) -> bytes:
    """Return the digest of what makes two memories the same experience.

    The time is not part of it; the pose is: the same words about two places are two memories.
    """
    pose = memory.pose
    parts = (
        memory.type,
        memory.perception_type,
        memory.content,
        memory.context,
        memory.collection,
        memory.session_id,
        pose and (pose.frame_id, pose.position, pose.orientation),
    )
    return hashlib.blake2b(ctx.write(parts).encode(), digest_size=16).digest()


def _number_of(connection: Connection, table: str, column: str, name: str) -> int:
    """Return the number of a name in a table of names, where it is put if it is not there."""
    found = connection.execute(f"SELECT id FROM {table} WHERE {column} = ?", (name,)).get
    if found is None:
        connection.execute(f"INSERT INTO {table} ({column}) VALUES (?)", (name,))
        found = connection.last_insert_rowid()
    return int(found)
