# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""One memory in all its tables: put it in, change it, take it out, in a transaction of others."""

from __future__ import annotations

import dataclasses
import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

from robotmem_ros.core import context as ctx
from robotmem_ros.core import entities
from robotmem_ros.core.errors import NotFoundError
from robotmem_ros.core.model import Context, Memory, MemoryType, PerceptionType, Pose
from robotmem_ros.core.store import attributes, codes, keywords, places, rows, schema, vectors
from robotmem_ros.core.store.database import Connection


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A checked experience, ready to be stored; times as in model.Memory.

    Attributes
    ----------
    now: wall time of storing; counts as the last access.
    created_at, updated_at: wall times, where it was first stored elsewhere; 0 means now.
    access_count, return_count: how often it was read there, and returned by a recall.
    """

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
    created_at: int = 0
    updated_at: int = 0
    access_count: int = 0
    return_count: int = 0


def insert(connection: Connection, new: NewMemory) -> int:
    """Store a memory in all tables, not looking for duplicates; return its number."""
    pose = new.pose
    values = {
        "uuid": new.uuid or str(uuid.uuid4()),
        "identity": identity(new),
        "type": new.type.value,
        "perception_type": new.perception_type and new.perception_type.value,
        "collection_id": number_of(connection, "collections", "name", new.collection),
        "session_id": number_of(connection, "sessions", "session_id", new.session_id)
        if new.session_id
        else None,
        "stamp": new.stamp,
        "expires": new.expires,
        "confidence": new.confidence,
        "last_access": new.now,
        "access_count": new.access_count,
        "return_count": new.return_count,
        "attributed": attributes.entries(new.context) is not None,
        "created_at": new.created_at or new.now,
        "updated_at": new.updated_at or new.created_at or new.now,
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
    index(connection, memory_id, new)
    connection.execute("INSERT INTO unembedded VALUES (?)", (memory_id,))
    return memory_id


def change(
    connection: Connection,
    memory_id: int,
    content: str | None,
    context: Context | None,
    now: int,
) -> str:
    """Change the text or the context of a memory in all tables; return the text before.

    Raises
    ------
    NotFoundError: there is no such memory.
    """
    old = one(connection, memory_id)
    new = dataclasses.replace(
        old,
        content=old.content if content is None else content,
        context=old.context if context is None else context,
    )
    _unindex(connection, old)
    if new.content != old.content:
        vectors.remove(connection, memory_id)
        connection.execute("INSERT INTO unembedded VALUES (?)", (memory_id,))
    attributed = index(connection, memory_id, new)
    connection.execute(
        "UPDATE memories SET identity = ?, attributed = ?, updated_at = ? WHERE id = ?",
        (identity(new), attributed, now, memory_id),
    )
    connection.execute(
        "UPDATE texts SET content = ?, context = ? WHERE memory_id = ?",
        (new.content, ctx.write(new.context), memory_id),
    )
    return old.content


def remove(connection: Connection, memory_id: int, reason: str, now: int) -> None:
    """Take a memory out of all tables and note that it was forgotten.

    Raises
    ------
    NotFoundError: there is no such memory.
    """
    old = one(connection, memory_id)
    _unindex(connection, old)
    vectors.remove(connection, memory_id)
    connection.execute("DELETE FROM texts WHERE memory_id = ?", (memory_id,))
    connection.execute("DELETE FROM awaited WHERE memory_id = ?", (memory_id,))
    connection.execute("DELETE FROM memories WHERE id = ?", (memory_id,))
    revived: Any = connection.execute(
        "UPDATE memories SET superseded_by = NULL WHERE superseded_by = ? RETURNING id",
        (memory_id,),
    ).fetchall()
    for (number,) in revived:
        schema.log_change(connection, "document_changes", number)
    connection.execute("INSERT INTO forgotten VALUES (?, ?, ?)", (old.uuid, reason, now))


def index_some(connection: Connection, limit: int) -> int:
    """Put some of the memories that wait for it into the indexes; return how many."""
    batch = connection.execute(
        f"SELECT {rows.COLUMNS} FROM unindexed AS u JOIN memories AS m ON m.id = u.memory_id "
        f"{rows.JOINS} ORDER BY u.memory_id LIMIT ?",
        (limit,),
    ).fetchall()
    for memory in map(rows.memory, batch):
        attributed = index(connection, memory.id, memory)
        connection.execute(
            "UPDATE memories SET attributed = ? WHERE id = ?", (attributed, memory.id)
        )
        connection.execute("DELETE FROM unindexed WHERE memory_id = ?", (memory.id,))
    codes.catch_up(connection)
    return len(batch)


def one(connection: Connection, memory_id: int) -> Memory:
    """Return a memory.

    Raises
    ------
    NotFoundError: there is no such memory.
    """
    if not -(2**63) <= memory_id < 2**63:
        raise NotFoundError(f"memory_id: {memory_id} is not stored")
    row = connection.execute(
        f"SELECT {rows.COLUMNS} FROM memories AS m {rows.JOINS} WHERE m.id = ?", (memory_id,)
    ).get
    if row is None:
        raise NotFoundError(f"memory_id: {memory_id} is not stored")
    return rows.memory(row)


def identity(memory: NewMemory | Memory) -> bytes:
    """Return the digest of what makes two memories the same experience.

    The time is not part of it, nor is the section `ros`, which tells when and by whom each value
    was sent. The pose is: the same words about two places are two memories.
    """
    pose = memory.pose
    # As the database keeps them: 1 is 1.0, and there is no negative zero.
    numbers = pose and [[x + 0.0 for x in part] for part in (pose.position, pose.orientation)]
    parts = (
        memory.type,
        memory.perception_type,
        memory.content,
        {key: value for key, value in memory.context.items() if key != "ros"},
        memory.collection,
        memory.session_id,
        pose and numbers and (pose.frame_id, *numbers),
    )
    return hashlib.blake2b(ctx.write(parts).encode(), digest_size=16).digest()


def number_of(connection: Connection, table: str, column: str, name: str) -> int:
    """Return the number of a name in a table of names, where it is put if it is not there."""
    found = connection.execute(f"SELECT id FROM {table} WHERE {column} = ?", (name,)).get
    if found is None:
        connection.execute(f"INSERT INTO {table} ({column}) VALUES (?)", (name,))
        found = connection.last_insert_rowid()
    return int(found)


def index(connection: Connection, memory_id: int, memory: NewMemory | Memory) -> bool:
    """Put a memory into all indexes but that of vectors; return memories.attributed."""
    keywords.add(connection, memory_id, memory.content, memory.context)
    names = [*entities.from_context(memory.context), *entities.from_text(memory.content)]
    for name in names:
        connection.execute(
            "INSERT OR IGNORE INTO memory_entities VALUES (?, ?)",
            (memory_id, number_of(connection, "entities", "name", name)),
        )
    attributed = attributes.add(connection, memory_id, memory.context)
    places.add(connection, memory_id, memory.pose, memory.context if attributed else {})
    return attributed


def _unindex(connection: Connection, memory: Memory) -> None:
    """Take a memory out of all indexes but that of vectors."""
    connection.execute("DELETE FROM unindexed WHERE memory_id = ?", (memory.id,))
    keywords.remove(connection, memory.id)
    names = connection.execute(
        "DELETE FROM memory_entities WHERE memory_id = ? RETURNING entity_id", (memory.id,)
    ).fetchall()
    connection.executemany(
        "DELETE FROM entities WHERE id = ?1 "
        "AND NOT EXISTS (SELECT 1 FROM memory_entities WHERE entity_id = ?1)",
        names,
    )
    attributes.remove(connection, memory.id)
    in_index = memory.context if attributes.entries(memory.context) is not None else {}
    places.remove(connection, memory.id, memory.pose, in_index)
