# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A program that fills a small disk, cures it, makes it read-only and cures it again.

It is run where it may mount: unshare --user --map-root-user --mount python3 real_disk.py FOLDER
prints how many deeds were answered and refused, and ends with 0 if nothing was lost.
"""

from __future__ import annotations

import subprocess
import sys
from collections import deque

import pytest
from deeds import Learner
from ledger import Ledger
from test_failing_disk import acts, learns, may_answer

from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import ConfigError, StoreError
from robotmem_ros.core.memory import RobotMemory


def main(folder: str) -> None:
    """Do it, in a folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=900k", "none", folder], check=True)
    ledger, config = Ledger(), Config(db_path=f"{folder}/robot.db", embed_backend="none")
    with RobotMemory(config, owner="/a") as memory:
        refused = fill(memory, Learner(memory, "full", 1, ledger.take, sessions=True))
        remount(folder, "size=20m")
        assert learns(memory, "space")
        cured = Learner(memory, "cured", 1, ledger.take, sessions=True)
        assert all(acts(cured) for _ in range(100))
    remount(folder, "ro")  # which the system allows while no file is open for writing
    with pytest.raises(ConfigError, match=config.db_path):
        RobotMemory(config, owner="/a")
    remount(folder, "rw")
    with RobotMemory(config, owner="/a") as memory:
        assert learns(memory, "writable")
    count, problems = ledger.check(config.db_path)
    assert not problems, problems[:10]
    print(ledger.answered, refused, count)


def fill(memory: RobotMemory, learner: Learner) -> int:
    """Learn until the disk is full, and on; return how often that was refused."""
    for _ in range(10_000):
        if not acts(learner):
            break
    refused = 1
    for _ in range(100):
        refused += not acts(learner)
        may_answer(memory)
    with pytest.raises(StoreError, match="no space left"):
        deque(iter(learner.learn, "never"), maxlen=0)
    return refused


def remount(folder: str, options: str) -> None:
    """Change the disk."""
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
