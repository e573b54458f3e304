# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Two robots, two memories: what one learns the hard way, the other is told in time.

    python3 examples/two_robots.py

Builds what it needs on the first run (see .ci/environment.py). Robot A drives through a hall,
where its wheels slip at two places, and finds out how slow it has to go there. Robot B has never
been there, but its memory listens to that of robot A (import_topics): coming near, it is reminded,
recalls how A passed, slows down in time and never slips. Takes about a minute; the exit code is 0
only if all of that happened. Nothing leaves this computer.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / ".ci"), str(HERE / "two_robots")]

import environment  # noqa: E402

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
ROBOTS = ("robot_a", "robot_b")


def main() -> None:
    """Run the demonstration."""
    argparse.ArgumentParser(description=__doc__.split("\n\n")[0]).parse_args()
    inside = environment.enter()
    os.environ["ROS_DOMAIN_ID"] = str(environment.free_domain())
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        for robot, other in zip(ROBOTS, reversed(ROBOTS), strict=True):
            running.enter_context(memory_node(robot, other, Path(folder), inside.model))
        tell(running)


@contextlib.contextmanager
def memory_node(robot: str, other: str, folder: Path, model: Path) -> Iterator[None]:
    """Run the memory of one robot, which listens to the other one's, in a process of its own."""
    command = [str(Path(sys.prefix) / "lib" / "robotmem_ros" / "robotmem_node"), "--ros-args"]
    command += ["-r", f"__ns:=/{robot}", "--params-file", str(HERE / "two_robots" / "memory.yaml")]
    parameters = {
        "db_path": folder / f"{robot}.db",
        "model_path": model,
        "onnx_model": MODEL,
        "import_topics": f"[/{other}/robotmem/memories, /{other}/robotmem/episodes]",
        "hardware_id": robot,
    }
    for name, value in parameters.items():
        command += ["-p", f"{name}:={value}"]
    node = subprocess.Popen([*command, "--log-level", "warn"])
    try:
        yield
    finally:
        node.terminate()
        node.wait()


def tell(running: contextlib.ExitStack) -> None:
    """Let A explore, then B cross, and check that it went as it should."""
    import rclpy
    from driver import Driver
    from hall import SPOTS
    from rclpy.executors import SingleThreadedExecutor
    from simulator import SimulatedRobot

    begin = time.monotonic()

    def teller(robot: str) -> Callable[[str], None]:
        return lambda words: print(
            f"{time.monotonic() - begin:5.1f} s  {robot}  {words}", flush=True
        )

    rclpy.init()
    running.callback(rclpy.try_shutdown)
    executor = SingleThreadedExecutor()
    simulators = [SimulatedRobot(name) for name in ROBOTS]
    drivers = [Driver(name, teller(name)) for name in ROBOTS]
    for node in (*simulators, *drivers):
        executor.add_node(node)
    spinning = threading.Thread(target=executor.spin, daemon=True)
    spinning.start()
    running.callback(spinning.join, 5.0)
    running.callback(executor.shutdown)

    for driver in drivers:
        driver.wait_until_ready()
    places = " and ".join(f"x = {spot.x} m" for spot in SPOTS)
    print(f"The floor of the hall is slippery near {places}. Neither robot knows.\n", flush=True)
    teller(ROBOTS[0])("drives through the hall for the first time")
    found = drivers[0].explore(simulators[0].put)
    teller(ROBOTS[1])("drives through the hall for the first time")
    heeded = drivers[1].cross()
    slips = simulators[1].slips
    print(
        f"\nrobot_a slipped at {found} places; robot_b was reminded {heeded} times and slipped "
        f"{slips} times."
    )
    if found != len(SPOTS) or heeded < len(SPOTS) or slips:
        sys.exit("It did not go as it should have.")


if __name__ == "__main__":
    main()
