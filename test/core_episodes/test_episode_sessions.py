# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""An episode from its start to its end, and every way it can go wrong."""

from __future__ import annotations

import itertools
import math
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import apsw
import pytest
from ros_clock import SECOND, Clock

from robotmem_ros.core import trajectory
from robotmem_ros.core.errors import InvalidRequestError, NotFoundError, StoreError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, LearnStatus, MemoryType, Pose, Query
from robotmem_ros.core.trajectory import path_length

Open = Callable[..., RobotMemory]


def pose(x: float, stamp: int = 1, frame_id: str = "map") -> Pose:
    return Pose(frame_id, (x, 0.0, 0.0), stamp=stamp)


def test_an_episode_holds_what_was_learned_in_it(memory: RobotMemory) -> None:
    before = memory.learn(Experience("before"))
    started = memory.start_session({"task": {"name": "push"}}, "lab").episode
    assert str(uuid.UUID(started.session_id)) == started.session_id
    assert memory.open_session == started.session_id
    assert (started.start > 0, started.end, started.collection) == (True, 0, "lab")
    first = memory.learn(Experience("the cup slipped")).memory
    second = memory.learn(Experience("the cup was caught", collection="elsewhere")).memory
    other = memory.learn(Experience("of another run", session_id="theirs")).memory
    ended = memory.end_session(outcome=0.75, summary="pushed it home")

    assert before.memory.session_id == ""
    assert (first.session_id, first.collection) == (started.session_id, "lab")
    assert (second.session_id, second.collection) == (started.session_id, "elsewhere")
    assert (other.session_id, other.collection) == ("theirs", "default")
    episode = ended.episode
    assert memory.open_session == ""
    assert [m.id for m in episode.memories[:2]] == [first.id, second.id]
    assert (episode.outcome, episode.summary, episode.interrupted) == (
        0.75,
        "pushed it home",
        False,
    )
    assert episode.context == {"task": {"name": "push"}}
    assert episode.end > second.stamp
    assert memory.episode(started.session_id) == episode
    assert memory.episodes(collection="lab") == [episode]
    assert memory.episodes() == []


def test_the_episode_memory_tells_how_it_went(memory: RobotMemory) -> None:
    memory.start_session({"task": {"name": "push"}, "robot": {"id": "r1"}})
    memory.learn(Experience("the cup slipped"))
    memory.add_trajectory(
        [pose(0.0, 5), pose(3.0, 6), pose(9.0, 7, "odom"), pose(10.0, 8, "odom")]
    )
    episode = memory.end_session(outcome=0.25, summary="lost the cup").episode
    last = episode.memories[-1]
    assert (last.type, last.content, last.stamp) == (
        MemoryType.EPISODE, "lost the cup", episode.end,
    )  # fmt: skip
    assert last.pose == pose(10.0, 8, "odom")
    assert last.context == {
        "task": {"name": "push", "outcome": 0.25, "success": False},
        "robot": {"id": "r1"},
        "episode": {
            "duration": (episode.end - episode.start) / SECOND,
            "path_length": 4.0,
            "memories": 1,
            "interrupted": False,
        },
    }
    assert memory.recall(Query("lost cup")).memories[0].memory.uuid == last.uuid
    found = memory.recall(Query("cup", context_filter={"task.outcome": {"$lt": 0.5}})).memories
    assert [item.memory.id for item in found] == [last.id]


@pytest.mark.parametrize("task", ["push", 3, None, ["push"]])
def test_a_task_that_is_no_object_stays_as_it_is(memory: RobotMemory, task: object) -> None:
    memory.start_session({"task": task, "episode": {"number": 7}})
    context = memory.end_session(outcome=1.0).episode.memories[-1].context
    assert context["task"] == task
    assert (context["episode"]["number"], context["episode"]["memories"]) == (7, 0)


def test_without_an_outcome_nothing_is_said_about_success(memory: RobotMemory) -> None:
    memory.start_session({"task": {"name": "push"}})
    episode = memory.end_session().episode
    assert episode.outcome is None
    assert episode.memories[-1].context["task"] == {"name": "push"}


@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_zero_is_an_outcome(memory: RobotMemory, outcome: float) -> None:
    memory.start_session()
    ended = memory.end_session(outcome=outcome)
    assert ended.episode.outcome == outcome
    assert ended.episode.memories[-1].context["task"]["success"] is bool(outcome)


@pytest.mark.parametrize("outcome", [-0.1, 1.1, math.nan, math.inf, -math.inf])
def test_an_outcome_out_of_range_is_refused_and_ends_nothing(
    memory: RobotMemory, outcome: float
) -> None:
    started = memory.start_session()
    with pytest.raises(InvalidRequestError, match=r"^outcome_score: .* from 0 to 1"):
        memory.end_session(outcome=outcome)
    assert memory.open_session == started.episode.session_id


