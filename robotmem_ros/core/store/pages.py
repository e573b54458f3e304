# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The rows that can still be read of a damaged database file, page by page and without SQLite.

SQLite gives up a table when a page near its root is broken, and a whole file when the first page
is. Here every page is looked at by itself, as https://www.sqlite.org/fileformat2.html describes
it. The file and its write-ahead log are only read.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from robotmem_ros.core.store.wal import PAGE_SIZES, Log

Row = tuple[int, tuple[Any, ...]]
"""The number of a row (0 in a table without), and its values."""

DEFAULT_PAGE_SIZE = 4096

_MAGIC = b"SQLite format 3\x00"
_INNER_TABLE, _TABLE, _INNER_INDEX, _INDEX = 0x05, 0x0D, 0x02, 0x0A
_MAX_PAYLOAD = 2**30
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


class UnreadableError(Exception):
    """A page, or something on it, cannot be what it should be."""


@dataclass(slots=True)
class Header:
    """What the first page tells; none of it can be trusted."""

    is_sqlite: bool
    page_size: int
    reserved: int
    free_page: int
    version: int


class Pages:
    """The pages of a file, each in the last version that was committed.

    Attributes
    ----------
    count: number of pages, from 1.

    Raises
    ------
    OSError: the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self._log = Log(path + "-wal")
        self.header = self._read_header()
        size = os.fstat(self._file).st_size
        self.count = max(-(-size // self.header.page_size), self._log.last_page, 1)

    def close(self) -> None:
        """Close the files."""
        os.close(self._file)
        self._log.close()

    def page(self, number: int) -> bytes:
        """Return a page.

        Raises
        ------
        UnreadableError: there is no such page, or the disk does not give it.
        """
        size = self.header.page_size
        if not 1 <= number <= self.count:
            raise UnreadableError
        found = self._log.page(number)
        try:
            found = found or os.pread(self._file, size, (number - 1) * size)
        except OSError:
            raise UnreadableError from None
        if len(found) < size:
            raise UnreadableError
        return found

    def kind(self, number: int) -> int:
        """Return what a page says that it is; 0 if it cannot be read."""
        try:
            return self.page(number)[100 if number == 1 else 0]
        except UnreadableError:
            return 0

    def is_table_leaf(self, number: int) -> bool:
        """Return whether a page says that it holds rows of an ordinary table."""
        return self.kind(number) == _TABLE

    def is_index(self, number: int) -> bool:
        """Return whether a page says that it is of an index or of a table WITHOUT ROWID."""
        return self.kind(number) in (_INDEX, _INNER_INDEX)

    def tree(self, root: int) -> Iterator[int]:
        """Yield the pages of the table or index with this root, as far as they can be found."""
        seen = {0}
        waiting = [root]
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            try:
                page = self.page(number)
                start = 100 if number == 1 else 0
                if page[start] not in (_INNER_TABLE, _TABLE, _INNER_INDEX, _INDEX):
                    continue
                yield number
                if page[start] in (_INNER_TABLE, _INNER_INDEX):
                    children = [
                        int.from_bytes(page[cell : cell + 4], "big")
                        for cell in _cells(page, start, start + 12)
                    ]
                    last = int.from_bytes(page[start + 8 : start + 12], "big")
                    waiting += [last, *reversed(children)]
            except UnreadableError:
                continue

    def roots(self, needed: set[str]) -> dict[str, int]:
        """Return the first page of each table, as far as they are known.

        Parameters
        ----------
        needed: without these all pages are searched for them.
        """
        found: dict[str, int] = {}
        for numbers in (self.tree(1), range(1, self.count + 1)):
            for number in numbers:
                for _, values in self.rows(number) if self.is_table_leaf(number) else ():
                    if len(values) == 5 and values[0] == "table" and type(values[3]) is int:
                        found.setdefault(str(values[1]), values[3])
            if needed <= found.keys():
                break
        return found

    def free(self) -> Iterator[int]:
        """Yield the pages that hold nothing any more, as far as they can be found."""
        seen = {0}
        trunk = self.header.free_page
        while trunk not in seen:
            seen.add(trunk)
            try:
                page = self.page(trunk)
            except UnreadableError:
                return
            yield trunk
            trunk, count = struct.unpack_from(">II", page)
            count = min(count, len(page) // 4 - 2)
            yield from struct.unpack_from(f">{count}I", page, 8)

    def rows(self, number: int) -> Iterator[Row]:
        """Yield the rows on a page that can be read."""
        try:
            page = self.page(number)
            start = 100 if number == 1 else 0
            kind = page[start]
            if kind not in (_TABLE, _INDEX, _INNER_INDEX):
                return
            cells = _cells(page, start, start + (12 if kind == _INNER_INDEX else 8))
        except UnreadableError:
            return
        for cell in cells:
            try:
                if kind == _INNER_INDEX:
                    cell += 4
                size, cell = _varint(page, cell)
                row_id = 0
                if kind == _TABLE:
                    row_id, cell = _varint(page, cell)
                    row_id -= (row_id >> 63) << 64
                yield row_id, _values(self._payload(page, cell, size, kind == _TABLE))
            except (UnreadableError, IndexError, struct.error):
                continue

    def _payload(self, page: bytes, start: int, size: int, is_table: bool) -> bytes:
        usable = len(page) - self.header.reserved
        most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
        if size > _MAX_PAYLOAD:
            raise UnreadableError
        here = size
        if size > most:
            least = (usable - 12) * 32 // 255 - 23
            here = least + (size - least) % (usable - 4)
            here = here if here <= most else least
        parts = [page[start : start + here]]
        missing = size - here
        follower = int.from_bytes(page[start + here : start + here + 4], "big")
        while missing > 0:
            page = self.page(follower)
            parts.append(page[4 : 4 + min(missing, usable - 4)])
            missing -= usable - 4
            follower = int.from_bytes(page[:4], "big")
        return b"".join(parts)

    def _read_header(self) -> Header:
        header = Header(False, self._log.page_size or DEFAULT_PAGE_SIZE, 0, 0, 0)
        first = self._log.page(1)[:100]
        with contextlib.suppress(OSError):
            first = first or os.pread(self._file, 100, 0)
        if len(first) < 100 or not first.startswith(_MAGIC):
            return header
        page_size = int.from_bytes(first[16:18], "big")
        page_size = 65536 if page_size == 1 else page_size
        if page_size in PAGE_SIZES:
            header.page_size = self._log.page_size or page_size
        header.is_sqlite = True
        header.reserved = first[20] if first[20] <= 32 else 0
        header.free_page = int.from_bytes(first[32:36], "big")
        header.version = int.from_bytes(first[60:64], "big")
        return header


def _cells(page: bytes, start: int, pointers: int) -> tuple[int, ...]:
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    count = min(count, (len(page) - pointers) // 2)
    found: tuple[int, ...] = struct.unpack_from(f">{count}H", page, pointers)
    return tuple(cell for cell in found if pointers <= cell < len(page))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(8):
        byte = data[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    return value << 8 | data[at + 8], at + 9


def _values(payload: bytes) -> tuple[Any, ...]:
    """Return the values of a record; it must be exactly as long as it says."""
    end, at = _varint(payload, 0)
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    if at != end:
        raise UnreadableError
    values: list[Any] = []
    for kind in kinds:
        size = _size(kind)
        if at + size > len(payload):
            raise UnreadableError
        data = payload[at : at + size]
        at += size
        values.append(_READERS.get(min(kind, 12), _text_or_blob)(kind, data))
    if at != len(payload):
        raise UnreadableError
    return tuple(values)


def _size(kind: int) -> int:
    if kind >= 12:
        return (kind - 12) // 2
    if kind == 7:
        return 8
    if kind in (10, 11):
        raise UnreadableError
    return _INTEGER_SIZES.get(kind, 0)


def _text_or_blob(kind: int, data: bytes) -> str | bytes:
    return data.decode("utf-8", "replace") if kind % 2 else data


_READERS: dict[int, Callable[[int, bytes], Any]] = {
    0: lambda kind, data: None,
    **{kind: lambda kind, data: int.from_bytes(data, "big", signed=True) for kind in range(1, 7)},
    7: lambda kind, data: struct.unpack(">d", data)[0],
    8: lambda kind, data: 0,
    9: lambda kind, data: 1,
}
