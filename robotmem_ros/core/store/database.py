# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""One SQLite file, many threads and processes: connections, transactions and errors.

One connection writes, behind a lock; readers take a connection of their own from a pool and see
one moment of the database for as long as they hold it. Write-ahead logging lets both go on at
once, and synchronous=FULL puts every commit on disk before it is answered, unless the setting
durability says otherwise.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt
import sqlite_vec

from robotmem_ros.core.errors import ConfigError, StoreError
from robotmem_ros.core.filters import Conditions
from robotmem_ros.core.store import backup, files, schema
from robotmem_ros.core.store.access import (
    BUSY_TIMEOUT_MS,
    has_log,
    lost_log,
    refuse_cut,
    translated_errors,
)


class Connection(apsw.Connection):
    """A connection to the database.

    Attributes
    ----------
    conditions: those of the query it serves, for the SQL functions of eligibility.py.
    """

    conditions = Conditions()

    def integers(self, sql: str, *values: object) -> npt.NDArray[np.int64]:
        """Return the numbers that a query yields as one text, with spaces between.

        A row costs Python a third of a microsecond, a number in a text a tenth of that: it is for
        queries of group_concat.

        Raises
        ------
        apsw.CorruptError: something else than whole numbers is stored there.
        """
        return self._numbers(self.execute(sql, values).get, sql)

    def integer_columns(self, sql: str, *values: object) -> list[npt.NDArray[np.int64]]:
        """Return the numbers of each of several such texts.

        Raises
        ------
        apsw.CorruptError: something else than whole numbers is stored there.
        """
        texts: Any = self.execute(sql, values).get
        return [self._numbers(text, sql) for text in texts]

    @staticmethod
    def _numbers(text: Any, sql: str) -> npt.NDArray[np.int64]:
        found = np.fromstring(text or "", np.int64, sep=" ")
        if text and len(found) != text.count(" ") + 1:
            raise apsw.CorruptError(f"numbers are damaged, which were read by {sql}")
        return found


_IDLE_READERS = 8
_GIVEN_BACK_SECONDS = 0.5  # those who were reading get so long to end
_LEFT_MS = 1_000  # for which another process may keep the log from being put away
_STEPS = 20_000  # of SQLite's machine, some milliseconds, after which a reader sees a close
_PAGE_CACHE_KIB = 16_384


