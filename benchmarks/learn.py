# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure how fast experiences are stored, and how fast their vectors follow.

    python3 benchmarks/learn.py --model-path DIR [--model NAME] [--n N] [--json FILE]

Learns with the model off and on, which must make little difference: the answer does not wait for
the model. Then lets the worker embed a store whose memories all wait for their vector, in turn
with the bare model on the same texts, in batches of the same size and on as many threads.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np
from fastembed import TextEmbedding

from robotmem_ros.core.config import Config
from robotmem_ros.core.embedding.protocol import BATCH_SIZE
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience

SAMPLES = pathlib.Path(__file__).parent / "retrieval" / "memories.jsonl"
ROUNDS = 3


def texts(count: int) -> list[str]:
    """Return that many different texts of the length that robots learn."""
    with SAMPLES.open(encoding="utf-8") as file:
        samples = [json.loads(line)["text"] for line in file]
    return [f"{samples[i % len(samples)]} (trial {i})" for i in range(count)]


def learn(memory: RobotMemory, contents: Sequence[str]) -> dict[str, float]:
    """Store the texts one after the other; return how long it took."""
    times = []
    start = time.perf_counter()
    for content in contents:
        before = time.perf_counter()
        memory.learn(Experience(content))
        times.append((time.perf_counter() - before) * 1e3)
    seconds = time.perf_counter() - start
    return {
        "p50_ms": statistics.median(times),
        "p95_ms": float(np.percentile(times, 95)),
        "memories_per_s": len(contents) / seconds,
    }


def wait_until_embedded(memory: RobotMemory) -> float:
    """Return the seconds from when the model is there until no memory waits for its vector."""
    while not memory.status().embedder_available:
        time.sleep(0.001)
    start = time.perf_counter()
    connection = apsw.Connection(memory.status().db_path, flags=apsw.SQLITE_OPEN_READONLY)
    while connection.execute("SELECT count(*) FROM unembedded").get:
        time.sleep(0.01)
    connection.close()
    return time.perf_counter() - start


def measure(folder: pathlib.Path, model: dict[str, Any], count: int) -> dict[str, Any]:
    """Return all measures."""
    contents = texts(count)
    results: dict[str, Any] = {"n": count}
    waiting = Config(db_path=str(folder / "off.db"), embed_backend="none")
    with RobotMemory(waiting) as memory:
        results["learn, model off"] = learn(memory, contents)
    with RobotMemory(Config(db_path=str(folder / "on.db"), **model)) as memory:
        wait_until_embedded(memory)
        results["learn, model on"] = learn(memory, contents)
        results["seconds until all had vectors"] = wait_until_embedded(memory)

    config = Config(db_path=str(folder / "off.db"), **model)
    bare = TextEmbedding(
        config.onnx_model,
        specific_model_path=config.model_path,
        threads=config.onnx_threads,
        providers=["CPUExecutionProvider"],
    )
    newest_first = contents[::-1]
    list(bare.embed(newest_first[:BATCH_SIZE], batch_size=BATCH_SIZE))
    rounds = []
    for _ in range(ROUNDS):
        # The bare model on both sides of the worker: what else the machine does hits both.
        speeds = [_bare_speed(bare, newest_first[: count // 2])]
        _make_all_wait(config.db_path)
        with RobotMemory(config) as memory:
            worker = count / wait_until_embedded(memory)
        speeds.append(_bare_speed(bare, newest_first[count // 2 :]))
        rounds.append((worker, statistics.mean(speeds)))
    results["backfill_per_s"] = statistics.median(worker for worker, _ in rounds)
    results["bare_model_per_s"] = statistics.median(alone for _, alone in rounds)
    results["backfill_ratio"] = statistics.median(worker / alone for worker, alone in rounds)
    return results


def _bare_speed(model: TextEmbedding, contents: Sequence[str]) -> float:
    start = time.perf_counter()
    list(model.embed(list(contents), batch_size=BATCH_SIZE))
    return len(contents) / (time.perf_counter() - start)


def _make_all_wait(path: str) -> None:
    connection = apsw.Connection(path)
    with connection:
        connection.execute("DELETE FROM vectors")
        connection.execute("DELETE FROM embedder")
        connection.execute("INSERT OR IGNORE INTO unembedded SELECT id FROM memories")
        connection.execute("INSERT INTO vector_changes (memory_id) VALUES (0)")
    connection.close()


def main() -> None:
    """Run the benchmark and print its results."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model-path", default=os.environ.get("ROBOTMEM_MODEL_PATH", ""))
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--n", type=int, default=2000, help="memories to learn")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there")
    arguments = parser.parse_args()
    if not arguments.model_path:
        parser.error("give --model-path, or set ROBOTMEM_MODEL_PATH")
    model = {"model_path": arguments.model_path, "onnx_model": arguments.model}
    with tempfile.TemporaryDirectory() as folder:
        results = measure(pathlib.Path(folder), model, arguments.n)
    for name in ("learn, model off", "learn, model on"):
        row = results[name]
        print(
            f"{name:17} p50 {row['p50_ms']:6.2f} ms   p95 {row['p95_ms']:6.2f} ms   "
            f"{row['memories_per_s']:6.0f} memories/s"
        )
    print(
        f"after the last learn all had vectors in {results['seconds until all had vectors']:.1f} s"
    )
    print(
        f"backfill {results['backfill_per_s']:.0f}/s, bare model "
        f"{results['bare_model_per_s']:.0f}/s, ratio {results['backfill_ratio']:.2f}"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
