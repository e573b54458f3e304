# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The poses of the open episode on their way to disk, and how long a way they make."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Sequence

from robotmem_ros.core.errors import RobotMemoryError
from robotmem_ros.core.model import Pose, Queue
from robotmem_ros.core.store import Store

MAX_POSES = 20_000
"""Poses of one episode on disk; when there are more, every other one goes."""

_DELAY_SECONDS = 0.4  # poses that come in together are written together
_RETRY_SECONDS = 1.0
_MAX_WAITING = 10_000  # poses; beyond, while nothing can be written, new ones are lost


class Trajectory:
    """Writes the poses of one open episode to the store, from a thread of its own.

    Whoever adds a pose does not wait; it is on disk half a second later. A trajectory of any
    length stays whole: it becomes coarser, not shorter.
    """

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self._waiting: list[tuple[int, Pose]] = []
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._closing = False
        self._offered = 0
        self._written = 0
        self._stride = 1
        self._last: tuple[int, Pose] | None = None
        self.last_error = ""
        self._refused, self._refused_at = 0, -math.inf
        self._thread = threading.Thread(target=self._run, name="robotmem-trajectory", daemon=True)
        self._thread.start()

    @property
    def queue(self) -> Queue:
        """How many poses wait to be written, and how many were lost."""
        return Queue(len(self._waiting), self._refused, self._refused_at)

    def add(self, poses: Sequence[Pose]) -> None:
        """Take poses, the oldest first."""
        with self._changed:
            for pose in poses:
                self._last = (self._offered, pose)
                if self._offered % self._stride == 0:
                    if len(self._waiting) < _MAX_WAITING:
                        self._waiting.append(self._last)
                    else:
                        self._refused, self._refused_at = self._refused + 1, time.monotonic()
                self._offered += 1
            self._changed.notify()

    def flush(self) -> None:
        """Write what waits, and the very last pose.

        Raises
        ------
        StoreError: it cannot be written; it waits on.
        """
        with self._changed:
            if self._last is not None and self._last[0] % self._stride:
                self._waiting.append(self._last)
        self._write()

    def close(self) -> None:
        """Write what is left, if that can be done, and end the thread; idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        closing = False
        while not closing:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                delay = _RETRY_SECONDS if self.last_error else _DELAY_SECONDS
                closing = self._changed.wait_for(lambda: self._closing, delay)
            try:
                self._write()
                self.last_error = ""
            except RobotMemoryError as error:
                self.last_error = f"the trajectory cannot be stored: {error}"

    def _write(self) -> None:
        with self._writing:
            with self._changed:
                batch, self._waiting = self._waiting, []
            if not batch:
                return
            stride, thin = self._stride, 1
            written = self._written
            if written + len(batch) > MAX_POSES:
                stride = thin = 2 * stride
                written //= 2
                # The last one stays whatever its number.
                batch = [item for item in batch if item[0] % stride == 0 or item == self._last]
            try:
                self._store.sessions.add_poses(self._session_id, batch, thin)
            except RobotMemoryError:
                with self._changed:
                    self._waiting = batch + self._waiting
                raise
            with self._changed:
                self._stride = stride
            self._written = written + len(batch)


def path_length(poses: Sequence[Pose]) -> float:
    """Return the metres from pose to pose; steps from one frame into another do not count."""
    return math.fsum(
        math.dist(one.position, other.position)
        for one, other in itertools.pairwise(poses)
        if one.frame_id == other.frame_id
    )
