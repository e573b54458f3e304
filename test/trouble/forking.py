# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The program learners.py: start it, let its processes work, and kill them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


class Learners:
    """The program, and what it said."""

    def __init__(self) -> None:
        program = Path(__file__).with_name("learners.py")
        paths = os.pathsep.join([str(program.parent), *filter(None, sys.path)])
        self._process = subprocess.Popen(
            [sys.executable, str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
            text=True,
        )

    def live(
        self, path: Path, names: list[str], seed: int, life: float, limit: int = 0
    ) -> list[str]:
        """Let processes work on one file for some seconds, kill them, and return what they said.

        Parameters
        ----------
        limit: how large their files may grow, in bytes; 0 means any size.
        """
        assert self._process.stdin is not None
        for name in names:
            print(path, name, seed, limit, file=self._process.stdin, flush=True)
        pids: dict[str, int] = {}
        said = []
        while len(pids) < len(names):
            name, line = self._line()
            if line.startswith("pid "):
                pids[name] = int(line[4:])
            else:
                said.append(line)
        time.sleep(life)
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
        while pids:
            name, line = self._line()
            if line == "gone":
                del pids[name]
            else:
                said.append(line)
        return said

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.communicate()

    def _line(self) -> tuple[str, str]:
        assert self._process.stdout is not None
        name, _, said = self._process.stdout.readline().rstrip("\n").partition(" ")
        assert name, "learners.py has ended"
        return name, said
