# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Store memories and episodes that come as messages: by uuid, once, in any order, also twice.

Messages are read by their fields alone, so that it does not matter whether they come from a topic
or from a bag, and no ROS is needed.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, TypeVar

from robotmem_ros.core.context import read_object
from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Episode, Memory, MemoryType, PerceptionType, Pose
from robotmem_ros.poses import clean_frame, unit

MEMORY = "robotmem_ros/msg/Memory"
EPISODE = "robotmem_ros/msg/Episode"
"""Types of the messages that can be imported."""

_REMEMBERED = 10_000
_MAX_BYTES, _MAX_DEPTH = 100_000_000, 200  # the most any store allows; each has limits of its own
_UNIT_TOLERANCE = 1e-6

_E = TypeVar("_E", MemoryType, PerceptionType)


def memory_from_message(message: Any) -> Memory:
    """Return the memory in a robotmem_ros/msg/Memory.

    What a message does not carry is left empty: its number here, and when it was last recalled.

    Raises
    ------
    InvalidRequestError: a field has a value that cannot be used.
    """
    stamp = _time(message.header.stamp)
    perception_type = None
    if message.perception_type:
        perception_type = _one_of(PerceptionType, "perception_type", message.perception_type)
    return Memory(
        id=0,
        uuid=message.uuid,
        type=_one_of(MemoryType, "type", message.type),
        perception_type=perception_type,
        content=message.content,
        context=_context(message.context),
        context_json=message.context or "{}",
        collection=message.collection,
        session_id=message.session_id,
        confidence=float(message.confidence),
        stored_confidence=float(message.confidence),
        stamp=stamp,
        created_at=_time(message.created_at),
        updated_at=_time(message.updated_at),
        expires=_time(message.expires),
        pose=_pose(message.header.frame_id, message.pose, stamp) if message.has_pose else None,
        last_access=0,
        access_count=int(message.access_count),
        return_count=0,
        superseded_by=message.superseded_by,
    )


def episode_from_message(message: Any) -> Episode:
    """Return the episode in a robotmem_ros/msg/Episode, with its memories.

    Raises
    ------
    InvalidRequestError: a field has a value that cannot be used.
    """
    return Episode(
        session_id=message.session_id,
        collection=message.collection,
        context=_context(message.context),
        context_json=message.context or "{}",
        start=_time(message.start),
        end=_time(message.end),
        outcome=float(message.outcome_score) if message.has_outcome else None,
        summary=message.summary,
        interrupted=bool(message.interrupted),
        memories=tuple(memory_from_message(one) for one in message.memories),
        trajectory=tuple(
            _pose(one.header.frame_id, one.pose, _time(one.header.stamp))
            for one in message.trajectory
        ),
    )


class Importer:
    """Stores what is heard on topics of memories and episodes, each once.

    What was stored lately and is heard again, as the memories of an episode are, costs no write.
    Not to be used by two threads at once.

    Parameters
    ----------
    collections: only memories and episodes of these are stored; empty means of all.
    """

    def __init__(self, memory: RobotMemory, collections: Iterable[str] = ()) -> None:
        self._memory = memory
        self._collections = frozenset(collections)
        self._seen: OrderedDict[tuple[Any, ...], None] = OrderedDict()

    def memory(self, message: Any) -> bool:
        """Take a robotmem_ros/msg/Memory; return whether that changed anything.

        Raises
        ------
        InvalidRequestError: a field has a value that cannot be used.
        StoreError: it could not be stored.
        """
        if not self._wants(message.collection):
            return False
        given = memory_from_message(message)
        key = _version(given)
        if key in self._seen:
            return False
        changed = bool(self._memory.import_memory(given))
        self._remember(key)
        return changed

    def episode(self, message: Any) -> bool:
        """Take a robotmem_ros/msg/Episode; return whether that changed anything.

        Raises
        ------
        InvalidRequestError: a field has a value that cannot be used.
        StoreError: it could not be stored.
        """
        if not self._wants(message.collection):
            return False
        given = episode_from_message(message)
        key = ("episode", given.session_id, given.end, *map(_version, given.memories))
        if key in self._seen:
            return False
        changed = bool(self._memory.import_episode(given))
        self._remember(key)
        return changed

    def _wants(self, collection: str) -> bool:
        return not self._collections or collection in self._collections

    def _remember(self, key: tuple[Any, ...]) -> None:
        self._seen[key] = None
        self._seen.move_to_end(key)
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)


def _version(memory: Memory) -> tuple[Any, ...]:
    return memory.uuid, memory.updated_at, memory.superseded_by


def _time(message: Any) -> int:
    return int(message.sec) * 1_000_000_000 + int(message.nanosec)


def _pose(frame_id: str, pose: Any, stamp: int) -> Pose:
    p, q = pose.position, pose.orientation
    turn = (float(q.x), float(q.y), float(q.z), float(q.w))
    # What is a unit quaternion already stays as it is, to the last bit.
    if abs(math.hypot(*turn) - 1.0) > _UNIT_TOLERANCE:
        turn = unit(turn)
    return Pose(clean_frame(frame_id), (float(p.x), float(p.y), float(p.z)), turn, stamp)


def _context(text: str) -> dict[str, Any]:
    return read_object("context", text, _MAX_BYTES, _MAX_DEPTH)


def _one_of(kind: type[_E], field: str, name: str) -> _E:
    try:
        return kind(name)
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise InvalidRequestError(field, f"{name[:100]!r} is not one of {allowed}") from None
