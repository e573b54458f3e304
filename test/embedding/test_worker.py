# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The worker: never in the way of learning, of queries, or of the end."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest
from backends import Opener, stored_vectors, wait_for
from ollama_server import OllamaServer

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Mode, Query


def ready(memory: RobotMemory) -> bool:
    status = memory.status()
    return status.embedder_available and status.pending_embeddings == 0


def test_repeated_query_is_embedded_once(opened: Opener, ollama: OllamaServer) -> None:
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    memory.learn(Experience("the dock is in the hall"))
    assert wait_for(lambda: ready(memory))
    for _ in range(5):
        assert memory.recall(Query("where is the dock")).mode is Mode.HYBRID
    assert ollama.texts.count("search_query: where is the dock") == 1


def test_new_memory_has_its_vector_soon(opened: Opener, ollama: OllamaServer) -> None:
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    memory.learn(Experience("the dock is in the hall"))
    assert wait_for(lambda: ready(memory))
    start = time.monotonic()
    memory.learn(Experience("the lift is out of order"))
    assert wait_for(lambda: ready(memory))
    assert time.monotonic() - start < 1.0  # normally within 100 ms


def test_learn_does_not_wait_for_a_slow_backend(opened: Opener, ollama: OllamaServer) -> None:
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    assert wait_for(lambda: memory.status().embedder_available)
    ollama.delay = 2.0
    start = time.monotonic()
    for number in range(20):
        memory.learn(Experience(f"mug {number}"))
    assert time.monotonic() - start < 2.0
    ollama.delay = 0.0


def test_query_does_not_queue_behind_the_backfill(opened: Opener, ollama: OllamaServer) -> None:
    learner = opened(embed_backend="none")
    for number in range(1000):
        learner.learn(Experience(f"mug {number}"))
    ollama.delay = 0.5
    memory = opened(embed_backend="ollama", ollama_url=ollama.url, embed_timeout=10.0)
    assert wait_for(lambda: memory.status().pending_embeddings < 1000)
    modes = [memory.recall(Query(f"dock or mug {number}")) for number in range(3)]
    assert memory.status().pending_embeddings > 0
    assert {result.mode for result in modes} == {Mode.HYBRID}
    # It is on its own way: one delay, not one for each batch before it.
    assert max(result.query_ms for result in modes) < 2000
    ollama.delay = 0.0


def test_newest_first(opened: Opener, ollama: OllamaServer, tmp_path: pathlib.Path) -> None:
    ollama.fault = "hang"
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    for number in range(500):
        memory.learn(Experience(f"mug {number}"))
    ollama.delay = 0.5
    ollama.fault = ""
    ollama.released.set()
    memory.backfill()
    path = tmp_path / "memories.db"
    assert wait_for(lambda: stored_vectors(path))
    latest = memory.learn(Experience("the lift is out of order")).memory.id
    assert wait_for(lambda: latest in stored_vectors(path))
    assert memory.status().pending_embeddings > 0
    ollama.delay = 0.0


def test_recall_waits_no_longer_than_embed_timeout(opened: Opener, ollama: OllamaServer) -> None:
    memory = opened(embed_backend="ollama", ollama_url=ollama.url, embed_timeout=0.5)
    memory.learn(Experience("the dock is in the hall"))
    assert wait_for(lambda: ready(memory))
    ollama.delay = 3.0
    result = memory.recall(Query("where is the dock"))
    assert result.mode is Mode.BM25_ONLY
    assert result.memories
    assert 450 < result.query_ms < 1500
    # While that request is under way, others do not wait for the same.
    for number in range(5):
        result = memory.recall(Query(f"where is dock {number}"))
        assert result.mode is Mode.BM25_ONLY
        assert result.query_ms < 300
    # It was slow, not broken: once it has answered, all is well again, with its vector kept.
    ollama.delay = 0.0
    assert wait_for(lambda: memory.recall(Query("where is the dock")).mode is Mode.HYBRID)
    assert memory.status().embedder_available
    assert ollama.texts.count("search_query: where is the dock") == 1


def test_no_waiting_at_all(opened: Opener, ollama: OllamaServer) -> None:
    memory = opened(embed_backend="ollama", ollama_url=ollama.url, embed_timeout=0.0)
    memory.learn(Experience("the dock is in the hall"))
    assert wait_for(lambda: ready(memory))
    assert memory.recall(Query("where is the dock")).mode is Mode.BM25_ONLY
    assert wait_for(lambda: memory.recall(Query("where is the dock")).mode is Mode.HYBRID)


def test_first_recall_waits_for_the_model(opened: Opener, model_path: str) -> None:
    memory = opened(model_path=model_path, embed_timeout=30.0)
    memory.learn(Experience("picking up a mug by its handle"))
    memory.recall(Query("how to grasp a cup"))
    assert memory.status().embedder_available


def test_close_while_a_request_hangs(opened: Opener, ollama: OllamaServer) -> None:
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    assert wait_for(lambda: memory.status().embedder_available)
    ollama.fault = "hang"
    for number in range(100):
        memory.learn(Experience(f"mug {number}"))
    waiting = threading.Thread(target=memory.recall, args=(Query("mug"),))
    waiting.start()
    time.sleep(0.3)
    start = time.monotonic()
    memory.close()
    assert time.monotonic() - start < 1.0
    waiting.join(5.0)
    assert not waiting.is_alive()


