# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A server that misbehaves: each fault has its message and degradation, and spoils no store."""

from __future__ import annotations

import asyncio
import pathlib
import socket
import threading
import time

import httpx
import numpy as np
import pytest
from backends import Clock, Opener, free_port, stored_vectors, wait_for
from ollama_server import POISON, OllamaServer, vector

from robotmem_ros.core.config import Config
from robotmem_ros.core.embedding import http, http_client
from robotmem_ros.core.embedding.cooldown import Cooldown
from robotmem_ros.core.embedding.http import HttpEmbedder
from robotmem_ros.core.errors import ConfigError, EmbeddingError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Mode, Query


def embedder(url: str, **settings: object) -> HttpEmbedder:
    config = Config(embed_backend="ollama", ollama_url=url, **settings)  # type: ignore[arg-type]
    return HttpEmbedder(config, Cooldown())


def checked(backend: HttpEmbedder) -> str:
    """Return why a backend is not available, after a check of it."""

    async def run() -> str:
        await backend.check_availability()
        reason = backend.unavailable_reason
        await backend.close()
        return reason

    return asyncio.run(run())


def learn(memory: RobotMemory, count: int, text: str = "the robot saw a red mug") -> None:
    for number in range(count):
        memory.learn(Experience(f"{text} {number}"))


def open_ollama(opened: Opener, server: OllamaServer, **settings: object) -> RobotMemory:
    return opened(embed_backend="ollama", ollama_url=server.url, **settings)


def test_happy_path(opened: Opener, ollama: OllamaServer, tmp_path: pathlib.Path) -> None:
    memory = open_ollama(opened, ollama)
    learn(memory, 200)
    memory.learn(Experience("the charging dock is in the hall"))
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    result = memory.recall(Query("where is the charging dock"))
    assert result.mode is Mode.HYBRID
    assert result.memories[0].memory.content == "the charging dock is in the hall"
    status = memory.status()
    assert (status.backend, status.model, status.dimension) == ("ollama", "nomic-embed-text", 768)
    assert status.embedder_available
    assert status.embedder_reason == ""
    assert [path for path, _ in ollama.requests[:2]] == ["/api/version", "/api/tags"]
    assert max(count for _, count in ollama.requests) <= 32
    # The prefixes that this model was trained with.
    assert "search_document: the charging dock is in the hall" in ollama.texts
    assert "search_query: where is the charging dock" in ollama.texts
    vectors = stored_vectors(tmp_path / "memories.db")
    assert len(vectors) == 201
    assert {v.shape for v in vectors.values()} == {(768,)}


def test_batches_run_four_at_a_time(opened: Opener, ollama: OllamaServer) -> None:
    ollama.fault = "hang"
    memory = open_ollama(opened, ollama)
    learn(memory, 320)
    ollama.delay = 0.1
    ollama.fault = ""
    ollama.released.set()
    memory.backfill()
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    assert ollama.most_at_once == 4


