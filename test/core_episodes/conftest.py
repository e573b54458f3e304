# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of episodes, imports and reminders, which need no ROS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ros_clock import Clock

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db_path(tmp_path: Path) -> str:
    return str(tmp_path / "memories.db")


@pytest.fixture
def open_memory(db_path: str, clock: Clock) -> Iterator[Callable[..., RobotMemory]]:
    """Open memories that are closed at the end; keyword search alone unless told otherwise."""
    opened: list[RobotMemory] = []

    def start(
        *, owner: str = "", now: Callable[[], int] | None = None, **settings: Any
    ) -> RobotMemory:
        settings = {"db_path": db_path, "embed_backend": "none", **settings}
        opened.append(RobotMemory(Config(**settings), now=now or clock, owner=owner))
        return opened[-1]

    yield start
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: Callable[..., RobotMemory]) -> RobotMemory:
    return open_memory()
