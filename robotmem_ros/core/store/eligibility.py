# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which memories may be part of an answer: the conditions of a query, decided for all at once.

Most conditions are a pass over columns in memory (facts.py, attribute_columns.py, poses.py). What
no column can tell is decided memory by memory in SQL: the distance to a field of a context, an
element far back in an array, a context too large to be indexed. Either way the engines rank the
memories that meet the conditions, and none is lost to others that rank higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np

from robotmem_ros.core import filters
from robotmem_ros.core.filters import Conditions, Place
from robotmem_ros.core.store import places, rows
from robotmem_ros.core.store.attribute_columns import Decided
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.facts import Facts, Flags
from robotmem_ros.core.store.order import Ids
from robotmem_ros.core.store.poses import Poses

FEW = 2_000
"""Up to this many eligible memories are ranked one by one."""

LISTED = 20_000
"""Up to this many memories are decided in SQL before the engines rank; above, the best first."""

_CONTEXT = "(SELECT context FROM texts WHERE memory_id = m.id)"


@dataclass(slots=True)
class Eligibility:
    """The memories that meet the conditions of one query, at one moment of the database.

    Until the next query is planned, the connection serves this one alone.

    Attributes
    ----------
    facts: of all memories.
    ids: all that are eligible, ascending, if they are known to be few; else None.
    flags: for each number of a memory whether it is eligible, with a False at the end; None while
        that is not known.
    """

    facts: Facts
    ids: Ids | None
    flags: Flags | None
    _connection: Connection
    _conditions: Conditions
    _poses: Poses | None  # where the place asks for them
    _decided: Sequence[Decided]  # tests that columns can tell
    _reads_all: bool  # whether every memory that passes the columns must be decided in SQL

    @property
    def is_quick(self) -> bool:
        """Whether find_all takes no longer than a pass over some columns."""
        return not self._reads_all and len(self._unattributed()) <= FEW

    def plan(self) -> None:
        """Find out who is eligible as far as that is quick."""
        field, conditions = self._field, self._conditions
        source = None if field is None else places.source(self._connection, field)
        if source is not None:
            self.ids = self._listed(source)
        elif (conditions.narrow or conditions.collection is not None) and self.is_quick:
            flags = self.find_all()
            if np.count_nonzero(flags) <= FEW:
                self.ids = np.flatnonzero(flags)

    def keep(self, ids: Ids) -> Ids:
        """Return those of some memories that are eligible, in the same order."""
        if self.ids is not None:
            return ids[np.isin(ids, self.ids)]
        if self.flags is not None:
            return ids[self.flags.take(ids, mode="clip")]
        ids = ids[ids < len(self.facts.live)]
        passed, unsure = self._by_columns(ids)
        passed[unsure] = self._by_sql(ids[unsure])
        return ids[passed]

    def find_all(self) -> Flags:
        """Find out for each number of a memory whether it is eligible."""
        if self.flags is None:
            passed, unsure = self._by_columns()
            passed[unsure] = self._by_sql(np.flatnonzero(unsure))
            self.flags = np.append(passed, False)
        return self.flags

    def all_ids(self) -> Ids:
        """Return all eligible memories, however many, ascending."""
        return np.flatnonzero(self.find_all()) if self.ids is None else self.ids

    def _listed(self, source: places.Source) -> Ids | None:
        """Return all eligible memories with the help of an index, None if they are too many.

        Parameters
        ----------
        source: SQL that yields all eligible ones whose context is indexed, and others.
        """
        sql, values = source
        limited = f"SELECT id FROM ({sql}) LIMIT ?"
        unindexed = self._unattributed()
        rows = self._connection.execute(limited, (*values, LISTED + 1)).fetchall()
        if len(rows) + len(unindexed) > LISTED:
            return None
        found = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        return self.keep(np.union1d(found, unindexed))

    @property
    def _field(self) -> Place | None:
        """The place, if distances from it are those of a field in the contexts."""
        place = self._conditions.place
        return place if place is not None and place.frame_id is None else None

    def _unattributed(self) -> Ids:
        """Return the memories whose context must be read, as it is not in the index."""
        needed = self._conditions.tests or self._field is not None
        if not needed or self.facts.attributed.all():
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.facts.live & ~self.facts.attributed)

    def _by_columns(self, ids: Ids | None = None) -> tuple[Flags, Flags]:
        """Return which memories the columns let pass, and which of these must be read yet."""
        facts = self.facts
        passed = facts.meet(self._connection, self._conditions, ids)
        attributed = facts.attributed if ids is None else facts.attributed[ids]
        for test in self._decided:
            passed &= test.meet(len(facts.live), ids) | ~attributed
        if self._conditions.place is not None and self._poses is not None:
            passed &= self._poses.within(self._conditions.place, ids)
        if self._reads_all:
            return passed, passed.copy()
        if self._conditions.tests:
            return passed, passed & ~attributed
        return passed, np.zeros(len(passed), np.bool_)

    def _by_sql(self, ids: Ids) -> Flags:
        """Return which of some memories meet the conditions on context and place."""
        if not len(ids):
            return np.zeros(0, np.bool_)
        clauses, values = [], list[object]()
        if self._conditions.tests:
            meets = f"context_meets({_CONTEXT})"
            every_test = len(self._decided) == len(self._conditions.tests)
            clauses.append(f"(m.attributed OR {meets})" if every_test else meets)
        if self._field is not None:
            clauses.append(f"field_distance({_CONTEXT}) <= ?")
            values.append(self._field.max_distance)
        found = self._connection.execute(
            "SELECT m.id FROM carray(?) AS c CROSS JOIN memories AS m ON m.id = c.value "
            f"WHERE {' AND '.join(clauses)}",
            (apsw.carray(np.ascontiguousarray(ids)), *values),
        ).fetchall()
        return np.isin(ids, np.fromiter((row[0] for row in found), np.int64, len(found)))


def gather(
    connection: Connection,
    conditions: Conditions,
    facts: Facts,
    poses: Poses | None,
    decided: Sequence[Decided | None],
) -> Eligibility:
    """Return who is eligible, found out for nobody yet.

    Parameters
    ----------
    decided: the tests of the conditions, in their order.
    """
    connection.conditions = conditions
    known = [test for test in decided if test is not None]
    by_field = conditions.place is not None and conditions.place.frame_id is None
    return Eligibility(
        facts=facts,
        ids=None,
        flags=None,
        _connection=connection,
        _conditions=conditions,
        _poses=poses,
        _decided=known,
        _reads_all=by_field or len(known) < len(decided),
    )


def register(connection: Connection) -> None:
    """Give a connection the SQL functions that decide what no index can.

    They read the conditions of the query that the connection serves at the time.
    """

    def context_meets(*context: Any) -> bool:
        return filters.meets_tests(rows.context(context[0]), connection.conditions.tests)

    def field_distance(*context: Any) -> float | None:
        place = connection.conditions.place
        return filters.distance_to_field(rows.context(context[0]), place) if place else None

    connection.create_scalar_function("context_meets", context_meets, 1)
    connection.create_scalar_function("field_distance", field_distance, 1)
