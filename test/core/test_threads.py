# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Any number of threads may use one memory at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from test_no_trace_left import assert_indexes_are_sound

from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import RobotMemoryError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Near, Pose, Query

THREADS = 8
CALLS = 60


def test_eight_threads_call_everything_at_once(memory: RobotMemory, db_path: str) -> None:
    """Each sees its own changes at once; nothing is lost or doubled, no index is left behind."""
    start = threading.Barrier(THREADS)

    def work(thread: int) -> set[int]:
        source = random.Random(thread)
        mine: dict[int, str] = {}
        start.wait()
        for i in range(CALLS):
            kind = source.random()
            if kind < 0.4 or not mine:
                text = f"robot{thread} grasped cup {i}"
                context = {"robot": {"id": f"robot{thread}"}, "spatial": {"p": [i, thread, 0]}}
                pose = Pose("map", (i, thread, 0.0))
                mine[memory.learn(Experience(text, context, pose=pose)).memory.id] = text
            elif kind < 0.5:
                number = source.choice(list(mine))
                mine[number] = f"robot{thread} dropped plate {i}"
                memory.update(number, mine[number])
            elif kind < 0.6:
                number = source.choice(list(mine))
                memory.forget(number)
                del mine[number]
            elif kind < 0.7:
                number = source.choice(list(mine))
                assert memory.get(ids=[number])[0][0].content == mine[number]
            elif kind < 0.75:
                assert memory.status().memories >= len(mine)
            else:
                query = source.choice(
                    [
                        Query(
                            f"robot{thread}", n=100, context_filter={"robot.id": f"robot{thread}"}
                        ),
                        Query("*", n=100, context_filter={"robot.id": f"robot{thread}"}),
                    ]
                )
                found = {item.memory.id for item in memory.recall(query).memories}
                assert found == set(mine)
                memory.recall(Query("cup plate", near=Near("map", (1, 2, 3), 5.0)))
        return set(mine)

    with ThreadPoolExecutor(THREADS) as pool:
        kept = [future.result(timeout=60) for future in [pool.submit(work, i) for i in range(8)]]
    numbers = set().union(*kept)
    assert sum(map(len, kept)) == len(numbers) == memory.status().memories
    assert_indexes_are_sound(db_path)


def test_searches_go_on_while_indexes_are_made_anew(memory: RobotMemory) -> None:
    for i in range(300):
        memory.learn(Experience(f"cup {i}"))
    stop = threading.Event()

    def search() -> int:
        rounds = 0
        while not stop.is_set():
            assert len(memory.recall(Query("*", n=100)).memories) == 100
            memory.recall(Query("cup", n=100))  # finds what is indexed so far
            rounds += 1
        return rounds

    with ThreadPoolExecutor(2) as pool:
        searches = [pool.submit(search) for _ in range(2)]
        for _ in range(3):
            memory.reindex()
            memory.learn(Experience(f"a learn meanwhile {time.time_ns()}"))
            while memory.status().task:
                time.sleep(0.01)
        stop.set()
        assert all(future.result(timeout=30) for future in searches)
    assert memory.status().task_result.startswith("reindexed 30")
    assert memory.status().memories == 303


def test_fifty_starts_and_stops_leave_no_thread(db_path: str) -> None:
    before = set(threading.enumerate())
    for i in range(50):
        with RobotMemory(Config(db_path=db_path, embed_backend="none")) as memory:
            memory.learn(Experience(f"cup {i}"))
            memory.recall(Query("cup"))
    assert set(threading.enumerate()) <= before
    with RobotMemory(Config(db_path=db_path, embed_backend="none")) as memory:
        (first,), _ = memory.get(ids=[1])
        assert (memory.status().memories, first.return_count) == (50, 50)


def test_recalls_answered_while_it_is_closed_are_counted(
    open_memory: Callable[..., RobotMemory],
) -> None:
    memory = open_memory()
    for i in range(40):
        memory.learn(Experience(f"cup {i}", context={"task": {"i": i}}))
    answered, stopped = [], []

    def ask() -> None:
        while True:
            try:
                found = memory.recall(Query("cup", n=1, context_filter={"task.i": 3}))
            except RobotMemoryError as error:
                stopped.append(error)
                return
            answered.extend(found.memories)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(answered) < 20:
        time.sleep(0.001)
    memory.close()
    for thread in threads:
        thread.join()
    assert len(stopped) == len(threads)
    again = open_memory()
    assert again.get(ids=[4])[0][0].return_count == len(answered)
