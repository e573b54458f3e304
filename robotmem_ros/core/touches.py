# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Record which memories were read, behind the back of whoever read them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence

from robotmem_ros.core.errors import RobotMemoryError
from robotmem_ros.core.model import Queue
from robotmem_ros.core.store import Store

_DELAY_SECONDS = 0.2  # reads that come in together are written together
_MAX_WAITING = 100_000  # memories; beyond, while nothing can be written, new reads go unrecorded


class Touches:
    """Counts reads, and writes the counts to the store from a thread of its own.

    A recall never waits for it. What was counted is written at the latest when it is closed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[int, tuple[int, int, int]] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._last_error = ""
        self._refused, self._refused_at = 0, -math.inf
        self._thread = threading.Thread(target=self._run, name="robotmem-touches", daemon=True)
        self._thread.start()

    @property
    def last_error(self) -> str:
        """Why counts could not be written; "" if they could."""
        return self._last_error

    @property
    def queue(self) -> Queue:
        """How many memories wait to have their reads recorded, and how many reads were not."""
        return Queue(len(self._waiting), self._refused, self._refused_at)

    def add(self, ids: Sequence[int], returned: bool) -> None:
        """Count one read of some memories, as part of the answer to a recall or not."""
        now = time.time_ns()
        with self._changed:
            for number in ids:
                reads, returns, _ = self._waiting.get(number, (0, 0, 0))
                if reads or len(self._waiting) < _MAX_WAITING:
                    self._waiting[number] = (reads + 1, returns + returned, now)
                else:
                    self._refused, self._refused_at = self._refused + 1, time.monotonic()
            self._changed.notify()

    def close(self) -> None:
        """Write what is left and end the thread; idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._closing:
                    self._changed.wait_for(lambda: self._closing, _DELAY_SECONDS)
                batch, self._waiting = self._waiting, {}
                closing = self._closing
            try:
                if batch:
                    self._store.touch(batch)
                self._last_error = ""
            except RobotMemoryError as error:
                self._last_error = str(error)
                with self._changed:
                    self._waiting = _merged(batch, self._waiting)
                    if not closing:
                        self._changed.wait_for(lambda: self._closing, 1.0)
            if closing:
                return


def _merged(
    older: dict[int, tuple[int, int, int]], newer: dict[int, tuple[int, int, int]]
) -> dict[int, tuple[int, int, int]]:
    merged = dict(older)
    for number, (reads, returns, last) in newer.items():
        old = merged.get(number, (0, 0, 0))
        merged[number] = (old[0] + reads, old[1] + returns, last)
    return merged
