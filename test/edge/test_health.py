# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What is known of the store between two readings, and what a reading that fails leaves."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("robotmem_ros.msg", reason="needs ROS 2 and the built package")

from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import ConfigError, StoreError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience
from robotmem_ros.health import Health
from robotmem_ros.worker import NotServedError


class Lane:
    """Does the work at once, or fails as it is told."""

    error: Exception | None = None

    async def work(self, lane: str, work: Any) -> Any:
        if self.error is not None:
            raise self.error
        return work()


@pytest.fixture
def memory(tmp_path: Any) -> Any:
    with RobotMemory(Config(db_path=str(tmp_path / "h.db"), embed_backend="none")) as memory:
        yield memory


@pytest.fixture
def lane() -> Lane:
    return Lane()


@pytest.fixture
def health(lane: Lane) -> Health:
    boundary: Any = SimpleNamespace(last_error="", failed_at=-math.inf)
    server: Any = lane
    return Health(server, boundary)


def read(health: Health, memory: Any) -> Any:
    return asyncio.run(health.read(memory, active=True))


def vitals(health: Health, memory: Any, failure: Exception | None = None) -> Any:
    return health.vitals(memory, True, failure, [], {})


def test_one_reading_serves_both_topics(health: Health, memory: RobotMemory) -> None:
    memory.learn(Experience("something"))
    session = memory.start_session().episode.session_id
    message = read(health, memory)
    assert (message.ready, message.memories, message.open_session) == (True, 1, session)
    known = vitals(health, memory)
    assert (known.status.memories, known.session) == (1, session)
    assert 0.0 <= known.time - known.read_at < 5.0


def test_before_the_first_reading_nothing_is_known(health: Health, memory: RobotMemory) -> None:
    known = vitals(health, memory)
    assert known.status is None
    assert known.time - known.read_at < 5.0


def test_a_busy_lane_keeps_what_is_known(health: Health, memory: Any, lane: Lane) -> None:
    read(health, memory)
    lane.error = NotServedError("busy")
    with pytest.raises(NotServedError):
        read(health, memory)
    assert vitals(health, memory).status is not None


def test_a_reading_that_fails_forgets_it(health: Health, memory: Any, lane: Lane) -> None:
    read(health, memory)
    lane.error = StoreError("disk failed")
    with pytest.raises(StoreError):
        read(health, memory)
    known = vitals(health, memory)
    assert (known.status, known.read_at) == (None, -math.inf)


def test_what_was_read_of_another_store_is_forgotten(health: Health, memory: Any) -> None:
    read(health, memory)
    assert vitals(health, None).status is None
    assert read(health, None).ready
    assert vitals(health, None).session == ""


def test_a_shutdown_is_no_failure(health: Health, memory: RobotMemory) -> None:
    assert vitals(health, memory, NotServedError("it was shut down")).failure == ""
    assert vitals(health, memory, ConfigError("db_path: no")).failure == "db_path: no"
