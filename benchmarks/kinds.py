# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The kinds of recall that the benchmarks time, and the way to time one against the naive way.

The naive way is what most memories do: the nearest vectors by brute force in vec0 and the best
documents by an OR of all words in FTS5, fused, and sieved afterwards.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apsw
import numpy as np
import sqlite_vec
import synthetic

from robotmem_ros.core import ranking, search
from robotmem_ros.core.config import Config
from robotmem_ros.core.model import EVERY_COLLECTION, Near, Query
from robotmem_ros.core.store import Store
from robotmem_ros.core.text import query_terms

N = 10
"""Memories asked for."""

CONFIG = Config(embed_backend="none")

_NAIVE_QUERIES = 10

Vector = Any


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of recall.

    Attributes
    ----------
    fields: those of its query, made from the number of the query and of memories.
    text: the text of its query.
    """

    name: str
    fields: Callable[[int, int], dict[str, Any]] = lambda i, count: {}
    text: Callable[[synthetic.Maker], str] = lambda maker: " ".join(maker.words(6))


def _session(i: int, count: int) -> dict[str, Any]:
    return {"session_id": f"s{i * 13 % max(1, count // synthetic.SESSION_LENGTH)}"}


def _hour(i: int, count: int) -> dict[str, Any]:
    since = synthetic.START + (i * 7919 % count) * 10**9
    return {"since": since, "until": since + 3600 * 10**9}


def _radius(i: int, count: int) -> dict[str, Any]:
    return {"near": Near("map", (float(i * 7 % 100), float(i * 11 % 60), 0.0), 1.0)}


def _filter(i: int, **conditions: Any) -> dict[str, Any]:
    return {"context_filter": {name.replace("__", "."): c for name, c in conditions.items()}}


KINDS: tuple[Kind, ...] = (
    Kind("plain"),
    Kind("broad filter (50 %)", lambda i, count: _filter(i, task__success=True)),
    Kind(
        "range filter (25 %)",
        lambda i, count: _filter(i, params__force__value={"$gte": 5, "$lt": 10}),
    ),
    Kind("selective filter (0.1 %)", lambda i, count: _filter(i, robot__id=f"r{i % 1000}")),
    Kind(
        "two conditions (2.5 %)",
        lambda i, count: _filter(i, task__success=True, task__name=f"task{i % 20}"),
    ),
    Kind("radius (1 m)", _radius),
    Kind("one session", _session),
    Kind("replay of a session", _session, lambda maker: "*"),
    Kind("one of 100 collections", lambda i, count: {"collection": f"c{i % 100}"}),
    Kind("one hour", _hour),
    Kind("a word of every memory", text=lambda maker: synthetic.EVERYWHERE),
    Kind(
        "common words alone",
        text=lambda maker: f"{synthetic.EVERYWHERE} {synthetic.word(0)} {synthetic.word(1)}",
    ),
    Kind("a rare word", text=lambda maker: synthetic.word(15_000)),
    Kind("an absent word", text=lambda maker: "quokka"),
)


@dataclasses.dataclass(frozen=True)
class Figures:
    """What was measured of one kind of recall; times in milliseconds."""

    p50: float
    p95: float
    recall_at_10: float
    complete: float
    naive_p50: float
    naive_complete: float

    HEADER = (
        f"{'':26}{'p50 ms':>8}{'p95 ms':>8}{'recall@10':>11}{'complete':>10}"
        f"{'naive p50':>11}{'ratio':>7}{'naive complete':>16}"
    )

    def line(self, name: str) -> str:
        """Return the figures as a line of the table under HEADER."""
        ratio = f"{self.naive_p50 / self.p50:7.1f}" if self.naive_p50 else " " * 7
        return (
            f"{name:26}{self.p50:8.2f}{self.p95:8.2f}{self.recall_at_10:11.3f}"
            f"{self.complete:10.2f}{self.naive_p50:11.1f}{ratio}{self.naive_complete:16.2f}"
        )


def measure(
    store: Store, naive: Naive, maker: synthetic.Maker, kind: Kind, count: int, queries: int
) -> Figures:
    """Time recalls of one kind, and compare what they return with an exact search.

    recall_at_10 is the share of what an exact search returns that was returned; complete the share
    of recalls that returned min(N, M) memories where M meet the conditions.
    """
    times, naive_times, recalls, complete, naive_complete = [], [], [], [], []
    for i in range(queries):
        request, vector = _request(maker, kind, i, count)
        start = time.perf_counter()
        found = recall(store, request, vector)
        times.append((time.perf_counter() - start) * 1e3)
        exact = recall(store, dataclasses.replace(request, exact=True), vector)
        recalls.append(len(set(found) & set(exact)) / len(exact) if exact else 1.0)
        complete.append(len(found) == len(exact))
        if request.is_replay or i >= _NAIVE_QUERIES:
            continue
        start = time.perf_counter()
        candidates = naive.search(request.text, vector, 4 * N)
        naive_times.append((time.perf_counter() - start) * 1e3)
        with store.snapshot() as snapshot:
            sieved = snapshot.keep(snapshot.eligible(request.conditions), candidates)[:N]
        naive_complete.append(len(sieved) >= len(exact))
    return Figures(
        p50=statistics.median(times),
        p95=float(np.percentile(times, 95)),
        recall_at_10=statistics.mean(recalls),
        complete=statistics.mean(complete),
        naive_p50=statistics.median(naive_times or [0.0]),
        naive_complete=statistics.mean(naive_complete or [0.0]),
    )


def time_of_one(store: Store, maker: synthetic.Maker, kind: Kind, count: int) -> float:
    """Return how long one recall takes, in milliseconds."""
    request, vector = _request(maker, kind, 0, count)
    start = time.perf_counter()
    recall(store, request, vector)
    return (time.perf_counter() - start) * 1e3


def _request(
    maker: synthetic.Maker, kind: Kind, i: int, count: int
) -> tuple[search.Request, Vector]:
    now = synthetic.START + count * 10**9
    fields = {"collection": EVERY_COLLECTION, **kind.fields(i, count)}
    query = Query(kind.text(maker), n=N, **fields)
    return search.check(query, CONFIG, now, now), maker.vectors(1)[0]


def recall(store: Store, request: search.Request, vector: Vector) -> Sequence[int]:
    """Return what a recall returns, the memories read as RobotMemory reads them."""
    with store.snapshot() as snapshot:
        if request.is_replay:
            result = search.replay(snapshot, request)
        else:
            result = search.rank(snapshot, request, vector, CONFIG)
        snapshot.memories(result.ids)
    return result.ids


class Naive:
    """The naive way over the same database; its own vectors are in a file of its own."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    @classmethod
    @contextlib.contextmanager
    def over(cls, path: str, vectors: str) -> Iterator[Naive]:
        """Lend a naive search over the store at path, with a vec0 table in the file vectors."""
        connection = apsw.Connection(path)
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.execute("ATTACH ? AS naive", (vectors,))
        if not connection.execute("SELECT 1 FROM naive.sqlite_schema LIMIT 1").get:
            connection.execute(
                "CREATE VIRTUAL TABLE naive.nearest USING vec0(memory_id INTEGER PRIMARY KEY, "
                f"vector float[{synthetic.DIMENSION}] distance_metric=cosine)"
            )
            with connection:
                connection.execute(
                    "INSERT INTO naive.nearest SELECT memory_id, vector FROM main.vectors"
                )
        try:
            yield cls(connection)
        finally:
            connection.close()

    def search(self, text: str, vector: Vector, k: int) -> list[int]:
        """Return candidates, best first."""
        nearest = [
            row[0]
            for row in self._connection.execute(
                "SELECT memory_id FROM naive.nearest WHERE vector MATCH ? AND k = ?",
                (vector.tobytes(), k),
            )
        ]
        best = [
            row[0]
            for row in self._connection.execute(
                "SELECT rowid FROM keywords WHERE keywords MATCH ? ORDER BY rank LIMIT ?",
                (" OR ".join(f'"{term}"' for term in query_terms(text)), k),
            )
        ]
        return ranking.by_score(ranking.rrf(ranking.Evidence(best, nearest), 60).scores)
