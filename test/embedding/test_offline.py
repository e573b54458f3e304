# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The hub default with a hub that is not there, hangs, or works: each in a process of its own."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from backends import Opener, free_port, wait_for
from hub_server import HubServer

PROGRAM = """
import json, sys, time
from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Query

settings, seconds = json.loads(sys.argv[1]), float(sys.argv[2])
start = time.monotonic()
memory = RobotMemory(Config(**settings))
up = time.monotonic() - start
for number in range(20):
    memory.learn(Experience(f"the robot saw mug {number}"))
mode = memory.recall(Query("mug 7")).mode.value
answered = time.monotonic() - start
first = memory.status().embedder_reason
while time.monotonic() - start < seconds:
    status = memory.status()
    if "could not" in status.embedder_reason or not status.pending_embeddings:
        break
    time.sleep(0.05)
status = memory.status()
closing = time.monotonic()
memory.close()
print(json.dumps({
    "up": up, "answered": answered, "mode": mode, "first": first,
    "reason": status.embedder_reason, "pending": status.pending_embeddings,
    "model": status.model, "known": time.monotonic() - start,
    "close": time.monotonic() - closing,
}))
"""


def run(settings: dict[str, Any], endpoint: str, seconds: float) -> dict[str, Any]:
    """Return what the program saw; it must write nothing else and end by itself."""
    variables = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    variables |= {"HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1"}
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings), str(seconds)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    found["process"] = time.monotonic() - start
    found["stderr"] = done.stderr
    return found


@pytest.fixture
def settings(tmp_path: pathlib.Path) -> dict[str, Any]:
    return {
        "db_path": str(tmp_path / "memories.db"),
        "fastembed_cache_dir": str(tmp_path / "cache"),
    }


@pytest.fixture
def silent_hub() -> Iterator[HubServer]:
    server = HubServer("", None)
    yield server
    server.close()


def test_no_network(settings: dict[str, Any], opened: Opener, model_path: str) -> None:
    found = run(settings, f"http://127.0.0.1:{free_port()}", 10)
    assert found["up"] < 2.0
    assert found["mode"] == "bm25_only"
    assert found["answered"] < 5.0  # 2 s of embed_timeout, on a slow machine
    assert "the model BAAI/bge-small-en-v1.5 could not be downloaded" in found["reason"]
    assert "set model_path" in found["reason"]
    assert found["pending"] == 20
    assert found["close"] < 1.0
    # One line of the logging module's last resort, for the change of state.
    assert found["stderr"].count("\n") == 1
    assert found["stderr"].startswith("no vectors for now: the model BAAI")
    # A later start with a good model embeds everything.
    memory = opened(db_path=settings["db_path"], model_path=model_path)
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    assert memory.status().embedder_available


def test_hub_that_never_answers(settings: dict[str, Any], silent_hub: HubServer) -> None:
    found = run(settings, silent_hub.url, 3)
    assert found["up"] < 2.0
    assert found["mode"] == "bm25_only"
    assert found["first"] == "the model BAAI/bge-small-en-v1.5 is being loaded"
    assert silent_hub.requests  # it did ask
    assert found["close"] < 1.0
    assert found["process"] < 10.0  # nothing holds up the end
    assert found["stderr"] == ""


def test_hub_that_never_answers_is_given_up(
    settings: dict[str, Any], silent_hub: HubServer
) -> None:
    found = run(settings, silent_hub.url, 30)
    assert "could not be downloaded" in found["reason"]
    assert found["known"] < 20.0
    assert [path for path in silent_hub.requests if "bge" in path] == [
        "GET /api/models/Qdrant/bge-small-en-v1.5-onnx-Q"
    ]


def test_offline_by_environment(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = run(settings, "http://127.0.0.1:9", 10)
    assert "could not be downloaded" in found["reason"]


def test_download_and_then_the_cache(settings: dict[str, Any], model_path: str) -> None:
    hub = HubServer("Qdrant/all-MiniLM-L6-v2-onnx", pathlib.Path(model_path))
    settings["onnx_model"] = "sentence-transformers/all-MiniLM-L6-v2"
    try:
        found = run(settings, hub.url, 60)
    finally:
        hub.close()
    assert (found["reason"], found["pending"]) == ("", 0)
    assert found["model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert found["stderr"] == ""  # no progress bar
    # With no hub any more the cache does.
    again = run(settings | {"db_path": settings["db_path"] + "2"}, hub.url, 60)
    assert (again["reason"], again["pending"]) == ("", 0)
    assert again["stderr"] == ""


def test_cache_directory_that_cannot_be_made(settings: dict[str, Any]) -> None:
    settings["fastembed_cache_dir"] = "/proc/nowhere"
    found = run(settings, "http://127.0.0.1:9", 3)
    assert "parameter fastembed_cache_dir: '/proc/nowhere' cannot be used" in found["reason"]
