# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A part of a recording on its way to an episode, and the memories that are made of it.

All names are computed from what was recorded: the same recording, wherever it lies and however
often it is imported, makes the same memories. The content of messages up to SMALL bytes counts, of
larger ones the size.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

from robotmem_ros.bags.files import SMALL, Record
from robotmem_ros.captured import Captured
from robotmem_ros.core.context import write
from robotmem_ros.core.episodes import context_at_end
from robotmem_ros.core.model import Episode, Json, Memory, MemoryType, Pose
from robotmem_ros.core.summary import Facts
from robotmem_ros.core.trajectory import path_length
from robotmem_ros.trajectory import Sampler

RECORDING = "recording"
"""Key of a context that tells from which recording it is."""

_NAMES = uuid.UUID("6f6a1b0e-53f4-4b5c-9a7e-2c1d8f40a9b7")
_CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True)
class Origin:
    """What all memories of one import have in common.

    Attributes
    ----------
    bag: name of the bag.
    collection: where they go.
    way: how the recording is cut into episodes.
    """

    bag: str
    collection: str
    way: str


@dataclass(frozen=True, slots=True)
class Note:
    """What a marker says happened, with what the robot sensed at that time."""

    record: Record
    text: str
    stamp: int
    captured: Captured


class Interval:
    """A part of a recording.

    Parameters
    ----------
    start: ROS time in nanoseconds.
    pose: where the robot was then, if that is known.
    note: the marker that it begins with.
    """

    def __init__(
        self,
        origin: Origin,
        start: int,
        sampler: Sampler,
        pose: Pose | None = None,
        note: Note | None = None,
    ) -> None:
        self._origin = origin
        self._start = start
        self._sampler = sampler
        self._note = note
        sampler.restart()
        self._trajectory: list[Pose] = []
        if pose is not None and sampler.offer(pose):
            self._trajectory.append(pose)
        self._messages = 0
        self._hash = hashlib.blake2b(repr((origin.collection, origin.way)).encode())
        self.end = start
        """ROS time of its last message in nanoseconds."""
        self.received = note.record.time if note else 0
        """When that was received, as Record.time."""

    @property
    def last_pose_stamp(self) -> int:
        """Stamp of the last pose of the trajectory, 0 if it has none."""
        return self._trajectory[-1].stamp if self._trajectory else 0

    def add(self, record: Record, now: int, pose: Pose | None) -> None:
        """Add a message that came at a ROS time, and the pose in it, if there is one."""
        self._messages += 1
        self._hash.update(b"%d %d %s\0" % (record.time, record.size, record.topic.name.encode()))
        if record.data is not None and record.size <= SMALL:
            self._hash.update(record.data)
        self.end = max(self.end, now)
        self.received = record.time
        if pose is not None and self._sampler.offer(pose):
            self._trajectory.append(pose)

    def episode(self, captured: Captured, end: int = 0, interrupted: str = "") -> Episode:
        """Return the episode that it was.

        Parameters
        ----------
        captured: what was sensed at its end.
        end: ROS time of the end; 0 means that of the last message.
        interrupted: why it ended before its time; empty if it did not.
        """
        end = max(end, self.end)
        session = uuid.uuid5(_NAMES, self._hash.hexdigest())
        note = self._note
        facts = Facts(
            outcome=None,
            interrupted=bool(interrupted),
            reason=interrupted,
            duration=(end - self._start) / 1e9,
            path_length=path_length(self._trajectory),
            memories=1 if note and note.text else 0,
        )
        recording: dict[str, Json] = {"bag": self._origin.bag, "messages": self._messages}
        text = note.text if note else ""
        context = captured.merged_into(context_at_end({RECORDING: recording}, facts))
        memories = [self._fact(note, session)] if note and note.text else []
        memories.append(
            self._memory(
                MemoryType.EPISODE,
                uuid.uuid5(session, "episode"),
                str(session),
                text or _summary(facts),
                context,
                end,
                captured.pose or (self._trajectory[-1] if self._trajectory else None),
                self.received,
            )
        )
        return Episode(
            session_id=str(session),
            collection=self._origin.collection,
            context={RECORDING: recording},
            context_json=write({RECORDING: recording}),
            start=self._start,
            end=end,
            outcome=None,
            summary=text,
            interrupted=bool(interrupted),
            memories=tuple(memories),
            trajectory=tuple(self._trajectory),
        )

    def _fact(self, note: Note, session: uuid.UUID) -> Memory:
        topic = note.record.topic.name
        return self._memory(
            MemoryType.FACT,
            uuid.uuid5(session, "fact"),
            str(session),
            note.text,
            note.captured.merged_into({RECORDING: {"bag": self._origin.bag, "topic": topic}}),
            note.stamp,
            note.captured.pose,
            note.record.time,
        )

    def _memory(
        self,
        kind: MemoryType,
        name: uuid.UUID,
        session_id: str,
        content: str,
        context: dict[str, Json],
        stamp: int,
        pose: Pose | None,
        received: int,
    ) -> Memory:
        return Memory(
            id=0,
            uuid=str(name),
            type=kind,
            perception_type=None,
            content=content,
            context=context,
            context_json=write(context),
            collection=self._origin.collection,
            session_id=session_id,
            confidence=_CONFIDENCE,
            stored_confidence=_CONFIDENCE,
            stamp=stamp,
            # By the recording's clock, so that importing it again brings nothing newer.
            created_at=received,
            updated_at=received,
            expires=0,
            pose=pose,
            last_access=0,
            access_count=0,
            return_count=0,
            superseded_by="",
        )


def first_text(message: Any) -> str:
    """Return the first text in a message that is not empty, "" if there is none.

    The frame of a header does not count.
    """
    for name in getattr(message, "__dataclass_fields__", ()):
        value = getattr(message, name)
        if getattr(value, "__msgtype__", "") == "std_msgs/msg/Header":
            continue
        for item in value if isinstance(value, list) else (value,):
            text = item if isinstance(item, str) else first_text(item)
            if text.strip():
                return text.replace("\0", "\ufffd").strip()
    return ""


def _summary(facts: Facts) -> str:
    travel = f" with {facts.path_length:.1f} m of travel" if facts.path_length else ""
    ended = f"; it was interrupted: {facts.reason}" if facts.interrupted else ""
    return f"A recorded episode of {facts.duration:.1f} s{travel}{ended}."
