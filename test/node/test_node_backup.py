# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""~/backup of a running node: answered at once, told on ~/status, harmless when interrupted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from robotmem_ros.msg import Status  # noqa: E402

from robotmem_ros import qos  # noqa: E402
from robotmem_ros.core.store import check  # noqa: E402


def test_a_node_backs_up_while_it_learns(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "copies"
    process = start_node(backup_directory=str(folder), backup_keep=2)
    robot = harness.Robot(caller, process.name).wait_ready()
    statuses = caller.listen(Status, f"{process.name}/status", qos.STATUS)
    results: list[str] = []

    def new_result() -> str:
        last = statuses[-1] if statuses else Status()
        return "" if last.task or last.task_result in results else last.task_result

    for i in range(3):
        assert robot.learn(insight=f"learned before backup {i}").success
        answer = robot.backup()
        assert answer.success, answer.message
        assert answer.message == "backup started; progress is on ~/status"
        assert robot.learn(insight=f"learned meanwhile {i}").success
        results.append(harness.wait_for(new_result))
        found = check.check(path_in(results[-1]))
        assert (found.damages, found.disagreements) == ((), ())
        assert found.memories in (2 * i + 1, 2 * i + 2)
    newest = [os.path.basename(path_in(result)) for result in results[1:]]
    assert sorted(os.listdir(folder)) == sorted(newest)


def path_in(result: str) -> str:
    """Return the file that the result of a backup names."""
    assert result.startswith("backup of "), result
    return result.split(": ")[1].split(" (")[0]


def test_a_backup_that_fails_is_told(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    process = start_node(backup_directory=str(tmp_path / "file"))
    robot = harness.Robot(caller, process.name).wait_ready()
    statuses = caller.listen(Status, f"{process.name}/status", qos.STATUS)
    assert robot.backup().success
    said = harness.wait_for(lambda: statuses and statuses[-1].task_result)
    assert said.startswith("backup failed: ")
    assert str(tmp_path / "file") in said
    assert robot.learn(insight="it goes on").success
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_node_that_backs_up(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path, how: signal.Signals
) -> None:
    folder = tmp_path / "copies"
    process = start_node(backup_directory=str(folder))
    robot = harness.Robot(caller, process.name).wait_ready()
    for i in range(20):
        robot.learn(insight=f"text {i} " + "long " * 10_000)
    assert robot.backup().success
    process.kill(how)
    assert process.wait() == 0
    assert "Traceback" not in process.stderr
    left = os.listdir(folder) if folder.exists() else []
    assert all(name.endswith(".backup") for name in left)
    for name in left:
        assert check.check(str(folder / name)).damages == ()
