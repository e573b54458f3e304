# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The end of the node: signals in the middle of anything, kill -9, and no thread left behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import soundness

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from robotmem_ros import msg, qos  # noqa: E402

PROMPT = 3.0
"""Seconds in which a node must end: one on a computer that does nothing else."""

ONCE_AND_TWICE = [
    (signal.SIGINT,),
    (signal.SIGTERM,),
    (signal.SIGINT, signal.SIGINT),
    (signal.SIGTERM, signal.SIGTERM),
    (signal.SIGINT, signal.SIGTERM),
]


def _end(process: Any, signals: tuple[int, ...] = (signal.SIGTERM,)) -> None:
    start = time.monotonic()
    for number in signals:
        process.kill(number)
        time.sleep(0.02)
    assert process.wait() == 0
    assert time.monotonic() - start < PROMPT
    assert "Traceback" not in process.stderr
    assert "Warning" not in process.stderr


def _check_database(path: Path) -> None:
    # A database that was closed leaves no write-ahead log behind.
    assert not path.with_name(path.name + "-wal").exists()
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("signals", ONCE_AND_TWICE)
def test_idle(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path, signals: tuple[int, ...]
) -> None:
    process = start_node()
    assert harness.Robot(caller, process.name).wait_ready().learn(insight="x").success
    _end(process, signals)
    _check_database(tmp_path / "robotmem.db")


@pytest.mark.parametrize("signals", ONCE_AND_TWICE)
def test_in_a_burst_of_learns(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path, signals: tuple[int, ...]
) -> None:
    process = start_node()
    robot = harness.Robot(caller, process.name).wait_ready()
    answers = [robot.start("learn", insight=f"burst {i}") for i in range(200)]
    answers[3]()
    _end(process, signals)
    _check_database(tmp_path / "robotmem.db")
    stored = []
    for answer in answers:
        try:
            stored.append(answer(timeout=0.0))
        except AssertionError:
            break  # what was not answered may be stored or not
    assert len(stored) >= 4
    again = start_node()
    robot = harness.Robot(caller, again.name).wait_ready()
    ids = [a.memory_id for a in stored if a.success]
    assert robot.get(memory_ids=ids).success


def test_in_the_middle_of_recalls(start_node: Callable[..., Any], caller: Any) -> None:
    process = start_node()
    robot = harness.Robot(caller, process.name).wait_ready()
    for i in range(50):
        robot.learn(insight=f"something to find {i}")
    for i in range(200):
        robot.start("recall", query=f"something {i}", n=50)
    _end(process)


def test_while_a_query_waits_for_its_vector(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path
) -> None:
    model = os.environ.get("ROBOTMEM_MODEL_PATH", "")
    if not model:
        pytest.skip("ROBOTMEM_MODEL_PATH names no model directory")
    process = start_node(
        embed_backend="onnx", model_path=model, onnx_model="sentence-transformers/all-MiniLM-L6-v2"
    )
    robot = harness.Robot(caller, process.name).wait_ready()
    for i in range(20):
        robot.start("learn", insight="long text " * 200 + str(i))
    robot.start("recall", query="long text")
    _end(process)
    _check_database(tmp_path / "robotmem.db")


@pytest.mark.parametrize("signals", ONCE_AND_TWICE)
@pytest.mark.parametrize("cores", ["all cores", "one core"])
def test_in_the_middle_of_everything(
    start_node: Callable[..., Any],
    caller: Any,
    tmp_path: Path,
    signals: tuple[int, ...],
    cores: str,
) -> None:
    """Learns, recalls, updates, an episode that ends, an index made anew, a flood of imports."""
    prefix = ("taskset", "-c", "0") if cores == "one core" else ()
    if prefix and subprocess.run([*prefix, "true"], check=False).returncode != 0:
        pytest.skip("needs taskset")
    topic = f"/flood{len(signals)}{signals[0]}{signals[-1]}{len(prefix)}/memories"
    process = start_node(prefix=prefix, import_topics=f"[{topic}]")
    robot = harness.Robot(caller, process.name).wait_ready()
    flood = caller.node.create_publisher(msg.Memory, topic, qos.MEMORIES)
    harness.wait_for(flood.get_subscription_count)
    assert robot.start_session().success
    learned = [robot.learn(insight=f"before {i}") for i in range(20)]
    answers = [robot.start("learn", insight=f"burst {i}") for i in range(60)]
    for i in range(300):
        one = msg.Memory(content=f"flood {i}", uuid=str(uuid.uuid4()), type="fact", context="{}")
        one.collection = "flood"
        one.header.stamp.sec = one.created_at.sec = 1
        flood.publish(one)
    for i in range(20):
        robot.start("recall", query=f"burst {i}", n=50)
        robot.start("update", memory_id=learned[i].memory_id, new_content=f"changed {i}")
    for service in ("end_session", "reindex", "backup"):
        robot.start(service)
    answers[0]()
    time.sleep(random.uniform(0.0, 0.2))
    _end(process, signals)
    _check_database(tmp_path / "robotmem.db")
    caller.node.destroy_publisher(flood)
    answered = [answer(timeout=0.0) for answer in answers if _is_there(answer)]
    with soundness.opened(str(tmp_path / "robotmem.db")) as connection:
        assert soundness.problems(connection) == []
        stored = {memory.uuid for memory in soundness.stored(connection).values()}
    assert {a.uuid for a in (*learned, *answered) if a.success} <= stored