@pytest.mark.parametrize("summary", ["a\x00b", "\ud800", "x" * 100_001])
def test_a_summary_that_cannot_be_stored_is_refused(memory: RobotMemory, summary: str) -> None:
    memory.start_session()
    with pytest.raises(InvalidRequestError, match=r"^summary: "):
        memory.end_session(summary=summary)
    memory.end_session(summary="x" * 100_000)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("[]",), "context"),
        (("{",), "context"),
        (({"a": math.nan},), "context"),
        (("", "*"), "collection"),
        (("", "a\x00"), "collection"),
        (("", "x" * 300), "collection"),
    ],
)
def test_a_start_that_cannot_be_stored_is_refused_and_closes_nothing(
    memory: RobotMemory, arguments: tuple[str, ...], field: str
) -> None:
    started = memory.start_session()
    with pytest.raises(InvalidRequestError, match=f"^{field}: "):
        memory.start_session(*arguments)
    assert memory.open_session == started.episode.session_id


def test_there_is_no_start_before_there_is_time(open_memory: Open) -> None:
    memory = open_memory(now=lambda: 0)
    with pytest.raises(InvalidRequestError, match=r"^stamp: there is no ROS time"):
        memory.start_session()
    assert memory.open_session == ""
    assert memory.status().episodes == 0


def test_what_is_not_open_cannot_be_ended(memory: RobotMemory) -> None:
    with pytest.raises(InvalidRequestError, match=r"^session_id: .*~/start_session"):
        memory.end_session()
    with pytest.raises(NotFoundError, match=r"^session_id: .*'nothing'"):
        memory.end_session("nothing")
    memory.learn(Experience("a name that a caller made up", session_id="made up"))
    with pytest.raises(NotFoundError, match=r"^session_id: "):
        memory.end_session("made up")
    with pytest.raises(NotFoundError, match=r"^session_id: "):
        memory.episode("made up")
    session_id = memory.start_session().episode.session_id
    ended = memory.end_session(outcome=1.0)
    for name in (session_id, f" {session_id} "):
        with pytest.raises(InvalidRequestError, match="ended already"):
            memory.end_session(name, outcome=0.0)
    assert memory.episode(session_id) == ended.episode


def test_the_next_start_closes_what_is_open(memory: RobotMemory) -> None:
    first = memory.start_session().episode
    learned = memory.learn(Experience("halfway")).memory
    memory.add_trajectory([pose(1.0, learned.stamp + 1)])
    started = memory.start_session()
    (closed,) = started.interrupted
    assert closed.session_id == first.session_id
    assert (closed.interrupted, closed.outcome, closed.summary) == (True, None, "")
    assert closed.end == learned.stamp + 1  # the last that is known of it
    assert [m.type.value for m in closed.memories] == ["fact", "episode"]
    assert closed.memories[-1].context["episode"]["interrupted"] is True
    assert memory.episode(first.session_id) == closed
    assert memory.open_session == started.episode.session_id
    with pytest.raises(InvalidRequestError, match="was interrupted"):
        memory.end_session(first.session_id)


def test_an_interruption_keeps_what_there_was(memory: RobotMemory) -> None:
    assert memory.interrupt_session("nothing is open") is None
    started = memory.start_session().episode
    memory.add_trajectory([pose(0.0, 3), pose(2.0, 4)])
    closed = memory.interrupt_session("/clock went back")
    assert closed is not None
    assert closed.session_id == started.session_id
    assert [p.position[0] for p in closed.trajectory] == [0.0, 2.0]
    assert closed.memories[-1].context["episode"]["reason"] == "/clock went back"
    assert "/clock went back" in closed.memories[-1].content
    assert memory.interrupt_session("again") is None


def test_when_the_clock_went_back_an_end_is_not_before_the_start(
    memory: RobotMemory, clock: Clock
) -> None:
    started = memory.start_session().episode
    learned = memory.learn(Experience("late")).memory
    clock.time = 5 * SECOND
    episode = memory.end_session().episode
    assert started.start < learned.stamp == episode.end


def test_the_episodes_of_another_owner_are_left_alone(open_memory: Open) -> None:
    ours, theirs = open_memory(owner="/a/robotmem"), open_memory(owner="/b/robotmem")
    opened = ours.start_session().episode
    later = theirs.start_session()
    assert later.interrupted == ()
    ours.learn(Experience("ours"))
    theirs.learn(Experience("theirs"))
    third = open_memory(owner="/c/robotmem")
    assert third.recovered == ()
    assert [m.content for m in ours.end_session(summary="A").episode.memories] == ["ours", "A"]
    assert [m.content for m in theirs.end_session(summary="B").episode.memories] == ["theirs", "B"]
    assert third.episode(opened.session_id).summary == "A"
    assert [episode.summary for episode in third.episodes()] == ["B", "A"]


