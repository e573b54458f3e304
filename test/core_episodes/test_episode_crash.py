# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""kill -9 with an episode open, and in the middle of its end."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import apsw
import pytest

from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import MemoryType, Pose, Query

Open = Callable[..., RobotMemory]

CHILD = """
import sys, time
from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Pose

path, owner = sys.argv[1:]
memory = RobotMemory(Config(db_path=path, embed_backend="none"), owner=owner)
{}
"""
DRIVE = """
print(memory.start_session({"task": {"name": "drive"}}, "lab").episode.session_id, flush=True)
count = 0
while True:
    count += 1
    memory.add_trajectory([Pose("map", (count * 0.1, 0.0, 0.0), stamp=time.time_ns())])
    uuid = memory.learn(Experience(f"thing {count}")).memory.uuid
    print(time.time_ns(), uuid, flush=True)
    time.sleep(0.02)
"""
RUNS = """
while True:
    print(memory.start_session().episode.session_id, flush=True)
    memory.learn(Experience("Cup.")), memory.learn(Experience("cup"))
    memory.end_session(outcome=1.0)
"""


def run_and_kill(path: str, owner: str, code: str, seconds: float) -> list[str]:
    """Return the lines that a child said before it was killed, some seconds after the first."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(code), path, owner], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    first = child.stdout.readline()
    time.sleep(seconds)
    os.kill(child.pid, signal.SIGKILL)
    rest = child.stdout.read()
    child.wait()
    return [first, *rest.splitlines()[:-1]] if rest else [first]


def test_an_open_episode_survives_kill_9(open_memory: Open, db_path: str) -> None:
    first, *lines = run_and_kill(db_path, "/robot/robotmem", DRIVE, 2.0)
    said = [line.split() for line in lines]
    memory = open_memory(owner="/robot/robotmem")
    (episode,) = memory.recovered
    assert episode.session_id == first.strip()
    assert (episode.interrupted, episode.collection) == (True, "lab")
    assert episode.context == {"task": {"name": "drive"}}
    learned = [m for m in episode.memories if m.type is MemoryType.FACT]
    assert {uuid for _, uuid in said} <= {m.uuid for m in learned}
    assert [m.type for m in episode.memories].count(MemoryType.EPISODE) == 1
    assert episode.memories[-1].pose == episode.trajectory[-1]
    assert episode.trajectory[-1].stamp > int(said[-1][0]) - 1_000_000_000
    assert [p.position[0] for p in episode.trajectory] == sorted(
        p.position[0] for p in episode.trajectory
    )
    assert episode.end == max(learned[-1].stamp, episode.trajectory[-1].stamp)
    assert memory.open_session == ""
    assert memory.episodes(collection="lab") == [episode]
    assert memory.status().episodes == 1
    last = memory.recall(Query("drive interrupted", collection="lab")).memories[0].memory
    assert last.type is MemoryType.EPISODE
    again = open_memory(owner="/robot/robotmem")
    assert again.recovered == ()


def test_the_crash_of_another_owner_is_left_to_it(open_memory: Open, db_path: str) -> None:
    first, *_ = run_and_kill(db_path, "/a", DRIVE, 0.3)
    assert open_memory(owner="/b").recovered == ()
    assert open_memory(owner="").recovered == ()
    (episode,) = open_memory(owner="/a").recovered
    assert episode.session_id == first.strip()


def test_wherever_the_kill_comes_there_is_one_episode_memory(
    open_memory: Open, db_path: str
) -> None:
    sessions: list[str] = []
    for i in range(4):
        lines = run_and_kill(db_path, "/a", RUNS, 0.2 + 0.037 * i)
        sessions += [line.strip() for line in lines]
    memory = open_memory(owner="/a")
    for session_id in sessions:
        episode = memory.episode(session_id)
        assert episode.end > 0
        types = [m.type for m in episode.memories]
        assert types.count(MemoryType.EPISODE) == 1
        if not episode.interrupted:
            assert [bool(m.superseded_by) for m in episode.memories] == [True, False, False]


def test_what_cannot_be_recovered_now_is_recovered_by_the_next_start(
    open_memory: Open, db_path: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = open_memory(owner="/a")
    session_id = first.start_session().episode.session_id
    first.add_trajectory([Pose("map", (1.0, 0.0, 0.0), stamp=1)])
    first.close()
    connection = apsw.Connection(db_path)
    connection.execute(
        "CREATE TRIGGER no_more BEFORE INSERT ON texts BEGIN SELECT RAISE(ABORT, 'no more'); END"
    )
    with caplog.at_level(logging.WARNING):
        memory = open_memory(owner="/a")
    assert memory.recovered == ()
    assert "no more" in caplog.text
    assert memory.recall(Query("anything")).memories == ()
    connection.execute("DROP TRIGGER no_more")
    (closed,) = memory.start_session().interrupted
    assert closed.session_id == session_id
    assert len(closed.trajectory) == 1
