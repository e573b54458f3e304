# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Memories and episodes as JSON Lines: one object a line, with all fields, for any program.

A line is a memory or an episode, as its field `kind` says; the other fields are those of
model.Memory and model.Episode, without what belongs to one store alone (the number) or can be
computed. Times are integers, nanoseconds since 1970. What came out goes in again unchanged.
"""

from __future__ import annotations

import json
from typing import Any

from robotmem_ros.core import context as ctx
from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.model import Episode, Memory, MemoryType, PerceptionType, Pose

MEMORY, EPISODE = "memory", "episode"

_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
# JSON lets them stand in a string, but many programs end a line there.


def line(item: Memory | Episode) -> str:
    """Return a memory, or an episode without its memories, as one line."""
    fields = _memory_fields(item) if isinstance(item, Memory) else _episode_fields(item)
    text = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_LINE_ENDS)


def read(text: str) -> Memory | Episode:
    """Return what a line holds.

    Raises
    ------
    InvalidRequestError: it is no JSON object, of an unknown kind, or lacks a field.
    """
    try:
        given = json.loads(text)
        kind = given["kind"]
        if kind == MEMORY:
            return _memory(given)
        if kind == EPISODE:
            return _episode(given)
    except KeyError as error:
        raise InvalidRequestError(str(error.args[0]), "is missing") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequestError("line", f"cannot be used: {error}") from None
    raise InvalidRequestError("kind", f"{str(kind)[:100]!r} is not known")


def _memory_fields(memory: Memory) -> dict[str, Any]:
    return {
        "kind": MEMORY,
        "uuid": memory.uuid,
        "type": memory.type.value,
        "perception_type": memory.perception_type and memory.perception_type.value,
        "content": memory.content,
        "context": memory.context,
        "collection": memory.collection,
        "session_id": memory.session_id,
        "confidence": memory.stored_confidence,
        "stamp": memory.stamp,
        "pose": memory.pose and _pose_fields(memory.pose),
        "expires": memory.expires,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "last_access": memory.last_access,
        "access_count": memory.access_count,
        "return_count": memory.return_count,
        "superseded_by": memory.superseded_by,
    }


def _episode_fields(episode: Episode) -> dict[str, Any]:
    return {
        "kind": EPISODE,
        "session_id": episode.session_id,
        "collection": episode.collection,
        "context": episode.context,
        "start": episode.start,
        "end": episode.end,
        "outcome": episode.outcome,
        "summary": episode.summary,
        "interrupted": episode.interrupted,
        "trajectory": [_pose_fields(pose) for pose in episode.trajectory],
    }


def _pose_fields(pose: Pose) -> dict[str, Any]:
    return {
        "frame_id": pose.frame_id,
        "stamp": pose.stamp,
        "position": list(pose.position),
        "orientation": list(pose.orientation),
    }


def _memory(given: dict[str, Any]) -> Memory:
    confidence = float(given.get("confidence", 0.9))
    sense = given.get("perception_type")
    return Memory(
        id=0,
        uuid=_text(given, "uuid"),
        type=MemoryType(given.get("type", MemoryType.FACT.value)),
        perception_type=None if sense is None else PerceptionType(sense),
        content=_text(given, "content"),
        collection=_text(given, "collection"),
        session_id=_text(given, "session_id", ""),
        confidence=confidence,
        stored_confidence=confidence,
        stamp=_integer(given, "stamp"),
        created_at=_integer(given, "created_at", 0),
        updated_at=_integer(given, "updated_at", 0),
        expires=_integer(given, "expires", 0),
        pose=None if given.get("pose") is None else _pose(given["pose"]),
        last_access=_integer(given, "last_access", 0),
        access_count=_integer(given, "access_count", 0),
        return_count=_integer(given, "return_count", 0),
        superseded_by=_text(given, "superseded_by", ""),
        **_context(given),
    )


def _episode(given: dict[str, Any]) -> Episode:
    outcome = given.get("outcome")
    return Episode(
        session_id=_text(given, "session_id"),
        collection=_text(given, "collection"),
        start=_integer(given, "start"),
        end=_integer(given, "end"),
        outcome=None if outcome is None else float(outcome),
        summary=_text(given, "summary", ""),
        interrupted=bool(given.get("interrupted", False)),
        memories=(),
        trajectory=tuple(_pose(pose) for pose in given.get("trajectory", ())),
        **_context(given),
    )


def _pose(given: dict[str, Any]) -> Pose:
    x, y, z = map(float, given["position"])
    qx, qy, qz, qw = map(float, given.get("orientation", (0.0, 0.0, 0.0, 1.0)))
    return Pose(_text(given, "frame_id"), (x, y, z), (qx, qy, qz, qw), _integer(given, "stamp", 0))


def _context(given: dict[str, Any]) -> dict[str, Any]:
    context = given.get("context", {})
    return {"context": context, "context_json": ctx.write(context)}


def _text(given: dict[str, Any], name: str, default: str | None = None) -> str:
    value = given[name] if default is None else given.get(name, default)
    if not isinstance(value, str):
        raise InvalidRequestError(name, "must be text")
    return value


def _integer(given: dict[str, Any], name: str, default: int | None = None) -> int:
    value = given[name] if default is None else given.get(name, default)
    if type(value) is not int:
        raise InvalidRequestError(name, "must be an integer")
    return value