@pytest.mark.parametrize(
    ("fault", "parts"),
    [
        ("not_ollama", ("not a JSON object", "ollama_url")),
        ("not_found", ("is not Ollama", "port", "ollama_url")),
        ("model_missing", ("no model nomic-embed-text", "ollama pull nomic-embed-text")),
        ("hang", ("did not answer within",)),
        ("500", ("status 500", "do embedding request: EOF")),
        ("memory", ("status 500", "requires more system memory", "too big for the memory")),
        ("dimension", ("length 384, not 768", "set ollama_dim: 384")),
        ("nan", ("zero or not finite",)),
        ("zero", ("zero or not finite",)),
        ("infinite", ("zero or not finite",)),
        ("strings", ("not a vector",)),
        ("invalid", ("not a JSON object",)),
        ("huge", ("over 16 MiB",)),
        ("reset", ("gave no proper answer",)),
        ("half", ("gave no proper answer",)),
        ("redirect", ("redirects to elsewhere", "not followed", "ollama_url")),
    ],
)
@pytest.mark.usefixtures("no_waits")
def test_fault_at_the_start(
    fault: str,
    parts: tuple[str, ...],
    opened: Opener,
    ollama: OllamaServer,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if fault == "hang":
        monkeypatch.setattr(http_client, "TIMEOUT", httpx.Timeout(0.5))
    ollama.fault = fault
    memory = open_ollama(opened, ollama, embed_timeout=0.5)
    learn(memory, 3)
    assert wait_for(lambda: "is being asked" not in memory.status().embedder_reason)
    reason = memory.status().embedder_reason
    for part in parts:
        assert part in reason
    assert ollama.url in reason or fault in ("dimension", "nan", "zero", "infinite", "strings")
    assert "\n" not in reason
    assert memory.recall(Query("red mug")).mode is Mode.BM25_ONLY
    assert memory.status().pending_embeddings == 3
    assert stored_vectors(tmp_path / "memories.db") == {}


@pytest.mark.parametrize(
    "fault",
    ["hang", "500", "dimension", "nan", "invalid", "huge", "reset", "half", "redirect"],
)
@pytest.mark.usefixtures("no_waits")
def test_fault_while_it_works(
    fault: str,
    opened: Opener,
    ollama: OllamaServer,
    clock: Clock,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if fault == "hang":
        monkeypatch.setattr(http_client, "TIMEOUT", httpx.Timeout(0.5))
    memory = open_ollama(opened, ollama)
    learn(memory, 40)
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    ollama.fault = fault
    learn(memory, 40, "the gripper holds a screw")
    assert wait_for(lambda: memory.status().embedder_reason != "")
    assert memory.recall(Query("screw")).mode is Mode.BM25_ONLY
    assert memory.status().pending_embeddings == 40
    # In the cooldown nothing is sent, whatever is asked of the memory.
    time.sleep(0.6)  # what was under way has ended by now
    before = len(ollama.requests)
    clock.ahead += 55.0
    learn(memory, 5, "the lift is out of order")
    assert memory.recall(Query("lift")).mode is Mode.BM25_ONLY
    time.sleep(1.2)
    assert len(ollama.requests) == before
    # After it, the worker tries by itself, and nothing is lost.
    ollama.fault = ""
    clock.ahead += 10.0
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    assert memory.recall(Query("screw")).mode is Mode.HYBRID
    vectors = stored_vectors(tmp_path / "memories.db")
    assert len(vectors) == 85
    assert all(v.shape == (768,) and np.isfinite(v).all() for v in vectors.values())


@pytest.mark.usefixtures("no_waits")
def test_fewer_vectors_than_texts(opened: Opener, ollama: OllamaServer) -> None:
    # Which text lost its vector cannot be told, so none is used; one by one all get theirs.
    ollama.fault = "fewer"
    memory = open_ollama(opened, ollama)
    learn(memory, 20)
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    result = memory.recall(Query("the robot saw a red mug 7", n=1))
    assert result.memories[0].memory.content.endswith(" 7")


@pytest.mark.parametrize("fault", ["poison", "nan_one"])
@pytest.mark.usefixtures("no_waits")
def test_poison_text_blocks_nobody(fault: str, opened: Opener, ollama: OllamaServer) -> None:
    memory = open_ollama(opened, ollama)
    assert wait_for(lambda: memory.status().embedder_available)
    ollama.fault = fault
    learn(memory, 50)
    poison = memory.learn(Experience(f"a text like {POISON}")).memory
    learn(memory, 50, "behind it")
    assert wait_for(lambda: memory.status().pending_embeddings == 1)
    status = memory.status()
    assert status.embedder_available
    assert status.task == ""
    # It is not tried again and again.
    time.sleep(0.3)
    before = len(ollama.requests)
    time.sleep(1.0)
    learn(memory, 1, "and another one")
    assert wait_for(lambda: memory.status().pending_embeddings == 1)
    assert len(ollama.requests) <= before + 2
    # A new text for it is tried at once.
    memory.update(poison.id, "a text like any other")
    assert wait_for(lambda: memory.status().pending_embeddings == 0)


def test_backfill_retries_a_poison_text(opened: Opener, ollama: OllamaServer) -> None:
    ollama.fault = "nan_one"
    memory = open_ollama(opened, ollama)
    learn(memory, 5)
    memory.learn(Experience(POISON))
    assert wait_for(lambda: memory.status().pending_embeddings == 1)
    ollama.fault = ""
    assert "1 memories wait" in memory.backfill()
    assert wait_for(lambda: memory.status().pending_embeddings == 0)


def test_too_long_a_text_is_found_by_its_beginning(opened: Opener, ollama: OllamaServer) -> None:
    ollama.fault = "too_long"
    memory = open_ollama(opened, ollama)
    memory.learn(Experience("a short one"))
    memory.learn(Experience("the manual of the lift " + "says many things " * 2000))
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    assert max(len(text) for text in ollama.texts[-1:]) <= 2000


@pytest.mark.usefixtures("no_waits")
def test_slow_batches_become_smaller(
    opened: Opener, ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A server that takes 40 ms a text, and a limit of 600 ms for an answer.
    monkeypatch.setattr(http_client, "TIMEOUT", httpx.Timeout(0.6))
    memory = open_ollama(opened, ollama)
    assert wait_for(lambda: memory.status().embedder_available)
    embed = ollama.server.RequestHandlerClass.embed  # type: ignore[attr-defined]

    def slow(self: object, body: dict[str, object], texts: list[str]) -> None:
        time.sleep(0.04 * len(texts))
        embed(self, body, texts)

    monkeypatch.setattr(ollama.server.RequestHandlerClass, "embed", slow)
    learn(memory, 70)
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    assert memory.status().embedder_available


def test_index_out_of_order(opened: Opener, ollama: OllamaServer, tmp_path: pathlib.Path) -> None:
    ollama.fault = "order"
    memory = open_ollama(opened, ollama, embed_api="openai_compat")
    learn(memory, 30)
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    result = memory.recall(Query("the robot saw a red mug 7", n=1))
    assert result.mode is Mode.HYBRID
    for number, stored in stored_vectors(tmp_path / "memories.db").items():
        text = f"search_document: the robot saw a red mug {number - 1}"
        assert float(stored @ np.array(vector(text, 768))) == pytest.approx(1.0, abs=1e-5)


def test_the_same_index_twice(ollama: OllamaServer) -> None:
    backend = embedder(ollama.url, embed_api="openai_compat")

    async def run() -> list[object]:
        await backend.check_availability()
        ollama.fault = "index"
        try:
            return list(await backend.embed_batch(["one", "two", "three"]))
        finally:
            await backend.close()

    # One by one there is only one index.
    assert None not in [made if made is None else 1 for made in asyncio.run(run())]
    assert [count for _, count in ollama.requests if count == 3]


def test_nothing_listens(opened: Opener) -> None:
    memory = opened(embed_backend="ollama", ollama_url=f"http://127.0.0.1:{free_port()}")
    learn(memory, 1)
    assert wait_for(lambda: "cannot be reached" in memory.status().embedder_reason)
    assert "is the server running?" in memory.status().embedder_reason


def test_port_held_by_something_that_is_not_http(opened: Opener) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def talk() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        threading.Thread(target=talk, daemon=True).start()
        memory = opened(
            embed_backend="ollama", ollama_url=f"http://127.0.0.1:{listener.getsockname()[1]}"
        )
        assert wait_for(lambda: "gave no proper answer" in memory.status().embedder_reason)
        assert "is it the embedding server?" in memory.status().embedder_reason


def test_three_tries_with_waits_of_one_and_two_seconds(ollama: OllamaServer) -> None:
    backend = embedder(ollama.url)

    async def run() -> float:
        await backend.check_availability()
        ollama.fault = "500"
        ollama.requests.clear()
        start = time.monotonic()
        with pytest.raises(EmbeddingError, match="status 500"):
            await backend.embed_one("hello")
        await backend.close()
        return time.monotonic() - start

    assert 2.9 < asyncio.run(run()) < 10.0
    assert len(ollama.requests) == 4  # three tries, and the test whether it lives
    assert not backend.available


def test_limits_are_those_of_the_specification() -> None:
    assert httpx.Timeout(connect=3.0, read=10.0, write=10.0, pool=10.0) == http_client.TIMEOUT
    assert (http_client.LIMITS.max_connections, http_client.LIMITS.max_keepalive_connections) == (
        10,
        5,
    )
    assert (http._WAITS, http._BUDGET) == ((1.0, 2.0), 30.0)


def test_all_tries_together_end_within_the_budget(
    ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_BUDGET", 0.5)
    backend = embedder(ollama.url)

    async def run() -> None:
        await backend.check_availability()
        ollama.fault = "hang"
        with pytest.raises(EmbeddingError, match=r"took over 0\.5 s"):
            await backend.embed_one("hello")
        await backend.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "url",
    [
        "localhost:11434",
        "ftp://localhost",
        "http://user:secret@localhost",
        "http://localhost/?key=secret",
        "http://localhost/#secret",
        "",
        "http://",
    ],
)
def test_url_that_cannot_be_used(url: str) -> None:
    with pytest.raises(ConfigError, match="parameter ollama_url") as caught:
        embedder(url)
    assert "secret" not in str(caught.value)


def test_base_address_with_v1(ollama: OllamaServer) -> None:
    assert checked(embedder(ollama.url + "/v1/", embed_api="openai_compat")) == ""


def test_proxies_are_not_used_for_loopback(
    ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert checked(embedder(ollama.url)) == ""
    assert checked(embedder(ollama.url.replace("127.0.0.1", "localhost"))) == ""
    # A proxy is used for others: this one does not exist.
    assert "cannot be reached" in checked(embedder("http://robot.invalid"))
