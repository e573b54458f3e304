# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Turn a bag into memories and episodes, message by message, in memory that is bounded.

ROS time is as it was for the nodes of the recording: what /clock said last, if the bag has a
/clock (simulated time, however far from the wall clock), else the time at which the recorder
received a message. Messages before the first /clock happened at its time. A stamp in a header
counts more than both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from robotmem_ros.bags.bag import Bag
from robotmem_ros.bags.files import Record, Topic
from robotmem_ros.bags.interval import Interval, Note, Origin, first_text
from robotmem_ros.bags.senses import Senses, absolute
from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.model import Episode, Memory
from robotmem_ros.importing import (
    EPISODE,
    MEMORY,
    episode_from_message,
    memory_from_message,
)
from robotmem_ros.params_file import Parameters
from robotmem_ros.trajectory import Sampler

CLOCK = "/clock"
CLOCK_TYPE = "rosgraph_msgs/msg/Clock"

MAX_EARLY = 20_000
"""Messages that may wait for the first /clock; when there are more, it is not waited for."""

SET_BACK = 100_000_000
"""Nanoseconds by which /clock must go back to mean that an episode was interrupted."""

_IGNORED = ("robotmem_ros/", "rcl_interfaces/", CLOCK_TYPE)
"""Beginnings of types whose messages tell nothing about the robot."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """How recordings are cut into episodes; with neither, each is one.

    Attributes
    ----------
    marker: topic whose messages begin a new episode and say what happened.
    gap: seconds without any message after which a new episode begins; 0 means never.
    memories_only: make no episodes, take only memories and episodes that were recorded as such.
    """

    marker: str = ""
    gap: float = 0.0
    memories_only: bool = False

    @property
    def way(self) -> str:
        """A name for it, the same for all lengths of gaps."""
        return f"marker {self.marker}" if self.marker else "gap" if self.gap else "whole"


class Recording:
    """The memories and episodes of a bag.

    Attributes
    ----------
    read: messages read so far.
    made: episodes made of what was recorded, so far.

    Parameters
    ----------
    namespace: where topics without a leading slash are.

    Raises
    ------
    ConfigError: a parameter is wrong.
    """

    def __init__(
        self, bag: Bag, parameters: Parameters, cutting: Cutting, namespace: str = ""
    ) -> None:
        self.read = 0
        self.made = 0
        self._bag = bag
        self._cutting = cutting
        self._marker = absolute(cutting.marker, namespace) if cutting.marker else ""
        self._marker_seen = False
        self._max_text = parameters.config.max_content_bytes
        self._origin = Origin(bag.name, parameters.config.collection, cutting.way)
        settings = parameters.node
        self._sampler = Sampler(settings.trajectory_rate, settings.trajectory_min_distance)
        self._senses = Senses(bag, parameters, namespace)
        self._interval: Interval | None = None
        self._clock = 0
        self._early: list[Record] | None = None  # those that wait for the first /clock

    def found(
        self, progress: Callable[[int], None] = lambda read: None
    ) -> Iterator[Memory | Episode]:
        """Yield what the bag holds, in the order of its time.

        Parameters
        ----------
        progress: is told after each message how many were read.
        """
        clock = self._bag.topics.get(CLOCK)
        if clock is not None and clock.type == CLOCK_TYPE:
            self._early = []
        for record in self._bag.records(self._wants):
            self.read += 1
            yield from self._take(record)
            progress(self.read)
        yield from self._take_early()
        yield from self._close()
        if self._marker and not self._marker_seen:
            self._bag.problems.add(f"marker topic {self._marker} has no messages in the bag")
        if self.made:
            for sentence in self._senses.missing():
                self._bag.problems.add(sentence)

    def _wants(self, topic: Topic) -> bool:
        ours = topic.type in (MEMORY, EPISODE, CLOCK_TYPE)
        return ours or topic.name == self._marker or self._senses.wants(topic)

    def _take(self, record: Record) -> Iterator[Memory | Episode]:
        topic = record.topic
        if topic.name == CLOCK and topic.type == CLOCK_TYPE:
            yield from self._set_clock(record)
            if self._clock:
                yield from self._take_early()
        elif self._early is not None:
            self._early.append(record)
            if len(self._early) > MAX_EARLY:
                yield from self._take_early()
        elif topic.type in (MEMORY, EPISODE):
            yield from self._recorded(record)
        elif not topic.type.startswith(_IGNORED) and not self._cutting.memories_only:
            yield from self._experience(record)

    def _take_early(self) -> Iterator[Memory | Episode]:
        """Take the messages that waited for the first /clock, now that there is time."""
        early, self._early = self._early, None
        for record in early or ():
            yield from self._take(record)

    def _experience(self, record: Record) -> Iterator[Episode]:
        """Add a message to the interval under way, after ending that one if it is the time."""
        now = self._clock or record.time
        interval, gap = self._interval, self._cutting.gap * 1e9
        if interval is not None and 0 < gap < record.time - interval.received:
            yield from self._close()
        kept = self._interval.last_pose_stamp if self._interval else 0
        pose = self._senses.hear(record, now, kept)
        if record.topic.name == self._marker:
            note = self._note(record, now)
            if note is not None:
                yield from self._close(note.stamp)
                self._interval = Interval(
                    self._origin, note.stamp, self._sampler, note.captured.pose, note
                )
        if self._interval is None:
            known = self._senses.at(now).pose
            self._interval = Interval(self._origin, now, self._sampler, known)
        self._interval.add(record, now, pose)

    def _note(self, record: Record, now: int) -> Note | None:
        """Return what a marker says; None if it cannot be read."""
        message = self._bag.decoded(record)
        if message is None:
            return None
        self._marker_seen = True
        stamp = now
        header = getattr(getattr(message, "header", None), "stamp", None)
        if header is not None and (header.sec > 0 or header.nanosec > 0):
            stamp = int(header.sec) * 1_000_000_000 + int(header.nanosec)
        text = first_text(message)
        if len(text.encode(errors="replace")) > self._max_text:
            self._bag.problems.add(f"topic {record.topic.name}: a text longer than allowed")
            text = ""
        return Note(record, text, stamp, self._senses.at(stamp))

    def _close(self, end: int = 0, interrupted: str = "") -> Iterator[Episode]:
        interval, self._interval = self._interval, None
        if interval is not None:
            self.made += 1
            captured = self._senses.at(end or interval.end)
            yield interval.episode(captured, end, interrupted)

    def _set_clock(self, record: Record) -> Iterator[Episode]:
        message = self._bag.decoded(record)
        if message is None:
            return
        clock = clock_time(message)
        if 0 < clock < self._clock:
            if self._clock - clock > SET_BACK:
                yield from self._close(interrupted="the clock was set back")
            self._senses.clear()
        self._clock = clock or self._clock

    def _recorded(self, record: Record) -> Iterator[Memory | Episode]:
        message = self._bag.decoded(record)
        if message is None:
            return
        is_memory = record.topic.type == MEMORY
        try:
            yield memory_from_message(message) if is_memory else episode_from_message(message)
        except InvalidRequestError as error:
            self._bag.problems.add(f"topic {record.topic.name}: a message cannot be used", error)


def clock_time(message: Any) -> int:
    """Return the time in a message of /clock in nanoseconds; 0 if it is none."""
    return max(0, int(message.clock.sec) * 1_000_000_000 + int(message.clock.nanosec))
