# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Memories and episodes of another store, put in by uuid: once, in any order, also twice.

What was forgotten here stays forgotten. Of two versions of a memory the later one counts. A memory
that was replaced by one that has not come yet waits for it, and is recalled until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robotmem_ros.core import context as ctx
from robotmem_ros.core.model import Episode, MemoryType, Pose
from robotmem_ros.core.store import records, schema
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.records import NewMemory


def put_memory(connection: Connection, new: NewMemory, superseded_by: str) -> bool:
    """Store a memory by its uuid; return whether that changed anything.

    Parameters
    ----------
    superseded_by: uuid of the memory that replaced it; "" if none did.
    """
    forgotten = connection.execute("SELECT 1 FROM forgotten WHERE uuid = ?", (new.uuid,)).get
    if forgotten is not None:
        return False
    known: Any = connection.execute(
        "SELECT id, updated_at FROM memories WHERE uuid = ?", (new.uuid,)
    ).get
    if known is None:
        memory_id = records.insert(connection, new)
        _settle(connection, memory_id, new.uuid)
        _link(connection, memory_id, superseded_by)
        return True
    memory_id, updated_at = known
    is_later = new.updated_at > updated_at
    if is_later:
        records.change(connection, memory_id, new.content, new.context, new.updated_at)
        if not superseded_by:
            unlink(connection, memory_id)
    # A version of the same time may have been sent before it was replaced: that undoes nothing.
    return _link(connection, memory_id, superseded_by) or is_later


def put_episode(connection: Connection, episode: Episode, now: int) -> None:
    """Store an episode without its memories, unless it is known."""
    number = records.number_of(connection, "sessions", "session_id", episode.session_id)
    if connection.execute("SELECT opened FROM sessions WHERE id = ?", (number,)).get:
        return
    closed = [memory for memory in episode.memories if memory.type is MemoryType.EPISODE]
    connection.execute(
        "UPDATE sessions SET opened = 1, collection_id = ?, context = ?, started = ?, ended = ?, "
        "outcome = ?, summary = ?, interrupted = ?, opened_at = ?, closed_at = ? WHERE id = ?",
        (
            records.number_of(connection, "collections", "name", episode.collection),
            ctx.write(episode.context),
            episode.start,
            episode.end,
            episode.outcome,
            episode.summary,
            episode.interrupted,
            now,
            max((memory.created_at for memory in closed), default=0) or now,
            number,
        ),
    )
    add_poses(connection, number, list(enumerate(episode.trajectory)))


def add_poses(connection: Connection, number: int, poses: Sequence[tuple[int, Pose]]) -> None:
    """Add poses, each with its number, to the trajectory of an episode."""
    connection.executemany(
        "INSERT OR REPLACE INTO trajectory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (number, seq, pose.stamp, pose.frame_id, *pose.position, *pose.orientation)
            for seq, pose in poses
        ],
    )


def unlink(connection: Connection, memory_id: int) -> None:
    """Undo that a memory was replaced by another."""
    connection.execute("DELETE FROM awaited WHERE memory_id = ?", (memory_id,))
    connection.execute("UPDATE memories SET superseded_by = NULL WHERE id = ?", (memory_id,))
    schema.log_change(connection, "document_changes", memory_id)


def _link(connection: Connection, memory_id: int, uuid: str) -> bool:
    """Let a memory be replaced by another, now or when that comes; return whether it is new."""
    if not uuid:
        return False
    found = connection.execute("SELECT id FROM memories WHERE uuid = ?", (uuid,)).get
    if found is None:
        connection.execute(
            "INSERT INTO awaited VALUES (?, ?) ON CONFLICT (memory_id) "
            "DO UPDATE SET uuid = excluded.uuid WHERE uuid <> excluded.uuid",
            (memory_id, uuid),
        )
        return bool(connection.changes())
    # Memories that replace each other in a circle would all be lost.
    in_circle = connection.execute(
        "WITH RECURSIVE chain (id) AS (VALUES (?) UNION SELECT m.superseded_by FROM chain "
        "JOIN memories AS m ON m.id = chain.id WHERE m.superseded_by IS NOT NULL) "
        "SELECT 1 FROM chain WHERE id = ?",
        (found, memory_id),
    ).get
    if in_circle is not None:
        return False
    connection.execute(
        "UPDATE memories SET superseded_by = ?1 WHERE id = ?2 AND superseded_by IS NOT ?1",
        (found, memory_id),
    )
    if not connection.changes():
        return False
    schema.log_change(connection, "document_changes", memory_id)
    return True


def _settle(connection: Connection, memory_id: int, uuid: str) -> None:
    """Link those memories that waited for one that has come."""
    waiting: Any = connection.execute("SELECT memory_id FROM awaited WHERE uuid = ?", (uuid,))
    for (number,) in waiting.fetchall():
        connection.execute("DELETE FROM awaited WHERE memory_id = ?", (number,))
        _link(connection, number, uuid)
