# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Episodes: open one, follow the robot in it, end it, and close those that a crash left open.

At any time an owner has at most one open. Ending is one transaction: the outcome, the `episode`
memory and what was merged are all on disk, or the episode is still open.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence

from robotmem_ros.core import consolidation
from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import InvalidRequestError, RobotMemoryError
from robotmem_ros.core.model import (
    Context,
    Episode,
    Json,
    MemoryType,
    Pose,
    Queue,
    StartedSession,
)
from robotmem_ros.core.store import Ending, NewMemory, Store
from robotmem_ros.core.summary import Facts, summarise
from robotmem_ros.core.trajectory import Trajectory, path_length

SUCCESS = 0.5
"""Least outcome that counts as success in the context of the `episode` memory."""

_LOG = logging.getLogger(__name__)


class Episodes:
    """The episodes of one owner; safe to use from any number of threads.

    Parameters
    ----------
    owner: who opens them; episodes of this owner that are open already are closed as interrupted,
        and are `recovered`.
    now: the clock of stamps, as of RobotMemory.
    config: returns the settings of the moment.
    """

    def __init__(
        self, store: Store, owner: str, now: Callable[[], int], config: Callable[[], Config]
    ) -> None:
        self._store = store
        self._owner = owner
        self._now = now
        self._config = config
        self._lock = threading.Lock()  # held while the open episode may change or is learned in
        self._open: tuple[str, str] | None = None  # session_id and collection
        self._trajectory: Trajectory | None = None
        self.recovered: tuple[Episode, ...] = ()
        try:
            self.recovered = self._close_left_open("the program was stopped")
        except RobotMemoryError as error:
            # What is stored must be served all the same; the next start tries again.
            _LOG.warning("an episode that was left open stays open: %s", error)

    @property
    def session_id(self) -> str:
        """The open episode, "" if there is none."""
        opened = self._open
        return opened[0] if opened else ""

    @property
    def last_error(self) -> str:
        """Why poses could not be written; "" if they could."""
        trajectory = self._trajectory
        return trajectory.last_error if trajectory else ""

    @property
    def queue(self) -> Queue:
        """How many poses of the open episode wait to be written, and how many were lost."""
        trajectory = self._trajectory
        return trajectory.queue if trajectory else Queue(0)

    @contextlib.contextmanager
    def current(self) -> Iterator[tuple[str, str] | None]:
        """Lend the open episode and its collection, if there is one; it stays open meanwhile."""
        if self._open is None:
            yield None
            return
        with self._lock:
            if self._open is not None and not self._store.sessions.is_open(self._open[0]):
                self._let_go()  # somebody else has ended it
            yield self._open

    def start(self, context: Context, collection: str) -> StartedSession:
        """Open an episode, and close one that is open as interrupted.

        Raises
        ------
        InvalidRequestError: there is no time yet.
        StoreError: it could not be stored.
        """
        start = self._now()
        if start <= 0:
            raise InvalidRequestError(
                "stamp", "there is no ROS time yet (no /clock came); wait, then start"
            )
        with self._lock:
            interrupted = self._close_left_open("the next episode was started")
            session_id = str(uuid.uuid4())
            self._store.sessions.open(
                session_id, self._owner, collection, context, start, time.time_ns()
            )
            self._open = (session_id, collection)
            self._trajectory = Trajectory(self._store, session_id)
        return StartedSession(self._store.sessions.episode(session_id), interrupted)

    def add_poses(self, poses: Sequence[Pose]) -> None:
        """Add poses to the trajectory of the open episode; without one they are dropped."""
        trajectory = self._trajectory
        if trajectory is not None:
            trajectory.add(poses)

    def end(self, session_id: str, outcome: float | None, summary: str) -> Episode:
        """End an episode; an empty session_id means the open one.

        Raises
        ------
        InvalidRequestError: no episode is open, or the named one has ended.
        NotFoundError: there is no such episode.
        StoreError: it could not be stored; the episode is still open.
        """
        with self._lock:
            session_id = session_id or self.session_id
            if not session_id:
                raise InvalidRequestError(
                    "session_id", "is empty, and no episode is open; call ~/start_session first"
                )
            return self._end(session_id, outcome, summary)

    def interrupt(self, reason: str) -> Episode | None:
        """Close the open episode as interrupted, if there is one.

        Raises
        ------
        StoreError: it could not be stored; the episode is still open.
        """
        with self._lock:
            if self._open is None:
                return None
            try:
                return self._end(self._open[0], None, "", interrupted=True, reason=reason)
            except InvalidRequestError:
                self._let_go()  # somebody else has ended it
                return None

    def close(self) -> None:
        """Write the poses that wait; an open episode stays open on disk. Idempotent."""
        with self._lock:
            self._let_go()

    def _close_left_open(self, reason: str) -> tuple[Episode, ...]:
        closed = []
        for session_id in self._store.sessions.open_of(self._owner):
            with contextlib.suppress(InvalidRequestError):  # somebody else was faster
                closed.append(self._end(session_id, None, "", interrupted=True, reason=reason))
        self._let_go()
        return tuple(closed)

    def _end(
        self,
        session_id: str,
        outcome: float | None,
        summary: str,
        interrupted: bool = False,
        reason: str = "",
    ) -> Episode:
        if self._trajectory is not None and session_id == self.session_id:
            self._trajectory.flush()
        config = self._config()
        now = 0 if interrupted else self._now()
        wall_time = time.time_ns()

        def decide(episode: Episode) -> Ending:
            end = now if now >= episode.start else last_known(episode)
            return ending(
                episode,
                end,
                outcome,
                summary,
                interrupted,
                reason,
                wall_time,
                config.max_content_bytes,
            )

        ended = self._store.sessions.end(
            session_id, decide, decay_rate=config.decay_rate, now=wall_time
        )
        if session_id == self.session_id:
            self._let_go()
        return ended

    def _let_go(self) -> None:
        trajectory, self._trajectory = self._trajectory, None
        self._open = None
        if trajectory is not None:
            trajectory.close()


