# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Files and folders made for their owner alone, whole or not at all, whatever the umask.

A file is written under another name beside its place, put on disk, and only then given its name,
so that no crash and no full disk leaves half of one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import re
import secrets
import time
from collections.abc import Iterator

from robotmem_ros.core.errors import StoreError

SIDE_FILES = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database file while that is open, or after a crash."""

_ABANDONED = 86_400  # seconds without a change
_FIRST_LOCK_BYTE, _LOCK_BYTES = 0x40000000, 512  # where SQLite locks a database file


def make_folder(path: str) -> None:
    """Make a folder, with those above it, where there is none.

    Raises
    ------
    OSError: it cannot be made.
    """
    missing = []
    folder = pathlib.Path(path)
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process was faster
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)
            sync_folder(str(folder.parent))


def make_file(path: str) -> None:
    """Make an empty file.

    Raises
    ------
    FileExistsError: there is one.
    OSError: it cannot be made.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def written(path: str) -> Iterator[str]:
    """Lend an empty file to write to; when the block has ended it is on disk under its own name.

    If the block raises, nothing is left of it.

    Raises
    ------
    StoreError: there is such a file already, or it cannot be written.
    """
    folder, name = os.path.split(os.path.abspath(path))
    partial = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.partial")
    try:
        refuse_existing(path)
        make_file(partial)
        yield partial
        _sync(partial)
        _rename_to_new(partial, path)
        sync_folder(folder)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        for name in (partial, *(partial + end for end in SIDE_FILES)):
            with contextlib.suppress(OSError):
                os.unlink(name)


def abandoned(folder: str, start: str) -> list[str]:
    """Return what a process that was killed has begun, long ago, under names with that start."""
    pattern = re.compile(
        r"\." + re.escape(start) + r".*\.[0-9a-f]{8}\.partial(-wal|-shm|-journal)?"
    )
    found = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if pattern.fullmatch(name):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - os.stat(path).st_mtime > _ABANDONED:
                    found.append(path)
    return found


def refuse_existing(path: str) -> None:
    """Refuse to write over a file.

    Raises
    ------
    StoreError: there is one.
    """
    if os.path.lexists(path):
        raise StoreError(f"{path} is there already, and stays as it is; name another file")


@contextlib.contextmanager
def held(path: str) -> Iterator[None]:
    """Keep all other processes from a database file, if none has it open.

    As long as SQLite has a file with a write-ahead log open, it holds a shared lock on it, which
    this looks for. It cannot be known on file systems without locks, nor of a file that may not
    be written. Not for a file that this very process has open: its locks would be lost.

    Raises
    ------
    StoreError: another process has it open.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        yield
        return
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCK_BYTES, _FIRST_LOCK_BYTE)
        except (BlockingIOError, PermissionError):
            raise StoreError(
                f"{path} is open in another process; stop the node that uses it, then try again"
            ) from None
        except OSError:
            pass  # there are no locks here
        yield
    finally:
        os.close(descriptor)


def sync_folder(path: str) -> None:
    """Put the names in a folder on disk, where the file system can do that."""
    with contextlib.suppress(OSError):
        _sync(path)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_to_new(partial: str, path: str) -> None:
    """Give a file its name unless that is taken."""
    try:
        os.link(partial, path)
    except FileExistsError:
        refuse_existing(path)
        raise
    except OSError:  # of a file system without links, such as those of memory cards
        refuse_existing(path)
        os.rename(partial, path)
