# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Capture from many threads while it opens, closes and forgets; and the times of messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")
streams = pytest.importorskip("streams", reason="needs ROS 2")

import rclpy  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from std_msgs.msg import Float64  # noqa: E402

from robotmem_ros.capture import Capture  # noqa: E402
from robotmem_ros.node_config import NodeConfig  # noqa: E402

PARAMETERS = {
    "load.topic": "load",
    "load.type": "std_msgs/msg/Float64",
    "load.fields": "['params.load.value = data']",
}


class Listener:
    """A node of this process that captures one topic."""

    def __init__(self) -> None:
        self.context = rclpy.Context()
        arguments = [f"{name}:={value}" for name, value in PARAMETERS.items()]
        parameters = [word for pair in arguments for word in ("-p", pair)]
        rclpy.init(args=["--ros-args", *parameters], context=self.context)
        self.node = rclpy.create_node("listener", namespace="/threads", context=self.context)
        self.errors: list[str] = []
        settings = NodeConfig(context_sources=("load",))
        self.capture = Capture(self.node, settings, self._explain)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._spin)
        self._thread.start()

    def task(self, action: Any) -> None:
        """Do something in the executor's thread, and wait for it."""
        done = threading.Event()
        self._executor.create_task(lambda: (action(), done.set()))
        assert done.wait(30.0)

    def close(self) -> None:
        self.task(self.capture.close)
        self._end.set()
        self._thread.join()
        self.node.destroy_node()
        self._executor.shutdown()
        rclpy.try_shutdown(context=self.context)

    def _spin(self) -> None:
        while not self._end.is_set():
            self._executor.spin_once(0.05)

    def _explain(self, error: Exception, where: str) -> str:
        self.errors.append(f"{where}: {error!r}")
        return self.errors[-1]


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


def test_threads_capture_while_it_opens_closes_and_forgets(
    listener: Listener, caller: Any
) -> None:
    ended = threading.Event()
    found: list[float] = []

    def ask() -> None:
        while not ended.is_set():
            context = listener.capture.at(0).context
            if "params" in context:
                found.append(context["params"]["load"]["value"])
            listener.capture.pose()
            listener.capture.states()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    with streams.Stream(caller.node, "/threads/load", Float64(data=1.5), rate=200.0):
        for thread in threads:
            thread.start()
        for _ in range(3):
            listener.task(listener.capture.open)
            listener.task(listener.capture.open)
            found.clear()
            harness.wait_for(lambda: len(found) > 20)
            listener.task(listener.capture.clear)
            listener.task(listener.capture.close)
            listener.task(listener.capture.close)
        ended.set()
        for thread in threads:
            thread.join(30.0)
    assert not any(thread.is_alive() for thread in threads)
    assert listener.errors == []


def test_the_state_of_a_source(listener: Listener, caller: Any) -> None:
    def state() -> Any:
        return listener.capture.states()[0]

    listener.task(listener.capture.open)
    assert (state().name, state().topic, state().age) == ("load", "/threads/load", None)
    assert state().stale
    with streams.Stream(caller.node, "/threads/load", Float64(data=1.5)):
        fresh = harness.wait_for(lambda: None if state().stale else state())
        assert 0.0 <= fresh.age < 2.0
        harness.wait_for(lambda: state().publishers == 1)
    harness.wait_for(lambda: state().publishers == 0)
    harness.wait_for(lambda: state().stale)


def test_a_message_gets_the_ros_time_at_which_it_came(listener: Listener) -> None:
    capture = listener.capture
    capture._before = (1000, 50_000)  # of wall time and of simulated time, which runs at a tenth
    received = capture._received(2000, 50_100)
    assert [received(wall) for wall in (1000, 1500, 2000)] == [50_000, 50_050, 50_100]
    assert [received(wall) for wall in (0, 900, 2500)] == [50_000, 50_000, 50_100]
    capture._before = None
    wall = time.time_ns()
    assert capture._received(wall, 7)(wall - 5) == 7
