# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of several processes share: the real node as a process, and a caller over DDS.

On a machine that is busy with something else DDS may take longer to bring two processes together
than a test waits, or drop what is said before it has. So such a test runs again if it failed; what
fails three times in a row is broken. At the end stands what the tests of trouble did.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tally

if TYPE_CHECKING:
    from harness import Caller, NodeProcess

HERE = Path(__file__).parent

PROCESSES = ("capture", "embedding", "node")

# What one folder has for the tests of another: the harness of the node, the writer of bags, what
# learners do.
sys.path += [str(HERE / folder) for folder in ("node", "bags", "trouble")]

# A domain of our own, and no further than this computer: before rclpy is loaded.
os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
if os.environ.get("ROS_DISTRO") == "humble":
    os.environ.setdefault("ROS_LOCALHOST_ONLY", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in the folders that start processes."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).parts[0] in PROCESSES:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=1))


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
    """Return a node that calls services, publishes, and listens to topics."""
    from harness import Caller

    caller = Caller()
    yield caller
    caller.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the store and the node went through."""
    lines = tally.lines()
    if lines:
        terminalreporter.section("trouble")
        for line in lines:
            terminalreporter.line(line)
