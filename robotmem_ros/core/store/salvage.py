# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Bring the rows that can be read of a damaged database into an empty one, table by table.

Rows are taken from where their table has them, then from pages that no table leads to any more.
What stands on pages that are free is gone on purpose and stays so, and what was forgotten does
not come back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import apsw

from robotmem_ros.core.model import MemoryType
from robotmem_ros.core.store import rows
from robotmem_ros.core.store.pages import Pages, Row

_UUID_LENGTH = 36

_LOGS = (
    "memories",
    "document_changes",
    "vector_changes",
    "memory_changes",
)  # with numbers never given twice
_TIMES = ("stamp", "expires", "created_at", "updated_at", "last_access", "access_count")
_POSE = ("frame_id", "pose_stamp", "x", "y", "z", "qx", "qy", "qz", "qw")
_STEP = 256  # pages from one call of progress to the next


class Fields(dict[str, Any]):
    """The values of a row by column; None for a column that came with a later version."""

    def __missing__(self, name: str) -> None:
        return None


def _is_time(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_uuid(value: Any) -> bool:
    return isinstance(value, str) and len(value) == _UUID_LENGTH and value.count("-") == 4


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _is_memory(row: Fields) -> bool:
    return (
        _is_uuid(row["uuid"])
        and isinstance(row["identity"], bytes)
        and row["type"] in {kind.value for kind in MemoryType}
        and _is_number(row["confidence"])
        and 0 <= row["confidence"] <= 1
        and isinstance(row["collection_id"], int)
        and all(_is_time(row[name]) for name in _TIMES)
        and isinstance(row["session_id"], (int, type(None)))
        and isinstance(row["superseded_by"], (int, type(None)))
    )


def _is_text(row: Fields) -> bool:
    context = row["context"]
    return _is_name(row["content"]) and isinstance(context, str) and context.startswith("{")


def _is_collection(row: Fields) -> bool:
    return _is_name(row["name"]) and isinstance(row["memories"], int)


def _is_session(row: Fields) -> bool:
    times = ("started", "ended")
    return _is_name(row["session_id"]) and all(_is_time(row[name]) for name in times)


def _is_step(row: Fields) -> bool:
    numbers = (row[name] for name in _POSE[2:])
    return _is_name(row["frame_id"]) and _is_time(row["stamp"]) and all(map(_is_number, numbers))


def _is_embedder(row: Fields) -> bool:
    dimension = row["dimension"]
    is_log = row["model"] in _LOGS
    return not is_log and _is_name(row["model"]) and type(dimension) is int and dimension < 10_000


def _is_vector(row: Fields) -> bool:
    vector = row["vector"]
    return isinstance(vector, bytes) and rows.is_vector(vector, len(vector) // 4)


def _clear_what_is_no_pose(row: Fields) -> None:
    numbers = (row[name] for name in _POSE[1:])
    if not _is_name(row["frame_id"]) or not all(map(_is_number, numbers)):
        row.update(dict.fromkeys(_POSE))


_SHAPES: dict[str, Callable[[Fields], bool]] = {
    "collections": _is_collection,
    "forgotten": lambda row: _is_uuid(row["uuid"]) and isinstance(row["reason"], str),
    "sessions": _is_session,
    "memories": _is_memory,
    "texts": _is_text,
    "trajectory": _is_step,
    "awaited": lambda row: _is_uuid(row["uuid"]),
    "embedder": _is_embedder,
    "vectors": _is_vector,
    "sqlite_sequence": lambda row: row["name"] in _LOGS and isinstance(row["seq"], int),
}
"""The tables that cannot be made anew from others, in the order to fill them, and what their rows
look like."""


@dataclass(slots=True)
class _Table:
    """A table to fill.

    Attributes
    ----------
    number: its column that is the number of the row; "" if it has none.
    has_rows: whether it is an ordinary table, and not one WITHOUT ROWID.
    """

    name: str
    columns: list[str]
    number: str
    has_rows: bool

    def fields(self, row: Row, is_index: bool) -> Fields | None:
        """Return a row by column, None if it cannot be of this table."""
        row_id, values = row
        if is_index == self.has_rows or len(values) > len(self.columns):
            return None
        found = Fields(zip(self.columns, values, strict=False))
        if self.number:
            if found[self.number] is not None:
                return None  # SQLite keeps this number elsewhere
            found[self.number] = row_id
        return found if _SHAPES[self.name](found) else None


class Salvage:
    """Fills an empty database with what can be read of a damaged one.

    Texts that are found twice are put into the temporary table spare_texts, and the numbers of
    those that may have been forgotten into doubtful_texts.

    Parameters
    ----------
    target: has the empty tables of the version that the damaged one is of.
    progress: called now and then with the pages that were read, and how many there are.

    Attributes
    ----------
    expected: how many memories there were, as far as that can be read.
    last_number: the greatest number that a memory had.
    """

    def __init__(
        self, pages: Pages, target: apsw.Connection, progress: Callable[[int, int], None]
    ) -> None:
        self._pages = pages
        self._target = target
        self._progress = progress
        self._tables = {name: _table(target, name) for name in _SHAPES}
        self.expected = 0
        self.last_number = 0

    def run(self) -> None:
        """Fill the tables."""
        pages = self._pages
        self._target.execute("CREATE TEMP TABLE spare_texts (memory_id, content, context)")
        self._target.execute("CREATE TEMP TABLE doubtful_texts (memory_id)")
        self._target.execute("CREATE TEMP TABLE stray_memories (id INTEGER PRIMARY KEY)")
        roots = pages.roots({"memories", "texts"})
        done = set(pages.free())
        for name, root in roots.items():
            if name not in _SHAPES:
                done.update(pages.tree(root))
        for name in _SHAPES:
            for number in pages.tree(roots.get(name, 0)):
                if self._take(number, [name]):
                    done.add(number)
        for number in range(1, pages.count + 1):
            if number % _STEP == 0:
                self._progress(number, pages.count)
            if number not in done:
                self._take(number, list(_SHAPES), stray=True)
        self._progress(pages.count, pages.count)
        gone = (
            "(SELECT id FROM memories WHERE id IN (SELECT id FROM stray_memories) "
            "AND uuid IN (SELECT uuid FROM forgotten))"
        )
        self._target.execute(f"DELETE FROM texts WHERE memory_id IN {gone}")
        self._target.execute(f"DELETE FROM memories WHERE id IN {gone}")

    def _take(self, number: int, names: list[str], stray: bool = False) -> bool:
        """Put the rows on a page into the tables they are of; return whether there were any."""
        pages = self._pages
        is_index = pages.is_index(number)
        if not is_index and not pages.is_table_leaf(number):
            return False
        taken = False
        for row in pages.rows(number):
            for name in names:
                fields = self._tables[name].fields(row, is_index)
                if fields is not None:
                    self._put(name, row[0], fields, stray)
                    taken = True
                    break
        return taken

    def _put(self, name: str, row_id: int, row: Fields, stray: bool) -> None:
        target = self._target
        # Without the first page nobody knows which pages are free.
        is_doubtful = stray and not self._pages.header.is_sqlite
        if name == "sqlite_sequence":
            if row["name"] == "memories" and row["seq"] < 2**62:
                self.last_number = max(self.last_number, row["seq"])
            return
        if name == "vectors" and is_doubtful:
            return  # it may be of a text that was changed, and a new one can be made
        if name == "collections":
            self.expected += max(0, row["memories"])
            row["memories"] = row["superseded"] = 0  # they are counted as they come
        if name == "memories":
            _clear_what_is_no_pose(row)
            row["attributed"] = 0
        if not self._tables[name].number and self._tables[name].has_rows:
            row["rowid"] = row_id
        columns = ", ".join(row)
        marks = ", ".join("?" * len(row))
        sql = f"INSERT OR IGNORE INTO {name} ({columns}) VALUES ({marks})"
        if name == "memories":
            # Of two versions on stray pages the later one counts.
            changes = ", ".join(f"{column} = excluded.{column}" for column in row)
            sql = (
                f"INSERT INTO memories ({columns}) VALUES ({marks}) ON CONFLICT (id) "
                f"DO UPDATE SET {changes} WHERE (excluded.updated_at, excluded.last_access) > "
                "(memories.updated_at, memories.last_access) "
                "AND id IN (SELECT id FROM stray_memories)"
            )
        before = target.total_changes()
        try:
            target.execute(sql, tuple(row.values()))
        except apsw.ConstraintError:
            return  # another memory has its uuid, or a value is missing
        if name == "memories" and stray and target.total_changes() > before:
            target.execute("INSERT OR IGNORE INTO stray_memories VALUES (?)", (row["id"],))
        if name == "texts":
            if target.total_changes() == before:
                target.execute(
                    "INSERT INTO spare_texts VALUES (?, ?, ?)",
                    (row["memory_id"], row["content"], row["context"]),
                )
            elif is_doubtful:
                target.execute("INSERT INTO doubtful_texts VALUES (?)", (row["memory_id"],))


def _table(connection: apsw.Connection, name: str) -> _Table:
    columns: list[Any] = connection.execute(
        "SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", (name,)
    ).fetchall()
    keys = [column for column, _, key in columns if key]
    has_rows = not connection.execute("SELECT wr FROM pragma_table_list(?)", (name,)).get
    kinds = {column: kind for column, kind, _ in columns}
    is_number = has_rows and len(keys) == 1 and kinds[keys[0]] == "INTEGER"
    return _Table(
        name, [column for column, _, _ in columns], keys[0] if is_number else "", has_rows
    )
