# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The real node as a process, and a ROS node of our own that calls it over DDS."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rclpy
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger

from robotmem_ros import qos, srv

SERVICES: dict[str, Any] = {
    "learn": srv.Learn,
    "recall": srv.Recall,
    "get": srv.Get,
    "forget": srv.Forget,
    "update": srv.Update,
    "save_perception": srv.SavePerception,
    "start_session": srv.StartSession,
    "end_session": srv.EndSession,
    "backfill": Trigger,
    "reindex": Trigger,
    "backup": Trigger,
    "change_state": ChangeState,
    "get_state": GetState,
    "set_parameters": SetParameters,
}

PATIENCE = 30.0
"""Seconds to wait for what takes a fraction of one on a free computer."""


class NodeProcess:
    """One robotmem_node as a process of its own."""

    count = 0

    def __init__(
        self,
        folder: Path,
        *,
        arguments: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
        program: tuple[str, ...] = ("-m", "robotmem_ros.main"),
        namespace: str = "",
        **parameters: Any,
    ) -> None:
        NodeProcess.count += 1
        # A namespace for each: DDS takes a while to forget a process that was killed.
        namespace = namespace or f"/run{NodeProcess.count}"
        self.name = f"{namespace}/robotmem"
        parameters.setdefault("db_path", str(folder / "robotmem.db"))
        parameters.setdefault("embed_backend", "none")
        command = [*prefix, sys.executable, *program, "--ros-args"]
        command += ["-r", f"__ns:={namespace}", *arguments]
        for name, value in parameters.items():
            command += ["-p", f"{name}:={_yaml(value)}"]
        self.errors = folder / f"stderr-{time.monotonic_ns()}.txt"
        with self.errors.open("wb") as stderr:
            # Not in the checkout, whose folder robotmem_ros has no interfaces.
            self.process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.DEVNULL, stderr=stderr
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stderr(self) -> str:
        return self.errors.read_text(errors="replace")

    def kill(self, signal_number: int = signal.SIGKILL) -> None:
        self.process.send_signal(signal_number)

    def wait(self, timeout: float = PATIENCE) -> int:
        return self.process.wait(timeout)

    def end(self) -> None:
        """End it gently, or else by force."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Caller:
    """A ROS node in this process that calls the memory and listens to it."""

    def __init__(self, name: str = "caller") -> None:
        self.context = rclpy.Context()
        rclpy.init(args=[], context=self.context)
        self.node = rclpy.create_node(name, context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self._clients: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def client(self, kind: Any, name: str) -> Any:
        """Return a client of a service, connected."""
        if name not in self._clients:
            # As deep as the server's, so that many calls at once are kept.
            client = self.node.create_client(kind, name, qos_profile=qos.SERVICES)
            self._clients[name] = client
            self.executor.wake()
        client = self._clients[name]
        deadline = time.monotonic() + PATIENCE
        while not client.service_is_ready():
            assert time.monotonic() < deadline, f"no service {name}"
            time.sleep(0.01)
        return client

    def start(self, kind: Any, name: str, request: Any) -> Callable[..., Any]:
        """Send a request; the result waits for the answer when it is called."""
        done = threading.Event()
        future = self.client(kind, name).call_async(request)
        future.add_done_callback(lambda _: done.set())

        def answer(timeout: float = PATIENCE) -> Any:
            assert done.wait(timeout), f"{name} did not answer"
            return future.result()

        return answer

    def call(self, kind: Any, name: str, timeout: float = PATIENCE, **fields: Any) -> Any:
        """Call a service and return its answer."""
        return self.start(kind, name, kind.Request(**fields))(timeout)

    def listen(self, kind: Any, topic: str, profile: QoSProfile) -> list[Any]:
        """Return a list that grows with the messages of a topic, once it is connected."""
        heard: list[Any] = []
        self.node.create_subscription(kind, topic, heard.append, profile)
        self.executor.wake()
        wait_for(lambda: self.node.count_publishers(topic) > 0)
        time.sleep(0.2)  # the publisher has to find us as well
        return heard

    def close(self) -> None:
        rclpy.shutdown(context=self.context)
        self._thread.join(5.0)

    def _spin(self) -> None:
        while self.context.ok():
            try:
                self.executor.spin_once()
            except Exception:
                if self.context.ok():
                    raise


class Robot:
    """The services of one memory node in short form: robot.learn(insight=...)."""

    def __init__(self, caller: Caller, name: str) -> None:
        self.caller = caller
        self.name = name

    def __getattr__(self, service: str) -> Callable[..., Any]:
        return functools.partial(self.caller.call, SERVICES[service], f"{self.name}/{service}")

    def start(self, service: str, **fields: Any) -> Callable[..., Any]:
        """Send a request; the result waits for the answer when it is called."""
        kind = SERVICES[service]
        return self.caller.start(kind, f"{self.name}/{service}", kind.Request(**fields))

    def wait_ready(self) -> Robot:
        """Wait until the node serves requests."""
        wait_for(lambda: "not active" not in self.get(memory_ids=[1]).message)
        return self


def wait_for(condition: Callable[[], Any], timeout: float = PATIENCE) -> Any:
    """Wait until a condition holds and return what it returned."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if value != "" else "''"
