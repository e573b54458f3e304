# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Episodes as other nodes see them: opened, ended, interrupted, and found again."""

from __future__ import annotations

import contextlib
import copy
import json
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from driving import POSES, Driver  # noqa: E402
from rclpy.qos import QoSProfile, QoSReliabilityPolicy  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402

from robotmem_ros import msg, qos  # noqa: E402

SECOND = 10**9


def open_robot(caller: Any, process: Any) -> Any:
    return harness.Robot(caller, process.name).wait_ready()


def told(episodes: list[Any]) -> list[str]:
    """Return all that is told of episodes, but for what changes with time and with recalls."""
    texts = []
    for episode in map(copy.deepcopy, episodes):
        for memory in episode.memories:
            memory.confidence, memory.access_count = 0.0, 0
        texts.append(str(episode))  # not ==: a distance that is not asked for is NaN
    return texts


def nanoseconds(time: Any) -> int:
    return int(time.sec) * SECOND + int(time.nanosec)


def test_an_episode_from_its_start_to_its_end(start_node: Callable[..., Any], caller: Any) -> None:
    process = start_node(trajectory_rate=5.0, **POSES)
    robot = open_robot(caller, process)
    memories = caller.listen(msg.Memory, f"{process.name}/memories", qos.MEMORIES)
    episodes = caller.listen(msg.Episode, f"{process.name}/episodes", qos.EPISODES)
    statuses = caller.listen(msg.Status, f"{process.name}/status", qos.STATUS)
    driver = Driver(caller, process.name)
    before = robot.learn(insight="before the episode").memory_id

    session = robot.start_session(context='{"task": {"name": "patrol"}}').session_id
    assert session
    driver.along([0.1 * i for i in range(30)])
    learned = robot.learn(insight="the door squeaks")
    robot.save_perception(description="a squeak", perception_type="auditory")
    harness.wait_for(lambda: statuses and statuses[-1].open_session == session)
    ended = robot.end_session(has_outcome=True, outcome_score=0.75, summary="patrolled")
    assert ended.success, ended.message

    episode = ended.episode
    assert (episode.session_id, episode.summary) == (session, "patrolled")
    assert (episode.has_outcome, episode.outcome_score, episode.interrupted) == (True, 0.75, False)
    assert json.loads(episode.context) == {"task": {"name": "patrol"}}
    assert [m.content for m in episode.memories] == ["the door squeaks", "a squeak", "patrolled"]
    assert {m.session_id for m in episode.memories} == {session}
    assert episode.memories[-1].type == msg.Memory.TYPE_EPISODE
    assert nanoseconds(episode.start) < nanoseconds(episode.end)
    assert episode.header.stamp == episode.end
    assert episode.header.frame_id == "map"
    assert {p.header.frame_id for p in episode.trajectory} == {"map"}
    stamps = [nanoseconds(p.header.stamp) for p in episode.trajectory]
    assert stamps == sorted(set(stamps))
    assert 4 <= len(stamps) <= 12  # 1.5 s at 5 Hz, and the way to here
    places = [p.pose.position.x for p in episode.trajectory]
    assert places == sorted(places)
    assert places[-1] > 2.0

    harness.wait_for(lambda: episodes and len(memories) == 4)
    assert told(episodes) == told([episode])
    assert memories[-1].uuid == episode.memories[-1].uuid
    assert robot.get(memory_ids=[before]).memories[0].session_id == ""
    assert robot.get(memory_ids=[learned.memory_id]).memories[0].session_id == session
    assert robot.learn(insight="after the episode").success
    assert memories[0].session_id == ""
    harness.wait_for(lambda: statuses[-1].open_session == "")
    replayed = robot.recall(query="*", session_id=session, n=10)
    assert [m.content for m in replayed.memories] == ["the door squeaks", "a squeak", "patrolled"]

    again = robot.end_session(session_id=session)
    assert not again.success
    assert "session_id" in again.message
    nothing = robot.end_session()
    assert not nothing.success
    assert "start_session" in nothing.message
    assert not robot.end_session(session_id="never-there").success
    assert not robot.start_session(context="{").success