class Database:
    """The open database file.

    Parameters
    ----------
    path: the file; it is made, readable by its owner alone, if it is not there.
    prepare: called with each new connection, to give it SQL functions.
    durability: "full" puts each change on disk before it is answered, "normal" leaves that to the
        system.

    Attributes
    ----------
    lost_log: a sentence about the write-ahead log if that was missing, else "".

    Raises
    ------
    ConfigError: the file or its folder cannot be made or written.
    StoreError: the file is damaged, not ours or too new.
    """

    def __init__(
        self, path: str, prepare: Callable[[Connection], None], durability: str = "full"
    ) -> None:
        self._prepare = prepare
        self._durability = durability
        self.path = str(pathlib.Path(path).expanduser().absolute())
        _make_file(self.path)
        self._write_lock = threading.Lock()
        self._idle: list[Connection] = []
        self._idle_lock = threading.Condition()
        self._lent = 0  # connections
        self._stopped = False  # whether nothing is read any more
        self._closed = False
        self._may_commit = False
        with translated_errors(self.path):
            self._check()
            self._writer: Connection | None = self._make_writer()
            try:
                self._may_commit = True
                schema.migrate(self._writer, lambda old: backup.keep_older(self.path, old))
            except BaseException:
                self._leave()
                raise
            finally:
                self._may_commit = False

    @property
    def size(self) -> int:
        """Bytes on disk, the write-ahead log included."""
        total = 0
        for name in (self.path, self.path + "-wal"):
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(name).st_size
        return total

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """Run a block as one transaction; it is on disk when the block has ended.

        Raises
        ------
        StoreError: the database cannot be written; nothing of the block was.
        """
        with self._write_lock, translated_errors(self.path):
            self._refuse_if_closed()
            if self._writer is None:
                self._writer = self._make_writer()
            writer, keep, is_first = self._writer, False, False
            try:
                writer.execute("BEGIN IMMEDIATE")
                try:
                    yield writer
                    is_first = schema.set_needs_log(writer, True)
                    self._may_commit = True
                    writer.execute("COMMIT")
                except BaseException as error:
                    if writer.in_transaction:
                        writer.execute("ROLLBACK")
                    # What SQLite itself has no part in leaves the connection as it was.
                    keep = not isinstance(error, apsw.Error)
                    raise
                keep = True
            finally:
                self._may_commit = False
                if not keep:
                    # Its R*Tree and FTS5 keep pages of their own in memory. After an error of the
                    # disk some of what was rolled back is left there, and would be written later.
                    _close(writer)
                    self._writer = None
                elif is_first:
                    # So that the file itself tells that it needs the log.
                    with contextlib.suppress(apsw.Error):
                        writer.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Lend a connection that sees one moment of the database.

        Raises
        ------
        StoreError: the database cannot be read, or was closed meanwhile.
        """
        with translated_errors(self.path):
            with self._idle_lock:
                if self._stopped:  # or closed
                    raise StoreError(f"{self.path} is closed")
                connection = self._idle.pop() if self._idle else None
                self._lent += 1
            sound = False
            try:
                if connection is None:
                    connection = self._connect()
                    connection.set_progress_handler(lambda: self._stopped, _STEPS)
                connection.execute("BEGIN")
                yield connection
                sound = True
            except BaseException as error:
                sound = not isinstance(error, apsw.Error)
                raise
            finally:
                self._take_back(connection, sound)

    def stop_reading(self) -> None:
        """Give up what is being read, and lend no connection any more; idempotent."""
        with self._idle_lock:
            self._stopped = True
            self._idle_lock.wait_for(lambda: not self._lent, _GIVEN_BACK_SECONDS)

    def close(self) -> None:
        """Close all connections; those that are lent as soon as they come back. Idempotent.

        What is being read is given up.
        """
        with self._write_lock, self._idle_lock:
            if self._closed:
                return
            self._closed = self._stopped = True
            for connection in self._idle:
                _close(connection)
            self._idle.clear()
            if not self._lent:
                self._leave()

    def _take_back(self, connection: Connection | None, sound: bool) -> None:
        """Take back a connection that was lent; one that met an error of SQLite is closed."""
        if connection is not None and sound and connection.in_transaction:
            try:
                connection.execute("COMMIT")
            except apsw.Error:  # of a reader: nothing is lost by it
                sound = False
        with self._idle_lock:
            keep = sound and not self._closed and len(self._idle) < _IDLE_READERS
            if connection is not None:
                if keep:
                    self._idle.append(connection)
                else:
                    _close(connection)
            self._lent -= 1
            self._idle_lock.notify_all()
            if self._closed and not self._lent:
                self._leave()

    def _leave(self) -> None:
        """Close the writer; if nobody else has the file open, the log goes into it.

        Before that the file is told that it needs no log. Whoever writes later says so again.
        """
        writer, self._writer = self._writer, None
        if writer is None:
            return
        with contextlib.suppress(apsw.Error):
            writer.set_busy_timeout(_LEFT_MS)
            writer.execute("BEGIN IMMEDIATE")
            schema.set_needs_log(writer, False)
            self._may_commit = True
            writer.execute("COMMIT")
            writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        _close(writer)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path} is closed")

    def _check(self) -> None:
        """Refuse a file that is not ours before anything is written to it."""
        had_log = has_log(self.path)
        connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        try:
            schema.check(connection)
            refuse_cut(connection)
            self.lost_log = "" if had_log else lost_log(connection)
        finally:
            _close(connection)

    def _make_writer(self) -> Connection:
        """Return a connection that commits nothing but whole transactions.

        When the disk fails in the middle of an R*Tree's or FTS5's work, SQLite rolls back at once
        and leaves the transaction; what they write on from there would be committed by itself.
        """
        connection = self._connect()
        connection.set_commit_hook(lambda: not self._may_commit)
        return connection

    def _connect(self) -> Connection:
        connection = Connection(self.path)
        try:
            self._set_up(connection)
        except BaseException:
            _close(connection)
            raise
        return connection

    def _set_up(self, connection: Connection) -> None:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.pragma("journal_mode", "wal")
        # The log goes when the database is closed in order, and not whenever a connection is
        # dropped: a log that is missing means something.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.pragma("synchronous", self._durability)
        connection.pragma("cache_size", -_PAGE_CACHE_KIB)
        connection.pragma("temp_store", "memory")
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)
        self._prepare(connection)


def _close(connection: apsw.Connection) -> None:
    """Close a connection, whatever state the disk is in.

    What was committed is in the write-ahead log; if that cannot be moved into the file now, the
    next start will do it.
    """
    with contextlib.suppress(apsw.Error):
        connection.close()


def _make_file(path: str) -> None:
    """Make the file and its folder for the owner alone, or say which parameter is wrong."""
    allowed = "it must be a file in a folder that can be written"
    try:
        files.make_folder(os.path.dirname(path))
        if os.path.exists(path) and not os.path.isfile(path):
            raise OSError(errno.EINVAL, "it is there and no regular file")
        # A file that is there is not opened: closing it would let go of the locks by which other
        # connections of this process hold it.
        if os.path.exists(path):
            if not os.access(path, os.R_OK | os.W_OK):
                raise PermissionError(errno.EACCES, "it cannot be written")
        else:
            with contextlib.suppress(FileExistsError):  # another process was faster
                files.make_file(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(
            f"parameter db_path: {path!r} is not allowed ({reason}); {allowed}"
        ) from None
    if not os.access(os.path.dirname(path), os.W_OK):
        raise ConfigError(
            f"parameter db_path: {path!r} is not allowed (its folder cannot be written); {allowed}"
        )
