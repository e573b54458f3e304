# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Four processes of three threads each, and a reader, on one file: nobody is ever told to wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import deeds
import pytest
import tally
from forking import Learners
from ledger import Ledger

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Query

PROCESSES = 4
SECONDS = 5.0


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[RobotMemory]:
    config = Config(db_path=str(tmp_path / "robot.db"), embed_backend="none")
    with RobotMemory(config, owner="/reader") as memory:
        yield memory


def test_processes_lose_nothing_and_wait_for_nobody(
    learners: Learners, reader: RobotMemory, tmp_path: Path
) -> None:
    over = threading.Event()
    answered = 0
    with ThreadPoolExecutor(1) as pool:
        for round_ in tally.rounds(1, share=0.08):
            ledger, names = Ledger(), [f"{name}{round_}" for name in "abcd"]
            reading = pool.submit(read, reader, over)
            said = learners.live(tmp_path / "robot.db", names, seed=1, life=SECONDS)
            over.set()
            answered += reading.result()
            over.clear()
            for line in said:
                assert not line.startswith(("crashed", "refused")), line
                if line != "open":
                    ledger.take(line)
            count, problems = ledger.check(str(tmp_path / "robot.db"))
            assert not problems, problems[:10]
            assert said.count("open") == PROCESSES
            tally.add(calls_answered=ledger.answered, memories_checked=count)
    tally.add(calls_answered=answered, lost=0, doubled=0)


def read(memory: RobotMemory, over: threading.Event) -> int:
    """Recall until it is over, and see nothing by half; return how often."""
    count = 0
    while not over.is_set():
        for text in ("*", "lifted part"):
            for item in memory.recall(Query(text, n=50, collection="*")).memories:
                known = deeds.meaning(item.memory.content)
                assert known is None or item.memory.context == deeds.context(*known)
            count += 1
        memory.status()
        time.sleep(0.01)
    return count
