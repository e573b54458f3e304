# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which memories could not be embedded though the backend works, and when to try them again."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Sequence

_FIRST, _LONGEST = 60.0, 3600.0  # seconds until the next try; it doubles each time

MAX = 10_000
"""With so many, something else is wrong: nothing new is embedded until some are due again."""


class Failures:
    """Memories that failed by their own fault, each with a delay that grows. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[int, int] = {}
        self._due: dict[int, float] = {}

    @property
    def are_too_many(self) -> bool:
        """Whether there is no sense in going on."""
        return len(self._times) >= MAX

    def add(self, memory_id: int) -> None:
        """Take note that a memory failed."""
        with self._lock:
            times = self._times.get(memory_id, 0)
            self._times[memory_id] = times + 1
            self._due[memory_id] = self._clock() + min(_FIRST * 2.0**times, _LONGEST)

    def forget(self, memory_id: int) -> None:
        """Take note that a memory has its vector, or a new text."""
        with self._lock:
            self._times.pop(memory_id, None)
            self._due.pop(memory_id, None)

    def keep_only(self, among: Sequence[int], still: Collection[int]) -> None:
        """Forget those of some memories that wait no longer."""
        for memory_id in set(among) - set(still):
            self.forget(memory_id)

    def retry(self) -> None:
        """Make all of them due now."""
        with self._lock:
            self._due = dict.fromkeys(self._due, -math.inf)

    def ids(self) -> set[int]:
        """Return all of them."""
        with self._lock:
            return set(self._times)

    def due(self, limit: int) -> list[int]:
        """Return some that may be tried again now."""
        now = self._clock()
        with self._lock:
            return [memory_id for memory_id, due in self._due.items() if due <= now][:limit]

    def next_due(self) -> float:
        """Return the seconds until one may be tried again; infinity when there are none."""
        with self._lock:
            first = min(self._due.values(), default=math.inf)
        return max(0.0, first - self._clock())
