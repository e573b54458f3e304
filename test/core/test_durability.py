# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""An answered learn survives kill -9, and several processes share one file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from making import by_vector, new, sql, tables_that_name

from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Query
from robotmem_ros.core.store import Store

LEARN_FOR_EVER = """
import sys
from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Pose

memory = RobotMemory(Config(db_path=sys.argv[1], embed_backend="none"))
for i in range(10**6):
    learned = memory.learn(Experience(
        f"{sys.argv[2]} lifted part PN-{i}",
        {"robot": {"id": sys.argv[2]}, "spatial": {"p": [i, 0, 0]}},
        pose=Pose("map", (i, 0.0, 0.0)),
    ))
    print(learned.memory.id, learned.memory.uuid, flush=True)
"""

TURN_VECTORS = """
import sys
import numpy as np
from robotmem_ros.core.store import Store
from making import new

store = Store(sys.argv[1])
store.use_model("m", 4)
for line in sys.stdin:
    action, number = line.split()
    if action == "add":
        made, _ = store.add(new(f"text {number}"))
        store.put_vectors("m", [(made, f"text {number}", np.array([1, int(number), 0, 0], "f4"))])
        print(made, flush=True)
    else:
        store.forget(int(number), "", 1)
        print(number, flush=True)
"""


@contextmanager
def process(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    folder = os.path.dirname(os.path.abspath(__file__))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), folder])}
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def line_of(child: subprocess.Popen[str]) -> list[str]:
    assert child.stdout is not None
    return child.stdout.readline().split()


def test_an_answered_learn_survives_kill_9(
    open_memory: Callable[..., RobotMemory], db_path: str
) -> None:
    for round_ in range(3):
        name = f"robot{round_}"
        with process(LEARN_FOR_EVER, db_path, name) as child:
            answered = [line_of(child) for _ in range(1 + 7 * round_)]
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            assert child.stdout is not None
            answered += [line.split() for line in child.stdout if line.endswith("\n")]
        memory = open_memory()
        found, missing = memory.get(uuids=[uuid for _, uuid in answered])
        assert missing == []
        assert [str(item.id) for item in found] == [number for number, _ in answered]
        for number, _ in answered:
            assert tables_that_name(db_path, int(number)) == {
                *("memories", "texts", "documents", "keywords", "memory_entities"),
                *("attributes", "places", "unembedded"),
            }
        last = found[-1]
        part = last.content.rpartition(" ")[2]
        for query in (
            Query(f"{name} {part}", n=1),
            Query(part, context_filter={"robot.id": name}, n=1),
            Query("*", spatial_sort={"field": "spatial.p", "target": [int(part[3:]), 0, 0]}),
        ):
            near = [item.memory for item in memory.recall(query).memories]
            assert last.content in {item.content for item in near}
        memory.close()
        with sql(db_path) as connection:
            assert connection.execute("PRAGMA integrity_check").get == "ok"
            connection.execute(
                "INSERT INTO keywords (keywords, rank) VALUES ('integrity-check', 1)"
            )


def test_two_processes_lose_nothing_and_double_nothing(db_path: str) -> None:
    with (
        process(LEARN_FOR_EVER, db_path, "a") as one,
        process(LEARN_FOR_EVER, db_path, "b") as two,
    ):
        answered = [line_of(child) for _ in range(40) for child in (one, two)]
    assert len({number for number, _ in answered}) == 80
    with sql(db_path) as connection:
        stored = dict(connection.execute("SELECT uuid, id FROM memories").fetchall())
        counts = connection.execute("SELECT count(*), count(DISTINCT content) FROM texts").get
    assert counts[0] == counts[1]
    for number, uuid in answered:
        assert stored[uuid] == int(number)


def test_many_processes_may_make_the_file_at_once(db_path: str) -> None:
    children: list[Any] = []
    contexts = [process(LEARN_FOR_EVER, db_path, f"r{i}") for i in range(4)]
    try:
        children += [context.__enter__() for context in contexts]
        assert all(len(line_of(child)) == 2 for child in children)
    finally:
        for context in contexts:
            context.__exit__(None, None, None)


def test_a_memory_of_another_process_is_found_at_once(memory: RobotMemory, db_path: str) -> None:
    assert memory.recall(Query("lifted")).memories == ()
    with process(LEARN_FOR_EVER, db_path, "other") as child:
        for _ in range(10):
            number, _ = line_of(child)
            found = memory.recall(Query("lifted", n=100)).memories
            assert int(number) in {item.memory.id for item in found}


def test_vectors_of_another_process_are_followed(db_path: str) -> None:
    store = Store(db_path)
    query = np.array([1, 3, 0, 0], np.float32)

    def nearest() -> list[int]:
        return [number for number, _ in by_vector(store, query)]

    assert nearest() == []
    with process(TURN_VECTORS, db_path) as child:
        assert child.stdin is not None
        ids: dict[int, int] = {}
        for i in (9, 3, 1, 5):
            print("add", i, file=child.stdin, flush=True)
            ids[i] = int(line_of(child)[0])
            assert ids[i] in nearest()
        assert nearest() == [ids[3], ids[5], ids[9], ids[1]]
        own, _ = store.add(new("own"))
        store.put_vectors("m", [(own, "own", query)])
        print("forget", ids[3], file=child.stdin, flush=True)
        line_of(child)
        assert nearest() == [own, ids[5], ids[9], ids[1]]
    store.close()


def test_a_writer_waits_for_another_process(memory: RobotMemory, db_path: str) -> None:
    with sql(db_path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        assert memory.recall(Query("x")).memories == ()
        assert time.monotonic() - start < 1.0
        connection.execute("COMMIT")
    memory.learn(Experience("x"))
