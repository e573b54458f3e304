# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Compare what the indexes of a database hold with what they must hold.

What they must hold is found by indexing the memories once more, in memory, by the same code: there
is no second description of an index that could go stale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import apsw

from robotmem_ros.core.model import Memory
from robotmem_ros.core.store import records, schema
from robotmem_ros.core.store.database import Connection

_FIRST, _LAST = -(2**63), 2**63 - 1

_INDEXED = {
    "keyword": "SELECT memory_id, content, entities, length FROM documents WHERE memory_id",
    "entity": "SELECT l.memory_id, e.name FROM memory_entities AS l "
    "LEFT JOIN entities AS e ON e.id = l.entity_id WHERE l.memory_id",
    "attribute": "SELECT a.memory_id, p.path, a.value FROM attributes AS a "
    "LEFT JOIN paths AS p ON p.id = a.path_id WHERE a.memory_id",
}
"""What indexes hold of some memories; the number of the memory comes first."""

_PLACES = (
    "SELECT p.memory_id, n.name, p.place_min - p.place_max, p.x_min, p.x_max, p.y_min, p.y_max, "
    "p.z_min, p.z_max FROM places AS p LEFT JOIN place_names AS n ON n.id = p.place_min"
)
_WORDS = 'SELECT doc, col, "offset", term FROM words'


class IndexComparison:
    """The comparison of one database, memory by memory in the order of their numbers."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._expected = Connection(":memory:")
        schema.migrate(self._expected)
        self._next = _FIRST
        self._wrong: dict[str, set[int]] = {name: set() for name in _INDEXED}
        self._places, self._words = _Sums(), _Sums()

    def add(self, memory_id: int, memory: Memory, attributed: bool) -> None:
        """Take a memory that must be in the indexes.

        Parameters
        ----------
        attributed: whether the index of attributes is said to hold all of its context.
        """
        if records.index(self._expected, memory_id, memory) != attributed:
            self._wrong["attribute"].add(memory_id)

    def compare(self, last: int) -> None:
        """Compare the memories that were added, and any others up to a number."""
        for name, query in _INDEXED.items():
            found, expected = (
                Counter(connection.execute(f"{query} BETWEEN ? AND ?", (self._next, last)))
                for connection in (self._connection, self._expected)
            )
            if found != expected:
                self._wrong[name].update(row[0] for row in (found - expected) + (expected - found))
        self._places.take(self._expected.execute(_PLACES), -1)
        self._words.take(self._expected.execute(_WORDS), -1)
        schema.renew_indexes(self._expected)
        self._next = min(last, _LAST - 1) + 1

    def finish(self, but: Collection[int]) -> dict[str, list[int]]:
        """Return by index the memories with which it disagrees, apart from some."""
        self.compare(_LAST)
        self._expected.close()
        self._places.take(self._connection.execute(_PLACES), 1)
        self._words.take(self._connection.execute(_WORDS), 1)
        wrong = {**self._wrong, "place": self._places.rest(), "word": self._words.rest()}
        return {name: sorted(numbers - set(but)) for name, numbers in wrong.items()}


class _Sums:
    """Compares two sets of rows by memory, each seen in any order, without keeping them."""

    def __init__(self) -> None:
        self._sums: dict[int, int] = {}

    def take(self, found: Iterator[tuple[Any, ...]], sign: int) -> None:
        """Add rows to, or take them from, what is known of the memory that is named first."""
        sums = self._sums
        for row in found:
            left = sums.get(row[0], 0) + sign * hash(row)
            if left:
                sums[row[0]] = left
            else:
                sums.pop(row[0], None)

    def rest(self) -> set[int]:
        """Return the memories of which not all rows were both added and taken."""
        return set(self._sums)
