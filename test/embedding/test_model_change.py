# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Another model than the one the stored vectors are of: nothing is mixed, nothing is lost."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import apsw
import pytest
from backends import Opener, stored_vectors, wait_for
from ollama_server import OllamaServer

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Mode, Query

COUNT = 1000

OPEN_AND_WAIT = """
import json, sys, time
from robotmem_ros.core.config import Config
from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory

memory = RobotMemory(Config(**json.loads(sys.argv[1])))
print("open", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("model_a") / "memories.db"
    server = OllamaServer()
    config = Config(db_path=str(path), embed_backend="ollama", ollama_url=server.url)
    with RobotMemory(config) as memory:
        for number in range(COUNT):
            memory.learn(Experience(f"on trial {number} the gripper held a mug"))
        assert wait_for(lambda: memory.status().pending_embeddings == 0, 60)
    server.close()
    return path


@pytest.fixture
def of_model_a(template: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A store of 1,000 memories with vectors of length 768."""
    return pathlib.Path(shutil.copy(template, tmp_path))


def lengths(path: pathlib.Path) -> set[int]:
    return {len(vector) for vector in stored_vectors(path).values()}


def recorded(path: pathlib.Path) -> tuple[str, int]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        model, dimension = connection.execute("SELECT model, dimension FROM embedder").fetchone()
        return str(model), int(dimension)
    finally:
        connection.close()


def test_another_dimension(of_model_a: pathlib.Path, opened: Opener, model_path: str) -> None:
    assert lengths(of_model_a) == {768}
    memory = opened(model_path=model_path)
    modes, tasks, seen = set(), set(), set()

    def complete() -> bool:
        modes.add(memory.recall(Query("which trial held a mug")).mode)
        status = memory.status()
        tasks.add(status.task)
        if status.task == "backfill":
            assert 0 <= status.task_done <= status.task_total == COUNT
        seen.add(frozenset(lengths(of_model_a)))
        return status.embedder_available and status.pending_embeddings == 0

    assert wait_for(complete, 120)
    assert modes <= {Mode.BM25_ONLY, Mode.HYBRID}
    assert Mode.HYBRID in modes
    assert tasks == {"backfill", ""} or tasks == {"backfill"}
    # At no moment did the store hold vectors of two lengths.
    assert seen <= {frozenset({768}), frozenset(), frozenset({384})}
    assert len(stored_vectors(of_model_a)) == COUNT
    assert recorded(of_model_a)[1] == 384
    assert memory.recall(Query("trial 77 mug", n=1)).mode is Mode.HYBRID


def test_killed_half_way(of_model_a: pathlib.Path, opened: Opener, model_path: str) -> None:
    settings = {"db_path": str(of_model_a), "model_path": model_path}
    child = subprocess.Popen(
        [sys.executable, "-c", OPEN_AND_WAIT, json.dumps(settings)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ),
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        deadline = time.monotonic() + 60
        while not (lengths(of_model_a) == {384} and len(stored_vectors(of_model_a)) >= 200):
            assert time.monotonic() < deadline
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    done = len(stored_vectors(of_model_a))
    assert 200 <= done < COUNT
    assert lengths(of_model_a) == {384}
    before = stored_vectors(of_model_a)
    memory = opened(**settings)
    assert memory.status().pending_embeddings >= COUNT - done - 100  # it does not start anew
    assert wait_for(lambda: memory.status().pending_embeddings == 0, 60)
    after = stored_vectors(of_model_a)
    assert len(after) == COUNT
    assert all((after[number] == vector).all() for number, vector in before.items())


def test_same_length_is_not_mixed_either(
    of_model_a: pathlib.Path, opened: Opener, ollama: OllamaServer
) -> None:
    ollama.digest = "f" * 64  # `ollama pull` brought another model of the same name
    old = {number: vector.tobytes() for number, vector in stored_vectors(of_model_a).items()}
    ollama.texts.clear()
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    assert wait_for(lambda: memory.status().embedder_available)
    assert wait_for(lambda: memory.status().pending_embeddings == 0, 60)
    assert len([text for text in ollama.texts if "gripper" in text]) == COUNT
    assert len(stored_vectors(of_model_a)) == len(old)
    assert recorded(of_model_a)[0] == "nomic-embed-text|ffffffffffff|search_document:"


def test_same_model_keeps_its_vectors(
    of_model_a: pathlib.Path, opened: Opener, ollama: OllamaServer
) -> None:
    ollama.texts.clear()
    memory = opened(embed_backend="ollama", ollama_url=ollama.url)
    assert wait_for(lambda: memory.status().embedder_available)
    assert wait_for(lambda: memory.recall(Query("a mug")).mode is Mode.HYBRID)
    assert memory.status().pending_embeddings == 0
    assert [text for text in ollama.texts if "gripper" in text] == []


def test_none_keeps_the_vectors_for_later(of_model_a: pathlib.Path, opened: Opener) -> None:
    memory = opened(embed_backend="none")
    assert memory.recall(Query("a mug")).mode is Mode.BM25_ONLY
    status = memory.status()
    assert (status.model, status.dimension, status.pending_embeddings) == ("", 0, 0)
    assert not status.embedder_available
    assert "embed_backend is none" in status.embedder_reason
    assert "embed_backend is none" in memory.backfill()
    assert len(stored_vectors(of_model_a)) == COUNT


def test_two_programs_with_two_models_on_one_file(
    opened: Opener, ollama: OllamaServer, model_path: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "memories.db"

    def complete(memory: RobotMemory) -> bool:
        status = memory.status()
        return status.embedder_available and status.pending_embeddings == 0

    first = opened(embed_backend="ollama", ollama_url=ollama.url)
    for number in range(50):
        first.learn(Experience(f"mug number {number}"))
    assert wait_for(lambda: complete(first))
    second = opened(model_path=model_path)
    assert wait_for(lambda: complete(second) and lengths(path) == {384})
    # The first sees it, does not fight for the file, and answers from keywords.
    first.learn(Experience("one more mug"))
    assert wait_for(lambda: "another program" in first.status().embedder_reason)
    assert "all-MiniLM-L6-v2" in first.status().embedder_reason
    assert first.recall(Query("mug")).mode is Mode.BM25_ONLY
    assert wait_for(lambda: complete(second), 20)
    assert second.recall(Query("mug")).mode is Mode.HYBRID
    assert lengths(path) == {384}
    # Asked to, it takes over; then the second stands back.
    first.backfill()
    assert wait_for(lambda: complete(first) and lengths(path) == {768})
    assert wait_for(lambda: "another program" in second.status().embedder_reason)
    assert second.recall(Query("mug")).mode is Mode.BM25_ONLY
