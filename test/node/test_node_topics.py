# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""~/memories and ~/status as other nodes hear them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from robotmem_ros import msg, qos  # noqa: E402


def test_memories_are_published_when_stored_and_when_changed(robot: Any) -> None:
    heard = robot.caller.listen(msg.Memory, f"{robot.name}/memories", qos.MEMORIES)
    learned = robot.learn(insight="published once", context='{"task": {"name": "pick"}}')
    assert robot.learn(insight="published once", context='{"task": {"name": "pick"}}').success
    robot.update(memory_id=learned.memory_id, new_content="published twice")
    robot.save_perception(description="a beep", perception_type="auditory")
    harness.wait_for(lambda: len(heard) >= 3)
    assert [m.content for m in heard] == ["published once", "published twice", "a beep"]
    assert [m.id for m in heard[:2]] == [learned.memory_id] * 2
    assert {m.uuid for m in heard[:2]} == {learned.uuid}
    assert heard[0].context == '{"task":{"name":"pick"}}'
    assert heard[1].updated_at != heard[1].created_at
    assert heard[2].perception_type == "auditory"


def test_a_late_subscriber_gets_the_present_status(robot: Any) -> None:
    before = harness.wait_for(lambda: robot.get(memory_ids=[1]))
    assert before is not None
    heard = robot.caller.listen(msg.Status, f"{robot.name}/status", qos.STATUS)
    harness.wait_for(lambda: heard)
    status = heard[0]
    assert status.ready
    assert status.db_path.endswith("robotmem.db")
    assert status.schema_version >= 1
    assert (status.backend, status.model, status.dimension) == ("none", "", 0)
    assert status.keyword_available
    assert status.version
    assert not status.last_error
    assert status.header.stamp.sec > 0


def test_status_comes_when_it_changes_and_at_most_once_a_second(robot: Any) -> None:
    heard = robot.caller.listen(msg.Status, f"{robot.name}/status", qos.STATUS)
    harness.wait_for(lambda: heard)
    stored = robot.learn(insight="the first of many").memory_id
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        robot.learn(insight=f"number {time.monotonic_ns()}")
    last = robot.learn(insight="the last of many").memory_id
    harness.wait_for(lambda: heard[-1].memories >= 1 + last - stored)
    stamps = [m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in heard]
    assert len(stamps) >= 3
    assert all(later - earlier > 0.85 for earlier, later in itertools.pairwise(stamps))
    settled = len(heard)
    time.sleep(2.5)
    assert len(heard) <= settled + 1  # nothing changes, nothing is said


def test_status_shows_the_last_error(
    start_node: Callable[..., Any], caller: Any, tmp_path: Any
) -> None:
    (tmp_path / "robotmem.db").write_bytes(b"this is no database" * 1000)
    process = start_node()
    robot = harness.Robot(caller, process.name)
    answer = robot.learn(insight="x")
    assert not answer.success
    assert "robotmem.db" in answer.message
    heard = caller.listen(msg.Status, f"{process.name}/status", qos.STATUS)
    status = harness.wait_for(lambda: heard and heard[-1])
    assert not status.ready
    assert "robotmem.db" in status.last_error
    assert (tmp_path / "robotmem.db").read_bytes() == b"this is no database" * 1000
