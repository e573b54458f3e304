# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Read .db3 files of bags, whole or not: what an incomplete file still holds is found.

A whole file is read through its index of times. Where that fails, the rows that can be reached
are looked for one after the other, and then read in the order of their times.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import numpy as np

from robotmem_ros.bags.files import SMALL, BagError, Problems, Record, Topic, Wanted

_LAST_ID = 2**63 - 1
_BROKEN = (apsw.Error, UnicodeDecodeError)  # what reading a damaged file raises


class _WholePages(apsw.VFS):
    """Keeps from SQLite the page at the end of a file that is cut off in the middle.

    It would take what is missing of it for zeros, in the middle of a message.
    """

    def __init__(self, path: Path) -> None:
        self.name = f"robotmem-{uuid.uuid4()}"
        self._page = _page_size(path)
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _WholePagesFile:  # noqa: N802
        return _WholePagesFile(self._page, name, flags)


class _WholePagesFile(apsw.VFSFile):
    def __init__(self, page: int, name: Any, flags: list[int]) -> None:
        self._page = page
        super().__init__("", name, flags)

    def xFileSize(self) -> int:  # noqa: N802
        size = super().xFileSize()
        return size - size % self._page


class SqliteFile:
    """One .db3 file; it is never written to.

    Raises
    ------
    BagError: it is not a bag's database, or cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.problems = Problems()
        self.expected = 0
        self._name = path.name
        self._vfs: _WholePages | None = None
        if not path.stat().st_size:
            raise BagError(f"{path.name}: is empty")
        self._database, error = self._open(path)
        try:
            # A file that is shorter than it says is read nevertheless.
            self._database.execute("PRAGMA writable_schema = ON")
            self._topics = self._read_topics()
        except _BROKEN as problem:
            self._database.close()
            raise BagError(f"{path.name}: is no bag, or damaged at its start: {problem}") from None
        with contextlib.suppress(apsw.Error):  # the page of the last row is missing
            last = self._database.execute("SELECT max(id) FROM messages").get
            self.expected = last if isinstance(last, int) else 0
        if error:
            self.problems.add(f"{path.name}: its write-ahead log could not be read", error)

    def topics(self) -> Iterable[Topic]:
        """Return the topics that are known."""
        return self._topics.values()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def records(self, wanted: Wanted) -> Iterator[Record]:
        """Yield the messages in the order of their time, as far as they can be read."""
        wanted_ids = [number for number, topic in self._topics.items() if wanted(topic)]
        places = ", ".join(map(str, wanted_ids))
        data = (
            f"length(data), CASE WHEN length(data) <= {SMALL} OR topic_id IN ({places}) "
            "THEN data END"
        )
        last = (-(2**63), 0)
        try:
            rows = self._database.execute(
                f"SELECT timestamp, id, topic_id, {data} FROM messages ORDER BY timestamp, id"
            )
            for time, number, *row in rows:
                if time < last[0]:
                    raise apsw.CorruptError("the index of times is wrong")
                last = time, number
                yield from self._record(time, *row)
        except _BROKEN as error:
            yield from self._salvage(data, last, error)

    def _salvage(self, data: str, last: tuple[int, int], error: Exception) -> Iterator[Record]:
        """Yield what can still be reached after the message that was read last."""
        found = self._reachable()
        lost = 0
        for time, number in found:
            if (int(time), int(number)) <= last:
                continue
            try:
                row = self._database.execute(
                    f"SELECT topic_id, {data} FROM messages WHERE id = ?", (int(number),)
                ).fetchone()
            except _BROKEN:
                row = None
            if row is None:
                lost += 1
            else:
                yield from self._record(int(time), *row)
        also = f", {lost} messages are damaged" if lost else ""
        self.problems.add(
            f"{self._name}: cut off or damaged ({error}); what could be reached was read{also}"
        )

    def _reachable(self) -> np.ndarray[Any, Any]:
        """Return time and number of every row that can be reached, ordered by both."""
        pieces: list[np.ndarray[Any, Any]] = []
        after, step = -1, 1
        while after < _LAST_ID:
            rows: list[tuple[int, int]] = []
            try:
                for row in self._database.execute(
                    "SELECT timestamp, id FROM messages NOT INDEXED WHERE id > ? ORDER BY id",
                    (after,),
                ):
                    if all(type(value) is int for value in row):
                        rows.append(row)
                        after, step = row[1], 1
                    if len(rows) >= 100_000:
                        pieces.append(np.array(rows, np.int64))
                        rows.clear()
                after = _LAST_ID
            except _BROKEN:
                # Behind the broken page there may be whole ones: look ever farther.
                after, step = min(after + step, _LAST_ID), step * 2
            if rows:
                pieces.append(np.array(rows, np.int64))
        found = np.concatenate(pieces) if pieces else np.empty((0, 2), np.int64)
        return found[np.lexsort((found[:, 1], found[:, 0]))]

    def _record(
        self, time: object, topic_id: object, size: object, data: object
    ) -> Iterator[Record]:
        topic = self._topics.get(topic_id) if isinstance(topic_id, int) else None
        if topic is None or not isinstance(time, int):
            self.problems.add(f"{self._name}: messages without a topic or a time")
        elif isinstance(size, int) and (data is None or isinstance(data, bytes)):
            yield Record(time, topic, size, data)
        else:
            self.problems.add(f"{self._name}: messages that are not bytes")

    def _open(self, path: Path) -> tuple[apsw.Connection, str]:
        """Open the file; return also why its write-ahead log could not be read, if so."""
        uri = f"file:{quote(str(path.absolute()))}"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        log = path.with_name(path.name + "-wal")
        error = ""
        if log.exists() and log.stat().st_size:  # the recorder was killed, or is at work
            try:
                database = apsw.Connection(f"{uri}?mode=ro", flags=flags)
                database.execute("SELECT count(*) FROM sqlite_master").fetchall()
                return database, ""
            except apsw.Error as problem:
                error = str(problem)
        if path.stat().st_size % _page_size(path):
            self._vfs = _WholePages(path)  # must live as long as the connection
        vfs = self._vfs.name if self._vfs is not None else None
        try:
            return apsw.Connection(f"{uri}?immutable=1", flags=flags, vfs=vfs), error
        except apsw.Error as problem:
            raise BagError(f"{path.name}: cannot be opened: {problem}") from None

    def _read_topics(self) -> dict[int, Topic]:
        execute = self._database.execute
        definitions: dict[str, tuple[str, str]] = {}
        if execute("SELECT 1 FROM sqlite_master WHERE name = 'message_definitions'").fetchone():
            try:
                for name, text, kind in execute(
                    "SELECT topic_type, encoded_message_definition, encoding "
                    "FROM message_definitions"
                ):
                    definitions[str(name)] = str(text or ""), str(kind or "")
            except _BROKEN as error:
                self.problems.add(f"{self._name}: its message definitions are damaged", error)
        topics = {}
        for number, name, kind, encoding in execute(
            "SELECT id, name, type, serialization_format FROM topics ORDER BY id"
        ):
            text, language = definitions.get(kind, ("", ""))
            topics[int(number)] = Topic(str(name), str(kind), str(encoding), text, language)
        return topics


def _page_size(path: Path) -> int:
    """Return the size of a database's pages by its header, 1 if it has none."""
    with path.open("rb") as file:
        header = file.read(18)
    size = int.from_bytes(header[16:18], "big")
    return 65536 if size == 1 else max(size, 1)
