# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The recent messages of one topic, bounded in time, number and bytes."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

MAX_COUNT = 5000
"""Most messages kept of one topic: 10 s at 500 Hz."""

MAX_BYTES = 16_000_000
"""Most bytes kept of one topic; the newest message is kept however large it is."""


class Sample(NamedTuple):
    """One message.

    Attributes
    ----------
    stamp: of its header, or else when it was received; ROS time in nanoseconds.
    received: when it was received, ROS time in nanoseconds.
    size: bytes it takes.
    message: as it came.
    """

    stamp: int
    received: int
    size: int
    message: Any


class Samples:
    """The messages received in the last `history` nanoseconds, and one from before.

    That one is what the topic said last at the beginning of the history, however long ago: a robot
    that stands still may send its pose only once.
    """

    def __init__(
        self, history: int, max_count: int = MAX_COUNT, max_bytes: int = MAX_BYTES
    ) -> None:
        self._history = history
        self._max_count = max_count
        self._max_bytes = max_bytes
        # Each with the greatest stamp up to it.
        self._samples: deque[tuple[int, Sample]] = deque()
        self._bytes = 0
        self.dropped = 0  # of the history, because there were too many or they were too large

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def newest(self) -> Sample | None:
        """What was received last."""
        return self._samples[-1][1] if self._samples else None

    def add(self, sample: Sample) -> None:
        """Keep a message, and drop what is too much."""
        samples = self._samples
        greatest = max(sample.stamp, samples[-1][0]) if samples else sample.stamp
        samples.append((greatest, sample))
        self._bytes += sample.size
        start = sample.received - self._history
        while len(samples) > 1 and (
            samples[1][1].received <= start
            or len(samples) > self._max_count
            or self._bytes > self._max_bytes
        ):
            self.dropped += samples[1][1].received > start
            self._bytes -= samples.popleft()[1].size

    def latest(self, stamp: int) -> Sample | None:
        """Return the freshest message at or before a time; of equal stamps the last received."""
        best = None
        for greatest, sample in reversed(self._samples):
            if best is not None and greatest <= best.stamp:
                break  # none of those before can be fresher
            if sample.stamp <= stamp and (best is None or sample.stamp > best.stamp):
                best = sample
        return best

    def clear(self) -> None:
        """Forget all of them."""
        self._samples.clear()
        self._bytes = 0


def stamp_reader(
    fields: tuple[tuple[str, str], ...], decode: Callable[[bytes], Any]
) -> Callable[[bytes], int]:
    """Return a function that reads the header's stamp of a serialised message, 0 if it has none.

    Parameters
    ----------
    fields: names and types of the message's fields, in order.
    decode: makes an object of the bytes; used where the header is not the first field.
    """
    names = [name for name, kind in fields if kind in ("std_msgs/Header", "std_msgs/msg/Header")]
    if not names:
        return lambda data: 0
    name = names[0]

    def decoded(data: bytes) -> int:
        stamp = getattr(decode(data), name).stamp
        return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)

    if fields[0][0] != name:
        return decoded

    def peeked(data: bytes) -> int:
        # After four bytes that say how it is written comes the first field, and in it the stamp.
        if len(data) < 12 or data[0] != 0 or data[1] > 1:
            return decoded(data)
        sec, nanosec = (_LITTLE if data[1] else _BIG).unpack_from(data, 4)
        return int(sec) * 1_000_000_000 + int(nanosec)

    return peeked


_LITTLE = struct.Struct("<iI")
_BIG = struct.Struct(">iI")