def test_late_subscribers_get_the_last_episodes_also_after_a_restart(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node()
    robot = open_robot(caller, process)
    sessions = []
    for number in range(12):
        sessions.append(robot.start_session().session_id)
        assert robot.end_session(summary=f"episode {number}").success
    late = caller.listen(msg.Episode, f"{process.name}/episodes", qos.EPISODES)
    harness.wait_for(lambda: len(late) == 10)
    assert [e.session_id for e in late] == sessions[2:]
    process.kill(signal.SIGTERM)
    assert process.wait() == 0

    process = start_node()
    robot = open_robot(caller, process)
    later = caller.listen(msg.Episode, f"{process.name}/episodes", qos.EPISODES)
    harness.wait_for(lambda: len(later) == 10)
    assert told(later) == told(late)


def test_a_second_start_closes_the_first_episode_as_interrupted(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node()
    robot = open_robot(caller, process)
    episodes = caller.listen(msg.Episode, f"{process.name}/episodes", qos.EPISODES)
    first = robot.start_session().session_id
    robot.learn(insight="in the first")
    second = robot.start_session().session_id
    harness.wait_for(lambda: episodes)
    assert (episodes[0].session_id, episodes[0].interrupted) == (first, True)
    assert robot.end_session().episode.session_id == second


def test_kill_9_in_an_open_episode(start_node: Callable[..., Any], caller: Any) -> None:
    process = start_node(namespace="/crash", trajectory_rate=10.0, **POSES)
    robot = open_robot(caller, process)
    driver = Driver(caller, process.name)
    session = robot.start_session(context='{"task": {"name": "fetch"}}').session_id
    for number in range(3):
        assert robot.learn(insight=f"learned {number}").success
    driver.along([0.1 * i for i in range(60)])
    last = time.time_ns()
    process.kill()
    process.wait()

    process = start_node(namespace="/crash", trajectory_rate=10.0, **POSES)
    # A caller that has never heard of the node that was killed, which DDS takes to be alive.
    with contextlib.closing(harness.Caller("other_caller")) as other:
        robot = open_robot(other, process)
        episodes = other.listen(msg.Episode, f"{process.name}/episodes", qos.EPISODES)
        episode = harness.wait_for(lambda: episodes and episodes[-1])
        assert (episode.session_id, episode.interrupted) == (session, True)
        assert not episode.has_outcome
        learned = [m.content for m in episode.memories if m.type == msg.Memory.TYPE_FACT]
        assert learned == ["learned 0", "learned 1", "learned 2"]
        assert episode.memories[-1].type == msg.Memory.TYPE_EPISODE
        assert len(episode.trajectory) >= 15
        assert last - nanoseconds(episode.trajectory[-1].header.stamp) < SECOND
        replayed = robot.recall(query="*", session_id=session, n=10).memories
        assert len(replayed) == 4
        assert not robot.end_session().success
        assert robot.start_session().success
        assert robot.end_session().success


def test_a_shutdown_closes_the_open_episode_as_interrupted(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node()
    robot = open_robot(caller, process)
    episodes = caller.listen(msg.Episode, f"{process.name}/episodes", qos.EPISODES)
    session = robot.start_session().session_id
    robot.learn(insight="just before the end")
    process.kill(signal.SIGINT)
    assert process.wait() == 0
    assert "Traceback" not in process.stderr
    harness.wait_for(lambda: episodes)
    assert (episodes[0].session_id, episodes[0].interrupted) == (session, True)
    process = start_node()
    open_robot(caller, process)
    later = caller.listen(msg.Episode, f"{process.name}/episodes", qos.EPISODES)
    harness.wait_for(lambda: later)
    assert [e.session_id for e in later] == [session]
    assert told(later) == told(episodes)


class SimulatedTime:
    """Publishes /clock, 20 times a second, 1 s of it in each second."""

    def __init__(self, caller: Any) -> None:
        profile = QoSProfile(depth=1, reliability=QoSReliabilityPolicy.BEST_EFFORT)
        self._publisher = caller.node.create_publisher(Clock, "/clock", profile)
        self._start, self._zero = 0.0, time.monotonic()
        self._running = True
        self._thread = threading.Thread(target=self._run, daemon=True)

    def set(self, seconds: float) -> None:
        """Let the time be this now, and go on from there."""
        self._start, self._zero = seconds, time.monotonic()
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        """Say nothing more."""
        self._running = False

    def _run(self) -> None:
        while self._running:
            now = self._start + time.monotonic() - self._zero
            message = Clock()
            message.clock.sec, message.clock.nanosec = int(now), int(now % 1.0 * SECOND)
            self._publisher.publish(message)
            time.sleep(0.05)


def test_when_the_clock_jumps_back_the_open_episode_is_closed(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(use_sim_time=True, **POSES)
    robot = open_robot(caller, process)
    episodes = caller.listen(msg.Episode, f"{process.name}/episodes", qos.EPISODES)
    early = robot.start_session()
    assert not early.success
    assert "/clock" in early.message
    simulated = SimulatedTime(caller)
    try:
        simulated.set(500.0)
        session = harness.wait_for(lambda: robot.start_session().session_id)
        driver = Driver(caller, process.name)
        for step in range(10):
            driver.at(0.2 * step, stamp=int((500.0 + 0.2 * step) * SECOND))
            time.sleep(0.2)
        stored = robot.learn(insight="before the jump")
        assert stored.success
        simulated.set(100.0)
        episode = harness.wait_for(lambda: episodes and episodes[-1])
        assert (episode.session_id, episode.interrupted) == (session, True)
        assert 500 <= episode.start.sec <= episode.end.sec < 540
        assert episode.memories[0].content == "before the jump"
        assert all(500 <= p.header.stamp.sec < 540 for p in episode.trajectory)

        answer = robot.learn(insight="after the jump")
        after = robot.get(memory_ids=[answer.memory_id]).memories[0]
        assert after.session_id == ""
        assert 100 <= after.header.stamp.sec < 140
        assert not after.has_pose  # what was sensed before the jump is of another time
        assert robot.start_session().success
        assert robot.end_session().success
    finally:
        simulated.stop()
