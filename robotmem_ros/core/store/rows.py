# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Read a memory from a row of the database, also from one that a worn disk has changed."""

from __future__ import annotations

import json

import numpy as np

from robotmem_ros.core import filters
from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.model import Json, Memory, MemoryType, PerceptionType, Pose

DAMAGED = "damaged"
"""Key under which a context that cannot be read any more is given as the text that it is."""

COLUMNS = (
    "m.id, m.uuid, m.type, m.perception_type, t.content, t.context, c.name, s.session_id, "
    "m.confidence, m.stamp, m.created_at, m.updated_at, m.expires, m.last_access, "
    "m.access_count, m.return_count, r.uuid, m.frame_id, m.pose_stamp, m.x, m.y, m.z, "
    "m.qx, m.qy, m.qz, m.qw"
)
JOINS = (
    "JOIN texts AS t ON t.memory_id = m.id "
    "JOIN collections AS c ON c.id = m.collection_id "
    "LEFT JOIN sessions AS s ON s.id = m.session_id "
    "LEFT JOIN memories AS r ON r.id = m.superseded_by"
)
"""What COLUMNS need besides `memories AS m`."""


def memory(row: tuple[Json, ...], decay_rate: float = 0.0, now: int = 0) -> Memory:
    """Return the memory in a row of COLUMNS, with its effective confidence.

    Raises
    ------
    StoreError: the row is damaged.
    """
    stored, last_access, frame_id = row[8], row[13], row[17]
    pose = None
    if frame_id is not None:
        pose = Pose(frame_id, tuple(row[19:22]), tuple(row[22:26]), row[18])
    read = context(row[5])
    try:
        if not isinstance(row[4], str):
            raise TypeError("its text is none")
        return Memory(
            id=row[0],
            uuid=row[1],
            type=MemoryType(row[2]),
            perception_type=row[3] and PerceptionType(row[3]),
            content=row[4],
            context=read,
            context_json=row[5] if DAMAGED not in read else json.dumps(read),
            collection=row[6],
            session_id=row[7] or "",
            confidence=filters.effective_confidence(stored, decay_rate, last_access, now),
            stored_confidence=stored,
            stamp=row[9],
            created_at=row[10],
            updated_at=row[11],
            expires=row[12],
            pose=pose,
            last_access=last_access,
            access_count=row[14],
            return_count=row[15],
            superseded_by=row[16] or "",
        )
    except (TypeError, ValueError) as error:
        raise StoreError(
            f"memory {row[0]} is damaged ({error}); run robotmem check, then robotmem repair"
        ) from error


def is_vector(blob: Json, dimension: int) -> bool:
    """Return whether a blob is a vector that can be compared with others."""
    if not isinstance(blob, bytes) or not blob or len(blob) != 4 * dimension:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        norm = np.linalg.norm(np.frombuffer(blob, "<f4"))
    return bool(np.isfinite(norm) and norm > 0.0)


def context(text: str) -> dict[str, Json]:
    """Return the object that is stored as JSON; {DAMAGED: text} if it is none any more."""
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    except (TypeError, ValueError, RecursionError):
        pass
    return {DAMAGED: str(text)}
