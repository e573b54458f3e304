# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Whenever the process is killed, all that was answered is there, and nothing by half."""

from __future__ import annotations

import random
from pathlib import Path

import tally
from forking import Learners
from ledger import Ledger

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Query

KILLS = 200
FILE_KILLS = 10
"""After so many kills a new file is begun."""

LONGEST = 0.3
"""Seconds a process lives at most, its opening of the store included."""


def test_every_answer_survives_kill_9(learners: Learners, tmp_path: Path) -> None:
    source = random.Random(tally.seed())
    path, ledger = tmp_path / "0.db", Ledger()
    answered = checked = kills = 0
    for round_ in tally.rounds(KILLS, share=0.4):
        if round_ % FILE_KILLS == 0:
            assert_answers(path)
            answered += ledger.answered
            path.unlink(missing_ok=True)
            path, ledger = tmp_path / f"{round_}.db", Ledger()
        names = [f"a{round_}", f"b{round_}"] if source.random() < 0.25 else [f"a{round_}"]
        life = source.uniform(0.0, LONGEST)
        for line in learners.live(path, names, round_ // FILE_KILLS, life):
            assert not line.startswith(("crashed", "refused")), line
            if line != "open":
                ledger.take(line)
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
