# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Look for all that can be wrong with a database, and tell each thing in one sentence.

The file is only read, and may be in use. What an index must hold is known by indexing each memory
once more, in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np

from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.store import records, rows, schema
from robotmem_ros.core.store.access import open_to_read, refuse_cut, translated_errors
from robotmem_ros.core.store.backup import Progress, nothing
from robotmem_ros.core.store.database import Connection

_AT_ONCE = 500
_SHOWN = 5  # numbers in a sentence
_STEPS_OF_SQLITE = 100_000

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
    with translated_errors(path), open_to_read(path) as connection:
        schema.check(connection)
        refuse_cut(connection)
        connection.execute("BEGIN")
        return _Check(connection, progress).run(path)


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

    def _note(self, error: Exception) -> None:
        """Note what kept a step from its end."""
        line = " ".join(str(error).split())[:300]
        if isinstance(error, apsw.SQLError) and "is missing" in str(self._all()):
            return  # that is why
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB:
            self._disagreements.append(f"an index cannot be read ({line})")
        elif not any(line in found for found in self._all()):
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
            found = self._connection.execute("PRAGMA integrity_check (20)").fetchall()
        except apsw.CorruptError as error:  # of a virtual table, and the rest was not looked at
            self._note(error)
            found = [
                row
                for table in schema.TRUTH
                for row in self._connection.execute(f"PRAGMA integrity_check ({table})")
            ]
        self._connection.set_progress_handler(None)
        for row in found:
            text = " ".join(str(row[0]).split())
            if text == "ok":
                continue
            # What FTS5 and R*Trees say of themselves; the rest is of tables and their indexes.
            is_index = text.startswith("In RTree") or "fts5" in text.lower()
            (self._disagreements if is_index else self._damages).append(text[:300])

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
        is_current = self._version == schema.VERSION and not self._disagreements
        altered: list[int] = []
        wrong: dict[str, list[int]] = {name: [] for name in _INDEXED}
        places, words = _Sums(), _Sums()
        scratch = Connection(":memory:")
        schema.migrate(scratch)
        total, done, last = self._counts[0], 0, -(2**63)
        for batch in self._batches():
            for memory_id, identity, attributed, *row in batch:
                try:
                    memory = rows.memory(tuple(row))
                    if records.identity(memory) != identity:
                        altered.append(memory_id)
                    elif is_current and not self._waits(memory_id):
                        is_attributed = records.index(scratch, memory_id, memory)
                        if is_attributed != bool(attributed):
                            wrong["attribute"].append(memory_id)
                except (StoreError, ValueError):
                    altered.append(memory_id)
            if is_current:
                self._compare(scratch, last, batch[-1][0], altered, wrong)
                places.take(scratch.execute(_PLACES), -1)
                words.take(scratch.execute(_WORDS), -1)
                schema.renew_indexes(scratch)
            last = batch[-1][0] + 1
            done += len(batch)
            self._progress(done, total)
        if is_current:
            self._compare(scratch, last, 2**63 - 1, altered, wrong)
        scratch.close()
        if altered:
            self._damages.append(f"{_some(altered)} differs from what was learned")
        if is_current:
            places.take(self._connection.execute(_PLACES), 1)
            words.take(self._connection.execute(_WORDS), 1)
            wrong["place"], wrong["word"] = places.rest(altered), words.rest(altered)
        for name, numbers in wrong.items():
            if numbers:
                self._disagreements.append(
                    f"the {name} index disagrees with {_some(sorted(set(numbers)))}"
                )

    def _compare(
        self,
        scratch: Connection,
        first: int,
        last: int,
        altered: list[int],
        wrong: dict[str, list[int]],
    ) -> None:
        for name, query in _INDEXED.items():
            found, expected = (
                Counter(connection.execute(f"{query} BETWEEN ? AND ?", (first, last)))
                for connection in (self._connection, scratch)
            )
            if found != expected:
                differing = {row[0] for row in (found - expected) + (expected - found)}
                wrong[name] += sorted(differing - set(altered))

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
        dimension = self._connection.execute("SELECT dimension FROM embedder").get
        bad = []
        for memory_id, blob in self._connection.execute("SELECT memory_id, vector FROM vectors"):
            is_vector = isinstance(blob, bytes) and len(blob) == 4 * (dimension or 0)
            norm = np.linalg.norm(np.frombuffer(blob, "<f4")) if is_vector else 0.0
            if not np.isfinite(norm) or norm == 0.0:
                bad.append(memory_id)
        if bad:
            self._disagreements.append(f"the vector of {_some(bad)} is none")
        for sentence, query in _VECTOR_RELATIONS.items():
            numbers = [row[0] for row in self._connection.execute(query)]
            if numbers:
                self._disagreements.append(f"{_some(numbers)} {sentence}")


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

    def rest(self, but: list[int]) -> list[int]:
        """Return the memories of which not all rows were both added and taken."""
        return sorted(self._sums.keys() - set(but))


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
