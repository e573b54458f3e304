# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The write-ahead log of a database file: which pages it holds in a later version than the file.

As SQLite does when it recovers one, it is read up to the first frame whose checksum is wrong.
"""

from __future__ import annotations

import contextlib
import os
import struct

PAGE_SIZES = tuple(2**i for i in range(9, 17))
"""Sizes that a page may have, in bytes."""

_MAGIC = {b"\x37\x7f\x06\x82": "<", b"\x37\x7f\x06\x83": ">"}  # order of the checksums' bytes
_HEAD, _FRAME_HEAD = 32, 24


class Log:
    """A write-ahead log, which may be missing or damaged; it is only read.

    Attributes
    ----------
    page_size: in bytes; 0 if there is no log that can be read.
    last_page: greatest number of a page in it; 0 if it holds none.
    """

    def __init__(self, path: str) -> None:
        self.page_size = 0
        self._frames: dict[int, int] = {}
        self._file = -1
        with contextlib.suppress(OSError):
            self._file = os.open(path, os.O_RDONLY)
            self._read()
        self.last_page = max(self._frames, default=0)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)

    def page(self, number: int) -> bytes:
        """Return a page as it was last committed, b"" if it is not here."""
        offset = self._frames.get(number)
        if offset is None:
            return b""
        try:
            return os.pread(self._file, self.page_size, offset)
        except OSError:
            return b""

    def _read(self) -> None:
        head = os.pread(self._file, _HEAD, 0)
        order = _MAGIC.get(head[:4], "")
        page_size = int.from_bytes(head[8:12], "big")
        if len(head) < _HEAD or not order or page_size not in PAGE_SIZES:
            return
        sums = _checksum(head[:24], order, (0, 0))
        if struct.pack(">II", *sums) != head[24:]:
            return
        self.page_size = page_size
        offset, uncommitted = _HEAD, {}
        while True:
            frame = os.pread(self._file, _FRAME_HEAD + page_size, offset)
            if len(frame) < _FRAME_HEAD + page_size or frame[8:16] != head[16:24]:
                return
            sums = _checksum(frame[_FRAME_HEAD:], order, _checksum(frame[:8], order, sums))
            if struct.pack(">II", *sums) != frame[16:24]:
                return
            number, pages_after = struct.unpack_from(">II", frame)
            uncommitted[number] = offset + _FRAME_HEAD
            if pages_after:  # the last frame of a transaction
                self._frames |= uncommitted
                uncommitted = {}
            offset += len(frame)


def _checksum(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for word in words:
        first = (first + word + second) & 0xFFFFFFFF
        second = (second + next(words) + first) & 0xFFFFFFFF
    return first, second
