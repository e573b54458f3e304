# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure how fast recall is, and how right, at a given number of memories.

    python3 benchmarks/recall.py --n 1000|10000|100000 [--queries N] [--json FILE]

Each kind of recall is timed without embedding, compared with an exact search of the same store,
and set beside the naive way in the same run: the nearest by brute force and the best by an OR of
all words, fused, and filtered afterwards. "complete" is the share of recalls that returned
min(n, M) memories where M meet the conditions.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
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
Vector = Any


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of recall: the fields of its query, made anew for each one."""

    name: str
    fields: Callable[[synthetic.Maker, int], dict[str, Any]]
    text: Callable[[synthetic.Maker], str] = lambda maker: " ".join(maker.words(6))


def _kinds(count: int) -> list[Kind]:
    return [
        Kind("plain", lambda maker, i: {}),
        Kind("broad filter (50 %)", lambda maker, i: {"context_filter": {"task.success": True}}),
        Kind(
            "range filter (25 %)",
            lambda maker, i: {"context_filter": {"params.force.value": {"$gte": 5, "$lt": 10}}},
        ),
        Kind(
            "selective filter (0.1 %)",
            lambda maker, i: {"context_filter": {"robot.id": f"r{i % 1000}"}},
        ),
        Kind(
            "radius (1 m)",
            lambda maker, i: {
                "near": Near("map", (float(i * 7 % 100), float(i * 11 % 60), 0.0), 1.0)
            },
        ),
        Kind(
            "session",
            lambda maker, i: {
                "session_id": f"s{i * 13 % max(1, count // synthetic.SESSION_LENGTH)}"
            },
        ),
        Kind("one of 100 collections", lambda maker, i: {"collection": f"c{i % 100}"}),
        Kind(
            "a word of every memory",
            lambda maker, i: {},
            lambda maker: f"{synthetic.EVERYWHERE} {synthetic.word(0)} {synthetic.word(1)}",
        ),
        Kind(
            "replay of a session",
            lambda maker, i: {
                "session_id": f"s{i * 13 % max(1, count // synthetic.SESSION_LENGTH)}"
            },
            lambda maker: "*",
        ),
    ]


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=10_000, help="number of memories")
    parser.add_argument("--queries", type=int, default=100, help="queries of each kind")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(f"{folder}/recall.db", options.n, options.queries)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def measure(path: str, count: int, queries: int) -> dict[str, Any]:
    """Fill a store, time every kind of recall, print a table and return it."""
    maker = synthetic.Maker()
    store = Store(path)
    start = time.perf_counter()
    for done in synthetic.fill(store, maker, count):
        print(
            f"\r{done} memories ({(time.perf_counter() - start) / done * 1e6:.0f} us each)",
            end="",
            flush=True,
        )
    print(f", {store.size / 2**20:.0f} MiB\n")
    naive = Naive(path)
    print(
        f"{'':26}{'p50 ms':>8}{'p95 ms':>8}{'recall@10':>11}{'complete':>10}"
        f"{'naive p50':>11}{'naive complete':>16}"
    )
    results = {}
    for kind in _kinds(count):
        results[kind.name] = row = _measure_kind(store, naive, maker, kind, count, queries)
        print(
            f"{kind.name:26}{row['p50_ms']:8.2f}{row['p95_ms']:8.2f}{row['recall_at_10']:11.3f}"
            f"{row['complete']:10.2f}{row['naive_p50_ms']:11.1f}{row['naive_complete']:16.2f}"
        )
    store.close()
    return {"memories": count, "queries": queries, "kinds": results}


def _measure_kind(
    store: Store, naive: Naive, maker: synthetic.Maker, kind: Kind, count: int, queries: int
) -> dict[str, float]:
    config = Config(embed_backend="none")
    times, naive_times, recalls, complete, naive_complete = [], [], [], [], []
    for i in range(queries):
        fields = {"collection": EVERY_COLLECTION, **kind.fields(maker, i)}
        query = Query(kind.text(maker), n=N, min_confidence=0.0, **fields)
        now = synthetic.START + count * 10**9
        request = search.check(query, config, now, now)
        vector = maker.vectors(1)[0]
        start = time.perf_counter()
        found = _recall(store, request, vector, config)
        times.append((time.perf_counter() - start) * 1e3)
        exact = _recall(store, dataclasses.replace(request, exact=True), vector, config)
        with store.snapshot() as snapshot:
            matching = set(snapshot.all_ids(snapshot.eligible(request.conditions)))
        possible = min(N, len(matching))
        recalls.append(len(set(found) & set(exact)) / max(1, len(exact)))
        complete.append(len(found) == possible)
        if not request.is_replay and i < 20:
            start = time.perf_counter()
            sieved = [m for m in naive.search(request.text, vector, 4 * N) if m in matching][:N]
            naive_times.append((time.perf_counter() - start) * 1e3)
            naive_complete.append(len(sieved) == possible)
    return {
        "p50_ms": statistics.median(times),
        "p95_ms": float(np.percentile(times, 95)),
        "recall_at_10": statistics.mean(recalls),
        "complete": statistics.mean(complete),
        "naive_p50_ms": statistics.median(naive_times or [0.0]),
        "naive_complete": statistics.mean(naive_complete or [0.0]),
    }


def _recall(
    store: Store, request: search.Request, vector: Vector, config: Config
) -> Sequence[int]:
    """Return what a recall returns, memories included, as RobotMemory does it."""
    with store.snapshot() as snapshot:
        if request.is_replay:
            result = search.replay(snapshot, request)
        else:
            result = search.rank(snapshot, request, vector, config)
        snapshot.memories(result.ids)
    return result.ids


class Naive:
    """The way most memories search: both engines over everything, fused, to be sieved by others."""

    def __init__(self, path: str) -> None:
        self._connection = apsw.Connection(path)
        self._connection.enable_load_extension(True)
        self._connection.load_extension(sqlite_vec.loadable_path())
        self._connection.execute(
            "CREATE VIRTUAL TABLE temp.naive USING vec0("
            f"memory_id INTEGER PRIMARY KEY, vector float[{synthetic.DIMENSION}] "
            "distance_metric=cosine)"
        )
        self._connection.execute("INSERT INTO naive SELECT memory_id, vector FROM vectors")

    def search(self, text: str, vector: Vector, k: int) -> list[int]:
        """Return candidates, best first."""
        nearest = [
            row[0]
            for row in self._connection.execute(
                "SELECT memory_id FROM naive WHERE vector MATCH ? AND k = ?", (vector.tobytes(), k)
            )
        ]
        expression = " OR ".join(f'"{term}"' for term in query_terms(text))
        best = [
            row[0]
            for row in self._connection.execute(
                "SELECT rowid FROM keywords WHERE keywords MATCH ? ORDER BY rank LIMIT ?",
                (expression, k),
            )
        ]
        fused = ranking.rrf(ranking.Evidence(best, nearest), 60)
        return ranking.by_score(fused.scores)


if __name__ == "__main__":
    main()