def test_an_episode_that_somebody_else_has_ended_is_let_go(open_memory: Open) -> None:
    ours, theirs = open_memory(owner="/a"), open_memory(owner="/b")
    session_id = ours.start_session().episode.session_id
    theirs.end_session(session_id, outcome=1.0)
    ours.add_trajectory([pose(1.0)])
    assert ours.learn(Experience("after")).memory.session_id == ""
    assert ours.open_session == ""
    with pytest.raises(InvalidRequestError, match="no episode is open"):
        ours.end_session()
    assert ours.episode(session_id).trajectory == ()
    assert ours.interrupt_session("shutdown") is None


def test_status_counts_the_episodes_that_were_opened(memory: RobotMemory) -> None:
    memory.learn(Experience("x", session_id="made up"))
    assert memory.status().episodes == 0
    memory.start_session()
    assert memory.status().episodes == 1
    memory.end_session()
    memory.start_session()
    assert memory.status().episodes == 2


def test_related_memories_are_of_other_episodes_alone(memory: RobotMemory) -> None:
    memory.learn(Experience("the cup slipped outside of any episode"))
    for i in range(4):
        memory.start_session()
        memory.learn(Experience(f"the cup slipped {i} times"))
        memory.learn(Experience(f"battery at {i} percent"))
        memory.end_session(summary=f"run {i}: the cup slipped")
    memory.start_session()
    for i in range(20):
        memory.learn(Experience(f"the cup slipped, attempt {i}"))
    ended = memory.end_session(summary="the cup slipped")
    assert len(ended.related) == 5
    assert ended.related[0].score == 1.0
    for item in ended.related:
        assert item.memory.session_id not in ("", ended.episode.session_id)
        assert "slipped" in item.memory.content
    assert ended.decayed_count == 0


@pytest.mark.parametrize("summary", ["*", "?", "the", ""])
def test_any_summary_ends_an_episode(memory: RobotMemory, summary: str) -> None:
    memory.start_session()
    memory.learn(Experience("cup"))
    memory.end_session(summary=summary)
    memory.start_session()
    ended = memory.end_session(summary=summary)
    assert ended.episode.memories[-1].content.startswith(summary)
    assert len(ended.related) <= 5


def test_decayed_memories_are_counted_and_nothing_is_written(
    open_memory: Open, db_path: str
) -> None:
    memory = open_memory()
    memory.start_session()
    for i in range(3):
        memory.learn(Experience(f"cup {i}"))
    month = 30 * 86_400 * SECOND
    with apsw.Connection(db_path) as connection:
        connection.execute(
            "UPDATE memories SET last_access = last_access - ? WHERE id < 3", (month,)
        )
    ended = memory.end_session()
    assert ended.decayed_count == 2
    first = ended.episode.memories[0]
    assert first.stored_confidence == 0.9
    assert first.confidence == pytest.approx(0.9 * 0.99**30)
    (again,), _ = memory.get(ids=[first.id])
    assert again.confidence == first.confidence


def test_an_end_that_cannot_be_stored_leaves_the_episode_open(
    memory: RobotMemory, db_path: str
) -> None:
    session_id = memory.start_session().episode.session_id
    memory.learn(Experience("cup"))
    connection = apsw.Connection(db_path)
    connection.execute(
        "CREATE TRIGGER no_more BEFORE INSERT ON texts BEGIN SELECT RAISE(ABORT, 'no more'); END"
    )
    with pytest.raises(StoreError, match="no more"):
        memory.end_session(outcome=1.0)
    assert memory.open_session == session_id
    assert memory.episode(session_id).end == 0
    assert len(memory.episode(session_id).memories) == 1
    connection.execute("DROP TRIGGER no_more")
    episode = memory.end_session(outcome=1.0).episode
    assert [m.type.value for m in episode.memories] == ["fact", "episode"]


def test_many_ends_at_once_end_it_once(memory: RobotMemory) -> None:
    for _ in range(5):
        session_id = memory.start_session().episode.session_id
        memory.learn(Experience("cup"))

        def end(_: int, session_id: str = session_id) -> bool:
            try:
                return bool(memory.end_session(session_id))
            except InvalidRequestError:
                return False

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(end, range(8))) == 1
        types = [m.type for m in memory.episode(session_id).memories]
        assert types.count(MemoryType.EPISODE) == 1


