# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The episodes of a store: who has one open, where the robot went, how each ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import apsw

from robotmem_ros.core import context as ctx
from robotmem_ros.core.errors import InvalidRequestError, NotFoundError
from robotmem_ros.core.model import Context, Episode, Memory, Pose
from robotmem_ros.core.store import imports, records, rows
from robotmem_ros.core.store.database import Connection, Database
from robotmem_ros.core.store.records import NewMemory

_T = TypeVar("_T")

_COLUMNS = (
    "s.id, s.session_id, c.name, s.context, s.started, s.ended, s.outcome, s.summary, "
    "s.interrupted FROM sessions AS s JOIN collections AS c ON c.id = s.collection_id"
)


class Write(Protocol):
    """Runs a change as one transaction, twice if an index had to be made anew."""

    def __call__(self, action: Callable[[Connection], _T], /) -> _T:
        """Return what the action returned; it is on disk."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an episode ends.

    Attributes
    ----------
    end: ROS time in nanoseconds.
    outcome, summary, interrupted: as in model.Episode.
    memory: its `episode` memory.
    merged: its memories that are replaced, each with the one that replaces it.
    """

    end: int
    outcome: float | None
    summary: str
    interrupted: bool
    memory: NewMemory
    merged: Mapping[int, int]


class Sessions:
    """The episodes of one store; safe to use from any number of threads.

    Parameters
    ----------
    database: where they are read.
    write: how they are changed.
    """

    def __init__(self, database: Database, write: Write) -> None:
        self._database = database
        self._write = write

    def open(
        self, session_id: str, owner: str, collection: str, context: Context, start: int, now: int
    ) -> None:
        """Store an episode that begins at a ROS time, now on the wall clock."""

        def action(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO sessions (session_id, opened, owner, collection_id, context, "
                "started, opened_at) VALUES (?, 1, ?, ?, ?, ?, ?)",
                (
                    session_id,
                    owner,
                    records.number_of(connection, "collections", "name", collection),
                    ctx.write(context),
                    start,
                    now,
                ),
            )

        self._write(action)

    def open_of(self, owner: str) -> list[str]:
        """Return the episodes that an owner has open, the oldest first."""
        with self._database.read() as connection:
            found = connection.execute(
                "SELECT session_id FROM sessions WHERE opened AND ended = 0 AND owner = ? "
                "ORDER BY id",
                (owner,),
            )
            return [str(row[0]) for row in found]

    def is_open(self, session_id: str) -> bool:
        """Return whether an episode is there and has not ended."""
        with self._database.read() as connection:
            return _is_open(connection, session_id)

    def add_poses(self, session_id: str, poses: Sequence[tuple[int, Pose]], stride: int) -> bool:
        """Add poses, each with its number, to the trajectory of an episode.

        Of the poses it has, only those whose number is a multiple of the stride stay.

        Returns
        -------
        False, and nothing was added, if the episode has ended.
        """

        def action(connection: Connection) -> bool:
            if not _is_open(connection, session_id):
                return False
            number = records.number_of(connection, "sessions", "session_id", session_id)
            if stride > 1:
                connection.execute(
                    "DELETE FROM trajectory WHERE session_id = ? AND seq % ? <> 0",
                    (number, stride),
                )
            imports.add_poses(connection, number, poses)
            return True

        return self._write(action)

    def end(
        self,
        session_id: str,
        decide: Callable[[Episode], Ending],
        *,
        decay_rate: float = 0.0,
        now: int = 0,
    ) -> Episode:
        """End an open episode as `decide` says when it sees it: all of it, or nothing.

        A long episode takes seconds to decide about. Others may write meanwhile; if they change
        the episode it is decided again.

        Returns
        -------
        The episode as it is now, with effective confidences.

        Raises
        ------
        NotFoundError: there is no such episode.
        InvalidRequestError: it has ended already.
        """

        def decided(connection: Connection) -> Ending:
            episode = read(connection, session_id, decay_rate, now)
            if episode.end:
                how = "was interrupted" if episode.interrupted else "has ended already"
                raise InvalidRequestError(
                    "session_id",
                    f"the episode {session_id} {how}, and stays as it is; "
                    "call ~/start_session for a new one",
                )
            return decide(episode)

        with self._database.read() as connection:
            seen, ending = _state(connection, session_id), decided(connection)

        def action(connection: Connection) -> None:
            nonlocal seen, ending
            state = _state(connection, session_id)
            if state != seen:
                seen, ending = state, decided(connection)
            connection.execute(
                "UPDATE sessions SET ended = ?, outcome = ?, summary = ?, interrupted = ?, "
                "closed_at = ? WHERE session_id = ?",
                (
                    ending.end,
                    ending.outcome,
                    ending.summary,
                    ending.interrupted,
                    ending.memory.now,
                    session_id,
                ),
            )
            records.insert(connection, ending.memory)
            connection.executemany(
                "UPDATE memories SET superseded_by = ? WHERE id = ?",
                [(survivor, merged) for merged, survivor in ending.merged.items()],
            )

        self._write(action)
        return self.episode(session_id, decay_rate, now)

    def episode(self, session_id: str, decay_rate: float = 0.0, now: int = 0) -> Episode:
        """Return an episode, open or ended, with effective confidences.

        Raises
        ------
        NotFoundError: there is no such episode.
        """
        with self._database.read() as connection:
            return read(connection, session_id, decay_rate, now)

    def ended(
        self,
        limit: int,
        collection: str | None,
        decay_rate: float = 0.0,
        now: int = 0,
        own: bool = False,
    ) -> list[Episode]:
        """Return the episodes that ended last, newest first.

        Parameters
        ----------
        collection: None means any.
        own: only those that were opened in this store, not those of another one.
        """
        with self._database.read() as connection:
            names = connection.execute(
                "SELECT s.session_id FROM sessions AS s JOIN collections AS c "
                "ON c.id = s.collection_id WHERE s.ended > 0 AND (?1 IS NULL OR c.name = ?1) "
                "AND (s.owner NOT NULL OR NOT ?2) ORDER BY s.closed_at DESC, s.id DESC LIMIT ?3",
                (collection, own, limit),
            ).fetchall()
            return [read(connection, str(name), decay_rate, now) for (name,) in names]

    def put(self, episode: Episode, memories: Sequence[tuple[NewMemory, str]], now: int) -> int:
        """Store an episode of another store, if it is not known, and its memories by uuid.

        Parameters
        ----------
        memories: each with the uuid of the one that replaced it, "" if none did.

        Returns
        -------
        How many of the memories were stored or changed.
        """

        def action(connection: Connection) -> int:
            imports.put_episode(connection, episode, now)
            return sum([imports.put_memory(connection, *memory) for memory in memories])

        return self._write(action)


def _is_open(connection: Connection, session_id: str) -> bool:
    return (
        connection.execute(
            "SELECT 1 FROM sessions WHERE session_id = ? AND opened AND ended = 0", (session_id,)
        ).get
        is not None
    )


def _state(connection: Connection, session_id: str) -> tuple[Any, ...]:
    """Return what changes whenever an episode, one of its memories or its trajectory does."""
    session: Any = connection.execute(
        "SELECT id, ended FROM sessions WHERE session_id = ?", (session_id,)
    ).get
    number = session[0] if session else None
    memories = connection.execute(
        "SELECT group_concat(concat_ws(' ', id, updated_at, superseded_by)) FROM "
        "(SELECT id, updated_at, superseded_by FROM memories WHERE session_id = ? "
        "ORDER BY stamp, id)",
        (number,),
    ).get
    poses: Any = connection.execute(
        "SELECT count(*), max(seq) FROM trajectory WHERE session_id = ?", (number,)
    ).get
    return session, memories, poses


def read(
    connection: apsw.Connection,
    session_id: str,
    decay_rate: float = 0.0,
    now: int = 0,
    *,
    with_memories: bool = True,
) -> Episode:
    """Return an episode, open or ended, with effective confidences.

    Raises
    ------
    NotFoundError: there is no such episode.
    """
    row: Any = connection.execute(
        f"SELECT {_COLUMNS} WHERE s.session_id = ? AND s.opened", (session_id,)
    ).get
    if row is None:
        raise NotFoundError(
            f"session_id: there is no episode {session_id!r}; ~/start_session opens one"
        )
    number, name, collection, context, start, end, outcome, summary, interrupted = row
    parsed = rows.context(context)
    return Episode(
        session_id=name,
        collection=collection,
        context=parsed,
        context_json=context if rows.DAMAGED not in parsed else ctx.write(parsed),
        start=start,
        end=end,
        outcome=outcome,
        summary=summary,
        interrupted=bool(interrupted),
        memories=_memories(connection, number, decay_rate, now) if with_memories else (),
        trajectory=_trajectory(connection, number),
    )


def _memories(
    connection: apsw.Connection, number: int, decay_rate: float, now: int
) -> tuple[Memory, ...]:
    """Return the memories of an episode in the order they happened, its `episode` memory last."""
    found = connection.execute(
        f"SELECT {rows.COLUMNS} FROM memories AS m {rows.JOINS} WHERE m.session_id = ? "
        "ORDER BY m.type = 'episode', m.stamp, m.id",
        (number,),
    )
    return tuple(rows.memory(row, decay_rate, now) for row in found)


def _trajectory(connection: apsw.Connection, number: int) -> tuple[Pose, ...]:
    found: Any = connection.execute(
        "SELECT frame_id, x, y, z, qx, qy, qz, qw, stamp FROM trajectory WHERE session_id = ? "
        "ORDER BY seq",
        (number,),
    )
    return tuple(Pose(row[0], row[1:4], row[4:8], row[8]) for row in found)
