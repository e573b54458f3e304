# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where memories were made, as columns in memory, so that any radius is one pass over them.

They are read when a place is first asked for, and follow the log of changes of the memories. They
take 28 bytes a memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Poses:
    """Where memories were made, by their number.

    Attributes
    ----------
    frames: the number of the frame of each; 0: it has no pose.
    axes: x, y and z of each, in metres.
    numbers: of the frames.
    """

    frames: npt.NDArray[np.int32]
    axes: tuple[Distances, Distances, Distances]
    numbers: Mapping[str, int]

    def distances(self, place: Place, ids: Ids | None = None) -> Distances:
        """Return how far memories were made from a place, in metres, nearly exact.

        Infinity stands for those without a pose in its frame.

        Parameters
        ----------
        ids: the memories, all of them with an entry here; None stands for every number.
        """
        there = self._in_frame(place, ids)
        axes = self.axes if ids is None else tuple(axis[ids] for axis in self.axes)
        found: Distances = np.full(len(there), np.inf)
        with np.errstate(over="ignore"):
            x, y, z = (
                axis[there] - centre for axis, centre in zip(axes, place.target, strict=True)
            )
            found[there] = np.hypot(np.hypot(x, y), z)  # whose squares do not overflow
        return found

    def within(self, place: Place, ids: Ids | None = None) -> Flags:
        """Return which memories were made in the frame of a place, and near enough to it."""
        if math.isinf(place.max_distance):
            return self._in_frame(place, ids)
        # First those in a box, and of these the distances; on the edge, exactly.
        reach = place.max_distance * (1.0 + _ROUNDING)
        near = np.flatnonzero(self._in_frame(place, ids))
        for axis, centre in zip(self.axes, place.target, strict=True):
            there = axis[near if ids is None else ids[near]]
            with np.errstate(over="ignore"):
                near = near[np.abs(there - centre) <= reach]
        numbers = near if ids is None else ids[near]
        distances = self.distances(place, numbers)
        inside = distances <= place.max_distance
        edge = np.abs(distances - place.max_distance) <= _ROUNDING * place.max_distance
        for i in np.flatnonzero(edge):
            here = [float(axis[numbers[i]]) for axis in self.axes]
            inside[i] = math.dist(here, place.target) <= place.max_distance
        passed: Flags = np.zeros(len(self.frames) if ids is None else len(ids), np.bool_)
        passed[near[inside]] = True
        return passed

    def _in_frame(self, place: Place, ids: Ids | None) -> Flags:
        frames = self.frames if ids is None else self.frames[ids]
        found: Flags = frames == self.numbers.get(place.frame_id or "", -1)
        return found


class PoseCopy:
    """The poses at one moment of the database; to be used under the lock of copies.py."""

    def __init__(self) -> None:
        self._seq = -1
        self._known: int  # memories below this number were read
        self._numbers: dict[str, int]
        self._frames: npt.NDArray[np.int32]
        self._axes: list[Distances]
        self._clear()

    def view(self, connection: Connection, length: int) -> Poses:
        """Return the poses as the connection sees them.

        Parameters
        ----------
        length: one more than the highest number of a memory.
        """
        self._follow(connection, length)
        x, y, z = (axis[:length] for axis in self._axes)
        return Poses(self._frames[:length], (x, y, z), self._numbers)

    def _follow(self, connection: Connection, length: int) -> None:
        try:
            latest, changed = schema.changes_since(connection, "memory_changes", self._seq)
        except apsw.SQLError:  # the log is lost: read all, until ~/reindex makes it again
            latest, changed = -1, None
        if changed is None or self._seq < 0 or len(changed) > _MANY_CHANGES:
            self._clear()
            self._read(connection, length, "memories AS m")
        else:
            # Poses never change: only those of new memories are not known yet.
            new = [number for number in changed if number >= self._known]
            source = "carray(?) AS c CROSS JOIN memories AS m ON m.id = c.value"
            if new:
                self._read(connection, length, source, apsw.carray(np.array(new, np.int64)))
        self._seq = latest

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
