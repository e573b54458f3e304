# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A disk that is full, read-only or broken: a reason, nothing by half, on it goes once cured."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import deeds
import pytest
import tally
from deeds import Embedder, Learner
from disk import FaultyDisk
from forking import Learners
from ledger import Ledger

from robotmem_ros.core import memory as memory_module
from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import RobotMemoryError, StoreError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Query
from robotmem_ros.core.store import codes

ROUNDS = 12
FILE_ROUNDS = 6
"""After so many rounds a new file is begun."""

DEEDS = 25

KINDS: dict[str, tuple[tuple[str, ...], Callable[[], Exception]]] = {
    "full": (("write",), apsw.FullError),
    "failing writes": (("write", "truncate"), apsw.IOError),
    "failing syncs": (("sync",), apsw.IOError),
    "read-only": (("write", "truncate", "sync"), apsw.ReadOnlyError),
    "failing reads": (("read",), apsw.IOError),
    "nothing works": (("open", "read", "write", "sync", "truncate"), apsw.IOError),
}


class Faults:
    """Lets operations of some kinds fail after a number of them: once, or until it is cured."""

    def __init__(self, kinds: tuple[str, ...], error: Callable[[], Exception]) -> None:
        self._kinds = kinds
        self._error = error
        self._left: int | None = None
        self._lasts = False

    def begin(self, after: int, lasts: bool) -> None:
        """Let what comes after a number of operations fail."""
        self._left, self._lasts = after, lasts

    def cure(self) -> None:
        """Let nothing fail any more."""
        self._left = None

    def __call__(self, kind: str, name: str) -> Exception | None:
        if self._left is None or kind not in self._kinds:
            return None
        self._left -= 1
        if self._left >= 0:
            return None
        if not self._lasts:
            self._left = None
        return self._error()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_and_it_goes_on_once_cured(
    fast_folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(codes, "EXACT_LIMIT", 40)
    monkeypatch.setattr(codes, "_LOOKED_AT", 8)
    source = random.Random(tally.seed())
    faults = Faults(*KINDS[kind])
    ledger, config = Ledger(), Config()
    answered = refused = checked = 0
    with FaultyDisk() as disk:
        disk.fault = faults
        for round_ in tally.rounds(ROUNDS, share=0.04):
            if round_ % FILE_ROUNDS == 0:
                answered += ledger.answered
                path = str(fast_folder / f"{round_}.db")
                ledger, config = Ledger(), Config(db_path=path, embed_backend="none")
            embedder = Embedder() if source.random() < 0.5 else None
            monkeypatch.setattr(memory_module, "make_embedder", lambda config, it=embedder: it)
            if source.random() < 0.3:  # while the store is opened, too
                faults.begin(source.randrange(60), lasts=source.random() < 0.5)
            memory = opened(config, faults)
            assert not memory._store._database.lost_log
            try:
                for step in range(2):
                    learner = Learner(memory, f"r{round_}s{step}", round_, ledger.take, step == 0)
                    for _ in range(DEEDS):
                        if source.random() < 0.2:
                            faults.begin(source.randrange(12), lasts=source.random() < 0.5)
                        refused += not acts(learner)
                        if source.random() < 0.2:
                            may_answer(memory)
                        if source.random() < 0.3:
                            faults.cure()
                    faults.cure()
                    # Without a restart, at once.
                    assert learns(memory, f"cured{round_}s{step}"), memory.status()
            finally:
                if source.random() < 0.3:  # and while it is closed
                    faults.begin(source.randrange(5), lasts=True)
                memory.close()  # which cannot fail: what was answered is on disk
                faults.cure()
            count, problems = ledger.check(config.db_path)
            assert not problems, (round_, problems[:10])
            checked += count
    assert refused
    assert disk.injected
    tally.add(faults_injected=disk.injected, calls_answered=answered + ledger.answered + refused)
    tally.add(memories_checked=checked, lost=0, doubled=0)


def opened(config: Config, faults: Faults) -> RobotMemory:
    """Open a store; if a fault keeps it from that, it is cured first."""
    try:
        return RobotMemory(config, owner="/a")
    except RobotMemoryError as error:
        assert config.db_path in str(error)  # noqa: PT017
        faults.cure()
        return RobotMemory(config, owner="/a")


def acts(learner: Learner) -> bool:
    """Do one thing; return whether it could be done."""
    try:
        learner.act()
    except RobotMemoryError as error:
        assert str(error)  # noqa: PT017
        return False
    return True


def may_answer(memory: RobotMemory) -> None:
    """Ask for something, which is answered or refused with a reason."""
    try:
        memory.recall(Query("part"))
        memory.status()
    except StoreError as error:
        assert str(error)  # noqa: PT017


def learns(memory: RobotMemory, tag: str) -> bool:
    """Store something and find it again."""
    experience = Experience(deeds.text(tag, 1, 0), deeds.context(tag, 1, 0), pose=deeds.pose(1))
    number = memory.learn(experience).memory.id
    found = memory.recall(Query(experience.content, n=50)).memories
    return number in {item.memory.id for item in found}


def test_a_disk_that_is_really_full_or_read_only(tmp_path: Path) -> None:
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    probe = [*namespace, "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("needs unshare, and leave to mount a file system in a namespace of one's own")
    program = Path(__file__).with_name("real_disk.py")
    paths = os.pathsep.join([str(program.parent), *filter(None, sys.path)])
    done = subprocess.run(
        [*namespace, sys.executable, str(program), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    answered, refused, count = map(int, done.stdout.split())
    tally.add(calls_answered=answered + refused, faults_injected=refused, memories_checked=count)


def test_a_process_that_may_write_no_more(learners: Learners, tmp_path: Path) -> None:
    """A limit on the size of files: writes fail, in many threads, before SQLite knows it."""
    path, ledger = tmp_path / "robot.db", Ledger()
    refused = 0
    for round_, limit in enumerate((400_000, 0)):
        said = learners.live(path, [f"a{round_}"], 1, life=1.5, limit=limit)
        for line in said:
            assert not line.startswith("crashed"), line
            if line.startswith("refused"):
                refused += 1
            elif line != "open":
                ledger.take(line)
        count, problems = ledger.check(str(path))
        assert not problems, problems[:10]
        assert refused, "the limit was never reached"
    tally.add(calls_answered=ledger.answered, faults_injected=refused, memories_checked=count)
