# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where memories were made, as columns in memory, so that any radius is one pass over them.

They are read when a place is first asked for, and follow the log of changes of the memories. They
take 28 bytes a memory.
"""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from robotmem_ros.core.filters import Place
from robotmem_ros.core.store import schema
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.facts import Flags
from robotmem_ros.core.store.order import Ids, grown

Distances = npt.NDArray[np.float64]

_ARE_SOUND = "typeof(m.frame_id) = 'text'" + "".join(
    f" AND typeof(m.{axis}) = 'real'" for axis in "xyz"
)
_ROUNDING = 1e-12  # of a distance computed for all at once, as a share of it
_AT_ONCE = 8192  # rows read in one go
_MANY_CHANGES = 50_000  # above, reading all poses anew is quicker


class PoseCopy:
    """The positions of all memories at one moment of the database; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seq = -1
        self._known: int  # memories below this number were read
        self._numbers: dict[str, int]  # of frames, from 1
        self._frames: npt.NDArray[np.int32]  # by memory; 0: no pose
        self._axes: list[Distances]  # three, each by memory
        self._clear()

    def distances(
        self, connection: Connection, place: Place, length: int, ids: Ids | None = None
    ) -> Distances:
        """Return how far memories were made from a place, in metres, nearly exact.

        Infinity stands for those without a pose in its frame.

        Parameters
        ----------
        length: one more than the highest number of a memory.
        ids: the memories, below length; None stands for every number.
        """
        there, axes = self._in_frame(connection, place, length, ids)
        found: Distances = np.full(len(there), np.inf)
        with np.errstate(over="ignore"):
            x, y, z = (
                axis[there] - centre for axis, centre in zip(axes, place.target, strict=True)
            )
            found[there] = np.hypot(np.hypot(x, y), z)  # whose squares do not overflow
        return found

    def within(
        self, connection: Connection, place: Place, length: int, ids: Ids | None = None
    ) -> Flags:
        """Return which memories were made in the frame of a place, and near enough to it."""
        if math.isinf(place.max_distance):
            return self._in_frame(connection, place, length, ids)[0]
        distances = self.distances(connection, place, length, ids)
        passed: Flags = distances <= place.max_distance
        unsure = np.flatnonzero(
            np.abs(distances - place.max_distance) <= _ROUNDING * place.max_distance
        )
        for i in unsure:
            number = i if ids is None else ids[i]
            here = [float(axis[number]) for axis in self._axes]
            passed[i] = math.dist(here, place.target) <= place.max_distance
        return passed

    def _in_frame(
        self, connection: Connection, place: Place, length: int, ids: Ids | None
    ) -> tuple[Flags, list[Distances]]:
        """Return which memories have a pose in the frame of a place, and the axes of all poses."""
        with self._lock:
            self._follow(connection, length)
            frames, axes = self._frames[:length], [axis[:length] for axis in self._axes]
            frame = self._numbers.get(place.frame_id or "", -1)
        if ids is not None:
            frames, axes = frames[ids], [axis[ids] for axis in axes]
        return frames == frame, axes

    def _follow(self, connection: Connection, length: int) -> None:
        try:
            latest, changed = schema.changes_since(connection, "memory_changes", self._seq)
        except apsw.SQLError:  # the log is lost: read all, until ~/reindex makes it again
            latest, changed = -1, None
        if changed is None or self._seq < 0 or len(changed) > _MANY_CHANGES:
            self._clear()
            self._read(connection, length, "memories AS m")
        elif latest > self._seq:
            # Poses never change: only those of new memories are not known yet.
            new = [number for number in changed if number >= self._known]
            if new:
                self._read(
                    connection,
                    length,
                    "carray(?) AS c CROSS JOIN memories AS m ON m.id = c.value",
                    apsw.carray(np.array(new, np.int64)),
                )
        self._seq = max(latest, self._seq) if latest >= 0 else -1

    def _read(self, connection: Connection, length: int, source: str, *values: object) -> None:
        self._frames = grown(self._frames, length)
        self._axes = [grown(axis, length) for axis in self._axes]
        rows: Any = connection.execute(
            f"SELECT m.id, m.frame_id, m.x, m.y, m.z FROM {source} WHERE {_ARE_SOUND}",
            values,
        )
        while batch := list(itertools.islice(rows, _AT_ONCE)):
            ids, frames, *axes = zip(*batch, strict=True)
            numbers = np.array(ids)
            self._frames[numbers] = [
                self._numbers.setdefault(name, len(self._numbers) + 1) for name in frames
            ]
            for column, axis in zip(self._axes, axes, strict=True):
                column[numbers] = axis
        self._known = max(self._known, length)

    def _clear(self) -> None:
        self._known, self._numbers = 0, {}
        self._frames = np.zeros(0, np.int32)
        self._axes = [np.zeros(0) for _ in "xyz"]
