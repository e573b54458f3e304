# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What conditions ask of every memory, as columns in memory: its collection, episode, times.

Deciding a condition on a million memories is then one pass over an array. The copy follows the
table of memories by its log of changes, so it is right after a crash and when another process
writes to the file. It takes 42 bytes a memory.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from robotmem_ros.core import filters
from robotmem_ros.core.filters import Conditions
from robotmem_ros.core.store import schema
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.order import Ids, assigned, grown

Flags = npt.NDArray[np.bool_]

_COLUMNS = (
    "m.id",
    "(m.superseded_by IS NULL)",
    "m.attributed",
    "m.collection_id",
    "coalesce(m.session_id, 0)",
    "m.stamp",
    "m.expires",
    "m.last_access",
)
_INTEGERS = ", ".join(f"group_concat({column}, ' ')" for column in _COLUMNS)
_UNUSUAL = "group_concat(CASE WHEN m.confidence IS NOT ? THEN m.id END, ' ')"
_ARE_SOUND = " AND ".join(f"typeof({column}) = 'integer'" for column in _COLUMNS)
_NEVER = 2**63 - 1
_AT_ONCE = 50_000  # memories read in one go
_MANY_CHANGES = 50_000  # above, reading all memories anew is quicker


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns of the table of memories, each by the number of the memory.

    Attributes
    ----------
    live: it is stored and was not replaced by another.
    attributed: all values of its context are in the index of attributes.
    session: 0 if it belongs to none.
    expires: the greatest number if it does not.
    """

    live: Flags
    attributed: Flags
    collection: npt.NDArray[np.int32]
    session: npt.NDArray[np.int32]
    stamp: npt.NDArray[np.int64]
    expires: npt.NDArray[np.int64]
    last_access: npt.NDArray[np.int64]
    confidence: npt.NDArray[np.float64]

    @classmethod
    def empty(cls) -> Facts:
        """Return the columns of no memory."""
        kinds = ("?", "?", "i4", "i4", "i8", "i8", "i8", "f8")
        columns: list[Any] = [np.zeros(0, kind) for kind in kinds]
        return cls(*columns)

    def grown(self, length: int) -> Facts:
        """Return columns with room for so many memories; those that are none were never read."""
        columns = [grown(column, length) for column in self.columns()]
        found = Facts(*columns)
        found.last_access[len(self.last_access) :] = _NEVER
        return found

    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """Return the columns in order: those of _INTEGERS but the first, and the confidence."""
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def meet(
        self, connection: Connection, conditions: Conditions, ids: Ids | None = None
    ) -> Flags:
        """Return which memories meet all conditions but those on context and place.

        Parameters
        ----------
        ids: the memories, all of them with an entry here; None stands for every number.
        """

        def at(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return column if ids is None else column[ids]

        passed: Flags = at(self.live).copy()
        if conditions.collection is not None:
            passed &= at(self.collection) == _number(
                connection, "SELECT id FROM collections WHERE name = ?", conditions.collection
            )
        for name, wanted in (
            (conditions.session_id, True),
            (conditions.other_than_session, False),
        ):
            if name is not None:
                number = _number(connection, "SELECT id FROM sessions WHERE session_id = ?", name)
                sessions = at(self.session)
                passed &= sessions == number if wanted else (sessions != number) & (sessions > 0)
        if conditions.since:
            passed &= at(self.stamp) >= conditions.since
        if conditions.until:
            passed &= at(self.stamp) <= conditions.until
        if conditions.alive_at is not None:
            passed &= at(self.expires) > conditions.alive_at
        if conditions.min_confidence > 0:
            passed &= _confident(at(self.confidence), at(self.last_access), conditions)
        return passed


class FactCopy:
    """The facts at one moment of the database; to be used under the lock of copies.py."""

    def __init__(self) -> None:
        self._seq = -1
        self._facts = Facts.empty()

    def view(self, connection: Connection, shared: int) -> Facts:
        """Return the facts as the connection sees them.

        Parameters
        ----------
        shared: memories below this number may be read by others, who must see no change.
        """
        length = (connection.execute("SELECT max(id) FROM memories").get or 0) + 1
        try:
            self._follow(connection, shared, length)
        except apsw.SQLError:  # the log is lost: read all, until ~/reindex makes it again
            self._load(connection, length)
            self._seq = -1
        return Facts(*(column[:length] for column in self._facts.columns()))

    def _follow(self, connection: Connection, shared: int, length: int) -> None:
        latest, changed = schema.changes_since(connection, "memory_changes", self._seq)
        if changed is None or self._seq < 0 or len(changed) > _MANY_CHANGES:
            self._load(connection, length)
        elif changed:
            ids = np.array(sorted(changed), np.int64)
            self._facts = self._facts.grown(int(ids[-1]) + 1)
            source = "carray(?) AS c CROSS JOIN memories AS m ON m.id = c.value"
            found = self._read(connection, shared, source, apsw.carray(ids))
            gone = np.setdiff1d(ids, found)
            live = assigned(self._facts.live, gone, False, shared)
            self._facts = dataclasses.replace(self._facts, live=live)
        self._seq = latest

    def _load(self, connection: Connection, length: int) -> None:
        self._facts = Facts.empty().grown(length)
        for first in range(1, length, _AT_ONCE):
            source = "(SELECT * FROM memories WHERE id BETWEEN ? AND ?) AS m"
            self._read(connection, 0, source, first, first + _AT_ONCE - 1)

    def _read(self, connection: Connection, shared: int, source: str, *values: object) -> Ids:
        """Take in the memories AS m of a source, with the values for its SQL; return them."""
        # Nearly all have one confidence, and a text of decimals would round the others.
        usual = connection.execute(f"SELECT m.confidence FROM {source} LIMIT 1", values).get
        try:
            ids, *columns, unusual = _columns(connection, f"FROM {source}", usual, *values)
        except apsw.CorruptError:  # a worn disk has changed a row: the others are whole
            where = f"FROM {source} WHERE {_ARE_SOUND}"
            ids, *columns, unusual = _columns(connection, where, usual, *values)
        expires = columns[_COLUMNS.index("m.expires") - 1]
        expires[expires == 0] = _NEVER
        confidence = np.full(len(ids), usual if isinstance(usual, float) else 0.0)
        _put_confidence(connection, confidence, ids, unusual)
        self._facts = Facts(
            *(
                assigned(column, ids, new, shared)
                for column, new in zip(self._facts.columns(), (*columns, confidence), strict=True)
            )
        )
        return ids


def _columns(connection: Connection, source: str, usual: object, *values: object) -> list[Ids]:
    """Return _COLUMNS of the memories AS m of a source, and those of another confidence."""
    columns = connection.integer_columns(
        f"SELECT {_INTEGERS}, {_UNUSUAL} {source}", usual, *values
    )
    if any(len(column) != len(columns[0]) for column in columns[:-1]):
        raise apsw.CorruptError("a number of a memory is missing")
    return columns


def _put_confidence(
    connection: Connection, confidence: npt.NDArray[np.float64], ids: Ids, changed: Ids
) -> None:
    """Put in the confidence of some of the memories, all of which have their place by ids."""
    if not len(changed):
        return
    found: Any = connection.execute(
        "SELECT m.id, m.confidence FROM carray(?) AS c CROSS JOIN memories AS m "
        "ON m.id = c.value WHERE typeof(m.confidence) = 'real' ORDER BY m.id",
        (apsw.carray(changed),),
    ).fetchall()
    if found:
        numbers, values = zip(*found, strict=True)
        confidence[np.searchsorted(ids, numbers)] = values


def _number(connection: Connection, sql: str, name: str) -> int:
    """Return the number of a name, -1 if it is not known."""
    found = connection.execute(sql, (name,)).get
    return -1 if found is None else int(found)


def _confident(
    confidence: npt.NDArray[np.float64], last_access: npt.NDArray[np.int64], conditions: Conditions
) -> Flags:
    """Return where the effective confidence is not below the least: filters.effective_confidence.

    Most have confidence enough for the longest time that passed; only the others are computed.
    """
    if not len(confidence):
        return np.zeros(0, np.bool_)
    base, least = 1.0 - conditions.decay_rate, conditions.min_confidence

    def days_since(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.maximum(0, conditions.wall_time - times) // filters.NANOSECONDS_PER_DAY

    longest = int(days_since(last_access.min()))
    lowest = base**longest
    passed: Flags = confidence >= (least * (1.0 + 1e-9) / lowest if lowest else math.inf)
    if not passed.all():
        unsure = np.flatnonzero(~passed)
        factors = np.array([base**days for days in range(longest + 1)])
        left = confidence[unsure] * factors[days_since(last_access[unsure])]
        passed[unsure] = left >= least
    return passed