def last_known(episode: Episode) -> int:
    """Return the stamp of the last that is known of an episode, in nanoseconds of ROS time.

    An interrupted episode ends with it: no clock tells when it really ended.
    """
    stamps = [memory.stamp for memory in episode.memories]
    stamps += [pose.stamp for pose in episode.trajectory]
    return max([episode.start, *stamps])


def ending(
    episode: Episode,
    end: int,
    outcome: float | None,
    summary: str,
    interrupted: bool,
    reason: str,
    wall_time: int,
    max_bytes: int,
) -> Ending:
    """Return how an open episode ends: with its `episode` memory and what is merged in it.

    Parameters
    ----------
    end: ROS time in nanoseconds.
    max_bytes: longest content of a memory.
    """
    facts = Facts(
        outcome=outcome,
        interrupted=interrupted,
        reason=reason,
        duration=(end - episode.start) / 1e9,
        path_length=path_length(episode.trajectory),
        memories=len(episode.memories),
    )
    merged = consolidation.merges(episode.memories)
    telling = [memory for memory in episode.memories if memory.id not in merged]
    content = summary or summarise(episode.context, telling, facts, max_bytes)
    memory = NewMemory(
        uuid=str(uuid.uuid4()),
        type=MemoryType.EPISODE,
        perception_type=None,
        content=content,
        context=context_at_end(episode.context, facts),
        collection=episode.collection,
        session_id=episode.session_id,
        confidence=0.9,
        stamp=end,
        pose=episode.trajectory[-1] if episode.trajectory else None,
        expires=0,
        now=wall_time,
    )
    return Ending(end, outcome, summary, interrupted, memory, merged)


def context_at_end(context: Context, facts: Facts) -> dict[str, Json]:
    """Return the context of an `episode` memory: that of the episode, and how it went.

    task.outcome and task.success stand where an outcome was given, unless `task` is no object;
    `episode` holds the duration in seconds, the path length in metres and the number of memories.
    """
    found: dict[str, Json] = dict(context)
    task = found.get("task", {})
    if facts.outcome is not None and isinstance(task, dict):
        success = facts.outcome >= SUCCESS
        found["task"] = {**task, "outcome": facts.outcome, "success": success}
    given = found.get("episode")
    episode: dict[str, Json] = {
        **(given if isinstance(given, dict) else {}),
        "duration": round(facts.duration, 3),
        "path_length": round(facts.path_length, 3),
        "memories": facts.memories,
        "interrupted": facts.interrupted,
    }
    if facts.reason:
        episode["reason"] = facts.reason
    found["episode"] = episode
    return found
