# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The node as a managed node: every transition, and what callers hear meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from lifecycle_msgs.msg import Transition  # noqa: E402


class Lifecycle:
    def __init__(self, robot: Any) -> None:
        self.robot = robot

    @property
    def state(self) -> str:
        return str(self.robot.get_state().current_state.label)

    def change(self, transition: int) -> bool:
        return bool(self.robot.change_state(transition=Transition(id=transition)).success)


@pytest.fixture
def managed(start_node: Callable[..., Any], caller: Any) -> Lifecycle:
    process = start_node(autostart=False)
    return Lifecycle(harness.Robot(caller, process.name))


def test_the_whole_life(managed: Lifecycle) -> None:
    robot = managed.robot
    assert managed.state == "unconfigured"
    refused = robot.learn(insight="too early")
    assert not refused.success
    assert "ros2 lifecycle set /" in refused.message
    assert "configure" in refused.message

    assert managed.change(Transition.TRANSITION_CONFIGURE)
    assert managed.state == "inactive"
    for service, fields in (
        ("learn", {"insight": "x"}),
        ("recall", {"query": "x"}),
        ("get", {"memory_ids": [1]}),
        ("forget", {"memory_id": 1}),
        ("update", {"memory_id": 1, "new_content": "x"}),
        ("save_perception", {"description": "x"}),
        ("backfill", {}),
        ("reindex", {}),
        ("backup", {}),
    ):
        refused = getattr(robot, service)(**fields)
        assert not refused.success
        assert "activate" in refused.message

    assert managed.change(Transition.TRANSITION_ACTIVATE)
    assert managed.state == "active"
    learned = robot.learn(insight="kept over all transitions")
    assert learned.success, learned.message

    assert managed.change(Transition.TRANSITION_DEACTIVATE)
    assert not robot.recall(query="kept").success
    assert managed.change(Transition.TRANSITION_CLEANUP)
    assert managed.state == "unconfigured"
    assert not robot.recall(query="kept").success

    assert managed.change(Transition.TRANSITION_CONFIGURE)
    assert managed.change(Transition.TRANSITION_ACTIVATE)
    assert robot.recall(query="kept").memories[0].uuid == learned.uuid

    assert managed.change(Transition.TRANSITION_ACTIVE_SHUTDOWN)
    assert managed.state == "finalized"
    refused = robot.recall(query="kept")
    assert not refused.success
    assert "shut down" in refused.message


def test_a_transition_that_is_not_possible_is_refused(managed: Lifecycle) -> None:
    assert not managed.change(Transition.TRANSITION_ACTIVATE)
    assert not managed.change(250)
    assert managed.state == "unconfigured"
    assert managed.change(Transition.TRANSITION_CONFIGURE)
    assert managed.state == "inactive"


def test_cleaning_up_answers_what_is_queued(managed: Lifecycle) -> None:
    assert managed.change(Transition.TRANSITION_CONFIGURE)
    assert managed.change(Transition.TRANSITION_ACTIVATE)
    answers = [managed.robot.start("learn", insight=f"burst {i}") for i in range(100)]
    assert managed.change(Transition.TRANSITION_DEACTIVATE)
    assert managed.change(Transition.TRANSITION_CLEANUP)
    stored = [answer() for answer in answers]
    assert all(a.success or a.message for a in stored)


def test_a_store_that_cannot_be_opened_can_be_cured(
    start_node: Callable[..., Any], caller: Any, tmp_path: Any
) -> None:
    broken = tmp_path / "robotmem.db"
    broken.write_bytes(b"this is no database" * 1000)
    managed = Lifecycle(harness.Robot(caller, start_node().name))
    harness.wait_for(lambda: managed.state == "unconfigured")
    assert not managed.change(Transition.TRANSITION_CONFIGURE)
    broken.unlink()
    assert managed.change(Transition.TRANSITION_CONFIGURE)
    assert managed.change(Transition.TRANSITION_ACTIVATE)
    assert managed.robot.learn(insight="as new").success


def test_fifty_configurations_leave_nothing_behind(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(
        autostart=False,
        context_sources="[pose]",
        pose_source="pose",
        remind_radius=1.0,
        import_topics="[/other/memories, /other/episodes]",
        **{"pose.topic": "pose", "pose.type": "geometry_msgs/msg/PoseStamped"},
    )
    managed = Lifecycle(harness.Robot(caller, process.name))
    folder = Path(f"/proc/{process.pid}")
    if not folder.exists():
        pytest.skip("needs /proc")
    seen = []
    for i in range(50):
        assert managed.change(Transition.TRANSITION_CONFIGURE)
        assert managed.change(Transition.TRANSITION_ACTIVATE)
        assert managed.robot.start_session().success
        assert managed.robot.learn(insight=f"life {i}").success
        assert managed.robot.recall(query="life").success
        assert managed.change(Transition.TRANSITION_DEACTIVATE)
        assert managed.change(Transition.TRANSITION_CLEANUP)
        harness.wait_for(lambda: not _open_files(folder))
        threads = len(list((folder / "task").iterdir()))
        handles = len(list((folder / "fd").iterdir()))
        pages = int((folder / "statm").read_text().split()[1])
        seen.append((threads, handles, pages * 4096))
    early, late = seen[10:20], seen[40:]
    for what, allowed in enumerate((0, 0, 5_000_000)):
        most = max(counts[what] for counts in early)
        assert max(counts[what] for counts in late) <= most + allowed, (what, seen)


def _open_files(folder: Path) -> list[str]:
    """Return which files of the database a process holds open."""
    found = []
    for handle in (folder / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(handle.readlink()))
    return [name for name in found if "robotmem.db" in name]
