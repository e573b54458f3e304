# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure recall, learn, start, memory and disk at 10k, 100k and a million memories.

    python3 benchmarks/scale.py [--sizes 10000 ...] [--cache DIR] [--queries N] [--json FILE]

The stores are made once and kept in the cache (a million memories take 5 GB and some minutes).
Each size is measured in a process of its own, so that its memory can be told.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import kinds
import synthetic

from robotmem_ros.core.store import Store

SIZES = (10_000, 100_000, 1_000_000)
LEARNS = 200
CACHE = pathlib.Path(tempfile.gettempdir()) / "robotmem_benchmark"
"""Where the stores are kept."""


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument(
        "--cache",
        type=pathlib.Path,
        default=CACHE,
        help="where the stores are kept",
    )
    parser.add_argument("--queries", type=int, default=50, help="queries of each kind")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measure(options.cache, options.one, options.queries)))
        return
    empty_learn = _empty_store_learn()
    results: dict[str, Any] = {"empty_store_learn_p50_ms": empty_learn, "sizes": {}}
    print(f"learn on an empty store: p50 {empty_learn:.2f} ms\n")
    for count in options.sizes:
        make(options.cache, count)
        command = [sys.executable, __file__, "--one", str(count), "--cache", str(options.cache)]
        command += ["--queries", str(options.queries)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        results["sizes"][count] = row = json.loads(done.stdout)
        print(
            f"{count} memories: {row['file_mib']:.0f} MiB, start {row['start_s']:.2f} s, "
            f"resident {row['resident_mib']:.0f} MiB (peak {row['resident_peak_mib']:.0f}), "
            f"learn p50 {row['learn_p50_ms']:.2f} ms\n{kinds.Figures.HEADER}"
        )
        for name, figures in row["kinds"].items():
            print(kinds.Figures(**figures).line(name))
        print(flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def _store_path(cache: pathlib.Path, count: int) -> pathlib.Path:
    return cache / f"memories-{count}.db"


def make(cache: pathlib.Path, count: int) -> pathlib.Path:
    """Return the store of so many memories, made if it is not in the cache."""
    path = _store_path(cache, count)
    if path.exists():
        return path
    cache.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    for leftover in cache.glob(f"{new.name}*"):
        leftover.unlink()
    store = Store(str(new))
    start = time.perf_counter()
    for done in synthetic.fill(store, synthetic.Maker(), count):
        print(f"\rmaking {done} of {count}", end="", file=sys.stderr, flush=True)
    store.close()
    new.rename(path)
    print(f"\rmade {count} in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return path


def _measure(cache: pathlib.Path, count: int, queries: int) -> dict[str, Any]:
    path = str(_store_path(cache, count))
    maker = synthetic.Maker(seed=2)
    before = time.perf_counter()
    store = Store(path)
    start = time.perf_counter() - before
    start += kinds.time_of_one(store, maker, kinds.KINDS[0], count) / 1e3
    for _ in range(50):  # the words of the queries to come
        kinds.time_of_one(store, maker, kinds.KINDS[0], count)
    with kinds.Naive.over(path, str(cache / f"naive-{count}.db")) as naive:
        figures = {
            kind.name: dataclasses.asdict(kinds.measure(store, naive, maker, kind, count, queries))
            for kind in kinds.KINDS
        }
        resident = _resident()
        learn = _learn(store, maker, count)
    size = store.size / 2**20
    store.close()
    return {
        "file_mib": size,
        "start_s": start,
        "resident_mib": resident,
        "resident_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "learn_p50_ms": learn,
        "kinds": figures,
    }


def _learn(store: Store, maker: synthetic.Maker, first: int) -> float:
    """Return how long a learn takes in milliseconds; what was learned is forgotten again."""
    times, numbers = [], []
    for number in range(first, first + LEARNS):
        memory = maker.memory(number)
        before = time.perf_counter()
        numbers.append(store.add(memory)[0])
        times.append((time.perf_counter() - before) * 1e3)
    for number in numbers:
        store.forget(number, "", 0)
    return statistics.median(times)


def _empty_store_learn() -> float:
    folder = tempfile.mkdtemp()
    try:
        store = Store(f"{folder}/empty.db")
        maker = synthetic.Maker(seed=2)
        _learn(store, maker, 0)  # the words and the code are met for the first time
        result = _learn(store, maker, LEARNS)
        store.close()
    finally:
        shutil.rmtree(folder)
    return result


def _resident() -> float:
    """Return the memory of this process in MiB, the libraries included."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
