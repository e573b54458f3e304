# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure `robotmem import`: messages a second and memory, for both formats.

    python3 benchmarks/import_bags.py [--minutes 10]

Writes a recording of a mobile robot (100 Hz odometry, 200 Hz joint states, 10 Hz laser scans of
1080 beams that nobody asked for, a note every 10 s), imports it, and prints a table. Needs no ROS.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "bags")]

from bag_writer import (  # noqa: E402
    FORMATS,
    SECOND,
    START,
    Sent,
    header,
    joints,
    make,
    odometry,
    text,
    write_bag,
)

PARAMETERS = (
    "context_sources=[odom, joints]",
    "pose_source=odom",
    "odom.topic=/odom",
    "odom.type=nav_msgs/msg/Odometry",
    "odom.fields=['robot.speed = twist.twist.linear.x']",
    "joints.topic=/joint_states",
    "joints.type=sensor_msgs/msg/JointState",
    "joints.fields=['robot.joints = position']",
)


def recording(minutes: float) -> Iterator[Sent]:
    """Yield what a recorder hears."""
    ranges = np.ones(1080, np.float32)
    for tick in range(round(minutes * 60 * 200)):
        time_ = START + tick * SECOND // 200
        yield Sent(time_, "/joint_states", joints(time_, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
        if tick % 2 == 0:
            yield Sent(time_, "/odom", odometry(time_, tick / 400))
        if tick % 20 == 0:
            scan = make(
                "sensor_msgs/msg/LaserScan",
                header=header(time_, "laser"),
                angle_min=0.0,
                angle_max=1.0,
                angle_increment=0.001,
                time_increment=0.0,
                scan_time=0.1,
                range_min=0.1,
                range_max=30.0,
                ranges=ranges,
                intensities=ranges,
            )
            yield Sent(time_, "/scan", scan)
        if tick % 2000 == 0:
            yield Sent(time_, "/note", text(f"passed the shelf {tick // 2000}"))


def measure(
    bag: Path, way: tuple[str, ...], results: multiprocessing.Queue[tuple[str, ...]]
) -> None:
    """Import a bag in a process of its own; put seconds and megabytes."""
    from robotmem_ros.cli.main import main

    arguments = ["import", str(bag), "--db", str(bag.with_suffix(".db")), *way]
    for item in PARAMETERS:
        arguments += ["--set", item]
    said = io.StringIO()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    with contextlib.redirect_stdout(said):
        code = main(arguments)
    seconds = time.perf_counter() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    results.put((str(code), f"{seconds:.1f}", f"{grown:.0f}", said.getvalue().splitlines()[-1]))


def main() -> None:
    """Write the recordings, import them, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="length of the recording")
    minutes = parser.parse_args().minutes
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for storage in FORMATS:
            bag = write_bag(Path(folder) / storage, storage, recording(minutes))
            size = sum(file.stat().st_size for file in bag.iterdir()) / 1e6
            for way in ((), ("--marker", "/note")):
                results = context.Queue()
                process = context.Process(target=measure, args=(bag, way, results))
                process.start()
                code, seconds, grown, line = results.get()
                process.join()
                print(f"{storage} {size:.0f} MB {' '.join(way)}: {seconds} s, memory +{grown} MB, "
                      f"exit code {code}\n    {line}")  # fmt: skip


if __name__ == "__main__":
    main()
