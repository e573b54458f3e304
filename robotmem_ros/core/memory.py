# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""RobotMemory: the public face of the core."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from robotmem_ros.core import checks, incoming, search
from robotmem_ros.core.config import Config, settings_of
from robotmem_ros.core.embedding.factory import make_embedder
from robotmem_ros.core.embedding.protocol import BATCH_SIZE
from robotmem_ros.core.embedding.worker import EmbeddingWorker
from robotmem_ros.core.episodes import Episodes
from robotmem_ros.core.errors import (
    ConfigError,
    InvalidRequestError,
    RobotMemoryError,
    StoreError,
)
from robotmem_ros.core.model import (
    EVERY_COLLECTION,
    REPLAY,
    Context,
    EndedSession,
    Episode,
    Experience,
    Learned,
    LearnStatus,
    Memory,
    MemoryType,
    Pose,
    Query,
    Queue,
    Recalled,
    RecallResult,
    StartedSession,
    Status,
)
from robotmem_ros.core.reminders import Reminders
from robotmem_ros.core.store import Store
from robotmem_ros.core.task import BackgroundTask, Progress
from robotmem_ros.core.touches import Touches

MAX_RELATED = 5
"""Memories of other episodes that the end of one brings back, at most."""

_LOG = logging.getLogger(__name__)


