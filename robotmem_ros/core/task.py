# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Long work in the background, one piece at a time, with its progress."""

from __future__ import annotations

import threading
from collections.abc import Callable

from robotmem_ros.core.errors import InvalidRequestError, RobotMemoryError

Progress = Callable[[int, int], None]
"""Takes how many items are done, and how many there are."""


class BackgroundTask:
    """At most one long task in the background, with its progress."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.name = ""
        self.done = 0
        self.total = 0
        self.result = ""

    def start(self, name: str, work: Callable[[Progress], str]) -> str:
        """Start a task, unless one is under way; return one sentence.

        Raises
        ------
        InvalidRequestError: another task is under way.
        """
        with self._lock:
            if self.name:
                raise InvalidRequestError(name, f"a {self.name} is under way; wait for its end")
            self.name, self.done, self.total = name, 0, 0
        threading.Thread(
            target=self._run, args=(name, work), name=f"robotmem-{name}", daemon=True
        ).start()
        return f"{name} started; progress is on ~/status"

    def _run(self, name: str, work: Callable[[Progress], str]) -> None:
        try:
            self.result = work(self._progress)
        except RobotMemoryError as error:
            self.result = f"{name} failed: {error}"
        finally:
            self.name = ""

    def _progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total
