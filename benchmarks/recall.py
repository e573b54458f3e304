# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure how fast recall is, and how right, at a given number of memories.

    python3 benchmarks/recall.py --n 1000|10000|100000 [--queries N] [--json FILE]

Each kind of recall is timed without embedding, compared with an exact search of the same store,
and set beside the naive way in the same run (see kinds.py).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import tempfile
import time
from typing import Any

import kinds
import synthetic

from robotmem_ros.core.store import Store


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=10_000, help="number of memories")
    parser.add_argument("--queries", type=int, default=100, help="queries of each kind")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(folder, options.n, options.queries)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def measure(folder: str, count: int, queries: int) -> dict[str, Any]:
    """Fill a store, time every kind of recall, print a table and return it."""
    maker = synthetic.Maker()
    store = Store(f"{folder}/memories.db")
    start = time.perf_counter()
    for done in synthetic.fill(store, maker, count):
        rate = (time.perf_counter() - start) / done * 1e6
        print(f"\r{done} memories ({rate:.0f} us each)", end="", flush=True)
    print(f", {store.size / 2**20:.0f} MiB\n\n{kinds.Figures.HEADER}")
    results = {}
    with kinds.Naive.over(store.path, f"{folder}/naive.db") as naive:
        for kind in kinds.KINDS:
            figures = kinds.measure(store, naive, maker, kind, count, queries)
            results[kind.name] = dataclasses.asdict(figures)
            print(figures.line(kind.name), flush=True)
    store.close()
    return {"memories": count, "queries": queries, "kinds": results}


if __name__ == "__main__":
    main()
