# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The values at one path of all contexts, as a column in memory, so that a filter is one pass.

A column holds for each memory the place of its value among the distinct values of the path, in
the order of their encoding (attributes.py); a condition is then one range of places, exact for
every type. Only paths that are asked for have a column, at most MAX_CELLS cells in all; the least
recently used is given up first. Columns follow the contexts by the log of changes of documents.
"""

from __future__ import annotations

import bisect
import itertools
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from robotmem_ros.core.filters import Test
from robotmem_ros.core.store import attributes, schema
from robotmem_ros.core.store.attributes import Range
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.facts import Flags
from robotmem_ros.core.store.order import Ids, assigned, grown

MAX_CELLS = 10_000_000
"""Cells of all columns together, of four bytes each."""

_AT_ONCE = 8192  # values read in one go
_MANY_CHANGES = 20_000  # above, columns are read anew when they are next needed


@dataclass(frozen=True, slots=True)
class Decided:
    """A test as ranges of columns.

    Attributes
    ----------
    parts: columns, each with a range of places in it (first, behind the last).
    late: memories that meet it and have no place yet.
    negated: whether those are meant that do not meet it.
    """

    parts: tuple[tuple[npt.NDArray[np.int32], int, int], ...]
    late: Ids
    negated: bool

    def meet(self, length: int, ids: Ids | None = None) -> Flags:
        """Return which memories meet the test, as far as their context is indexed.

        Parameters
        ----------
        length: one more than the highest number of a memory.
        ids: the memories, below length; None stands for every number.
        """
        passed = np.zeros(length if ids is None else len(ids), np.bool_)
        for places, first, end in self.parts:
            known = places[:length] if ids is None else _taken(places, ids)
            # Most conditions ask for one value.
            within = known == first if end == first + 1 else (known >= first) & (known < end)
            passed[: len(known)] |= within
        if len(self.late):
            if ids is None:
                passed[self.late[self.late < length]] = True
            else:
                passed |= np.isin(ids, self.late)
        return ~passed if self.negated else passed


class AttributeColumns:
    """Columns of some paths at one moment of the database; used under the lock of copies.py."""

    def __init__(self) -> None:
        self._seq = -1
        self._columns: OrderedDict[int, _Column] = OrderedDict()

    def decide(
        self, connection: Connection, tests: Sequence[Test], shared: int
    ) -> list[Decided | None]:
        """Return the tests as ranges of columns; None where columns cannot tell.

        Parameters
        ----------
        shared: memories below this number may be read by others, who must see no change.

        Raises
        ------
        apsw.SQLError: the index of attributes is missing or broken.
        """
        if not tests:
            return []
        self._follow(connection, shared)
        return [self._decide(connection, test) for test in tests]

    def _decide(self, connection: Connection, test: Test) -> Decided | None:
        ranges, negated = attributes.positive_ranges(test)
        if ranges is None:
            return None
        parts, late = [], list[int]()
        for path in attributes.path_ids(connection, test.path):
            column = self._column(connection, path)
            for item in ranges:
                parts.append((column.places, *column.span(item)))
                late += column.late_in(item)
        return Decided(tuple(parts), np.array(late, np.int64), negated)

    def _column(self, connection: Connection, path: int) -> _Column:
        if path in self._columns:
            self._columns.move_to_end(path)
            return self._columns[path]
        column = self._columns[path] = _read(connection, path)
        cells = sum(len(kept.places) for kept in self._columns.values())
        while cells > MAX_CELLS and len(self._columns) > 1:
            cells -= len(self._columns.popitem(last=False)[1].places)
        return column

    def _follow(self, connection: Connection, shared: int) -> None:
        """Take in what has changed in the contexts since the last time."""
        latest, changed = schema.changes_since(connection, "document_changes", self._seq)
        if changed is None or len(changed) > _MANY_CHANGES:
            self._columns.clear()
        elif changed and self._columns:
            self._take_in(connection, np.array(sorted(changed), np.int64), shared)
        self._seq = latest

    def _take_in(self, connection: Connection, changed: Ids, shared: int) -> None:
        values: dict[int, dict[int, bytes]] = {path: {} for path in self._columns}
        rows: Any = connection.execute(
            "SELECT a.path_id, a.memory_id, a.value FROM carray(?) AS c "
            "CROSS JOIN attributes AS a ON a.memory_id = c.value WHERE typeof(a.value) = 'blob'",
            (apsw.carray(changed),),
        )
        for path, memory_id, value in rows:
            if path in values:
                values[path][memory_id] = value
        for path, column in list(self._columns.items()):
            column.replace(changed, values[path], shared)
            if column.is_worn:
                del self._columns[path]


class _Column:
    """The values at one path.

    Attributes
    ----------
    places: by number of the memory, the place of its value among the distinct values, from 1; 0
        where it has none, or one that came late.

    Parameters
    ----------
    places: as the attribute.
    distinct: the distinct values, ascending.
    """

    def __init__(self, places: npt.NDArray[np.int32], distinct: _SortedValues) -> None:
        self.places = places
        self._distinct = distinct
        # Values that came later and were not among them, with their memories, ascending.
        self._late: list[tuple[bytes, int]] = []
        self._late_of: dict[int, bytes] = {}

    @property
    def is_worn(self) -> bool:
        """Whether so many values came late that the column had better be read anew."""
        return len(self._late) > 1000 + len(self.places) // 50

    def span(self, wanted: Range) -> tuple[int, int]:
        """Return the places of the values in a range: the first, and the one behind the last."""
        first = bisect.bisect_left(self._distinct, wanted.low)
        return first + 1, bisect.bisect_left(self._distinct, wanted.end, first) + 1

    def late_in(self, wanted: Range) -> list[int]:
        """Return the memories whose late values are in a range."""
        first = bisect.bisect_left(self._late, (wanted.low,))
        end = bisect.bisect_left(self._late, (wanted.end,), first)
        return [number for _, number in self._late[first:end]]

    def replace(self, ids: Ids, values: Mapping[int, bytes], shared: int) -> None:
        """Take in the values that memories have now; those without one have none here."""
        places = []
        for number in ids.tolist():
            if number in self._late_of:
                entry = (self._late_of.pop(number), number)
                del self._late[bisect.bisect_left(self._late, entry)]
            places.append(self._place(number, values[number]) if number in values else 0)
        column = grown(self.places, int(ids[-1]) + 1)
        self.places = assigned(column, ids, places, shared)

    def _place(self, memory_id: int, value: bytes) -> int:
        index = bisect.bisect_left(self._distinct, value)
        if index < len(self._distinct) and self._distinct[index] == value:
            return index + 1
        bisect.insort(self._late, (value, memory_id))
        self._late_of[memory_id] = value
        return 0


class _SortedValues(Sequence[bytes]):
    """Many short byte strings in one: a million Python objects would take 50 MB."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = np.zeros(0, np.int64)
        self._count = 0

    def extend(self, values: Sequence[bytes]) -> None:
        """Append values that are greater than all there are."""
        ends = len(self._bytes) + np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
        self._bytes += b"".join(values)
        self._ends = grown(self._ends, self._count + len(values))
        self._ends[self._count : self._count + len(values)] = ends
        self._count += len(values)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        start = int(self._ends[index - 1]) if index else 0
        return bytes(self._bytes[start : int(self._ends[index])])


def _read(connection: Connection, path: int) -> _Column:
    count = (connection.execute("SELECT max(id) FROM memories").get or 0) + 1
    places = np.zeros(count, np.int32)
    distinct = _SortedValues()
    rows: Any = connection.execute(
        "SELECT value, group_concat(memory_id, ' ') FROM attributes "
        "INDEXED BY attributes_by_value WHERE path_id = ? AND typeof(value) = 'blob' "
        "GROUP BY value ORDER BY value",
        (path,),
    )
    while batch := list(itertools.islice(rows, _AT_ONCE)):
        values, texts = zip(*batch, strict=True)
        of_each = [text.count(" ") + 1 for text in texts]
        first = len(distinct) + 1
        ids = np.fromstring(" ".join(texts), np.int64, sep=" ")
        places[ids] = np.repeat(np.arange(first, first + len(values)), of_each)
        distinct.extend(values)
    return _Column(places, distinct)


def _taken(places: npt.NDArray[np.int32], ids: Ids) -> npt.NDArray[np.int32]:
    """Return the places of some memories, 0 for those the column does not reach."""
    if not len(places):
        return np.zeros(len(ids), np.int32)
    return np.where(ids < len(places), places[np.minimum(ids, len(places) - 1)], 0)