class RobotMemory:
    """A persistent experience memory in one SQLite file.

    All methods may be called from any thread, inside or outside an event loop. A learn that has
    returned is on disk. Vectors are made in the background.

    Parameters
    ----------
    config: the settings.
    now: the clock of stamps, ROS time in nanoseconds; 0 means that there is no time yet.
    owner: who opens episodes, for example the full name of the node. Episodes that this owner left
        open (a crash) are closed as interrupted; programs that share a file need names of their
        own.

    Raises
    ------
    ConfigError: a setting cannot work on this machine.
    StoreError: the file is damaged, not ours, or too new.
    """

    def __init__(
        self, config: Config, *, now: Callable[[], int] = time.time_ns, owner: str = ""
    ) -> None:
        self._config = config
        self._now = now
        embedder = make_embedder(config)
        self._store = Store(config.db_path, config.durability)
        self._touches = Touches(self._store)
        self._task = BackgroundTask()
        self._closed = threading.Event()
        self._damage = ""
        self._store.warm()
        self._store.was_mended = self._store.unindexed() > 0
        self._mend()
        self._worker: EmbeddingWorker | None = None
        if embedder is not None:
            self._worker = EmbeddingWorker(self._store, embedder, config.embed_timeout)
        self._look()
        self._episodes = Episodes(self._store, owner, now, lambda: self._config)
        self._reminders: weakref.WeakSet[Reminders] = weakref.WeakSet()

    def learn(self, experience: Experience) -> Learned:
        """Store an experience; it is on disk when this returns.

        Without a session_id it belongs to the open episode, and is in its collection unless it
        names another.

        Raises
        ------
        InvalidRequestError: a field has a value that cannot be used.
        StoreError: it could not be stored.
        """
        checks.instance("experience", Experience, experience)
        if checks.text("session_id", experience.session_id).strip():
            return self._learn(experience)
        with self._episodes.current() as opened:
            if opened is not None:
                session_id, collection = opened
                experience = dataclasses.replace(
                    experience,
                    session_id=session_id,
                    collection=checks.text("collection", experience.collection).strip()
                    or collection,
                )
            return self._learn(experience)

    def recall(self, query: Query) -> RecallResult:
        """Return the memories that match a query, best first.

        Raises
        ------
        InvalidRequestError: a field has a value that cannot be used.
        SearchError: neither keywords nor vectors can be searched.
        StoreError: the database cannot be read.
        """
        return self._recall(query)

    def get(
        self, *, ids: Sequence[int] = (), uuids: Sequence[str] = ()
    ) -> tuple[list[Memory], list[int | str]]:
        """Return memories by number or by uuid in the order asked for, and what is not stored.

        Raises
        ------
        InvalidRequestError: both or neither were given, more than max_get, or what is no number
            and no text.
        """
        ids, uuids = checks.several("memory_ids", ids), checks.several("uuids", uuids)
        if bool(ids) == bool(uuids):
            raise InvalidRequestError("memory_ids", "give either memory_ids or uuids")
        if len(ids) + len(uuids) > self._config.max_get:
            name = "memory_ids" if ids else "uuids"
            raise InvalidRequestError(name, f"has more than {self._config.max_get} entries")
        ids = [checks.integer("memory_ids", number) for number in ids]
        uuids = [checks.text("uuids", name) for name in uuids]
        with self._store.snapshot() as snapshot:
            numbers: dict[int | str, int] = {number: number for number in ids}
            numbers.update(snapshot.ids_of(uuids).items())
            memories = snapshot.memories(
                list(numbers.values()), self._config.decay_rate, time.time_ns()
            )
        found, missing = [], []
        asked: Sequence[int | str] = ids or uuids
        for key in dict.fromkeys(asked):
            memory = memories.get(numbers.get(key, 0))
            if memory is None:
                missing.append(key)
            else:
                found.append(memory)
        self._touches.add([memory.id for memory in found], returned=False)
        return found, missing

    def forget(self, memory_id: int, reason: str = "") -> None:
        """Remove a memory from the store and from every search.

        Raises
        ------
        NotFoundError: there is no such memory.
        """
        memory_id = checks.integer("memory_id", memory_id)
        self._store.forget(memory_id, checks.clean("reason", reason, 10_000), time.time_ns())
        self._mend()

    def update(
        self, memory_id: int, content: str = "", context: str | Context = ""
    ) -> tuple[str, Memory]:
        """Change the text or the context of a memory; empty keeps what is there.

        Returns
        -------
        The text before, and the memory as it is now.

        Raises
        ------
        InvalidRequestError: nothing to change, or a value that cannot be used.
        NotFoundError: there is no such memory.
        """
        memory_id = checks.integer("memory_id", memory_id)
        text = (
            checks.clean("new_content", content, self._config.max_content_bytes) if content else ""
        )
        if content and not text:
            raise InvalidRequestError("new_content", "holds only white space")
        data = incoming.context(context, self._config) if context else None
        if not text and data is None:
            raise InvalidRequestError(
                "new_content", "is empty, and context too: nothing to change"
            )
        old = self._store.update(memory_id, text or None, data, time.time_ns())
        self._mend()
        if self._worker is not None:
            self._worker.wake(memory_id)
        return old, self._memory(memory_id)

    @property
    def recovered(self) -> tuple[Episode, ...]:
        """Episodes that were found open at the start, and were closed as interrupted."""
        return self._episodes.recovered

    @property
    def open_session(self) -> str:
        """The episode that is open, "" if there is none."""
        return self._episodes.session_id

    def start_session(self, context: str | Context = "", collection: str = "") -> StartedSession:
        """Open an episode; one that this owner has open is closed as interrupted.

        Raises
        ------
        InvalidRequestError: a field has a value that cannot be used, or there is no time yet.
        StoreError: it could not be stored.
        """
        data = incoming.context(context, self._config)
        started = self._episodes.start(data, incoming.collection(collection, self._config))
        for episode in started.interrupted:
            self._has_ended(episode)
        return started

    def add_trajectory(self, poses: Sequence[Pose]) -> None:
        """Add poses to the open episode, the oldest first; they are on disk within a second.

        Without an open episode they are dropped.

        Raises
        ------
        InvalidRequestError: one of them has no frame or is not finite; none was added.
        """
        self._episodes.add_poses([incoming.pose(pose) for pose in checks.several("poses", poses)])

    def end_session(
        self, session_id: str = "", outcome: float | None = None, summary: str = ""
    ) -> EndedSession:
        """End an episode: store its outcome and its `episode` memory, and merge what is the same.

        Parameters
        ----------
        session_id: empty means the open one.
        outcome: how well it went, from 0 to 1.
        summary: empty makes one from what was learned, for the `episode` memory.

        Raises
        ------
        InvalidRequestError: a value that cannot be used, no episode is open, or it has ended.
        NotFoundError: there is no such episode.
        StoreError: it could not be stored; the episode is still open.
        """
        session_id = checks.clean("session_id", session_id)
        if outcome is not None:
            outcome = checks.share("outcome_score", outcome)
        summary = checks.clean("summary", summary, self._config.max_content_bytes)
        episode = self._episodes.end(session_id, outcome, summary)
        self._has_ended(episode)
        learned = [m for m in episode.memories if m.type is not MemoryType.EPISODE]
        return EndedSession(
            episode=episode,
            related=self._related(episode, episode.memories[-1].content),
            decayed_count=sum(m.confidence < m.stored_confidence for m in learned),
            consolidated_count=sum(bool(m.superseded_by) for m in learned),
        )

    def interrupt_session(self, reason: str) -> Episode | None:
        """Close the open episode as interrupted, because the clock jumped or the robot stops.

        Returns
        -------
        The episode as it was closed, None if none was open.

        Raises
        ------
        StoreError: it could not be stored; the episode is still open.
        """
        episode = self._episodes.interrupt(checks.clean("reason", reason, 10_000))
        if episode is not None:
            self._has_ended(episode)
        return episode

    def episode(self, session_id: str) -> Episode:
        """Return an episode, open or ended.

        Raises
        ------
        NotFoundError: there is no such episode.
        """
        session_id = checks.clean("session_id", session_id)
        return self._store.sessions.episode(session_id, self._config.decay_rate, time.time_ns())

    def episodes(
        self, limit: int = 20, collection: str = "", *, own: bool = False
    ) -> list[Episode]:
        """Return the episodes that ended last, newest first.

        Parameters
        ----------
        collection: empty means the configured one, EVERY_COLLECTION all of them.
        own: only those that were opened in this store, not those that were imported.
        """
        name = checks.clean("collection", collection) or self._config.collection
        return self._store.sessions.ended(
            checks.limit("limit", limit),
            None if name == EVERY_COLLECTION else name,
            self._config.decay_rate,
            time.time_ns(),
            own,
        )

    @property
    def queues(self) -> dict[str, Queue]:
        """How what waits to be written does: reads to be recorded, poses of the open episode."""
        return {"reads": self._touches.queue, "trajectory": self._episodes.queue}

    @property
    def change(self) -> int:
        """A number that is another one whenever a memory was stored, changed or forgotten.

        Raises
        ------
        StoreError: the database cannot be read.
        """
        with self._store.snapshot() as snapshot:
            return snapshot.changed_since(-1)[0]

    def places(self, limit: int) -> list[Memory]:
        """Return the newest memories of all collections that have a pose, newest first.

        It does not count as recalling them.

        Raises
        ------
        StoreError: the database cannot be read.
        """
        with self._store.snapshot() as snapshot:
            ids = snapshot.placed(checks.limit("limit", limit), self._now())
            memories = snapshot.memories(ids, self._config.decay_rate, time.time_ns())
        return [memories[number] for number in ids if number in memories]

    def import_memory(self, memory: Memory) -> bool:
        """Store a memory of another store by its uuid; return whether that changed anything.

        All its fields are kept but its number. What was forgotten here stays forgotten; of two
        versions the one updated later counts.

        Raises
        ------
        InvalidRequestError: a field has a value that cannot be used.
        StoreError: it could not be stored.
        """
        return self.import_memories([memory]) > 0

    def import_memories(self, memories: Sequence[Memory]) -> int:
        """Store memories as by import_memory, all or none; return how many that changed.

        Raises
        ------
        InvalidRequestError: a field of one of them has a value that cannot be used.
        StoreError: they could not be stored.
        """
        changed = self._store.put_many([incoming.memory(one, self._config) for one in memories])
        if changed and self._worker is not None:
            self._worker.wake()
        return changed

    def import_episode(self, episode: Episode) -> int:
        """Store an episode of another store with its memories; return how many of these changed.

        An episode that is known stays as it is; its memories are stored as by import_memory.

        Raises
        ------
        InvalidRequestError: a field has a value that cannot be used; nothing was stored.
        StoreError: it could not be stored.
        """
        incoming.check_episode(episode, self._config)
        memories = [
            incoming.memory(memory, self._config)
            for memory in checks.several("memories", episode.memories)
        ]
        changed = self._store.sessions.put(episode, memories, time.time_ns())
        if changed and self._worker is not None:
            self._worker.wake()
        return changed

    def restore(self, memory_id: int) -> Memory:
        """Undo that a memory was merged into another; return it as it is now.

        Raises
        ------
        NotFoundError: there is no such memory.
        """
        memory_id = checks.integer("memory_id", memory_id)
        self._store.restore(memory_id)
        return self._memory(memory_id)

    def reminders(
        self, radius: float, context_filter: str | Context = "", **options: Any
    ) -> Reminders:
        """Return what tells, pose by pose, which memories the robot has come near.

        Parameters
        ----------
        options: as those of Reminders.

        Raises
        ------
        ConfigError: a value is not allowed.
        """
        made = Reminders(self._store, lambda: self._config, radius, context_filter, **options)
        self._reminders.add(made)
        return made

    def backfill(self) -> str:
        """Try the embedding backend again now, and embed what waits; return one sentence."""
        if self._worker is None:
            return "embed_backend is none: there are no vectors to make"
        self._worker.retry()
        with self._store.snapshot() as snapshot:
            waiting = snapshot.counts().pending_embeddings
        return f"{waiting} memories wait for their vector; progress is on ~/status"

    def reindex(self) -> str:
        """Start making all indexes anew from the memories; return one sentence."""
        return self._task.start("reindex", self._reindex)

    def backup(self) -> str:
        """Start copying the database to backup_directory; return one sentence.

        Learning goes on meanwhile. The copy is checked before it gets its name.
        """
        return self._task.start("backup", self._backup)

    def reconfigure(self, **settings: Any) -> None:
        """Change settings that are not read-only.

        Raises
        ------
        ConfigError: a setting is read-only, unknown, or has a value that is not allowed.
        """
        changeable = {item.name for item in settings_of(Config) if not item.read_only}
        for name in settings:
            if name not in changeable:
                raise ConfigError(f"parameter {name}: it can only be set before the start")
        self._config = dataclasses.replace(self._config, **settings)

    def status(self) -> Status:
        """Return the state of the store and of its engines.

        Raises
        ------
        StoreError: the database cannot be read.
        """
        with self._store.snapshot() as snapshot:
            counts = snapshot.counts()
            keyword_problem = snapshot.keyword_problem()
            vector_problem = snapshot.vector_problem()
        embedder = self._worker.embedder if self._worker else None
        pending = counts.pending_embeddings if embedder else 0
        task, done, total = self._task.name, self._task.done, self._task.total
        progress = self._worker.progress if self._worker else None
        if not task and progress and progress[1] > BATCH_SIZE:
            task, (done, total) = "backfill", progress
        return Status(
            db_path=self._store.path,
            db_bytes=self._store.size,
            schema_version=self._store.schema_version,
            backend=self._config.embed_backend,
            model=embedder.model if embedder else "",
            dimension=embedder.dim if embedder else 0,
            embedder_available=bool(self._worker and self._worker.available),
            embedder_reason=self._worker.unavailable_reason
            if self._worker
            else "embed_backend is none: search is by keywords alone",
            keyword_reason=keyword_problem,
            vector_reason=vector_problem,
            memories=counts.memories,
            superseded=counts.superseded,
            episodes=counts.episodes,
            collections=counts.collections,
            pending_embeddings=pending,
            task=task,
            task_done=done,
            task_total=total,
            task_result=self._task.result,
            last_error=(self._worker.last_error if self._worker else "")
            or self._touches.last_error
            or self._episodes.last_error
            or self._damage,
        )

    def close(self) -> None:
        """Finish what must not be lost, and close the file. Idempotent."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._worker is not None:
            self._worker.close()
        self._task.close()
        self._episodes.close()
        self._store.stop_reading()  # what is answered now was counted before it
        self._touches.close()
        self._store.close()

    def __enter__(self) -> RobotMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _learn(self, experience: Experience) -> Learned:
        new = incoming.experience(experience, self._config, self._now())
        memory_id, created = self._store.add(new)
        self._mend()
        if self._worker is not None:
            self._worker.wake()
        memory = self._memory(memory_id)
        self._tell_reminders(memory)
        return Learned(memory, LearnStatus.CREATED if created else LearnStatus.DUPLICATE)

    def _tell_reminders(self, memory: Memory) -> None:
        for reminders in list(self._reminders):
            reminders.made_here(memory)

    def _recall(self, query: Query, other_than_session: str | None = None) -> RecallResult:
        start = time.perf_counter()
        config = self._config
        wall_time = time.time_ns()
        request = search.check(query, config, self._now(), wall_time)
        if other_than_session is not None:
            conditions = dataclasses.replace(
                request.conditions, other_than_session=other_than_session
            )
            request = dataclasses.replace(request, conditions=conditions)
        made = None
        if self._worker is not None and not request.is_replay:
            made = self._worker.query_vector(request.text, config.embed_timeout)
        with self._store.snapshot() as snapshot:
            # Vectors of another model are not compared with.
            vector = made.vector if made and made.identity == snapshot.model() else None
            if request.is_replay:
                ranking = search.replay(snapshot, request)
            else:
                ranking = search.rank(snapshot, request, vector, config)
                if vector is not None and made and made.identity != snapshot.model():
                    ranking = search.rank(snapshot, request, None, config)
            memories = snapshot.memories(ranking.ids, config.decay_rate, wall_time)
            note = search.note(snapshot, request, len(ranking.ids))
            self._touches.add(ranking.ids, returned=True)
        recalled = []
        for memory_id, score in zip(ranking.ids, ranking.scores, strict=True):
            if memory_id not in memories:
                continue  # an index knows it, but a worn disk has lost its text
            distance = ranking.distances.get(memory_id, math.nan)
            details = ranking.details.get(memory_id, {})
            if details:
                details["confidence"] = memories[memory_id].confidence
                details["distance"] = distance if math.isfinite(distance) else None
            recalled.append(Recalled(memories[memory_id], score, distance, details))
        milliseconds = (time.perf_counter() - start) * 1e3
        return RecallResult(tuple(recalled), ranking.mode, milliseconds, note)

    def _has_ended(self, episode: Episode) -> None:
        if self._worker is not None:
            self._worker.wake()
        self._tell_reminders(episode.memories[-1])

    def _related(self, episode: Episode, text: str) -> tuple[Recalled, ...]:
        """Return what resembles an episode; none if that fails, for the episode has ended."""
        if text == REPLAY:
            return ()
        query = Query(text, n=MAX_RELATED, collection=episode.collection)
        try:
            return self._recall(query, other_than_session=episode.session_id).memories
        except RobotMemoryError as error:
            _LOG.warning("no related memories of %s: %s", episode.session_id, error)
            return ()

    def _memory(self, memory_id: int) -> Memory:
        with self._store.snapshot() as snapshot:
            found = snapshot.memories([memory_id], self._config.decay_rate, time.time_ns())
        if memory_id not in found:
            raise StoreError(
                f"memory {memory_id} cannot be read, {self._store.path} is damaged; run: "
                f"robotmem check {self._store.path}"
            )
        return found[memory_id]

    def _reindex(self, progress: Progress) -> str:
        total = self._store.reindex(progress)
        if self._worker is not None:
            self._worker.retry()  # it finds memories whose vectors were lost
        return f"reindexed {total} memories"

    def _backup(self, progress: Progress) -> str:
        config = self._config
        made = self._store.backup(config.backup_directory, config.backup_keep, progress)
        return (
            f"backup of {made.memories} memories: {made.path} ({made.size / 1e6:.1f} MB, checked)"
        )

    def _index_waiting(self, progress: Progress) -> str:
        return f"reindexed {self._store.index_waiting(progress)} memories"

    def _look(self) -> None:
        """Tell what is wrong with the file, and have indexes that disagree with it made anew."""
        damage, disagreement = self._store.glance()
        path = self._store.path
        if damage:
            self._damage = f"{path}: {damage}; run: robotmem check {path}"
            _LOG.error("%s", self._damage)
        elif disagreement:
            _LOG.warning("%s of %s; the indexes are made anew", disagreement, path)
            with contextlib.suppress(InvalidRequestError):  # an earlier one is being finished
                self._task.start("reindex", self._reindex)

    def _mend(self) -> None:
        """Index in the background what a broken index or an interrupted reindex has left."""
        if self._store.was_mended:
            with contextlib.suppress(InvalidRequestError):  # the task under way comes first
                self._task.start("reindex", self._index_waiting)
                self._store.was_mended = False
