# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The background worker that embeds what was learned, and gets the vectors of queries.

Two threads: one runs the event loop of the backend, in which queries and batches go on side by
side; the other reads from the store what waits for its vector, newest first, and writes vectors.
So a query never waits for the disk, nor a batch for the one before it to be written.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import time
from typing import NamedTuple

from robotmem_ros.core.embedding.cache import QueryCache
from robotmem_ros.core.embedding.failures import Failures
from robotmem_ros.core.embedding.protocol import BATCH_SIZE, Embedder, Vector
from robotmem_ros.core.embedding.threads import LoopThread
from robotmem_ros.core.errors import RobotMemoryError
from robotmem_ros.core.store import Store

_LOG = logging.getLogger(__name__)

_IDLE_SECONDS = 5.0  # how soon memories that another process stored get their vectors
_POLL_SECONDS = 0.5  # how often the end of a cooldown is looked for
_CLOSE_SECONDS = 0.7

_Waiting = list[tuple[int, str]]


class QueryVector(NamedTuple):
    """The vector of a query, and what made it."""

    identity: str
    vector: Vector


class EmbeddingWorker:
    """Keeps the store supplied with vectors, and lends its backend to queries.

    Parameters
    ----------
    starting_time: seconds from now in which a query may wait for the backend to come up.
    """

    def __init__(self, store: Store, embedder: Embedder, starting_time: float = 0.0) -> None:
        self._store = store
        self._embedder = embedder
        self._starting_until = time.monotonic() + starting_time
        self._cache = QueryCache()
        self._failures = Failures()
        self._late: set[concurrent.futures.Future[QueryVector]] = set()
        self._closing = False
        self._retry = False
        self._used = ""  # identity that was put into the store
        self._superseded = ""  # why no vectors are made, though the backend works
        self._backlog = self._embedded = 0  # of the filling under way
        self._is_filling = False
        self._last_error = ""
        self._tried = threading.Event()
        self._wake = threading.Event()
        self._loop = LoopThread("robotmem-embed", embedder.close)
        self._thread = threading.Thread(target=self._run, name="robotmem-backfill", daemon=True)
        self._thread.start()

    @property
    def embedder(self) -> Embedder:
        """The backend in use."""
        return self._embedder

    @property
    def available(self) -> bool:
        """Whether vectors can be made, and compared with those in the store."""
        return not self.unavailable_reason

    @property
    def unavailable_reason(self) -> str:
        """Why not, and what to do; "" when available."""
        if not self._embedder.available:
            return self._embedder.unavailable_reason
        if self._used != self._embedder.identity:
            return "the store is being made ready for the embedding model"
        return self._superseded

    @property
    def last_error(self) -> str:
        """What last went wrong with storing vectors; "" if nothing did."""
        return self._last_error

    @property
    def progress(self) -> tuple[int, int] | None:
        """How many got their vector of all that waited when this began; None when idle."""
        if not self._is_filling:
            return None
        return self._embedded, max(self._embedded, self._backlog)

    def wake(self, changed: int = 0) -> None:
        """Say that memories may be waiting for their vectors, one of them with a new text."""
        self._failures.forget(changed)
        self._wake.set()

    def retry(self) -> None:
        """Try again now what failed: the backend, and single memories."""
        self._retry = True
        self._wake.set()

    def query_vector(self, text: str, timeout: float) -> QueryVector | None:
        """Return the vector of a query, or None if it cannot be had within some seconds.

        A request that takes longer goes on, so that a backend that hangs is found out; until it
        has ended, other queries do not wait.
        """
        start = time.monotonic()
        if not self._tried.is_set():
            self._tried.wait(min(timeout, max(0.0, self._starting_until - start)))
        if not self.available or self._late or self._closing:
            return None
        identity = self._embedder.identity
        vector = self._cache.get(identity, text)
        if vector is not None:
            return QueryVector(identity, vector)
        future = self._loop.start(self._embed_query(text))
        try:
            return future.result(max(0.0, timeout - (time.monotonic() - start)))
        except concurrent.futures.TimeoutError:
            self._late.add(future)
            future.add_done_callback(self._late.discard)
        except (RobotMemoryError, concurrent.futures.CancelledError):
            pass  # the answer comes from keywords, and says so by its mode
        except Exception as error:  # no fault of a backend may reach the caller
            self._report(error)
        return None

    def close(self) -> None:
        """End the worker; work under way in the backend is abandoned. Idempotent."""
        if self._closing:
            return
        self._closing = True
        self._wake.set()
        self._tried.set()
        self._loop.stop()
        deadline = time.monotonic() + _CLOSE_SECONDS
        self._thread.join(_CLOSE_SECONDS)
        self._loop.join(max(0.0, deadline - time.monotonic()))

    async def _embed_query(self, text: str) -> QueryVector:
        vector = await self._embedder.embed_one(text)
        made = QueryVector(self._embedder.identity, vector)
        self._cache.put(made.identity, text, vector)
        return made

    # What follows runs in the thread of the backfill.

    def _run(self) -> None:
        while not self._closing:
            self._wake.clear()
            try:
                seconds = self._step()
                self._last_error = ""
            except concurrent.futures.CancelledError:
                return  # close() was called
            except Exception as error:  # the thread must live on
                seconds = _IDLE_SECONDS
                self._report(error)
            finally:
                self._is_filling = False
            self._wake.wait(seconds)

    def _step(self) -> float:
        """Do what can be done now; return the seconds until there may be more."""
        embedder = self._embedder
        retry, self._retry = self._retry, False
        if retry:
            self._failures.retry()
        if not embedder.available:
            if embedder.cooldown and not retry:
                return min(embedder.cooldown, _POLL_SECONDS)
            self._loop.start(embedder.check_availability()).result()
            if not embedder.available:
                self._tried.set()
                return _POLL_SECONDS
        if embedder.identity != self._used or (retry and self._superseded):
            if self._store.use_model(embedder.identity, embedder.dim):
                _LOG.info("the embedding model changed: all memories get new vectors")
            self._used = embedder.identity
        is_superseded = self._is_superseded()
        self._tried.set()
        if is_superseded:
            return _IDLE_SECONDS
        self._fill()
        return min(_IDLE_SECONDS, self._failures.next_due())

    def _is_superseded(self) -> bool:
        """Return whether another process has put its own model into the store."""
        known = self._store.model()
        if known is None:  # the tables were lost and made anew
            self._store.use_model(self._used, self._embedder.dim)
        if known is None or known == (self._used, self._embedder.dim):
            self._superseded = ""
        elif not self._superseded:
            self._superseded = (
                f"another program uses the same database with the embedding model {known[0]}; "
                "give both the same model, or call ~/backfill to use this one"
            )
            _LOG.warning("no vectors for now: %s", self._superseded)
        return bool(self._superseded)

    def _fill(self) -> None:
        """Embed all that waits: first what was not tried yet, then what failed long enough ago."""
        limit = BATCH_SIZE * self._embedder.batches_at_once
        self._embedded = 0
        self._backlog = self._store.count_unembedded()
        made: list[tuple[int, str, Vector]] = []
        while not self._closing:
            held = self._failures.ids() | {memory_id for memory_id, _, _ in made}
            waiting = self._store.unembedded(limit, held)
            if self._failures.are_too_many:
                waiting = []
            self._is_filling = bool(waiting or made)
            future = self._embed(waiting, BATCH_SIZE) if waiting else None
            self._put(made)  # while the backend is at work on the next ones
            if future is None:
                break
            made = self._outcome(waiting, future.result())
            if not self._embedder.available:
                self._put(made)
                return
            if self._is_superseded():
                return
        while due := self._failures.due(BATCH_SIZE):
            waiting = self._store.unembedded_among(due)
            self._failures.keep_only(due, {memory_id for memory_id, _ in waiting})
            if not waiting:
                continue
            # One by one: what failed before must not spoil the others.
            self._put(self._outcome(waiting, self._embed(waiting, 1).result()))
            if not self._embedder.available:
                return

    def _embed(
        self, waiting: _Waiting, batch_size: int
    ) -> concurrent.futures.Future[list[Vector | None]]:
        texts = [text for _, text in waiting]
        return self._loop.start(self._embedder.embed_batch(texts, batch_size))

    def _outcome(
        self, waiting: _Waiting, vectors: list[Vector | None]
    ) -> list[tuple[int, str, Vector]]:
        """Return what got a vector, and take note of what failed by its own fault."""
        made = []
        for (memory_id, text), vector in zip(waiting, vectors, strict=True):
            if vector is not None:
                self._failures.forget(memory_id)
                made.append((memory_id, text, vector))
            elif self._embedder.available:
                self._failures.add(memory_id)
        return made

    def _put(self, made: list[tuple[int, str, Vector]]) -> None:
        if made:
            self._store.put_vectors(self._used, made)
            self._embedded += len(made)

    def _report(self, error: Exception) -> None:
        text = f"vectors could not be made or stored: {error}"
        if text != self._last_error and not self._closing:
            expected = isinstance(error, RobotMemoryError)
            _LOG.warning("%s", text, exc_info=None if expected else error)
        self._last_error = text