def test_close_while_the_model_loads(opened: Opener, model_path: str) -> None:
    for delay in (0.0, 0.05, 0.2, 0.4):
        memory = opened(model_path=model_path)
        time.sleep(delay)
        start = time.monotonic()
        memory.close()
        assert time.monotonic() - start < 1.0


def test_close_while_a_batch_is_embedded(
    opened: Opener, model_path: str, tmp_path: pathlib.Path
) -> None:
    memory = opened(model_path=model_path)
    for number in range(100):
        memory.learn(Experience(f"{number} " + "long and winding text " * 40))
    assert wait_for(lambda: stored_vectors(tmp_path / "memories.db"))
    start = time.monotonic()
    memory.close()
    assert time.monotonic() - start < 1.0
    memory.close()


EXIT = """
import json, sys, time
from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience

memory = RobotMemory(Config(**json.loads(sys.argv[1])))
for number in range(200):
    memory.learn(Experience(f"{number} " + "long and winding text " * 50))
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("delay", [0.0, 0.4, 1.0])
def test_process_ends_in_the_middle_of_work(
    delay: float, model_path: str, tmp_path: pathlib.Path
) -> None:
    # Without close: a thread torn out of a native library would abort the process.
    settings = {"db_path": str(tmp_path / "memories.db"), "model_path": model_path}
    done = subprocess.run(
        [sys.executable, "-c", EXIT, json.dumps(settings), str(delay)],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_thread_is_left_behind(tmp_path: pathlib.Path, ollama: OllamaServer) -> None:
    def ours() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("robotmem")]

    before = len(ours())
    for number in range(50):
        config = Config(
            db_path=str(tmp_path / "memories.db"), embed_backend="ollama", ollama_url=ollama.url
        )
        with RobotMemory(config) as memory:
            memory.learn(Experience(f"mug {number}"))
    assert wait_for(lambda: len(ours()) <= before, 5)


def test_progress_in_status(opened: Opener, ollama: OllamaServer) -> None:
    ollama.fault = "hang"
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    for number in range(300):
        memory.learn(Experience(f"mug {number}"))
    assert memory.status().task == ""
    ollama.delay = 0.2
    ollama.fault = ""
    ollama.released.set()
    assert memory.backfill() == "300 memories wait for their vector; progress is on ~/status"
    done = []

    def complete() -> bool:
        status = memory.status()
        if status.task == "backfill":
            assert status.task_total == 300
            done.append(status.task_done)
        return status.pending_embeddings == 0

    assert wait_for(complete)
    assert done == sorted(done)
    assert len(set(done)) > 1
    assert wait_for(lambda: memory.status().task == "")
    # A handful of new memories is no task.
    ollama.delay = 0.0
    for number in range(20):
        memory.learn(Experience(f"cup {number}"))
        assert memory.status().task == ""


def test_one_line_for_each_change_of_state(
    opened: Opener, ollama: OllamaServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    for number in range(100):
        memory.learn(Experience(f"mug {number}"))
    assert wait_for(lambda: ready(memory))
    for number in range(20):
        memory.recall(Query(f"mug {number}"))
    ollama.fault = "redirect"
    for number in range(50):
        memory.learn(Experience(f"cup {number}"))
    assert wait_for(lambda: not memory.status().embedder_available)
    memory.backfill()
    memory.backfill()
    time.sleep(0.5)
    ollama.fault = ""
    memory.backfill()
    assert wait_for(lambda: ready(memory))
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert lines[0] == lines[2] == "the embedding model nomic-embed-text is ready"
    assert lines[1].startswith("no vectors for now: the server at")


def test_backfill_tries_at_once(opened: Opener, ollama: OllamaServer) -> None:
    ollama.fault = "not_found"
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    memory.learn(Experience("mug"))
    assert wait_for(lambda: "is not Ollama" in memory.status().embedder_reason)
    ollama.fault = ""
    assert "1 memories wait" in memory.backfill()
    assert wait_for(lambda: ready(memory), 10)


def test_forgotten_and_changed_memories_get_no_stale_vector(
    opened: Opener, ollama: OllamaServer, tmp_path: pathlib.Path
) -> None:
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    assert wait_for(lambda: memory.status().embedder_available)
    ollama.delay = 0.5
    ids = [memory.learn(Experience(f"mug {number}")).memory.id for number in range(10)]
    time.sleep(0.1)
    memory.forget(ids[0])
    memory.update(ids[1], "something else entirely")
    ollama.delay = 0.0
    assert wait_for(lambda: ready(memory))
    vectors = stored_vectors(tmp_path / "memories.db")
    assert set(vectors) == set(ids[1:])
    assert "search_document: something else entirely" in ollama.texts
    found = memory.recall(Query("something else entirely", n=1)).memories[0].memory
    assert found.id == ids[1]


def test_memories_of_another_process_get_vectors(opened: Opener, ollama: OllamaServer) -> None:
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    other = opened(embed_backend="none")
    assert wait_for(lambda: memory.status().embedder_available)
    other.learn(Experience("the dock is in the hall"))
    assert wait_for(lambda: ready(memory), 15)
    assert memory.recall(Query("where is the dock")).mode is Mode.HYBRID


def test_many_threads_learn_and_recall(opened: Opener, ollama: OllamaServer) -> None:
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(25):
                memory.learn(Experience(f"mug {number} of shelf {i}"))
                memory.recall(Query(f"shelf {i}"))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert wait_for(lambda: ready(memory))
    assert memory.status().memories == 200
