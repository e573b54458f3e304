# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The order in which an engine ranks memories, and the way to its first eligible ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from robotmem_ros.core.store.eligibility import Eligibility

Ids = npt.NDArray[np.int64]
Keys = npt.NDArray[Any]

CHECKED = 10_000
"""After so many memories were checked in vain, all eligible ones are found out."""

_SAMPLED = 50_000  # keys; above, a sample tells where the first ones end


class Order:
    """Memories and their keys; the better an engine ranks a memory, the smaller its key.

    Parameters
    ----------
    ids: the memories; 0 marks one that is gone.
    keys: of each.
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

    @property
    def length(self) -> int:
        """How many memories there are, those that are gone included."""
        return len(self._ids)

    def first_eligible(self, n: int, eligible: Eligibility) -> Ids:
        """Return the first n eligible memories, and with a rounding all those tied, in any order.

        Few are looked up one by one; of many, the best are checked, which is enough where most are
        eligible; else it is found out who is.
        """
        if eligible.ids is not None:
            return self._first(n, self._rows_of(eligible.ids))
        if eligible.flags is None:
            found = self._checked(n, eligible)
            if found is not None:
                return found
        allowed = eligible.find_all().take(self._ids, mode="clip")
        return self._first(n, np.flatnonzero(allowed))

    def _checked(self, n: int, eligible: Eligibility) -> Ids | None:
        """Return the first eligible ones, checking the best; None if few of these are."""
        found = np.zeros(0, np.int64)
        passed = 0
        for rows in self._batches(n + n // 4 + 20):
            found = np.append(found, eligible.keep(self._ids[rows]))
            passed += len(rows)
            if len(found) >= n:
                last = self._keys[self._positions(found[n - 1 : n])[0]]
                if not self._rounding or self._keys[rows[-1]] > last + self._rounding:
                    return found
            elif eligible.is_quick:
                return None
            if passed > CHECKED:
                return None
        return found

    def _rows_of(self, ids: Ids) -> Ids:
        """Return the rows of those memories that have one, ascending."""
        rows = self._positions(ids)
        there = (rows >= 0) & (rows < len(self._ids))
        rows = rows[there]
        return np.sort(rows[self._ids[rows] == ids[there]])

    def _first(self, n: int, rows: Ids) -> Ids:
        """Return the memories of the first n of some rows, with a rounding all those tied."""
        if len(rows) > n:
            keys = self._keys[rows]
            if self._rounding:
                rows = rows[keys <= _nth(keys, n) + self._rounding]
            else:
                rows = rows[_first_places(keys, n)]
        found: Ids = self._ids[rows]
        return found

    def _batches(self, size: int) -> Iterator[Ids]:
        """Yield ever larger batches of rows, best first, each in order."""
        rows, keys = np.arange(len(self._keys)), self._keys
        while len(rows):
            places = _first_places(keys, size)
            best = rows[places]
            yield best[np.argsort(self._keys[best], kind="stable")]
            rows = np.delete(rows, places)
            keys = self._keys[rows]
            size *= 3


def _first_places(keys: Keys, n: int) -> Ids:
    """Return the places of the n smallest keys, ascending; of those that are tied the first."""
    if len(keys) <= n:
        return np.arange(len(keys))
    last = _nth(keys, n)
    before = np.flatnonzero(keys < last)
    tied = np.flatnonzero(keys == last)[: n - len(before)]
    return np.sort(np.concatenate((before, tied)))


def _nth(keys: Keys, n: int) -> Any:
    """Return the n-th smallest of at least n keys."""
    if len(keys) > _SAMPLED:
        step = max(2, len(keys) // 4096)
        sample = np.sort(keys[::step])
        guess = sample[min(len(sample) - 1, 2 * n // step + 16)]
        below = keys[keys <= guess]
        if len(below) >= n:
            if np.count_nonzero(keys < guess) < n:
                return guess  # many are tied
            keys = below
    return np.partition(keys, n - 1)[n - 1]


def grown(array: npt.NDArray[Any], length: int, fill: int = 0) -> npt.NDArray[Any]:
    """Return the array with room for length rows; a copy, if it had to grow."""
    if len(array) >= length:
        return array
    shape = (max(length, len(array) * 2, 64), *array.shape[1:])
    column_major = array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous
    order: Literal["F", "C"] = "F" if column_major else "C"
    bigger = np.zeros(shape, array.dtype, order)  # takes no memory before it is written
    if fill:
        bigger[len(array) :] = fill
    bigger[: len(array)] = array
    return bigger


def assigned(
    array: npt.NDArray[Any], places: Ids, values: npt.ArrayLike, shared: int
) -> npt.NDArray[Any]:
    """Return the array with values put at places; a copy where others would see a change.

    Parameters
    ----------
    shared: places below it may be read by others at this time.
    """
    new = np.broadcast_to(np.asarray(values, array.dtype), places.shape)
    read = places < shared
    if read.any() and (array[places[read]] != new[read]).any():
        array = array.copy()
    array[places] = new
    return array
