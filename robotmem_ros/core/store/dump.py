# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""All memories and episodes of one moment of a database, one after the other; it is only read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apsw

from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.model import Episode, Memory
from robotmem_ros.core.store import rows, schema, sessions
from robotmem_ros.core.store.access import open_to_read, translated_errors

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Collection:
    """How much one collection holds; times are the first and last stamp, in nanoseconds."""

    name: str
    memories: int
    superseded: int
    since: int
    until: int


class Dump:
    """A view of one moment of a database, which other processes may use meanwhile."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def memories(self) -> Iterator[Memory]:
        """Yield all memories in the order in which they were stored, replaced ones as well."""
        last = -(2**63)
        while True:
            found: Any = self._connection.execute(
                f"SELECT {rows.COLUMNS} FROM memories AS m {rows.JOINS} WHERE m.id > ? "
                "ORDER BY m.id LIMIT ?",
                (last, _AT_ONCE),
            ).fetchall()
            if not found:
                return
            for row in found:
                yield rows.memory(row)
            last = found[-1][0]

    def episodes(self) -> Iterator[Episode]:
        """Yield all episodes in the order in which they began, without their memories."""
        names = self._connection.execute(
            "SELECT session_id FROM sessions WHERE opened ORDER BY id"
        ).fetchall()
        for (name,) in names:
            yield sessions.read(self._connection, str(name), with_memories=False)

    def collections(self) -> list[Collection]:
        """Return how much each collection holds, by name."""
        found: Any = self._connection.execute(
            "SELECT c.name, count(*), count(m.superseded_by), min(m.stamp), max(m.stamp) "
            "FROM collections AS c JOIN memories AS m ON m.collection_id = c.id "
            "GROUP BY c.id ORDER BY c.name"
        ).fetchall()
        return [Collection(*row) for row in found]

    def totals(self) -> dict[str, int]:
        """Return how much there is of everything, by name."""
        queries = {
            "schema version": "SELECT user_version FROM pragma_user_version",
            "bytes": "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
            "free bytes": "SELECT freelist_count * page_size "
            "FROM pragma_freelist_count, pragma_page_size",
            "memories": "SELECT count(*) FROM memories",
            "superseded": "SELECT count(superseded_by) FROM memories",
            "forgotten": "SELECT count(*) FROM forgotten",
            "episodes": "SELECT count(*) FROM sessions WHERE opened",
            "poses": "SELECT count(*) FROM trajectory",
            "vectors to make": "SELECT count(*) FROM unembedded",
        }
        counts: Any = self._connection
        return {name: int(counts.execute(query).get) for name, query in queries.items()}


@contextlib.contextmanager
def dump(path: str) -> Iterator[Dump]:
    """Open a database to read all of it.

    Raises
    ------
    StoreError: it cannot be opened, is damaged, not ours, too new, or of an older version.
    """
    with translated_errors(path), open_to_read(path) as connection:
        schema.check(connection)
        version = connection.pragma("user_version")
        if version < schema.VERSION:
            raise StoreError(
                f"{path} has the older schema version {version}; start a node with it once, which "
                "brings it up to date and keeps a copy"
            )
        connection.execute("BEGIN")
        yield Dump(connection)
