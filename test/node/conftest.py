# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures that run the real node as a process and call it over DDS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness import Caller, NodeProcess, Robot

# A domain of our own, and no further than this computer: before rclpy is loaded.
os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
if os.environ.get("ROS_DISTRO") == "humble":
    os.environ.setdefault("ROS_LOCALHOST_ONLY", "1")


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[Callable[..., NodeProcess]]:
    """Start node processes, which end with the test."""
    from harness import NodeProcess

    started: list[NodeProcess] = []

    def start(**options: object) -> NodeProcess:
        started.append(NodeProcess(tmp_path, **options))
        return started[-1]

    yield start
    for process in started:
        process.end()


@pytest.fixture(scope="module")
def caller() -> Iterator[Caller]:
    """Return a node that calls services and listens to topics."""
    from harness import Caller

    caller = Caller()
    yield caller
    caller.close()


@pytest.fixture(scope="module")
def robot(caller: Caller, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Robot]:
    """Return the services of a running node that the tests of one module share."""
    from harness import NodeProcess, Robot

    process = NodeProcess(tmp_path_factory.mktemp("robot"))
    yield Robot(caller, process.name).wait_ready()
    process.end()
