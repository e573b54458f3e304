# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The order in which an engine ranks memories, and the way to its first eligible ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.eligibility import Eligibility

Ids = npt.NDArray[np.int64]
Keys = npt.NDArray[Any]

CHECKED = 10_000
"""After so many memories were checked in vain, all eligible ones are listed."""


class Order:
    """Memories and their keys; the better an engine ranks a memory, the smaller its key.

    Parameters
    ----------
    ids: the memories; 0 marks one that is gone.
    keys: of each; infinity for one that is gone.
    positions: finds memories in ids; what it returns may be out of range for those not there.
    rounding: difference of keys up to which two memories count as tied; with 0 those that are tied
        keep the order of ids.
    """

    def __init__(
        self, ids: Ids, keys: Keys, positions: Callable[[Ids], Ids], rounding: float
    ) -> None:
        self._ids = ids
        self._keys = keys
        self._positions = positions
        self._rounding = rounding

    def first_eligible(
        self, connection: Connection, n: int, eligible: Eligibility
    ) -> Sequence[int]:
        """Return at least the first n eligible memories, and with a rounding all those tied."""
        if eligible.ids is not None:
            return self._first_of(n, eligible.ids)
        found: list[int] = []
        passed = 0
        for batch, end in self._batches(n + n // 4 + 20):
            found += eligible.keep(connection, batch)
            passed += len(batch)
            if len(found) >= n:
                last = self._keys[self._positions(np.array([found[n - 1]], np.int64))[0]]
                if not self._rounding or end > last + self._rounding:
                    break
            if passed > CHECKED:  # few of the best are eligible: find out who is
                return self._first_of(n, eligible.all_ids(connection))
        return found

    def _first_of(self, n: int, ids: Sequence[int]) -> list[int]:
        numbers = np.fromiter(ids, np.int64, len(ids))
        rows = self._positions(numbers)
        there = (rows >= 0) & (rows < len(self._ids))
        rows, numbers = rows[there], numbers[there]
        rows = rows[self._ids[rows] == numbers]
        keys = self._keys[rows]
        if len(rows) > n:
            rows = rows[keys <= np.partition(keys, n - 1)[n - 1] + self._rounding]
        return [int(number) for number in self._ids[rows]]

    def _batches(self, size: int) -> Iterator[tuple[list[int], float]]:
        """Yield ever larger batches of memories, best first, each with its greatest key."""
        rows = np.arange(len(self._keys))
        while len(rows) > size:
            keys = self._keys[rows]
            last = np.partition(keys, size - 1)[size - 1]
            chosen = keys < last
            chosen[np.flatnonzero(keys == last)[: size - np.count_nonzero(chosen)]] = True
            yield self._batch(rows[chosen])
            rows = rows[~chosen]
            size *= 3
        if len(rows):
            yield self._batch(rows)

    def _batch(self, rows: Ids) -> tuple[list[int], float]:
        rows = rows[np.argsort(self._keys[rows], kind="stable")]
        live = rows[self._ids[rows] > 0]
        return [int(number) for number in self._ids[live]], float(self._keys[rows[-1]])


def grown(array: npt.NDArray[Any], length: int, fill: int = 0) -> npt.NDArray[Any]:
    """Return the array with room for length rows; a copy, if it had to grow."""
    if len(array) >= length:
        return array
    shape = (max(length, len(array) * 2, 64), *array.shape[1:])
    column_major = array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous
    bigger = np.full(shape, fill, array.dtype, order="F" if column_major else "C")
    bigger[: len(array)] = array
    return bigger