def _is_there(answer: Callable[..., Any]) -> bool:
    try:
        answer(timeout=0.0)
    except AssertionError:
        return False
    return True


def test_in_the_middle_of_a_backfill(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path
) -> None:
    model = os.environ.get("ROBOTMEM_MODEL_PATH", "")
    if not model:
        pytest.skip("ROBOTMEM_MODEL_PATH names no model directory")
    first = start_node()
    robot = harness.Robot(caller, first.name).wait_ready()
    answers = [robot.start("learn", insight=f"{'long text ' * 50}{i}") for i in range(200)]
    assert all(answer().success for answer in answers)
    _end(first)
    for signals in ONCE_AND_TWICE:
        process = start_node(
            embed_backend="onnx",
            model_path=model,
            onnx_model="sentence-transformers/all-MiniLM-L6-v2",
        )
        robot = harness.Robot(caller, process.name).wait_ready()
        assert robot.backfill().success
        time.sleep(random.uniform(0.0, 1.5))
        _end(process, signals)
        _check_database(tmp_path / "robotmem.db")
        with soundness.opened(str(tmp_path / "robotmem.db")) as connection:
            assert soundness.problems(connection) == []


def test_at_any_moment_of_the_start(start_node: Callable[..., Any]) -> None:
    delays = [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, random.uniform(0.0, 1.0)]
    for delay in delays:
        process = start_node()
        # Python itself must have come as far as our first line.
        harness.wait_for(lambda pid=process.pid: _blocks_signals(pid))
        time.sleep(delay)
        _end(process, (signal.SIGINT, signal.SIGTERM))


def _blocks_signals(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    (line,) = [x for x in status.read_text().splitlines() if x.startswith("SigBlk:")]
    return bool(int(line.split()[1], 16) & 1 << (signal.SIGTERM - 1))


def test_killed_right_after_the_answer(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path
) -> None:
    learned = []
    for i in range(3):
        process = start_node()
        robot = harness.Robot(caller, process.name).wait_ready()
        answer = robot.learn(insight=f"survives kill number {i}")
        process.kill(signal.SIGKILL)
        process.wait()
        assert answer.success
        learned.append(answer)
    robot = harness.Robot(caller, start_node().name).wait_ready()
    found = robot.get(uuids=[a.uuid for a in learned])
    assert found.success, found.message
    assert [m.id for m in found.memories] == [a.memory_id for a in learned]
    assert robot.recall(query="survives kill").total == 3


MANY_STARTS = """
import gc, os, sys, threading
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from robotmem_ros.node import RobotmemNode

def threads():
    return len(os.listdir("/proc/self/task"))

seen = []
for i in range(50):
    rclpy.init(args=["--ros-args", "-r", "__ns:=/many"])
    executor = SingleThreadedExecutor()
    node = RobotmemNode(parameter_overrides=[
        Parameter("db_path", value=sys.argv[1]), Parameter("embed_backend", value="none"),
        Parameter("context_sources", value=["pose"]), Parameter("pose_source", value="pose"),
        Parameter("pose.topic", value="pose"), Parameter("remind_radius", value=1.0),
        Parameter("pose.type", value="geometry_msgs/msg/PoseStamped"),
        Parameter("import_topics", value=["/other/memories", "/other/episodes"]),
    ])
    executor.add_node(node)
    node.autostart()
    executor.spin_once(0.05)
    node.destroy_node()
    executor.shutdown()
    rclpy.shutdown()
    assert threading.active_count() == 1, threading.enumerate()
    # The threads of DDS end with the handles of rclpy, which hold each other (any node's do).
    del node, executor
    gc.collect()
    seen.append(threads())
print("threads", seen[4], max(seen[5:]))
"""


def test_fifty_starts_in_one_process_leave_no_thread(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MANY_STARTS, str(tmp_path / "many.db")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _, early, most = done.stdout.split()
    assert int(most) <= int(early) + 1
    assert not done.stderr
