# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure what a pose costs when the robot is to be reminded of the places it comes near.

    python3 benchmarks/reminders.py [--n 100000] [--radius 1.5] [--json FILE]

A robot drives through a hall of 100 by 60 metres in which so many memories were made, at 1 m/s
with 10 poses a second, and is to be reminded of failures, which half of them are.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import synthetic

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import EVERY_COLLECTION, Pose
from robotmem_ros.core.store import Store

STEP = 0.1  # metres from pose to pose


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", type=int, default=100_000, help="number of places")
    parser.add_argument("--radius", type=float, default=1.5, help="metres")
    parser.add_argument("--poses", type=int, default=2_000)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(f"{folder}/reminders.db", options.n, options.radius, options.poses)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def measure(path: str, count: int, radius: float, poses: int) -> dict[str, Any]:
    """Fill a store, drive through it, print what a pose costs and return it."""
    store = Store(path)
    maker = synthetic.Maker()
    for start in range(0, count, 2_000):
        store.add_many([maker.memory(i) for i in range(start, min(count, start + 2_000))])
    store.close()
    print(f"{count} places, radius {radius} m")
    results: dict[str, Any] = {"places": count, "radius": radius, "poses": poses}
    with RobotMemory(Config(db_path=path, embed_backend="none")) as memory:
        for name, context_filter, collection in (
            ("failures", {"task.success": False}, EVERY_COLLECTION),
            ("everything", "", EVERY_COLLECTION),
            ("one of 100 collections", {"task.success": False}, "c7"),
        ):
            reminders = memory.reminders(
                radius, context_filter, collection=collection, min_confidence=0.0, rate=5.0
            )
            times, told = [], 0
            now = synthetic.START + count * 10**9
            cpu = time.thread_time()
            for pose in _drive(poses):
                start_time = time.perf_counter()
                told += len(reminders.update(pose, now))
                times.append((time.perf_counter() - start_time) * 1e3)
            row = {
                "p50_ms": statistics.median(times),
                "p99_ms": float(np.percentile(times, 99)),
                "mean_cpu_ms": (time.thread_time() - cpu) / poses * 1e3,
                "told": told,
            }
            results[name] = row
            print(
                f"{name:24} p50 {row['p50_ms']:.3f} ms   p99 {row['p99_ms']:.3f} ms   "
                f"mean of one core {row['mean_cpu_ms']:.3f} ms   {told} reminders"
            )
    return results


def _drive(count: int) -> Iterator[Pose]:
    """Yield poses on a wave through the hall."""
    width, height = synthetic.HALL_METRES
    x, y, heading = 5.0, height / 2, 0.0
    for i in range(count):
        heading += 0.02 * math.sin(i / 80)
        x, y = x + STEP * math.cos(heading), y + STEP * math.sin(heading)
        if not (2.0 < x < width - 2.0 and 2.0 < y < height - 2.0):
            heading += math.pi
            x, y = min(max(x, 2.1), width - 2.1), min(max(y, 2.1), height - 2.1)
        yield Pose("map", (x, y, 0.0), stamp=i)


if __name__ == "__main__":
    main()
