# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Check what is to be stored: experiences, and memories and episodes of other stores."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from robotmem_ros.core import checks
from robotmem_ros.core import context as ctx
from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.model import (
    EVERY_COLLECTION,
    Episode,
    Experience,
    Memory,
    MemoryType,
    PerceptionType,
    Pose,
)
from robotmem_ros.core.store import NewMemory


def experience(given: Experience, config: Config, ros_time: int) -> NewMemory:
    """Return an experience with its defaults filled in, ready to be stored.

    Raises
    ------
    InvalidRequestError: a field has a value that cannot be used.
    """
    checks.instance("experience", Experience, given)
    kind, sense = _kind(given.type, given.perception_type)
    field = "description" if kind is MemoryType.PERCEPTION else "insight"
    content = checks.clean(field, given.content, config.max_content_bytes)
    if not content:
        raise InvalidRequestError(field, "is empty; write what was learned")
    stamp = checks.time("stamp", given.stamp or ros_time)
    if not stamp:
        raise InvalidRequestError(
            "stamp", "there is no ROS time yet (no /clock came); give a stamp, or wait"
        )
    return NewMemory(
        uuid=checks.clean("uuid", given.uuid),
        type=kind,
        perception_type=sense,
        content=content,
        context=context(given.context, config),
        collection=collection(given.collection, config),
        session_id=checks.clean("session_id", given.session_id),
        confidence=checks.share("confidence", given.confidence),
        stamp=stamp,
        pose=None if given.pose is None else pose(given.pose),
        expires=checks.time("expires", given.expires),
        now=time.time_ns(),
    )


def memory(given: Memory, config: Config) -> tuple[NewMemory, str]:
    """Return a memory ready to be stored, and the uuid of the one that replaced it, "" if none.

    Raises
    ------
    InvalidRequestError: a field has a value that cannot be used.
    """
    wall_time = time.time_ns()
    checks.instance("memory", Memory, given)
    kind, sense = _kind(given.type, given.perception_type)
    content = checks.clean("content", given.content, config.max_content_bytes)
    if not content:
        raise InvalidRequestError("content", "is empty")
    created_at = checks.time("created_at", given.created_at) or wall_time
    new = NewMemory(
        uuid=_uuid("uuid", given.uuid),
        type=kind,
        perception_type=sense,
        content=content,
        context=context(given.context_json or given.context, config),
        collection=_named_collection(given.collection, config),
        session_id=checks.clean("session_id", given.session_id),
        confidence=checks.share("confidence", given.stored_confidence),
        stamp=_needed_time("stamp", given.stamp),
        pose=None if given.pose is None else pose(given.pose),
        expires=checks.time("expires", given.expires),
        # What nobody knows to have been recalled counts as learned when it is stored here.
        now=checks.time("last_access", given.last_access) or wall_time,
        created_at=created_at,
        updated_at=checks.time("updated_at", given.updated_at) or created_at,
        access_count=checks.limit("access_count", given.access_count),
        return_count=checks.limit("return_count", given.return_count),
    )
    superseded_by = checks.text("superseded_by", given.superseded_by)
    superseded_by = superseded_by and _uuid("superseded_by", superseded_by)
    return new, "" if superseded_by == new.uuid else superseded_by


def check_episode(given: Episode, config: Config) -> None:
    """Refuse an episode that cannot be stored, apart from its memories.

    Raises
    ------
    InvalidRequestError: a field has a value that cannot be used.
    """
    checks.instance("episode", Episode, given)
    if not checks.clean("session_id", given.session_id):
        raise InvalidRequestError("session_id", "is empty")
    _named_collection(given.collection, config)
    context(given.context_json or given.context, config)
    checks.clean("summary", given.summary, config.max_content_bytes)
    _needed_time("start", given.start)
    _needed_time("end", given.end)
    if given.outcome is not None:
        checks.share("outcome_score", given.outcome)
    for one in checks.several("trajectory", given.trajectory):
        pose(one, "trajectory")


def pose(given: Pose, field: str = "pose") -> Pose:
    """Return a pose whose coordinates are floats, as they come back from the store.

    Raises
    ------
    InvalidRequestError: it has no frame, no time, or a coordinate that is not finite.
    """
    checks.instance(field, Pose, given)
    x, y, z = checks.coordinates(field, given.position, 3)
    qx, qy, qz, qw = checks.coordinates(field, given.orientation, 4)
    return Pose(
        frame_id=checks.frame(field, given.frame_id),
        position=(x, y, z),
        orientation=(qx, qy, qz, qw),
        stamp=checks.time(field, given.stamp),
    )


def context(value: str | Mapping[str, Any], config: Config) -> dict[str, Any]:
    """Return a context.

    Raises
    ------
    InvalidRequestError: it is no JSON object, too large or too deep.
    """
    limits = (config.max_context_bytes, config.max_context_depth)
    return ctx.read_object("context", value, *limits)


def collection(name: str, config: Config) -> str:
    """Return the name of one collection, the configured one for "".

    Raises
    ------
    InvalidRequestError: it is no name, or stands for all of them.
    """
    name = checks.clean("collection", name) or config.collection
    if name == EVERY_COLLECTION:
        raise InvalidRequestError("collection", f"{name!r} means all of them; name one")
    return name


def _kind(
    kind: MemoryType, sense: PerceptionType | None
) -> tuple[MemoryType, PerceptionType | None]:
    """Return what a memory is about, and the sense of a perception."""
    kind = checks.choice("type", MemoryType, kind)
    if sense is not None:
        sense = checks.choice("perception_type", PerceptionType, sense)
    if kind is MemoryType.PERCEPTION and sense is None:
        raise InvalidRequestError("perception_type", "is missing")
    return kind, sense


def _named_collection(name: str, config: Config) -> str:
    if not checks.text("collection", name).strip():
        raise InvalidRequestError("collection", "is empty")
    return collection(name, config)


def _needed_time(field: str, nanoseconds: int) -> int:
    if not checks.time(field, nanoseconds):
        raise InvalidRequestError(field, "is 0; it must be a time")
    return nanoseconds


def _uuid(field: str, text: str) -> str:
    try:
        return str(uuid.UUID(checks.text(field, text)))
    except ValueError:
        raise InvalidRequestError(field, f"{text[:100]!r} is no UUID (RFC 9562)") from None
