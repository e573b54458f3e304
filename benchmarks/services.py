# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure ~/recall through DDS: several clients at once against one node with a large store.

    python3 benchmarks/services.py [--n N] [--cache DIR] [--clients N] [--seconds S] [--json FILE]

The store is the one that scale.py makes, kept in the same cache. The node and each client are
processes of their own. The vector of a query comes from a stand-in that takes no time, so that
the model is left out, as in the other benchmarks; everything else is the node as it is. In the
same run the core alone answers the same queries in one thread.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scale
import synthetic

import robotmem_ros.core.memory as memory_module
from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import EVERY_COLLECTION, Query

N = 10
QUERIES = 200
WARM_UP = 20


class Standin:
    """Stands for an embedding model: draws vectors as those of the store were drawn."""

    available = True
    unavailable_reason = ""
    cooldown = 0.0
    model = identity = synthetic.MODEL
    dim = synthetic.DIMENSION
    batches_at_once = 1

    def __init__(self, config: Config) -> None:
        self._maker = synthetic.Maker(seed=3)

    async def embed_one(self, text: str) -> synthetic.Vectors:
        """Return a vector; the text does not matter."""
        vector: synthetic.Vectors = self._maker.vectors(1)[0]
        return vector

    async def embed_batch(self, texts: Sequence[str], batch_size: int = 32) -> list[Any]:
        """Return a vector for each text."""
        return list(self._maker.vectors(len(texts)))

    async def check_availability(self) -> bool:
        """Return that it works."""
        return True

    async def close(self) -> None:
        """Release nothing."""


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=1_000_000, help="memories")
    parser.add_argument("--cache", type=pathlib.Path, default=scale.CACHE)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "node":
        _serve(scale.make(options.cache, options.n))
    elif options.part:
        print(json.dumps(_call(int(options.part), options.n, options.seconds)))
    else:
        results = measure(options)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run the node and its clients, print what they saw and return it."""
    path = scale.make(options.cache, options.n)
    core = _core_times(path, options.n)
    results: dict[str, Any] = {"memories": options.n, "core_p50_ms": _share(core, 50)}
    print(f"{options.n} memories; the core alone: p50 {results['core_p50_ms']:.1f} ms\n")
    print(f"{'clients':>8}{'calls/s':>9}{'p50 ms':>8}{'p95 ms':>8}{'p99 ms':>8}")
    node = _part("node", options)
    try:
        for clients in sorted({1, options.clients}):
            parts = [_part(str(number), options) for number in range(1, clients + 1)]
            times = [t for part in parts for t in json.loads(part.communicate()[0])]
            row = {
                "calls_per_s": len(times) / options.seconds,
                **{f"p{share}_ms": _share(times, share) for share in (50, 95, 99)},
            }
            results[f"{clients} clients"] = row
            print(f"{clients:8}" + "".join(f"{value:8.1f}" for value in row.values()), flush=True)
    finally:
        node.terminate()
        node.communicate()
    return results


def _core_times(path: pathlib.Path, count: int) -> list[float]:
    memory_module.make_embedder = Standin
    with RobotMemory(Config(db_path=str(path), decay_rate=0.0)) as memory:
        times = []
        for number, fields in enumerate(_queries(0, count)):
            start = time.perf_counter()
            memory.recall(Query(**fields))
            times.append((time.perf_counter() - start) * 1e3)
            if number == WARM_UP + QUERIES:
                return times[WARM_UP:]
    return times


def _queries(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield queries without end: plain ones, and in turn each kind of filter."""
    maker = synthetic.Maker(seed=100 + seed)
    filters: Sequence[dict[str, Any]] = (
        {},
        {"context_filter": json.dumps({"task.success": True})},
        {"context_filter": json.dumps({"params.force.value": {"$gte": 5, "$lt": 10}})},
        {"session_id": f"s{seed * 31 % (count // synthetic.SESSION_LENGTH)}"},
        {"collection": f"c{seed % 100}"},
    )
    for fields in itertools.cycle(filters):
        yield {"text": " ".join(maker.words(6)), "n": N, "collection": EVERY_COLLECTION, **fields}


def _serve(path: pathlib.Path) -> None:
    """Be the node, until a signal."""
    from robotmem_ros import main as node

    memory_module.make_embedder = Standin
    node.main(["--ros-args", "-p", f"db_path:={path}", "-p", "decay_rate:=0.0"])


def _call(seed: int, count: int, seconds: float) -> list[float]:
    """Be a client: call for some seconds; return how long each call took, in milliseconds."""
    import rclpy
    from robotmem_ros.srv import Recall

    rclpy.init(args=[])
    node = rclpy.create_node(f"client{seed}")
    client = node.create_client(Recall, "/robotmem/recall")
    client.wait_for_service()
    times: list[float] = []
    end = float("inf")
    for called, fields in enumerate(_queries(seed, count), 1):
        request = Recall.Request(query=fields.pop("text"), **fields)
        start = time.perf_counter()
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future)
        answer: Any = future.result()
        assert answer.success, answer.message
        if called == WARM_UP:
            end = time.perf_counter() + seconds
        elif called > WARM_UP:
            times.append((time.perf_counter() - start) * 1e3)
        if time.perf_counter() > end:
            break
    node.destroy_node()
    rclpy.shutdown()
    return times


def _part(name: str, options: argparse.Namespace) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--part", name, "--n", str(options.n)]
    command += ["--cache", str(options.cache.resolve()), "--seconds", str(options.seconds)]
    # Not in the checkout, whose folder robotmem_ros has no interfaces.
    return subprocess.Popen(command, cwd="/", stdout=subprocess.PIPE, text=True)


def _share(times: list[float], percent: float) -> float:
    return float(np.percentile(times, percent))


if __name__ == "__main__":
    main()
