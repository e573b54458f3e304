# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""RobotMemory: the public face of the core."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from robotmem_ros.core import context as ctx
from robotmem_ros.core import search
from robotmem_ros.core.config import Config, settings_of
from robotmem_ros.core.embedding.factory import make_embedder
from robotmem_ros.core.embedding.protocol import BATCH_SIZE
from robotmem_ros.core.embedding.worker import EmbeddingWorker
from robotmem_ros.core.errors import (
    ConfigError,
    InvalidRequestError,
    RobotMemoryError,
)
from robotmem_ros.core.model import (
    EVERY_COLLECTION,
    Context,
    Experience,
    Learned,
    LearnStatus,
    Memory,
    MemoryType,
    Pose,
    Query,
    Recalled,
    RecallResult,
    Status,
)
from robotmem_ros.core.store import NewMemory, Store
from robotmem_ros.core.touches import Touches

MAX_GET = 1000
_MAX_NAME = 256
_MAX_TIME = 2**63 - 1


class RobotMemory:
    """A persistent experience memory in one SQLite file.

    All methods may be called from any thread, inside or outside an event loop. A learn that has
    returned is on disk. Vectors are made in the background.

    Parameters
    ----------
    config: the settings.
    now: the clock of stamps, ROS time in nanoseconds; 0 means that there is no time yet.

    Raises
    ------
    ConfigError: a setting cannot work on this machine.
    StoreError: the file is damaged, not ours, or too new.
    """

    def __init__(self, config: Config, *, now: Callable[[], int] = time.time_ns) -> None:
        self._config = config
        self._now = now
        embedder = make_embedder(config)
        self._store = Store(config.db_path)
        self._touches = Touches(self._store)
        self._task = _Task()
        self._closed = threading.Event()
        self._worker: EmbeddingWorker | None = None
        if embedder is not None:
            self._worker = EmbeddingWorker(self._store, embedder, config.embed_timeout)

    def learn(self, experience: Experience) -> Learned:
        """Store an experience; it is on disk when this returns.

        Raises
        ------
        InvalidRequestError: a field has a value that cannot be used.
        StoreError: it could not be stored.
        """
        new = self._checked(experience)
        memory_id, created = self._store.add(new)
        if self._worker is not None:
            self._worker.wake()
        memory = self._memories([memory_id])[memory_id]
        return Learned(memory, LearnStatus.CREATED if created else LearnStatus.DUPLICATE)

    def recall(self, query: Query) -> RecallResult:
        """Return the memories that match a query, best first.

        Raises
        ------
        InvalidRequestError: a field has a value that cannot be used.
        SearchError: neither keywords nor vectors can be searched.
        StoreError: the database cannot be read.
        """
        start = time.perf_counter()
        config = self._config
        wall_time = time.time_ns()
        request = search.check(query, config, self._now(), wall_time)
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
            memories = snapshot.memories(ranking.ids, config.decay_rate, wall_time)
        recalled = []
        for memory_id, score in zip(ranking.ids, ranking.scores, strict=True):
            distance = ranking.distances.get(memory_id, math.nan)
            details = ranking.details.get(memory_id, {})
            if details:
                details["confidence"] = memories[memory_id].confidence
                details["distance"] = None if math.isnan(distance) else distance
            recalled.append(Recalled(memories[memory_id], score, distance, details))
        self._touches.add(ranking.ids, returned=True)
        milliseconds = (time.perf_counter() - start) * 1e3
        return RecallResult(tuple(recalled), ranking.mode, milliseconds)

    def get(
        self, *, ids: Sequence[int] = (), uuids: Sequence[str] = ()
    ) -> tuple[list[Memory], list[int | str]]:
        """Return memories by number or by uuid in the order asked for, and what is not stored.

        Raises
        ------
        InvalidRequestError: both or neither were given, or more than MAX_GET.
        """
        if bool(ids) == bool(uuids):
            raise InvalidRequestError("memory_ids", "give either memory_ids or uuids")
        if len(ids) + len(uuids) > MAX_GET:
            name = "memory_ids" if ids else "uuids"
            raise InvalidRequestError(name, f"has more than {MAX_GET} entries")
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
        self._store.forget(memory_id, _clean("reason", reason, 10_000), time.time_ns())

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
        text = _clean("new_content", content, self._config.max_content_bytes) if content else ""
        if content and not text:
            raise InvalidRequestError("new_content", "holds only white space")
        data = self._read_context(context) if context else None
        if not text and data is None:
            raise InvalidRequestError(
                "new_content", "is empty, and context too: nothing to change"
            )
        old = self._store.update(memory_id, text or None, data, time.time_ns())
        if self._worker is not None:
            self._worker.wake(memory_id)
        memories = self._memories([memory_id])
        return old, memories[memory_id]

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
        embedded = self._worker.embedded if self._worker else None
        if not task and embedded is not None and embedded + pending > BATCH_SIZE:
            task, done, total = "backfill", embedded, embedded + pending
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
            or self._touches.last_error,
        )

    def close(self) -> None:
        """Finish what must not be lost, and close the file. Idempotent."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._worker is not None:
            self._worker.close()
        self._touches.close()
        self._store.close()

    def __enter__(self) -> RobotMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _memories(self, ids: Sequence[int]) -> dict[int, Memory]:
        with self._store.snapshot() as snapshot:
            return snapshot.memories(ids, self._config.decay_rate, time.time_ns())

    def _reindex(self, progress: Callable[[int, int], None]) -> str:
        total = self._store.reindex(progress)
        if self._worker is not None:
            self._worker.retry()
        return f"reindexed {total} memories"

    def _read_context(self, context: str | Mapping[str, Any]) -> dict[str, Any]:
        limits = (self._config.max_context_bytes, self._config.max_context_depth)
        return ctx.read_object("context", context, *limits)

    def _checked(self, experience: Experience) -> NewMemory:
        """Return an experience with its defaults filled in, or say which field is wrong."""
        field = "description" if experience.type is MemoryType.PERCEPTION else "insight"
        content = _clean(field, experience.content, self._config.max_content_bytes)
        if not content:
            raise InvalidRequestError(field, "is empty; write what was learned")
        if not 0.0 <= experience.confidence <= 1.0:
            raise InvalidRequestError(
                "confidence", f"{experience.confidence} is not allowed; it must be from 0 to 1"
            )
        if experience.type is MemoryType.PERCEPTION and experience.perception_type is None:
            raise InvalidRequestError("perception_type", "is missing")
        collection = _clean("collection", experience.collection, _MAX_NAME)
        collection = collection or self._config.collection
        if collection == EVERY_COLLECTION:
            raise InvalidRequestError(
                "collection", f"{EVERY_COLLECTION!r} means all of them; name one"
            )
        stamp = experience.stamp or self._now()
        if not 0 < stamp <= _MAX_TIME:
            raise InvalidRequestError(
                "stamp",
                "there is no ROS time yet (no /clock came); give a stamp, or wait"
                if not stamp
                else f"{stamp} ns is no time",
            )
        if not 0 <= experience.expires <= _MAX_TIME:
            raise InvalidRequestError("expires", f"{experience.expires} ns is no time")
        if experience.pose is not None:
            _check_pose(experience.pose)
        return NewMemory(
            uuid=experience.uuid,
            type=experience.type,
            perception_type=experience.perception_type,
            content=content,
            context=self._read_context(experience.context),
            collection=collection,
            session_id=_clean("session_id", experience.session_id, _MAX_NAME),
            confidence=float(experience.confidence),
            stamp=stamp,
            pose=experience.pose,
            expires=experience.expires,
            now=time.time_ns(),
        )


class _Task:
    """At most one long task in the background, with its progress."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.name = ""
        self.done = 0
        self.total = 0
        self.result = ""

    def start(self, name: str, work: Callable[[Callable[[int, int], None]], str]) -> str:
        """Start a task, unless one is under way; return one sentence.

        Raises
        ------
        InvalidRequestError: another task is under way.
        """
        with self._lock:
            if self.name:
                raise InvalidRequestError(name, f"a {self.name} is under way; wait for its end")
            self.name, self.done, self.total = name, 0, 0
        threading.Thread(
            target=self._run, args=(name, work), name=f"robotmem-{name}", daemon=True
        ).start()
        return f"{name} started; progress is on ~/status"

    def _run(self, name: str, work: Callable[[Callable[[int, int], None]], str]) -> None:
        try:
            self.result = work(self._progress)
        except RobotMemoryError as error:
            self.result = f"{name} failed: {error}"
        finally:
            self.name = ""

    def _progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total


def _clean(field: str, text: str, max_bytes: int) -> str:
    """Return text without white space around it, or say why it cannot be stored."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidRequestError(field, "holds half of a surrogate pair; send UTF-8") from None
    if size > max_bytes:
        raise InvalidRequestError(field, f"has {size} bytes; at most {max_bytes} are allowed")
    if "\x00" in text:
        raise InvalidRequestError(field, "holds a NUL character; remove it")
    return text.strip()


def _check_pose(pose: Pose) -> None:
    if not _clean("pose", pose.frame_id, _MAX_NAME):
        raise InvalidRequestError("pose", 'header.frame_id is empty; name a frame like "map"')
    if not all(map(math.isfinite, (*pose.position, *pose.orientation))):
        raise InvalidRequestError("pose", "has a coordinate that is not finite")
