# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What changes a store.

A memory, its words, its names, its attributes, its places and its place in the queue for a vector
change in one transaction, so they can never disagree.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from robotmem_ros.core.errors import InvalidRequestError, StoreError
from robotmem_ros.core.model import Context
from robotmem_ros.core.store import (
    backup,
    eligibility,
    files,
    glance,
    imports,
    keywords,
    records,
    schema,
    vectors,
)
from robotmem_ros.core.store.access import BrokenIndexError
from robotmem_ros.core.store.copies import Copies
from robotmem_ros.core.store.database import Connection, Database
from robotmem_ros.core.store.records import NewMemory
from robotmem_ros.core.store.sessions import Sessions
from robotmem_ros.core.store.snapshot import Snapshot

_T = TypeVar("_T")

_LOG = logging.getLogger(__name__)
_INDEXED_AT_ONCE = 50


class Store:
    """All memories of one database file; safe to use from any number of threads.

    Attributes
    ----------
    was_mended: whether a change found broken indexes, and memories wait to be indexed.

    Parameters
    ----------
    path: the file; made if it is not there.
    durability: as Config.durability.

    Attributes
    ----------
    sessions: its episodes.

    Raises
    ------
    ConfigError, StoreError: as database.Database.
    """

    def __init__(self, path: str, durability: str = "full") -> None:
        self._database = Database(path, eligibility.register, durability)
        self._copies = Copies()
        self.was_mended = False
        self._warming: threading.Thread | None = None
        self.sessions = Sessions(self._database, self._write)

    @property
    def path(self) -> str:
        """The database file, absolute."""
        return self._database.path

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._database.size

    @property
    def schema_version(self) -> int:
        """Version of the tables, from 1."""
        return schema.VERSION

    def stop_reading(self) -> None:
        """Give up what is being read, and read nothing more; idempotent."""
        self._database.stop_reading()

    def close(self) -> None:
        """Close the file; idempotent."""
        self._database.close()
        if self._warming is not None:
            self._warming.join()

    def warm(self) -> None:
        """Begin to read in the background what the first recall would wait for."""
        if self._warming is None:
            self._warming = threading.Thread(target=self._warm, name="robotmem-warm", daemon=True)
            self._warming.start()

    def _warm(self) -> None:
        try:
            with self.snapshot() as snapshot:
                snapshot.warm()
        except StoreError as error:
            _LOG.debug("not read in advance: %s", error)  # a recall will tell

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Lend a view of one moment of the store, for one query."""
        with (
            self._database.read() as connection,
            contextlib.closing(Snapshot(connection, self._copies)) as snapshot,
        ):
            yield snapshot

    def add(self, new: NewMemory) -> tuple[int, bool]:
        """Store a memory; return its number, and whether it is new.

        The very same memory is not stored twice, unless it has expired: it is renewed, with the
        greater confidence and the later expiry, and its number returned.

        Raises
        ------
        InvalidRequestError: its uuid is that of another memory.
        """

        def action(connection: Connection) -> tuple[int, bool]:
            found = connection.execute(
                "SELECT min(id) FROM memories WHERE identity = ? AND superseded_by IS NULL "
                "AND (expires = 0 OR expires > ?)",
                (records.identity(new), new.stamp),
            ).get
            if found is None:
                _refuse_taken(connection, new.uuid)
                return records.insert(connection, new), True
            connection.execute(
                "UPDATE memories SET last_access = max(last_access, ?1), "
                "confidence = max(confidence, ?2), "
                "expires = CASE WHEN expires = 0 OR ?3 = 0 THEN 0 ELSE max(expires, ?3) END "
                "WHERE id = ?4",
                (new.now, new.confidence, new.expires, found),
            )
            return int(found), False

        return self._write(action)

    def add_many(self, many: Sequence[NewMemory]) -> list[int]:
        """Store memories in one transaction, not looking for duplicates; return their numbers."""
        return self._write(lambda connection: [records.insert(connection, new) for new in many])

    def update(
        self, memory_id: int, content: str | None, context: Context | None, now: int
    ) -> str:
        """Change the text or the context of a memory; return the text before.

        Raises
        ------
        NotFoundError: there is no such memory.
        """
        return self._write(
            lambda connection: records.change(connection, memory_id, content, context, now)
        )

    def forget(self, memory_id: int, reason: str, now: int) -> None:
        """Remove a memory from the store and from every index.

        Raises
        ------
        NotFoundError: there is no such memory.
        """
        self._write(lambda connection: records.remove(connection, memory_id, reason, now))

    def restore(self, memory_id: int) -> None:
        """Undo that a memory was replaced by another.

        Raises
        ------
        NotFoundError: there is no such memory.
        """

        def action(connection: Connection) -> None:
            records.one(connection, memory_id)
            imports.unlink(connection, memory_id)

        self._write(action)

    def put(self, new: NewMemory, superseded_by: str) -> bool:
        """Store a memory of another store by its uuid; return whether that changed anything.

        Parameters
        ----------
        superseded_by: uuid of the memory that replaced it; "" if none did.
        """
        return bool(self.put_many([(new, superseded_by)]))

    def put_many(self, memories: Sequence[tuple[NewMemory, str]]) -> int:
        """Store memories as by put, in one transaction; return how many that changed."""
        return self._write(
            lambda connection: sum([imports.put_memory(connection, *one) for one in memories])
        )

    def touch(self, touched: Mapping[int, tuple[int, int, int]]) -> None:
        """Record that memories were read.

        Parameters
        ----------
        touched: by number: times read, times returned by a recall, wall time of the last.
        """

        def action(connection: Connection) -> None:
            connection.executemany(
                "UPDATE memories SET access_count = access_count + ?, return_count = "
                "return_count + ?, last_access = max(last_access, ?) WHERE id = ?",
                [(*times, number) for number, times in touched.items()],
            )

        self._write(action)

    def use_model(self, model: str, dimension: int) -> bool:
        """Record what makes the vectors; return whether older ones had to go.

        Vectors of another model or length are removed, and all memories wait for new ones.
        """
        with self._database.write() as connection:
            known = connection.execute("SELECT model, dimension FROM embedder").get
            if known == (model, dimension):
                return False
            connection.execute("DELETE FROM embedder")
            connection.execute("INSERT INTO embedder VALUES (?, ?)", (model, dimension))
            vectors.remove_all(connection)
            return known is not None

    def model(self) -> tuple[str, int] | None:
        """Return the model that the vectors are of, and their length; None before the first."""
        with self._database.read() as connection:
            known = connection.execute("SELECT model, dimension FROM embedder").get
            return (str(known[0]), int(known[1])) if known else None

    def unembedded(self, limit: int, but: Collection[int] = ()) -> list[tuple[int, str]]:
        """Return the newest memories that wait for their vector, but for some, with their text."""
        with self._database.read() as connection:
            found = connection.execute(
                "SELECT u.memory_id, t.content FROM unembedded AS u JOIN texts AS t "
                "ON t.memory_id = u.memory_id WHERE u.memory_id NOT IN "
                "(SELECT value FROM json_each(?)) ORDER BY u.memory_id DESC LIMIT ?",
                (json.dumps(list(but)), limit),
            )
            return [(int(number), str(content)) for number, content in found]

    def count_unembedded(self) -> int:
        """Return how many memories wait for their vector."""
        with self._database.read() as connection:
            return int(connection.execute("SELECT count(*) FROM unembedded").get)

    def unembedded_among(self, ids: Collection[int]) -> list[tuple[int, str]]:
        """Return those of some memories that wait for their vector, with their text."""
        with self._database.read() as connection:
            found = connection.execute(
                "SELECT u.memory_id, t.content FROM json_each(?) AS j CROSS JOIN unembedded AS u "
                "ON u.memory_id = j.value JOIN texts AS t ON t.memory_id = u.memory_id",
                (json.dumps(list(ids)),),
            )
            return [(int(number), str(content)) for number, content in found]

    def put_vectors(self, model: str, made: Sequence[tuple[int, str, vectors.Vector]]) -> None:
        """Store vectors of a model, each with the memory and the text it was made from.

        Those of another model than the recorded one, and those of memories that were changed or
        forgotten in the meantime, are dropped.
        """
        with self._database.write() as connection:
            known = connection.execute("SELECT model, dimension FROM embedder").get
            for memory_id, text, vector in made:
                if known != (model, len(vector)):
                    continue
                current = connection.execute(
                    "SELECT content FROM texts WHERE memory_id = ?", (memory_id,)
                ).get
                if current == text:
                    vectors.put(connection, memory_id, vector)

    def reindex(self, progress: Callable[[int, int], None]) -> int:
        """Make all indexes anew from the memories; return the number of memories.

        It is done in small steps, so that nobody waits for it. Meanwhile every filter holds for
        all memories, but the words of those that wait to be indexed find nothing.
        """
        with self._database.write() as connection:
            schema.renew_indexes(connection)
        return self.index_waiting(progress)

    def index_waiting(self, progress: Callable[[int, int], None]) -> int:
        """Put the memories that wait for it into the indexes; return how many."""
        total, done = self.unindexed(), 0
        while True:
            with self._database.write() as connection:
                count = records.index_some(connection, _INDEXED_AT_ONCE)
            if not count:
                return done
            done += count
            progress(done, max(total, done))

    def backup(self, folder: str, keep: int, progress: Callable[[int, int], None]) -> backup.Copy:
        """Copy the database as it is now into a folder, and remove old copies there.

        Nobody waits for it.

        Parameters
        ----------
        folder: empty means that of the database; made if it is not there.
        keep: how many copies stay; 0 means all.

        Raises
        ------
        StoreError: the database is damaged, or the copy cannot be written; the old ones stay.
        """
        folder = os.path.abspath(os.path.expanduser(folder or os.path.dirname(self.path)))
        try:
            files.make_folder(folder)
        except OSError as error:
            raise StoreError(f"{folder} cannot be made: {error.strerror or error}") from error
        with self._database.read() as connection:
            made = backup.save(connection, backup.name_now(self.path, folder), progress)
        backup.rotate(self.path, folder, keep)
        return made

    def glance(self) -> tuple[str, str]:
        """Return what is wrong with the memories, and what with the indexes alone, at a glance.

        Each is "" if nothing was seen; check.check sees more.
        """
        if self._database.lost_log:
            return self._database.lost_log, ""
        with self._database.read() as connection:
            return glance.glance(connection)

    def unindexed(self) -> int:
        """Return how many memories wait to be indexed."""
        with self._database.read() as connection:
            return keywords.unindexed(connection)

    def _write(self, action: Callable[[Connection], _T]) -> _T:
        """Run a change as one transaction; if an index is broken, begin to make it anew.

        An experience must not be lost because an index is.
        """
        try:
            with self._database.write() as connection:
                return action(connection)
        except BrokenIndexError as error:
            with self._database.write() as connection:
                schema.renew_indexes(connection)
                result = action(connection)
            _LOG.warning("%s; the indexes are made anew", error)
            self.was_mended = True
            return result


def _refuse_taken(connection: Connection, name: str) -> None:
    taken = connection.execute("SELECT id FROM memories WHERE uuid = ?", (name,)).get
    if taken is not None:
        raise InvalidRequestError("uuid", f"{name!r} is that of memory {taken}, which differs")
