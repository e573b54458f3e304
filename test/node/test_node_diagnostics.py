# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""/diagnostics of a running node: once a second, with what an operator needs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from driving import POSES, Driver  # noqa: E402

from robotmem_ros import qos  # noqa: E402


class Listener:
    """The statuses of one node, by name, and when they came."""

    def __init__(self, caller: Any, name: str) -> None:
        self.prefix = f"{name.strip('/')}: "
        self.times: list[float] = []
        self.last: dict[str, Any] = {}
        caller.node.create_subscription(
            DiagnosticArray, "/diagnostics", self._on_array, qos.DIAGNOSTICS
        )
        caller.executor.wake()

    def values(self, part: str) -> dict[str, str]:
        return {v.key: v.value for v in self.last[part].values}

    def wait_for(self, part: str, level: bytes) -> Any:
        harness.wait_for(lambda: part in self.last and self.last[part].level == level)
        return self.last[part]

    def _on_array(self, array: Any) -> None:
        found = {
            s.name.removeprefix(self.prefix): s
            for s in array.status
            if s.name.startswith(self.prefix)
        }
        if found:
            self.times.append(time.monotonic())
            self.last = found


def test_a_healthy_node_tells_its_state_once_a_second(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(hardware_id="robot-7", **POSES)
    listener = Listener(caller, process.name)
    robot = harness.Robot(caller, process.name).wait_ready()
    silent = listener.wait_for("sources", DiagnosticStatus.WARN)
    assert "pose" in silent.message
    assert listener.values("sources")["stale sources"] == "pose"
    driver = Driver(caller, process.name)
    robot.learn(insight="to be counted")
    session = robot.start_session().session_id
    begin = time.monotonic()
    while time.monotonic() < begin + 5.0:
        driver.at(1.0)
        time.sleep(0.1)
    gaps = [b - a for a, b in itertools.pairwise(listener.times) if b > begin]
    assert 4 <= len(gaps) <= 6
    assert 0.8 < sum(gaps) / len(gaps) < 1.2
    assert {s.level for s in listener.last.values()} == {DiagnosticStatus.OK}
    assert {s.hardware_id for s in listener.last.values()} == {"robot-7"}
    store = listener.values("store")
    assert store["memories"] == "1"
    assert store["open episode"] == session
    assert int(store["size (bytes)"]) > 0
    assert store["file"].endswith("robotmem.db")
    assert store["last error"] == ""
    assert listener.values("embedder")["backend"] == "none"
    assert listener.values("embedder")["pending vectors"] == "0"
    assert "recall waiting" in listener.values("requests")
    assert listener.values("sources")["stale sources"] == ""


def test_an_inactive_node_is_stale_and_a_broken_store_an_error(
    start_node: Callable[..., Any], caller: Any, tmp_path: Any
) -> None:
    idle = Listener(caller, start_node(autostart=False).name)
    assert idle.wait_for("store", DiagnosticStatus.STALE).message == "the node is not active"
    broken_file = tmp_path / "broken.db"
    broken_file.write_bytes(b"this is no database" * 1000)
    broken = Listener(caller, start_node(db_path=str(broken_file)).name)
    assert "broken.db" in broken.wait_for("store", DiagnosticStatus.ERROR).message


def test_an_embedder_that_is_down_is_a_warning_with_its_reason(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(embed_backend="ollama", ollama_url="http://127.0.0.1:9")
    listener = Listener(caller, process.name)
    robot = harness.Robot(caller, process.name).wait_ready()
    robot.learn(insight="without a vector")
    down = listener.wait_for("embedder", DiagnosticStatus.WARN)
    harness.wait_for(lambda: listener.values("embedder")["pending vectors"] == "1")
    harness.wait_for(lambda: "127.0.0.1:9" in listener.last["embedder"].message)
    assert down.message