def test_learning_goes_on_while_episodes_come_and_go(memory: RobotMemory) -> None:
    stop = threading.Event()

    def learn(thread: int) -> list[str]:
        uuids = []
        while not stop.is_set():
            uuids.append(memory.learn(Experience(f"{thread} {len(uuids)}")).memory.uuid)
        return uuids

    with ThreadPoolExecutor(3) as pool:
        learners = [pool.submit(learn, thread) for thread in range(3)]
        episodes = []
        for _ in range(10):
            memory.start_session()
            memory.add_trajectory([pose(1.0)])
            time.sleep(0.02)
            episodes.append(memory.end_session().episode)
        stop.set()
        uuids = [uuid for learner in learners for uuid in learner.result()]
    for episode in episodes:
        now = memory.episode(episode.session_id)  # none came later
        assert [m.uuid for m in now.memories] == [m.uuid for m in episode.memories]
    for start in range(0, len(uuids), 500):
        assert memory.get(uuids=uuids[start : start + 500])[1] == []


def test_a_duplicate_in_an_episode_is_still_one(memory: RobotMemory) -> None:
    memory.start_session()
    first = memory.learn(Experience("cup"))
    assert memory.learn(Experience("cup")).status is LearnStatus.DUPLICATE
    episode = memory.end_session().episode
    assert [m.id for m in episode.memories][:1] == [first.memory.id]
    assert len(episode.memories) == 2
    memory.start_session()
    assert memory.learn(Experience("cup")).status is LearnStatus.CREATED


def test_an_episode_is_replayed_in_order(memory: RobotMemory) -> None:
    session_id = memory.start_session().episode.session_id
    for i in range(5):
        memory.learn(Experience(f"step {i}"))
    memory.end_session(summary="done")
    replay = memory.recall(Query("*", session_id=session_id, n=100)).memories
    assert [item.memory.content for item in replay] == [*(f"step {i}" for i in range(5)), "done"]


def test_poses_are_on_disk_within_a_second(open_memory: Open) -> None:
    memory, reader = open_memory(owner="a"), open_memory(owner="b")
    session_id = memory.start_session().episode.session_id
    for i in range(5):
        memory.add_trajectory([pose(float(i), i + 1)])
    time.sleep(0.9)
    poses = reader.episode(session_id).trajectory
    assert poses == tuple(pose(float(i), i + 1) for i in range(5))


def test_a_closed_memory_has_written_its_poses(open_memory: Open) -> None:
    memory = open_memory(owner="a")
    session_id = memory.start_session().episode.session_id
    memory.add_trajectory([pose(1.0)])
    memory.close()
    assert open_memory(owner="b").episode(session_id).trajectory == (pose(1.0),)


@pytest.mark.parametrize(
    "wrong",
    [pose(math.nan), pose(math.inf), pose(1.0, frame_id=""), pose(1.0, stamp=-1)],
)
def test_a_pose_that_is_none_is_refused(memory: RobotMemory, wrong: Pose) -> None:
    memory.start_session()
    with pytest.raises(InvalidRequestError, match=r"^pose: "):
        memory.add_trajectory([pose(1.0), wrong])
    assert memory.end_session().episode.trajectory == ()


def test_poses_without_an_episode_are_dropped(memory: RobotMemory) -> None:
    memory.add_trajectory([pose(1.0)])
    memory.start_session()
    assert memory.end_session().episode.trajectory == ()
    memory.add_trajectory([pose(2.0)])


def test_a_long_trajectory_becomes_coarser_not_shorter(
    memory: RobotMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectory, "MAX_POSES", 100)
    monkeypatch.setattr(trajectory, "_DELAY_SECONDS", 0.001)
    session_id = memory.start_session().episode.session_id
    for i in range(1, 1002):
        memory.add_trajectory([pose(float(i), i)])
        if i % 40 == 0:
            time.sleep(0.02)
    poses = memory.end_session().episode.trajectory
    assert memory.episode(session_id).trajectory == poses
    stamps = [p.stamp for p in poses]
    assert stamps == sorted(stamps)
    assert (stamps[0], stamps[-1]) == (1, 1001)
    assert 25 <= len(poses) <= 101
    steps = {later - earlier for earlier, later in itertools.pairwise(stamps[:-1])}
    assert len(steps) == 1


def test_the_path_counts_within_frames() -> None:
    assert path_length(()) == 0.0
    assert path_length([pose(0.0), pose(3.0), pose(1.0)]) == 5.0
    assert path_length([pose(0.0), pose(9.0, frame_id="odom"), pose(1.0)]) == 0.0


def test_no_thread_is_left_behind(open_memory: Open) -> None:
    before = set(threading.enumerate())
    for i in range(10):
        memory = open_memory(owner=str(i))
        memory.start_session()
        memory.add_trajectory([pose(1.0)])
        memory.close()
        memory.close()
    assert set(threading.enumerate()) <= before
