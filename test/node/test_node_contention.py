# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Eight clients, two nodes and a command line on one file: nothing lost, doubled or locked."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deeds
import pytest
import soundness
import tally
from ledger import Ledger

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from robotmem_ros import conversions  # noqa: E402

CLIENTS = 8
CALLS = 500 if os.environ.get("ROBOTMEM_TROUBLE_MINUTES") else 100
"""Of each client."""


class Client:
    """One caller with memories of its own, which it knows to be as it left them."""

    def __init__(self, name: str, node: str, say: Callable[[str], None]) -> None:
        self._caller = harness.Caller(f"client_{name}")
        self._robot = harness.Robot(self._caller, node).wait_ready()
        self._name = name
        self._random = random.Random(f"{name} {tally.seed()}")
        self._say = say
        self._mine: dict[int, tuple[int, int, str]] = {}  # number: memory_id, version, uuid
        self.times: list[float] = []

    def work(self) -> None:
        """Call a service, again and again; every call must succeed."""
        calls = (
            [self._learn] * 4 + [self._update] * 2 + [self._forget, self._get] + [self._ask] * 3
        )
        for number in range(CALLS):
            call = self._random.choice(calls) if self._mine else self._learn
            start = time.perf_counter()
            call(number)
            self.times.append(time.perf_counter() - start)
        uuids = [uuid for _, _, uuid in self._mine.values()]
        assert not uuids or self._done("get", uuids=uuids).success

    def close(self) -> None:
        """Leave ROS."""
        self._caller.close()

    def _done(self, service: str, **fields: Any) -> Any:
        answer = getattr(self._robot, service)(**fields)
        assert answer.success, (service, fields, answer.message)
        return answer

    def _learn(self, number: int) -> None:
        fields = self._content(number, 0)
        pose = deeds.pose(number)
        if pose is not None:
            fields |= {"has_pose": True, "pose": conversions._stamped(pose)}
        answer = self._done("learn", insight=fields.pop("new_content"), **fields)
        assert answer.status == "created"
        self._mine[number] = (answer.memory_id, 0, answer.uuid)
        self._say(f"stored {self._name} {number} 0 {answer.uuid}")

    def _update(self, _: int) -> None:
        number, (memory_id, version, uuid) = self._random.choice([*self._mine.items()])
        fields = self._content(number, version + 1)
        answer = self._done("update", memory_id=memory_id, **fields)
        assert answer.old_content == deeds.text(self._name, number, version)
        self._mine[number] = (memory_id, version + 1, uuid)
        self._say(f"updated {self._name} {number} {version + 1}")

    def _forget(self, _: int) -> None:
        number = self._random.choice([*self._mine])
        self._say(f"forgetting {self._name} {number}")
        self._done("forget", memory_id=self._mine.pop(number)[0])
        self._say(f"forgot {self._name} {number}")

    def _get(self, _: int) -> None:
        number, (memory_id, version, uuid) = self._random.choice([*self._mine.items()])
        (memory,) = self._done("get", memory_ids=[memory_id]).memories
        assert memory.uuid == uuid
        assert memory.content == deeds.text(self._name, number, version)

    def _ask(self, _: int) -> None:
        """Find what is ours by a filter, the newest a hundred of it."""
        chosen = self._random.choice(["*", f"{self._name} lifted part"])
        wanted = f'{{"robot.id": "{self._name}"}}'
        answer = self._done("recall", query=chosen, n=100, context_filter=wanted)
        assert answer.total == min(100, len(self._mine))
        numbers = {memory_id for memory_id, _, _ in self._mine.values()}
        assert {memory.id for memory in answer.memories} <= numbers

    def _content(self, number: int, version: int) -> dict[str, Any]:
        context = deeds.context(self._name, number, version)
        content = deeds.text(self._name, number, version)
        return {"new_content": content, "context": json.dumps(context)}


def test_nothing_is_lost_or_doubled(start_node: Callable[..., Any], tmp_path: Path) -> None:
    path = str(tmp_path / "robotmem.db")
    nodes = [start_node(db_path=path) for _ in range(2)]
    lock, ledger = threading.Lock(), Ledger()

    def say(line: str) -> None:
        with lock:
            ledger.take(line)

    # Most of them at one node, as many robots of a fleet at one memory.
    clients = [Client(f"c{i}", nodes[i // 6].name, say) for i in range(CLIENTS)]
    over = threading.Event()
    try:
        with ThreadPoolExecutor(CLIENTS + 1) as pool:
            reader = pool.submit(read_beside, path, over, tmp_path)
            try:
                for work in [pool.submit(client.work) for client in clients]:
                    work.result()
            finally:
                over.set()
            read = reader.result()
    finally:
        for client in clients:
            client.close()
    for node in nodes:
        node.end()
        assert node.wait() == 0
        assert "locked" not in node.stderr
    with soundness.opened(path) as connection:
        assert soundness.problems(connection) == []
        memories = list(soundness.stored(connection).values())
    assert ledger.of_memories(memories) == []
    times = sorted(time for client in clients for time in client.times)
    tally.add(calls_answered=len(times) + read, memories_checked=len(memories), lost=0, doubled=0)
    tally.note(
        f"{CLIENTS} clients, two nodes and a reader on one file, {len(times)} calls: p50 "
        f"{1e3 * times[len(times) // 2]:.0f} ms, p99 {1e3 * times[len(times) * 99 // 100]:.0f} ms"
    )


def read_beside(path: str, over: threading.Event, folder: Path) -> int:
    """Read the file with the command line until it is over; return how often."""
    count = 0
    while not over.is_set() or not count:
        command = ("stats", "check", "export")[count % 3]
        done = subprocess.run(
            [sys.executable, "-m", "robotmem_ros.cli.main", command, path],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout[-500:], done.stderr)
        assert "locked" not in done.stderr
        count += 1
        over.wait(0.2)
    return count
