# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Copies of a database: of one moment while learning goes on, checked, for the owner alone.

The copy is made in small steps by SQLite's backup of one read transaction: writers do not wait
for it, and it does not begin anew when they write, as it would without that transaction. A copy
is one file; it needs no write-ahead log beside it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import apsw

from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.store import files, schema
from robotmem_ros.core.store.access import open_to_read, refuse_cut, translated_errors

Progress = Callable[[int, int], None]
"""Takes how much is done, and how much there is; stops the work by raising."""

_PAGES_AT_ONCE = 256
_LONGEST_PAUSE = 0.05  # seconds
_STEPS_OF_SQLITE = 100_000  # between two calls of progress while a copy is checked


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a database that was made and checked."""

    path: str
    size: int
    memories: int
    episodes: int


def nothing(done: int, total: int) -> None:
    """Show no progress."""


def backup(path: str, target: str, progress: Progress = nothing) -> Copy:
    """Copy a database, which other processes may use meanwhile, to a new file.

    Raises
    ------
    StoreError: it cannot be read, is damaged, or the copy cannot be written; no copy was left.
    """
    with translated_errors(path), open_to_read(path) as source:
        schema.check(source)
        refuse_cut(source)
        source.execute("BEGIN")
        return save(source, target, progress)


def restore(
    path: str, target: str, replace: bool, progress: Progress = nothing
) -> tuple[Copy, str]:
    """Put a copy in the place of a database; return what was restored, and the old file's name.

    Parameters
    ----------
    replace: whether a database that is there may go; it is kept under another name.

    Returns
    -------
    The name is "" if no file was there.

    Raises
    ------
    StoreError: the copy is damaged, there is a file and it may not go, or another process has it
        open; nothing was changed.
    """
    if not os.path.lexists(target):
        folder = os.path.dirname(os.path.abspath(target))
        with _explained(target):
            files.make_folder(folder)
        for (
            end
        ) in files.SIDE_FILES:  # of a database that is gone: it would be taken for this one's
            files.refuse_existing(target + end)
        return backup(path, target, progress), ""
    if not replace:
        raise StoreError(f"{target} is there already, and stays as it is; --force replaces it")
    if os.path.exists(path) and os.path.samefile(path, target):
        raise StoreError(f"{target} is the backup itself")
    with files.held(target):
        ready = backup(path, f"{target}.{_now()}.restored", progress)
        old = f"{target}.{_now()}.replaced"
        with _explained(target):
            # The log goes first: if this is interrupted there is never a log of another file.
            for end in (*files.SIDE_FILES, ""):
                if os.path.lexists(target + end):
                    os.rename(target + end, old + end)
            os.rename(ready.path, target)
        files.sync_folder(os.path.dirname(os.path.abspath(target)))
    return Copy(target, ready.size, ready.memories, ready.episodes), old


def save(
    source: apsw.Connection, target: str, progress: Progress = nothing, *, damaged: bool = False
) -> Copy:
    """Copy what the open read transaction of a connection sees to a new file, and check the copy.

    Parameters
    ----------
    damaged: whether a copy of what is damaged is better than none.

    Raises
    ------
    StoreError: the source is damaged, or the copy cannot be written; no copy was left.
    """
    expected = _counts(source)
    size = source.pragma("page_count") * source.pragma("page_size")
    with _explained(target):
        free = shutil.disk_usage(os.path.dirname(os.path.abspath(target))).free
    if free < size:
        raise StoreError(
            f"no space for {target}: it needs {_megabytes(size)}, and {_megabytes(free)} are free"
        )
    with files.written(target) as partial, translated_errors(target):
        copy = apsw.Connection(partial)
        try:
            # Nothing is lost if this is interrupted, and the whole file is put on disk at the end.
            copy.pragma("journal_mode", "off")
            copy.pragma("synchronous", "off")
            with copy.backup("main", source, "main") as pages:
                while not pages.done:
                    start = time.monotonic()
                    pages.step(_PAGES_AT_ONCE)
                    progress(pages.page_count - pages.remaining, pages.page_count)
                    # At most half of what disk and processor can do is taken from the robot.
                    time.sleep(min(time.monotonic() - start, _LONGEST_PAUSE))
            schema.set_needs_log(copy, False)
            copy.pragma("journal_mode", "delete")
        finally:
            copy.close()
        _verify(partial, source.filename, expected, progress, damaged)
        size = os.stat(partial).st_size
    return Copy(target, size, *expected)


def name_now(path: str, folder: str) -> str:
    """Return the name of a backup of a database that is made now."""
    return os.path.join(folder, f"{os.path.basename(path)}.{_now()}.backup")


def rotate(path: str, folder: str, keep: int) -> list[str]:
    """Remove all but the newest backups of a database from a folder; return what is gone.

    What a backup that was killed has left goes as well.

    Parameters
    ----------
    keep: how many stay; 0 means all.
    """
    pattern = re.compile(re.escape(os.path.basename(path)) + r"\.\d{8}T\d{6}\.\d{3}Z\.backup")
    backups = sorted(name for name in os.listdir(folder) if pattern.fullmatch(name))
    gone = [os.path.join(folder, name) for name in backups[:-keep]] if keep else []
    gone += files.abandoned(folder, os.path.basename(path))
    for name in gone:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    return gone


def keep_older(path: str, version: int) -> None:
    """Copy a database before it is brought from a version of its schema to a later one.

    An equal copy that is there already, of an attempt that was interrupted, is enough.

    Raises
    ------
    StoreError: it could not be copied.
    """
    with open_to_read(path) as source:
        source.execute("BEGIN")
        if not any(_counts(source)):
            return  # it is only being made, maybe by another process
        number = 1
        while True:
            number_text = "" if number == 1 else f".{number}"
            target = f"{path}.schema-{version}{number_text}.backup"
            if not os.path.lexists(target):
                # What is wrong with it is not cured by refusing it, and may be an index alone.
                save(source, target, damaged=True)
                return
            if _fingerprint(target) == _fingerprint_of(source):
                return
            number += 1


def _verify(
    path: str, origin: str, expected: tuple[int, int], progress: Progress, damaged: bool
) -> None:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)

    def go_on() -> bool:
        progress(0, 0)
        return False

    try:
        connection.set_progress_handler(go_on, _STEPS_OF_SQLITE)
        counts = _counts(connection)
        if counts != expected:
            raise StoreError(f"the copy of {origin} differs from it and was not kept; try again")
        found = "ok" if damaged else str(connection.execute("PRAGMA integrity_check (1)").get)
        if found != "ok":
            raise StoreError(
                f"{origin} is damaged, so no copy of it was kept ({found.splitlines()[0]}); run: "
                f"robotmem check {origin}"
            )
    finally:
        connection.close()


def _counts(connection: apsw.Connection) -> tuple[int, int]:
    counts: Any = connection.execute(
        "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM sessions WHERE opened)"
    ).get
    return int(counts[0]), int(counts[1])


def _fingerprint(path: str) -> object:
    try:
        with open_to_read(path) as connection:
            return _fingerprint_of(connection)
    except (apsw.Error, StoreError):
        return None


def _fingerprint_of(connection: apsw.Connection) -> object:
    return connection.execute(
        "SELECT (SELECT user_version FROM pragma_user_version), count(*), max(id), "
        "max(updated_at), sum(access_count), (SELECT count(*) FROM forgotten), "
        "(SELECT count(*) FROM trajectory), (SELECT count(*) FROM sessions WHERE ended) "
        "FROM memories"
    ).get


def _now() -> str:
    now = datetime.now(timezone.utc)
    return f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03}Z"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
