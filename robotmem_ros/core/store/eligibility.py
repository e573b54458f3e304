# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which memories may be part of an answer: the conditions of a query as SQL, planned by number.

When few memories meet the conditions, an index yields all of them, and the engines rank exactly
those. When many do, the engines rank everything and check the best ones until enough have passed.
Either way no memory is lost to others that rank higher.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from robotmem_ros.core import filters
from robotmem_ros.core.filters import Conditions, Test
from robotmem_ros.core.store import attributes, places, rows
from robotmem_ros.core.store.database import Connection

FEW = 2_000
"""Up to this many memories are ranked one by one; above, the engines rank and check."""

_LARGE = 20_000  # memories; above, checking takes long before it has found enough

_MAX_SELECTS = 100  # SQLite takes 500 in one query
_COUNTED = 200_000  # of what an index yields, before the whole table is looked through
_CONTEXT = "(SELECT context FROM texts WHERE memory_id = m.id)"
_Sql = tuple[str, tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The memories that meet the conditions of one query, at one moment of the database.

    Attributes
    ----------
    ids: all of them, if they are known to be few; else None.
    clause, values: SQL condition on `memories AS m` that decides for one memory.
    sources: what can list them.
    """

    ids: Sequence[int] | None
    clause: str
    values: tuple[object, ...]
    sources: tuple[Source, ...] = ()

    def keep(self, connection: Connection, ids: Sequence[int]) -> list[int]:
        """Return those of some memories that are eligible, in the same order."""
        if self.ids is not None:
            allowed = set(self.ids)
        else:
            allowed = {
                row[0]
                for row in connection.execute(
                    "SELECT m.id FROM json_each(?) AS j CROSS JOIN memories AS m "
                    f"ON m.id = j.value WHERE {self.clause}",
                    (json.dumps(list(ids)), *self.values),
                )
            }
        return [number for number in ids if number in allowed]

    def all_ids(self, connection: Connection) -> Sequence[int]:
        """Return all eligible memories, however many they are."""
        if self.ids is not None:
            return self.ids
        source = _smallest(connection, self.sources, _COUNTED)
        if source is not None:
            return source.ids(connection, self)
        rows = connection.execute(
            f"SELECT m.id FROM memories AS m WHERE {self.clause}", self.values
        )
        return [row[0] for row in rows]


@dataclass(frozen=True, slots=True)
class Source:
    """A query, served by an index, that yields the ids of all eligible memories, and of others.

    Attributes
    ----------
    sql, values: the query.
    clause, clause_values: condition on `memories AS m` that is left to be decided.
    is_whole: whether it yields those too whose context is not indexed.
    """

    sql: str
    values: tuple[object, ...]
    clause: str
    clause_values: tuple[object, ...]
    is_whole: bool

    def count(self, connection: Connection, limit: int) -> int:
        """Return how many memories the query yields, counted up to one above a limit."""
        return int(
            connection.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM ({self.sql}) LIMIT ?)",
                (*self.values, limit + 1),
            ).get
        )

    def ids(self, connection: Connection, eligible: Eligibility) -> list[int]:
        """Return all eligible memories in ascending order."""
        found = {
            row[0]
            for row in connection.execute(
                f"SELECT m.id FROM ({self.sql}) AS s CROSS JOIN memories AS m ON m.id = s.id "
                f"WHERE {self.clause}",
                (*self.values, *self.clause_values),
            )
        }
        if not self.is_whole:
            found.update(
                row[0]
                for row in connection.execute(
                    f"SELECT m.id FROM memories AS m WHERE NOT m.attributed AND {eligible.clause}",
                    eligible.values,
                )
            )
        return sorted(found)


def plan(connection: Connection, conditions: Conditions) -> Eligibility:
    """Return who is eligible, and all of them if an index shows that they are few.

    Until the next call the connection serves this query alone.
    """
    connection.conditions = conditions
    clause, values = _clause(connection, conditions)
    sources = []
    for (sql, bound), test in _sources(connection, conditions):
        # What the index has decided need not be decided again, but for contexts it does not hold.
        rest = _clause(connection, conditions, decided=test)
        is_whole = test is None and conditions.place is None
        sources.append(Source(sql, bound, *rest, is_whole))
    eligible = Eligibility(None, clause, values, tuple(sources))
    source = _smallest(connection, sources, _few(connection))
    if source is None:
        return eligible
    return dataclasses.replace(eligible, ids=source.ids(connection, eligible))


def _few(connection: Connection) -> int:
    """Return up to how many memories are listed.

    Listing takes time for each that is eligible; checking, for each that is not, until some
    hundreds are found: as long as all memories * hundreds / eligible. They are even at the root.
    """
    total = int(connection.execute("SELECT total(memories) FROM collections").get)
    return FEW if total <= _LARGE else max(FEW, math.isqrt(1200 * total))


def _smallest(connection: Connection, sources: Sequence[Source], limit: int) -> Source | None:
    """Return the source that yields the fewest memories, if they are not above a limit."""
    best: Source | None = None
    for source in sources:
        try:
            count = source.count(connection, limit)
        except apsw.SQLError:  # its index is broken: another one, or the whole table, will do
            continue
        if count <= limit:
            best, limit = source, count
    return best


def unplanned(connection: Connection, conditions: Conditions) -> Eligibility:
    """Return who is eligible, not looking for an index: for memories that are known already."""
    connection.conditions = conditions
    return Eligibility(None, *_clause(connection, conditions))


def register(connection: Connection) -> None:
    """Give a connection the SQL functions that decide what no index can.

    They read the conditions of the query that the connection serves at the time.
    """

    def context_meets(*context: Any) -> bool:
        return filters.meets_tests(rows.context(context[0]), connection.conditions.tests)

    def pose_distance(*position: Any) -> float | None:
        place = connection.conditions.place
        return filters.distance(position, place.target) if place else None

    def field_distance(*context: Any) -> float | None:
        place = connection.conditions.place
        return filters.distance_to_field(rows.context(context[0]), place) if place else None

    connection.create_scalar_function("context_meets", context_meets, 1)
    connection.create_scalar_function("pose_distance", pose_distance, 3)
    connection.create_scalar_function("field_distance", field_distance, 1)


def _clause(connection: Connection, conditions: Conditions, decided: Test | None = None) -> _Sql:
    """Return the condition on `memories AS m`, without the test that is decided already."""
    parts: list[str] = ["m.superseded_by IS NULL"]
    values: list[object] = []

    def need(sql: str, *bound: object) -> None:
        parts.append(sql)
        values.extend(bound)

    if conditions.collection is not None:
        need(
            "m.collection_id = (SELECT id FROM collections WHERE name = ?)", conditions.collection
        )
    if conditions.session_id is not None:
        need(
            "m.session_id = (SELECT id FROM sessions WHERE session_id = ?)", conditions.session_id
        )
    if conditions.other_than_session is not None:
        need(
            "m.session_id <> (SELECT id FROM sessions WHERE session_id = ?)",
            conditions.other_than_session,
        )
    if conditions.since:
        need("m.stamp >= ?", conditions.since)
    if conditions.until:
        need("m.stamp <= ?", conditions.until)
    if conditions.alive_at is not None:
        need("(m.expires = 0 OR m.expires > ?)", conditions.alive_at)
    if conditions.min_confidence > 0:
        # filters.effective_confidence; cheaper in SQL, where most memories pass at once
        need(
            "m.confidence * "
            f"pow(?, max(0, ? - m.last_access) / {filters.NANOSECONDS_PER_DAY}) >= ?",
            1.0 - conditions.decay_rate,
            conditions.wall_time,
            conditions.min_confidence,
        )
    tests = [test for test in conditions.tests if test is not decided]
    if tests:
        lookups = [_lookup(connection, test) for test in tests]
        known = [lookup for lookup in lookups if lookup is not None]
        read = f"context_meets({_CONTEXT})"
        if len(known) == len(lookups):
            indexed = " AND ".join(sql for sql, _ in known)
            need(
                f"CASE WHEN m.attributed THEN {indexed} ELSE {read} END",
                *(value for _, bound in known for value in bound),
            )
        else:
            need(read)
    place = conditions.place
    if place is not None:
        if place.frame_id is not None:
            need("m.frame_id = ?", place.frame_id)
            distance = "pose_distance(m.x, m.y, m.z)"
        else:
            distance = f"field_distance({_CONTEXT})"
        need(f"{distance} <= ?", place.max_distance)
    return " AND ".join(parts), tuple(values)


def _lookup(connection: Connection, test: Test) -> _Sql | None:
    """Return SQL that decides a test by the index entries of one memory, if they can tell."""
    negated = test.operator == "$exists" and not test.operand
    ranges = attributes.ranges(dataclasses.replace(test, operand=True) if negated else test)
    if ranges is None or len(ranges) > attributes.MAX_RANGES:
        return None
    paths = attributes.path_ids(connection, test.path)
    if not paths or not ranges:
        return ("1" if negated else "0"), ()
    sql, values = _in_ranges(ranges)
    marks = ", ".join("?" * len(paths))
    return (
        f"{'NOT ' if negated else ''}EXISTS (SELECT 1 FROM attributes AS a "
        f"WHERE a.memory_id = m.id AND a.path_id IN ({marks}) AND ({sql}))",
        (*paths, *values),
    )


def _in_ranges(ranges: Sequence[attributes.Range]) -> _Sql:
    parts: list[str] = []
    values: list[object] = []
    for item in ranges:
        if item.high is None:
            parts.append("value = ?")
            values.append(item.low)
        else:
            parts.append("value >= ? AND value < ?")
            values += [item.low, item.high]
    return " OR ".join(parts), tuple(values)


def _sources(connection: Connection, conditions: Conditions) -> list[tuple[_Sql, Test | None]]:
    """Return queries, each served by an index, that yield the ids of all eligible memories.

    With a query that comes from a test goes the test: it yields the memories that meet it, except
    those that are not in the index of attributes.
    """
    sources: list[tuple[_Sql, Test | None]] = []
    since = conditions.since or -(2**63)
    until = conditions.until or 2**63 - 1
    if conditions.session_id is not None:
        sql = (
            "SELECT id FROM memories INDEXED BY memories_by_session WHERE session_id = "
            "(SELECT id FROM sessions WHERE session_id = ?) AND stamp BETWEEN ? AND ?"
        )
        sources.append(((sql, (conditions.session_id, since, until)), None))
    for test in conditions.tests:
        source = _attribute_source(connection, test)
        if source is not None:
            sources.append((source, test))
    place = conditions.place
    if place is not None:
        source = places.source(connection, place)
        if source is not None:
            sources.append((source, None))
    if conditions.collection is not None:
        sql = (
            "SELECT id FROM memories INDEXED BY memories_by_collection WHERE collection_id = "
            "(SELECT id FROM collections WHERE name = ?) AND stamp BETWEEN ? AND ?"
        )
        sources.append(((sql, (conditions.collection, since, until)), None))
    elif conditions.since or conditions.until:
        sql = "SELECT id FROM memories INDEXED BY memories_by_stamp WHERE stamp BETWEEN ? AND ?"
        sources.append(((sql, (since, until)), None))
    return sources


def _attribute_source(connection: Connection, test: Test) -> _Sql | None:
    ranges = attributes.ranges(test)
    if ranges is None or len(ranges) > attributes.MAX_RANGES:
        return None
    selects: list[str] = []
    values: list[object] = []
    paths = attributes.path_ids(connection, test.path)
    if len(paths) * len(ranges) > _MAX_SELECTS:
        return None
    for path in paths:
        for item in ranges:
            sql, bound = _in_ranges([item])
            selects.append(
                "SELECT memory_id AS id FROM attributes INDEXED BY attributes_by_value "
                f"WHERE path_id = ? AND {sql}"
            )
            values += [path, *bound]
    if not selects:
        return "SELECT 0 AS id WHERE 0", ()
    return " UNION ALL ".join(selects), tuple(values)
