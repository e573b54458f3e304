# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A program that forks processes full of learners, which somebody will kill.

It reads "PATH NAME SEED LIMIT" lines. Each makes a process that works until it is killed. Its
lines and those of this program go to stdout, every one whole: "NAME pid N", what deeds.py says
with the name before it, "NAME gone" when the process has ended. LIMIT is how large its files may
grow, in bytes; 0 means any size. A fork costs a hundredth of a start of Python.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
import traceback

from deeds import Embedder, Learner

from robotmem_ros.core import memory as memory_module
from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import RobotMemoryError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.store import codes
from robotmem_ros.core.text import index_tokens

THREADS = 3


def say(line: str) -> None:
    """Write one line; that of a killed process is there, or it is not."""
    os.write(1, f"{line}\n".encode())


def work(path: str, name: str, seed: int) -> None:
    """Do things for ever, with several threads in one memory; what fails is said."""
    codes.EXACT_LIMIT, codes._LOOKED_AT = 100, 8  # so that a store becomes large soon
    if seed % 2:
        memory_module.make_embedder = lambda config: Embedder()  # type: ignore[assignment]
    memory = RobotMemory(Config(db_path=path, embed_backend="none"), owner=f"/{name[0]}")
    learners = [
        Learner(memory, f"{name}t{i}", seed, lambda line: say(f"{name} {line}"), sessions=i == 0)
        for i in range(THREADS)
    ]

    def go_on(learner: Learner) -> None:
        while True:
            try:
                learner.act()
            except RobotMemoryError as error:
                say(f"{name} refused {' '.join(str(error).split())}")
                time.sleep(0.002)
            except BaseException:
                say(f"{name} crashed {traceback.format_exc()!r}"[:4000])
                os._exit(1)

    say(f"{name} open")
    for learner in learners[1:]:
        threading.Thread(target=go_on, args=(learner,), daemon=True).start()
    go_on(learners[0])


def main() -> None:
    """Fork until stdin ends."""
    index_tokens("机器人")  # loads the dictionary once for all
    for line in sys.stdin:
        path, name, seed, limit = line.split()
        pid = os.fork()
        if not pid:
            try:
                if int(limit):
                    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
                work(path, name, int(seed))
            except BaseException:
                say(f"{name} crashed {traceback.format_exc()!r}"[:4000])
            finally:
                os._exit(1)
        say(f"{name} pid {pid}")
        threading.Thread(target=_await, args=(pid, name), daemon=True).start()


def _await(pid: int, name: str) -> None:
    os.waitpid(pid, 0)
    say(f"{name} gone")


if __name__ == "__main__":
    main()
