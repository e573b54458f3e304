# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Whenever the power is cut, what was answered is on the disk, and nothing is there by half."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
import tally
from deeds import Embedder, Learner
from disk import LosingDisk
from ledger import Ledger

from robotmem_ros.core import memory as memory_module
from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.store import codes

RUNS = 8
CUTS_A_RUN = 20
DEEDS = 60
THREADS = 3


class Cuts:
    """Cuts the power now and then, and keeps what would be on the disk and what was answered."""

    def __init__(self, folder: Path, source: random.Random) -> None:
        self._folder = folder
        self._source = source
        self._lock = threading.Lock()
        self._ledger = Ledger()
        self.made: list[tuple[Path, Ledger]] = []

    def take(self, line: str) -> None:
        """Take in what a learner said."""
        with self._lock:
            self._ledger.take(line)

    def watch(self, disk: LosingDisk) -> None:
        """Cut the power, one time in 150."""
        if self._source.random() < 1 / 150 and len(self.made) < CUTS_A_RUN:
            with self._lock:  # what is answered from here on came after the cut
                answered = self._ledger.copy()
            folder = self._folder / f"cut{len(self.made)}"
            folder.mkdir()
            disk.cut(folder, self._source)
            self.made.append((folder / "robot.db", answered))


def run(folder: Path, seed: int, durability: str, monkeypatch: pytest.MonkeyPatch) -> Cuts:
    """Let learners work on a disk that loses power, through the start and the end of a store."""
    folder.mkdir()
    cuts = Cuts(folder, random.Random(seed))
    if seed % 2:
        monkeypatch.setattr(memory_module, "make_embedder", lambda config: Embedder())
    config = Config(db_path=str(folder / "robot.db"), embed_backend="none", durability=durability)
    with LosingDisk(cuts.watch):
        for life in range(2):
            with RobotMemory(config, owner="/a") as memory:
                learners = [
                    Learner(memory, f"l{life}t{i}", seed, cuts.take, sessions=i == 0)
                    for i in range(THREADS)
                ]
                threads = [threading.Thread(target=work, args=(one,)) for one in learners]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
    return cuts


def work(learner: Learner) -> None:
    """Do some things."""
    for _ in range(DEEDS):
        learner.act()


@pytest.fixture(autouse=True)
def _large_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "EXACT_LIMIT", 40)
    monkeypatch.setattr(codes, "_LOOKED_AT", 8)


def test_every_answer_survives_a_loss_of_power(
    fast_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = checked = 0
    for number in tally.rounds(RUNS, share=0.2):
        cuts = run(fast_folder / f"full{number}", tally.seed() + number, "full", monkeypatch)
        for path, answered in cuts.made:
            if path.exists():
                memories, problems = answered.check(str(path))
                assert not problems, (path, problems[:10])
                checked += memories
            else:
                assert not answered.answered
        count += len(cuts.made)
    assert count > RUNS * CUTS_A_RUN / 2
    tally.add(power_cuts_survived=count, memories_checked=checked, lost=0, doubled=0)


def test_durability_normal_loses_the_last_answers_alone(
    fast_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left by half; and this harness does see what is lost."""
    lost = count = 0
    for number in range(3):
        cuts = run(fast_folder / f"normal{number}", tally.seed() + number, "normal", monkeypatch)
        for path, answered in cuts.made:
            if path.exists():
                _, problems = answered.check(str(path))
                late = [p for p in problems if p.startswith(("lost", "remembered", "all"))]
                assert late == problems, (path, problems[:10])
                lost += bool(late)
                count += 1
    assert lost, "no answer was lost at any cut: it is not the power that was cut"
    tally.add(power_cuts_survived=count)
