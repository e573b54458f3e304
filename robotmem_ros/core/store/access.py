# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What every access to a database file shares: reading without a trace, and errors in words."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator

import apsw

from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.store import schema

BUSY_TIMEOUT_MS = 30_000
"""How long a writer waits for another process before it gives up."""


class BrokenIndexError(StoreError):
    """A table that the software relies on is missing or is not what it was."""


@contextlib.contextmanager
def open_to_read(path: str) -> Iterator[apsw.Connection]:
    """Open a database file only to read; it is not changed, and nothing is left beside it.

    Raises
    ------
    apsw.Error: it cannot be opened.
    StoreError: there is no such file, or nothing is in it.
    """
    if not os.path.isfile(path):
        raise StoreError(f"{path}: there is no such file")
    if not any(os.path.exists(name) and os.path.getsize(name) for name in (path, path + "-wal")):
        raise StoreError(f"{path} is empty: it holds no memories")
    uri = pathlib.Path(path).absolute().as_uri()
    # Nobody has it open and there is no log to read: SQLite need not make the files it shares.
    is_alone = not any(os.path.exists(path + end) for end in ("-wal", "-shm"))
    connection = apsw.Connection(
        uri + ("?immutable=1" if is_alone else ""),
        flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
    )
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    try:
        yield connection
    finally:
        connection.close()


def refuse_cut(connection: apsw.Connection) -> None:
    """Refuse a file that ends within a page; SQLite itself misses whole pages only.

    Raises
    ------
    StoreError: it does.
    """
    path = connection.filename
    log = path + "-wal"
    if os.path.exists(log) and os.path.getsize(log):
        return  # the page may be there
    if os.path.getsize(path) % int(connection.pragma("page_size")):
        raise _damaged(path, apsw.CorruptError("its end is cut off"))


def has_log(path: str) -> bool:
    """Return whether there is a write-ahead log beside a file, with or without content."""
    return os.path.exists(path + "-wal")


def lost_log(connection: apsw.Connection) -> str:
    """Return a sentence if a file that had no log when it was opened needed one, else ""."""
    if not schema.needs_log(connection):
        return ""
    return (
        f"it was not closed, and its write-ahead log {connection.filename}-wal is missing: put "
        "that back if it is elsewhere; without it what was learned last may be lost"
    )


@contextlib.contextmanager
def translated_errors(path: str) -> Iterator[None]:
    """Turn what SQLite raises into a StoreError that says what to do."""
    try:
        yield
    except (apsw.NotADBError, apsw.CorruptError) as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB:
            raise BrokenIndexError(
                f"an index of {path} is broken ({_line(error)}); call ~/reindex"
            ) from error
        raise _damaged(path, error) from error
    except UnicodeDecodeError as error:
        raise _damaged(path, error) from error
    except apsw.FullError as error:
        raise StoreError(f"no space left on the disk of {path}; nothing was stored") from error
    except apsw.ReadOnlyError as error:
        raise StoreError(f"{path} cannot be written: it is read-only") from error
    except apsw.BusyError as error:
        raise StoreError(
            f"{path} was held by another process for {BUSY_TIMEOUT_MS / 1000:g} s; "
            "nothing was stored"
        ) from error
    except (apsw.SQLError, apsw.ConstraintError) as error:
        raise BrokenIndexError(
            f"an index of {path} is broken ({_line(error)}); call ~/reindex"
        ) from error
    except apsw.InterruptError as error:
        raise StoreError(f"{path} was closed") from error
    except apsw.Error as error:
        raise StoreError(f"{path} cannot be read or written: {_line(error)}") from error


def _line(error: Exception) -> str:
    """Return what an error says in one line, also where SQLite quotes a damaged schema."""
    text = " ".join(str(error).split())
    return text if len(text) < 200 else text[:200] + " ..."


def _damaged(path: str, error: Exception) -> StoreError:
    return StoreError(
        f"{path} is damaged or not an SQLite database ({_line(error)}); it was left as it is. "
        f"Run: robotmem check {path}, then robotmem repair or robotmem restore"
    )
