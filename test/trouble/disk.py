# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Disks that fail, and disks that lose power, in the place of SQLite's own way to files."""

from __future__ import annotations

import os
import random
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512

Fault = Callable[[str, str], "Exception | None"]
"""Takes the kind of an operation (open, read, write, sync, truncate) and the end of the file's
name ("", "-wal", "-journal"), and returns what goes wrong with it, if anything."""

Change = tuple[int, bytes] | int
"""What was written where, or to how many bytes the file was cut."""


class Disk(apsw.VFS):
    """SQLite's way to files while the block lasts: it is watched, and may be made to fail."""

    def __init__(self) -> None:
        self._under = apsw.vfs_names()[0]
        super().__init__(f"disk{id(self)}", self._under, makedefault=True)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()

    def before(self, kind: str, path: str) -> None:
        """Look at an operation that is about to be done, and raise if it is to fail."""

    def after(self, kind: str, path: str, change: Change | None) -> None:
        """Look at an operation that was done."""

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.before("open", path or "")
        return _File(self, self._under, name, path or "", flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, under: str, name: Any, path: str, flags: list[int]) -> None:
        self._disk, self._path = disk, path
        super().__init__(under, name, flags)
        disk.after("open", path, None)

    def xLock(self, level: int) -> None:  # noqa: N802
        try:
            super().xLock(level)
        except apsw.IOError:
            # A file opened to be read alone cannot be locked for writing, which SQLite tries at
            # its end and does not mind; from Python every error but this one would be raised.
            raise apsw.BusyError from None

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.before("read", self._path)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.before("write", self._path)
        super().xWrite(data, offset)
        self._disk.after("write", self._path, (offset, bytes(data)))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.before("sync", self._path)
        super().xSync(flags)
        self._disk.after("sync", self._path, None)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.before("truncate", self._path)
        super().xTruncate(size)
        self._disk.after("truncate", self._path, size)


class FaultyDisk(Disk):
    """A disk whose operations fail when `fault` says so.

    Attributes
    ----------
    injected: how many did.
    """

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self.injected = 0
        super().__init__()

    def before(self, kind: str, path: str) -> None:
        fault = self.fault
        if fault is not None and path:
            error = fault(kind, path.rpartition(".db")[2])
            if error is not None:
                self.injected += 1
                raise error


class LosingDisk(Disk):
    """A disk that knows what is truly on it, and what the computer only believes to be.

    Parameters
    ----------
    watch: called after each change, with the disk; it may cut the power.
    """

    def __init__(self, watch: Callable[[LosingDisk], None]) -> None:
        self._watch = watch
        self._lock = threading.RLock()
        self._durable: dict[str, bytearray] = {}
        self._pending: defaultdict[str, list[Change]] = defaultdict(list)
        self._deleted: set[str] = set()
        self._logs: set[str] = set()
        super().__init__()

    def after(self, kind: str, path: str, change: Change | None) -> None:
        if not path:
            return  # a temporary file, which nobody misses
        with self._lock:
            if kind == "open":
                if path in self._deleted:  # another file of the same name
                    self._deleted.discard(path)
                    del self._durable[path]
                    self._pending.pop(path, None)
                if path not in self._durable:
                    self._durable[path] = bytearray(Path(path).read_bytes())
                    self._logs.add(path)
                return
            if change is not None:
                self._pending[path].append(change)
            else:
                for waiting in self._pending.pop(path, ()):
                    _apply(self._durable[path], waiting)
                if path in self._logs and path.endswith(("-wal", "-journal")):
                    # With a new log SQLite puts its folder on disk, and what was deleted there.
                    for gone in self._deleted:
                        del self._durable[gone]
                    self._deleted.clear()
                self._logs.discard(path)
            self._watch(self)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        with self._lock:
            if syncdir:
                self._durable.pop(filename, None)
            else:
                self._deleted.add(filename)

    def cut(self, folder: Path, source: random.Random) -> None:
        """Write to a folder what might be found there if the power were cut now.

        Of what was not put on disk nothing is there, or all, or anything between: in any order, a
        write in parts.
        """
        with self._lock:
            keep = source.choice([0.0, 1.0, 0.5, 0.9])
            for path, durable in self._durable.items():
                if path in self._deleted and source.random() < 0.5:
                    continue
                content = bytearray(durable)
                for change in self._pending[path]:
                    for part in _parts(change):
                        if source.random() < keep:
                            _apply(content, part)
                (folder / os.path.basename(path)).write_bytes(content)


def _apply(content: bytearray, change: Change) -> None:
    if isinstance(change, int):
        del content[change:]
        content.extend(bytes(change - len(content)))
        return
    offset, data = change
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _parts(change: Change) -> list[Change]:
    if isinstance(change, int):
        return [change]
    offset, data = change
    first = SECTOR - offset % SECTOR
    starts = [0, *range(first, len(data), SECTOR)]
    return [(offset + a, data[a:b]) for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]
