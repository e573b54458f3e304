# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that capture from live topics: the node, and a caller that publishes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness import Caller, NodeProcess

sys.path.append(str(Path(__file__).parents[1] / "node"))  # the harness of the node

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
    """Return a node that publishes and calls services."""
    from harness import Caller

    caller = Caller("publisher")
    yield caller
    caller.close()
