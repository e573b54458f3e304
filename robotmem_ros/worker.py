# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Threads that do what takes time, so that the callbacks of the node stay short."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from robotmem_ros.core.errors import RobotMemoryError
from robotmem_ros.core.model import Queue

Work = Callable[[], Any]
"""What is to be done; returns the result or raises."""

Done = Callable[[Any, "BaseException | None"], None]
"""Called with the result, or with what was raised; from a thread of the lane, must not raise."""


class NotServedError(RobotMemoryError):
    """The request cannot be taken now; the text says why and what to do."""


class Lane:
    """A queue of bounded length, first in, first out, and the threads that empty it.

    When the queue is full, new work is refused: a caller that hears "busy" at once can decide what
    to do, one that waits in an endless queue cannot.
    """

    def __init__(self, name: str, threads: int, bound: int) -> None:
        self._name = name
        self._bound = bound
        self._jobs: deque[tuple[Work, Done]] = deque()
        self._running = 0
        self._refused = 0
        self._refused_at = -math.inf
        self._closed = False
        self._changed = threading.Condition()
        # Daemons: a call that hangs in the core must not keep the process alive.
        self._threads = [
            threading.Thread(target=self._run, name=f"robotmem-{name}-{i}", daemon=True)
            for i in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pending(self) -> int:
        """How much work waits or is under way."""
        with self._changed:
            return len(self._jobs) + self._running

    @property
    def queue(self) -> Queue:
        """How the queue does."""
        return Queue(self.pending, self._refused, self._refused_at)

    def submit(self, work: Work, done: Done) -> None:
        """Have work done in a thread of this lane, then done called.

        Raises
        ------
        NotServedError: the queue is full, or the lane is closed.
        """
        with self._changed:
            if self._closed:
                raise NotServedError("the node is going down; nothing was done")
            if len(self._jobs) >= self._bound:
                self._refused += 1
                self._refused_at = time.monotonic()
                raise NotServedError(
                    f"busy: {self._bound} {self._name} requests are waiting already (parameter "
                    "queue_size); nothing was done, try again later"
                )
            self._jobs.append((work, done))
            self._changed.notify()

    def close(self, timeout: float) -> bool:
        """Refuse what is queued, wait for what is running; return whether all of it ended."""
        with self._changed:
            self._closed = True
            refused = list(self._jobs)
            self._jobs.clear()
            self._changed.notify_all()
        for _, done in refused:
            done(None, NotServedError("the node is going down; nothing was done"))
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._jobs and not self._closed:
                    self._changed.wait()
                if not self._jobs:
                    return
                work, done = self._jobs.popleft()
                self._running += 1
            self._finish(work, done)
            del work, done  # an idle thread must not keep the last request alive
            with self._changed:
                self._running -= 1

    @staticmethod
    def _finish(work: Work, done: Done) -> None:
        try:
            result = work()
        except BaseException as error:  # the caller must hear of it, and the thread must live on
            done(None, error)
        else:
            done(result, None)
