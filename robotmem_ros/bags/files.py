# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the readers of both bag formats share: topics, records, and a list of what was wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["SMALL", "BagError", "Problems", "Record", "StorageFile", "Topic", "Wanted", "zstd"]


class BagError(Exception):
    """Nothing can be read from a bag or from one of its files; the text says why."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a bag.

    Attributes
    ----------
    name, type: for example /odom and nav_msgs/msg/Odometry.
    encoding: how its messages are serialised; only "cdr" can be read.
    definition, definition_format: the text of the type as the bag holds it, and ros2msg or
        ros2idl; empty when the bag holds none.
    """

    name: str
    type: str
    encoding: str = "cdr"
    definition: str = ""
    definition_format: str = ""


class Record(NamedTuple):
    """One message of a bag.

    Attributes
    ----------
    time: when the recorder received it, in nanoseconds.
    size: of the message in bytes.
    data: the message; None if it is larger than SMALL and nobody wanted its topic.
    """

    time: int
    topic: Topic
    size: int
    data: bytes | None


_LONGEST = 300  # characters of a line about a problem

SMALL = 4096
"""Bytes up to which messages are always read: skipping them would save nothing."""

Wanted = Callable[[Topic], bool]
"""Tells whether the large messages of a topic are to be read, too."""


class StorageFile(Protocol):
    """One file of a bag.

    Attributes
    ----------
    problems: what was wrong so far.
    expected: how many messages it holds by what it says itself; 0 if it does not.
    """

    problems: Problems
    expected: int

    def topics(self) -> Iterable[Topic]:
        """Return the topics that are known so far."""

    def records(self, wanted: Wanted) -> Iterator[Record]:
        """Yield the messages in the order of their time, as far as they can be read."""

    def close(self) -> None:
        """Close the file."""


class Problems:
    """What was wrong, in the order it was met; the same is said once, with how often."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, Any]] = {}

    def add(self, problem: str, example: object = "") -> None:
        """Note a problem; of many examples the first is told."""
        times, first = self._found.get(problem, (0, example))
        self._found[problem] = times + 1, first

    def extend(self, others: Problems) -> None:
        """Note the problems of a part."""
        for problem, (times, first) in others._found.items():
            known, example = self._found.get(problem, (0, first))
            self._found[problem] = known + times, example

    def __bool__(self) -> bool:
        return bool(self._found)

    def lines(self) -> list[str]:
        """Return one line for each problem."""
        lines = []
        for problem, (times, example) in self._found.items():
            line = problem if times == 1 else f"{problem} ({times} times)"
            line = " ".join((f"{line}: {example}" if f"{example}" else line).split())
            lines.append(line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "...")
        return lines
