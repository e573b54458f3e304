# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Many callers, slow work and one core: everybody is answered and sensors keep flowing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from robotmem_ros import msg, qos  # noqa: E402


def test_200_calls_of_8_clients_at_once(start_node: Callable[..., Any], tmp_path: Path) -> None:
    process = start_node()
    callers = [harness.Caller(f"client{i}") for i in range(8)]
    try:
        robots = [harness.Robot(caller, process.name).wait_ready() for caller in callers]
        heard = callers[0].listen(msg.Memory, f"{process.name}/memories", qos.MEMORIES)
        answers = [
            (i, robots[i % 8].start("learn", insight=f"call {i} of client {i % 8}"))
            for i in range(200)
        ]
        learned = {i: answer() for i, answer in answers}
        assert all(a.success for a in learned.values()), learned
        assert len({a.memory_id for a in learned.values()}) == 200
        harness.wait_for(lambda: len(heard) == 200)
        mixed = []
        for i in range(200):
            service = ("recall", "learn", "get", "update")[i % 4]
            fields: dict[str, Any] = {
                "recall": {"query": f"call {i}"},
                "learn": {"insight": f"more {i}"},
                "get": {"memory_ids": [learned[i].memory_id]},
                "update": {"memory_id": learned[i].memory_id, "new_content": f"changed {i}"},
            }[service]
            mixed.append(robots[i % 8].start(service, **fields))
        assert all(answer().success for answer in mixed)
    finally:
        for caller in callers:
            caller.close()


def test_a_full_queue_is_answered_busy(start_node: Callable[..., Any], caller: Any) -> None:
    process = start_node(queue_size=2)
    robot = harness.Robot(caller, process.name).wait_ready()
    answers = [robot.start("learn", insight=f"crowd {i}") for i in range(200)]
    results = [answer() for answer in answers]
    refused = [a for a in results if not a.success]
    assert refused, "200 learns at once fitted in a queue of 2"
    assert all("busy" in a.message and "queue_size" in a.message for a in refused)
    assert robot.learn(insight="when the crowd is gone").success


def test_one_core(start_node: Callable[..., Any], caller: Any) -> None:
    if subprocess.run(["taskset", "-c", "0", "true"], check=False).returncode != 0:
        pytest.skip("needs taskset")
    process = start_node(prefix=("taskset", "-c", "0"))
    robot = harness.Robot(caller, process.name).wait_ready()
    answers = [robot.start("learn", insight=f"one core {i}") for i in range(50)]
    answers += [robot.start("recall", query="one core") for _ in range(50)]
    assert all(answer().success for answer in answers)
    start = time.monotonic()
    process.end()
    assert process.wait() == 0
    assert time.monotonic() - start < 3.0


def test_two_robots_side_by_side(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path
) -> None:
    a = start_node(namespace="/robot_a", db_path=str(tmp_path / "a.db"))
    b = start_node(namespace="/robot_b", db_path=str(tmp_path / "b.db"))
    robots = [harness.Robot(caller, node.name).wait_ready() for node in (a, b)]
    assert robots[0].learn(insight="only A knows this").success
    assert robots[0].recall(query="knows").total == 1
    assert robots[1].recall(query="knows").total == 0


def test_a_caller_that_is_gone_disturbs_nobody(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node()
    robot = harness.Robot(caller, process.name).wait_ready()
    rude = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); import harness\n"
        "robot = harness.Robot(harness.Caller('rude'), sys.argv[1])\n"
        "for i in range(100): robot.start('learn', insight=f'rude {i}')\n"
        "os._exit(0)"
    )
    for _ in range(3):
        subprocess.run(
            [sys.executable, "-c", rude, process.name, str(Path(__file__).parent)],
            cwd=process.errors.parent,
            check=True,
            timeout=60,
        )
        assert robot.learn(insight=f"polite {time.monotonic_ns()}").success
    assert process.process.poll() is None


SENSOR_NODE = '''
import sys, time
from robotmem_ros import node

class SensorNode(node.RobotmemNode):
    """The node with a sensor's timer, as capture and trajectory have them."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.last = time.monotonic()
        self.gaps = []
        self.create_timer(0.01, self.tick)

    def tick(self):
        now = time.monotonic()
        self.gaps.append(now - self.last)
        self.last = now
        if len(self.gaps) == 500:
            print("GAPS", max(self.gaps[50:]), file=sys.stderr, flush=True)
            self.gaps.clear()

class SlowMemory(node.RobotMemory):
    def learn(self, experience):
        time.sleep(0.2)
        return super().learn(experience)

node.RobotmemNode, node.RobotMemory = SensorNode, SlowMemory
from robotmem_ros.main import main
main()
'''


def test_a_100_hz_timer_flows_beside_slow_learns(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(program=("-c", SENSOR_NODE))
    robot = harness.Robot(caller, process.name).wait_ready()
    answers = [robot.start("learn", insight=f"slow {i}") for i in range(25)]
    recalls = 0
    deadline = time.monotonic() + harness.PATIENCE
    while "GAPS" not in process.stderr:
        assert time.monotonic() < deadline
        assert robot.recall(query="slow").success
        recalls += 1
    assert all(answer().success for answer in answers)
    longest = float(process.stderr.split("GAPS ")[1].split()[0])
    assert longest < 0.15, "shorter than a single one of the slow learns"
    assert recalls > 25, "recalls waited behind slow learns"
