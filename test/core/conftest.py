# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Settings and fixtures of the core's tests, which need no ROS."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory

_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("quick", **_COMMON, derandomize=True, max_examples=100)
settings.register_profile("long", **_COMMON, max_examples=1000)
# ROBOTMEM_HYPOTHESIS=long searches on, from another start each time.
settings.load_profile(os.environ.get("ROBOTMEM_HYPOTHESIS", "quick"))


@pytest.fixture(scope="session")
def fast_folder() -> Iterator[Path]:
    """A folder in memory where there is one: stores made by the thousand need not be durable."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def db_path(tmp_path: Path) -> str:
    return str(tmp_path / "memories.db")


@pytest.fixture
def open_memory(db_path: str) -> Iterator[Callable[..., RobotMemory]]:
    """Open memories that are closed at the end; keyword search alone unless told otherwise."""
    opened: list[RobotMemory] = []

    def start(*, now: Callable[[], int] | None = None, **settings: Any) -> RobotMemory:
        settings = {"db_path": db_path, "embed_backend": "none", **settings}
        clock = {} if now is None else {"now": now}
        opened.append(RobotMemory(Config(**settings), **clock))
        return opened[-1]

    yield start
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: Callable[..., RobotMemory]) -> RobotMemory:
    return open_memory()
