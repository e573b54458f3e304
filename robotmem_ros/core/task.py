# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Long work in the background, one piece at a time, with its progress."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from robotmem_ros.core.errors import InvalidRequestError, RobotMemoryError, StoreError

Progress = Callable[[int, int], None]
"""Takes how many items are done, and how many there are; raises when the work is to stop."""

_CLOSING_TIMEOUT = 0.5  # seconds
_LOG = logging.getLogger(__name__)


class BackgroundTask:
    """At most one long task in the background, with its progress."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.name = ""
        self.done = 0
        self.total = 0
        self.result = ""
        self._thread: threading.Thread | None = None
        self._closing = False

    def start(self, name: str, work: Callable[[Progress], str]) -> str:
        """Start a task, unless one is under way; return one sentence.

        Raises
        ------
        InvalidRequestError: another task is under way.
        """
        with self._lock:
            if self.name:
                raise InvalidRequestError(name, f"a {self.name} is under way; wait for its end")
            if self._closing:
                raise InvalidRequestError(name, "the memory is being closed")
            self.name, self.done, self.total = name, 0, 0
            self._thread = threading.Thread(
                target=self._run, args=(name, work), name=f"robotmem-{name}", daemon=True
            )
            self._thread.start()
        return f"{name} started; progress is on ~/status"

    def close(self) -> None:
        """Have the task stop at its next step, and wait a moment for that."""
        with self._lock:
            self._closing = True
            thread = self._thread
        if thread is not None:
            thread.join(_CLOSING_TIMEOUT)

    def _run(self, name: str, work: Callable[[Progress], str]) -> None:
        try:
            self.result = work(self._progress)
        except RobotMemoryError as error:
            self.result = f"{name} failed: {error}"
            if not self._closing:
                _LOG.warning("%s", self.result)
        finally:
            self.name = ""

    def _progress(self, done: int, total: int) -> None:
        if self._closing:
            raise StoreError("the memory is being closed")
        self.done, self.total = done, total
