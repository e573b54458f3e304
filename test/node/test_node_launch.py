# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The launch file: with ros2 launch where that is installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")
pytest.importorskip("launch_ros.actions", reason="needs launch_ros")

ROS2 = shutil.which("ros2")
if ROS2 is None:
    pytest.skip("needs the ros2 command", allow_module_level=True)


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Any]:
    processes = []

    def launch(*arguments: str) -> Any:
        with (tmp_path / "launch.txt").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, ROS2, "launch", "robotmem_ros", "robotmem.launch.py", *arguments],
                cwd=tmp_path,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "ROS_LOG_DIR": str(tmp_path / "log")},
            )
        processes.append(process)
        return process

    yield launch
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_every_argument(launched: Any, caller: Any, tmp_path: Path) -> None:
    parameters = tmp_path / "mine.yaml"
    parameters.write_text(
        "/**:\n  ros__parameters:\n    embed_backend: none\n    collection: launched\n"
    )
    process = launched(
        "namespace:=launched",
        f"params_file:={parameters}",
        f"db_path:={tmp_path / 'launched.db'}",
        "use_sim_time:=true",
        "autostart:=false",
        "log_level:=warn",
    )
    robot = harness.Robot(caller, "/launched/robotmem")
    assert "configure" in robot.learn(insight="x").message
    robot.change_state(transition=_transition(1))
    robot.change_state(transition=_transition(3))
    assert "/clock" in robot.learn(insight="x").message
    assert (tmp_path / "launched.db").exists()
    process.send_signal(signal.SIGINT)
    assert process.wait(harness.PATIENCE) == 0
    assert "process has finished cleanly" in (tmp_path / "launch.txt").read_text()


def test_without_arguments_the_file_of_the_package_is_used(
    launched: Any, caller: Any, tmp_path: Path
) -> None:
    process = launched(f"db_path:={tmp_path / 'default.db'}")
    robot = harness.Robot(caller, "/robotmem").wait_ready()
    answer = robot.learn(insight="started by launch")
    assert answer.success, answer.message
    process.send_signal(signal.SIGINT)
    assert process.wait(harness.PATIENCE) == 0


def _transition(number: int) -> Any:
    from lifecycle_msgs.msg import Transition

    return Transition(id=number)
