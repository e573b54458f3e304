# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Whenever the process is killed, all that was answered is there, and nothing by half."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import tally
from ledger import Ledger

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Query

KILLS = 200
FILE_KILLS = 10
"""After so many kills a new file is begun."""

LONGEST = 0.3
"""Seconds a process lives at most, its opening of the store included."""


class Learners:
    """The program learners.py, and what it said."""

    def __init__(self) -> None:
        folder = str(Path(__file__).parent)
        paths = os.pathsep.join([folder, *filter(None, sys.path)])
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("learners.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
            text=True,
        )

    def start(self, path: Path, name: str, seed: int, limit: int = 0) -> None:
        """Begin a process; it is under way when its pid is said."""
        assert self.process.stdin is not None
        print(path, name, seed, limit, file=self.process.stdin, flush=True)

    def line(self) -> tuple[str, str]:
        """Return what was said next, and by whom."""
        assert self.process.stdout is not None
        name, _, said = self.process.stdout.readline().rstrip("\n").partition(" ")
        assert name, "learners.py has ended"
        return name, said

    def end(self) -> None:
        """End the program."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def learners() -> Iterator[Learners]:
    started = Learners()
    yield started
    started.end()


def live_and_die(
    learners: Learners, path: Path, ledger: Ledger, names: list[str], seed: int, life: float
) -> None:
    """Let processes work on one file, kill them together, and note what they said."""
    pids = {}
    for name in names:
        learners.start(path, name, seed)
    said = []
    while len(pids) < len(names):
        name, line = learners.line()
        if line.startswith("pid "):
            pids[name] = int(line[4:])
        else:
            said.append(line)
    time.sleep(life)
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    living = len(names)
    while living:
        name, line = learners.line()
        if line == "gone":
            living -= 1
        else:
            said.append(line)
    for line in said:
        assert not line.startswith(("crashed", "refused")), line
        if line != "open":
            ledger.take(line)


def test_every_answer_survives_kill_9(learners: Learners, tmp_path: Path) -> None:
    source = random.Random(tally.seed())
    path, ledger = tmp_path / "0.db", Ledger()
    answered = checked = kills = 0
    for round_ in tally.rounds(KILLS, share=0.3):
        if round_ % FILE_KILLS == 0:
            assert_answers(path)
            answered += ledger.answered
            path.unlink(missing_ok=True)
            path, ledger = tmp_path / f"{round_}.db", Ledger()
        names = [f"a{round_}", f"b{round_}"] if source.random() < 0.25 else [f"a{round_}"]
        life = source.uniform(0.0, LONGEST)
        live_and_die(learners, path, ledger, names, round_ // FILE_KILLS, life)
        kills += len(names)
        if path.exists() and path.stat().st_size:
            count, problems = ledger.check(str(path))
            assert not problems, (round_, problems[:10])
            checked += count
    assert_answers(path)
    answered += ledger.answered
    assert answered > 10 * kills, "the processes did too little"
    tally.add(kills_survived=kills, calls_answered=answered, memories_checked=checked)
    tally.add(lost=0, doubled=0)


def assert_answers(path: Path) -> None:
    """Check that a store is whole from the outside as well: each memory is found by its words."""
    if not path.exists():
        return
    with RobotMemory(Config(db_path=str(path), embed_backend="none")) as memory:
        newest = memory.recall(Query("*", n=10, collection="*")).memories
        for item in newest:
            found = memory.recall(Query(item.memory.content, n=20, collection="*")).memories
            assert item.memory.id in {hit.memory.id for hit in found}
        status = memory.status()
        assert (status.keyword_reason, status.vector_reason) == ("", "")
