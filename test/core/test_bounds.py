# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Every queue of the core has a bound, and what does not fit is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from robotmem_ros.core import touches, trajectory
from robotmem_ros.core.errors import InvalidRequestError, StoreError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Pose, Query

Open = Callable[..., RobotMemory]


@pytest.fixture
def stuck(memory: RobotMemory, monkeypatch: pytest.MonkeyPatch) -> RobotMemory:
    """A memory in whose background nothing can be written."""

    def refuse(*_: Any) -> None:
        raise StoreError("not now")

    for i in range(20):
        memory.learn(Experience(f"cup {i}"))
    monkeypatch.setattr(memory._store, "touch", refuse)
    monkeypatch.setattr(memory._store.sessions, "add_poses", refuse)
    monkeypatch.setattr(touches, "_MAX_WAITING", 5)
    monkeypatch.setattr(trajectory, "_MAX_WAITING", 5)
    return memory


def test_reads_that_cannot_be_recorded_are_counted(stuck: RobotMemory) -> None:
    assert stuck.queues["reads"].refused == 0
    assert len(stuck.recall(Query("cup", n=20)).memories) == 20
    queue = stuck.queues["reads"]
    assert queue.length <= 5
    assert queue.refused == 15
    assert queue.refused_at > 0


def test_poses_that_cannot_be_written_are_counted(stuck: RobotMemory) -> None:
    assert stuck.queues["trajectory"].length == 0
    stuck.start_session()
    stuck.add_trajectory([Pose("map", (float(i), 0.0, 0.0), stamp=i) for i in range(12)])
    queue = stuck.queues["trajectory"]
    assert (queue.length, queue.refused) == (5, 7)


def test_limits_are_settings(open_memory: Open) -> None:
    memory = open_memory(max_results=3, max_get=2, max_content_bytes=100, max_context_bytes=100)
    for i in range(5):
        memory.learn(Experience(f"cup {i}"))
    result = memory.recall(Query("cup", n=50))
    assert len(result.memories) == 3
    assert "held to 1..3" in result.note
    assert len(memory.get(ids=[1, 2])[0]) == 2
    for call in (
        lambda: memory.get(ids=[1, 2, 3]),
        lambda: memory.learn(Experience("x" * 101)),
        lambda: memory.learn(Experience("x", {"a": "x" * 101})),
    ):
        with pytest.raises(InvalidRequestError):
            call()


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_durability_is_what_was_asked_for(open_memory: Open, durability: str, level: int) -> None:
    database = open_memory(durability=durability)._store._database
    with database.write() as connection:
        assert connection.pragma("synchronous") == level
    assert open_memory()._config.durability == "full"
