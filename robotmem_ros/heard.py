# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Memories and episodes out of their messages, live or from a bag, whatever class those have.

Pure, and without ROS: the inverse of what conversions sends. What a value may be, the core checks.
"""

from __future__ import annotations

from typing import Any

from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.model import Episode, Memory, MemoryType, PerceptionType, Pose


def memory(message: Any) -> Memory:
    """Return the memory of a Memory message; its number is that of the store that sent it.

    Raises
    ------
    InvalidRequestError: a field has a value that cannot be used.
    """
    stamp = _nanoseconds(message.header.stamp)
    perception_type = None
    if message.perception_type:
        perception_type = _one_of(PerceptionType, "perception_type", message.perception_type)
    return Memory(
        id=int(message.id),
        uuid=message.uuid,
        type=_one_of(MemoryType, "type", message.type),
        perception_type=perception_type,
        content=message.content,
        context={},
        context_json=message.context or "{}",
        collection=message.collection,
        session_id=message.session_id,
        confidence=float(message.confidence),
        stored_confidence=float(message.confidence),
        stamp=stamp,
        created_at=_nanoseconds(message.created_at),
        updated_at=_nanoseconds(message.updated_at),
        expires=_nanoseconds(message.expires),
        pose=_pose(message.header.frame_id, message.pose, stamp) if message.has_pose else None,
        last_access=0,
        access_count=int(message.access_count),
        return_count=0,
        superseded_by=message.superseded_by,
    )


def episode(message: Any) -> Episode:
    """Return the episode of an Episode message.

    Raises
    ------
    InvalidRequestError: a field has a value that cannot be used.
    """
    return Episode(
        session_id=message.session_id,
        collection=message.collection,
        context={},
        context_json=message.context or "{}",
        start=_nanoseconds(message.start),
        end=_nanoseconds(message.end),
        outcome=float(message.outcome_score) if message.has_outcome else None,
        summary=message.summary,
        interrupted=bool(message.interrupted),
        memories=tuple(memory(one) for one in message.memories),
        trajectory=tuple(
            _pose(one.header.frame_id, one.pose, _nanoseconds(one.header.stamp))
            for one in message.trajectory
        ),
    )


def _pose(frame_id: str, pose: Any, stamp: int) -> Pose:
    p, q = pose.position, pose.orientation
    return Pose(
        frame_id,
        (float(p.x), float(p.y), float(p.z)),
        (float(q.x), float(q.y), float(q.z), float(q.w)),
        stamp,
    )


def _nanoseconds(time: Any) -> int:
    return int(time.sec) * 1_000_000_000 + int(time.nanosec)


def _one_of(kind: Any, field: str, name: str) -> Any:
    try:
        return kind(name)
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise InvalidRequestError(field, f"{name[:100]!r} is not one of {allowed}") from None
