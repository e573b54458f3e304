# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Look for all that can be wrong with a database, and tell each thing in one sentence.

The file is only read, and may be in use. What an index must hold is known by indexing each memory
once more, in memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apsw

from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.store import codes, records, rows, schema
from robotmem_ros.core.store.access import (
    has_log,
    lost_log,
    open_to_read,
    refuse_cut,
    translated_errors,
)
from robotmem_ros.core.store.backup import Progress, nothing
from robotmem_ros.core.store.comparison import IndexComparison
from robotmem_ros.core.store.database import Connection

_AT_ONCE = 500
_SHOWN = 5  # numbers in a sentence
_LINES = 20  # of what SQLite finds
_STEPS_OF_SQLITE = 100_000


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found.

    Attributes
    ----------
    damages: what is wrong with the memories or the file, each in one sentence; a repair is needed.
    disagreements: what is wrong with the indexes alone; they can be made anew.
    """

    path: str
    version: int
    memories: int
    episodes: int
    damages: tuple[str, ...]
    disagreements: tuple[str, ...]


def check(path: str, progress: Progress = nothing) -> Checked:
    """Check a database, which other processes may use meanwhile.

    Raises
    ------
    StoreError: it cannot be opened, is not ours or too new.
    """
    had_log = has_log(path)
    with translated_errors(path), open_to_read(path) as connection:
        schema.check(connection)
        refuse_cut(connection)
        connection.execute("BEGIN")
        found = _Check(connection, progress).run(path)
        missing = "" if had_log else lost_log(connection)
    if missing:
        found = dataclasses.replace(found, damages=(missing, *found.damages))
    return found


class _Check:
    """The checks of one database, at one moment of it."""

    def __init__(self, connection: apsw.Connection, progress: Progress) -> None:
        self._connection = connection
        self._progress = progress
        self._version = int(connection.pragma("user_version"))
        self._counts = (0, 0)
        self._damages: list[str] = []
        self._disagreements: list[str] = []

    def run(self, path: str) -> Checked:
        for step in (
            self._tables,
            self._structure,
            self._count,
            self._relations,
            self._memories,
            self._vectors,
        ):
            try:
                step()
            except (apsw.CorruptError, apsw.SQLError, UnicodeDecodeError) as error:
                self._note(error)
        damages, disagreements = tuple(self._damages), tuple(self._disagreements)
        return Checked(path, self._version, *self._counts, damages, disagreements)

    def _note(self, error: Exception, what: str = "") -> None:
        """Note what kept a step from its end, unless it is what was seen already."""
        line = " ".join(str(error).split())[:300]
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB:
            self._disagreements.append(f"{what or 'an index'} cannot be read ({line})")
        elif what:
            self._damages.append(f"{what} cannot be read to its end ({line})")
        elif not self._damages and not (isinstance(error, apsw.SQLError) and self._disagreements):
            self._damages.append(f"not all of it can be read ({line})")

    def _all(self) -> list[str]:
        return self._damages + self._disagreements

    def _tables(self) -> None:
        whole = Connection(":memory:")
        schema.migrate(whole, last=self._version)
        query = "SELECT type, name, tbl_name FROM sqlite_schema"
        wanted, found = (set(each.execute(query)) for each in (whole, self._connection))
        whole.close()
        for kind, name, table in sorted(wanted - found):
            is_truth = table in schema.TRUTH
            missing = self._damages if is_truth else self._disagreements
            missing.append(f"the {kind} {name} is missing")

    def _structure(self) -> None:
        def go_on() -> bool:
            self._progress(0, 0)
            return False

        self._connection.set_progress_handler(go_on, _STEPS_OF_SQLITE)
        try:
            self._run_sqlite_check("20")
        except apsw.CorruptError:  # SQLite stops where it cannot read a table at all
            names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
            for (name,) in self._connection.execute(names).fetchall():
                try:
                    self._run_sqlite_check(f'"{name}"')
                except apsw.CorruptError as error:
                    self._note(error, f"the table {name}")
        finally:
            self._connection.set_progress_handler(None)

    def _run_sqlite_check(self, what: str) -> None:
        found = [
            line
            for row in self._connection.execute(f"PRAGMA integrity_check ({what})")
            for line in str(row[0]).splitlines()
            if line != "ok" and not line.startswith("*** in database")
        ]
        # Pages to which nothing leads are what other damage has left.
        others = [line for line in found if not line.endswith("never used")]
        for line in others[:_LINES] or found[:1]:
            if line not in self._all():
                # What FTS5 and R*Trees say of themselves; the rest is of tables.
                is_index = line.startswith(("In RTree", "Node ", "Mapping ")) or "_rowid" in line
                is_index |= "fts5" in line.lower()
                (self._disagreements if is_index else self._damages).append(line[:300])

    def _count(self) -> None:
        counts: Any = self._connection.execute(
            "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM sessions WHERE opened)"
        ).get
        self._counts = int(counts[0]), int(counts[1])

    def _relations(self) -> None:
        for sentence, query in _RELATIONS.items():
            numbers = [row[0] for row in self._connection.execute(query)]
            if numbers:
                self._damages.append(f"{_some(numbers)} {sentence}")

    def _memories(self) -> None:
        """Compare each memory with its digest, and what each index holds of it."""
        compared = None
        if self._version == schema.VERSION and not self._disagreements:
            compared = IndexComparison(self._connection)
        altered: list[int] = []
        done = 0
        for batch in self._batches():
            for memory_id, identity, attributed, *row in batch:
                try:
                    memory = rows.memory(tuple(row))
                    is_unchanged = records.identity(memory) == identity
                except (StoreError, ValueError):
                    is_unchanged = False
                if not is_unchanged:
                    altered.append(memory_id)
                elif compared is not None and not self._waits(memory_id):
                    compared.add(memory_id, memory, bool(attributed))
            if compared is not None:
                compared.compare(batch[-1][0])
            done += len(batch)
            self._progress(done, self._counts[0])
        if altered:
            self._damages.append(f"{_some(altered)} differs from what was learned")
        if compared is not None:
            for name, numbers in compared.finish(altered).items():
                if numbers:
                    self._disagreements.append(f"the {name} index disagrees with {_some(numbers)}")

    def _batches(self) -> Iterator[list[Any]]:
        last = -(2**63)
        while True:
            found: list[Any] = self._connection.execute(
                f"SELECT m.id, m.identity, m.attributed, {rows.COLUMNS} FROM memories AS m "
                f"{rows.JOINS} WHERE m.id > ? ORDER BY m.id LIMIT ?",
                (last, _AT_ONCE),
            ).fetchall()
            if not found:
                return
            last = found[-1][0]
            yield found

    def _waits(self, memory_id: int) -> bool:
        query = "SELECT 1 FROM unindexed WHERE memory_id = ?"
        return self._connection.execute(query, (memory_id,)).get is not None

    def _vectors(self) -> None:
        dimension: Any = self._connection.execute("SELECT dimension FROM embedder").get
        bad = []
        for memory_id, blob in self._connection.execute("SELECT memory_id, vector FROM vectors"):
            if not rows.is_vector(blob, dimension or 0):
                bad.append(memory_id)
        if bad:
            self._disagreements.append(f"the vector of {_some(bad)} is none")
        for sentence, query in _VECTOR_RELATIONS.items():
            numbers = [row[0] for row in self._connection.execute(query)]
            if numbers:
                self._disagreements.append(f"{_some(numbers)} {sentence}")
        if self._version == schema.VERSION and not self._disagreements:
            self._codes()

    def _codes(self) -> None:
        try:
            numbers = codes.differing(self._connection)
        except apsw.CorruptError as error:
            self._disagreements.append(str(error))
        else:
            if numbers:
                self._disagreements.append(f"the code of {_some(numbers)} is not of its vector")


_RELATIONS = {
    "has no text": "SELECT id FROM memories WHERE id NOT IN (SELECT memory_id FROM texts)",
    "is nothing but a text": "SELECT memory_id FROM texts "
    "WHERE memory_id NOT IN (SELECT id FROM memories)",
    "is of a collection that is missing": "SELECT id FROM memories "
    "WHERE collection_id NOT IN (SELECT id FROM collections)",
    "is of an episode that is missing": "SELECT id FROM memories "
    "WHERE session_id NOT NULL AND session_id NOT IN (SELECT id FROM sessions)",
    "was replaced by one that is missing": "SELECT id FROM memories "
    "WHERE superseded_by NOT NULL AND superseded_by NOT IN (SELECT id FROM memories)",
    "is counted wrong": "SELECT min(m.id) FROM collections AS c LEFT JOIN memories AS m "
    "ON m.collection_id = c.id GROUP BY c.id "
    "HAVING count(m.id) <> c.memories OR count(m.superseded_by) <> c.superseded",
}
"""What must not be, and the memories of which it is true."""

_VECTOR_RELATIONS = {
    "has neither a vector nor waits for one": "SELECT id FROM memories "
    "WHERE id NOT IN (SELECT memory_id FROM vectors) "
    "AND id NOT IN (SELECT memory_id FROM unembedded)",
    "has a vector, but is gone": "SELECT memory_id FROM vectors "
    "WHERE memory_id NOT IN (SELECT id FROM memories)",
}


def _some(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    if len(numbers) == 1:
        return f"memory {shown}"
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f"each of {len(numbers)} memories ({shown}{more})"
