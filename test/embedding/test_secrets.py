# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The API key comes from the environment and appears nowhere."""

from __future__ import annotations

import dataclasses
import logging
import traceback

import pytest
from backends import Opener, wait_for
from ollama_server import OllamaServer

from robotmem_ros.core.config import Config, settings_of
from robotmem_ros.core.embedding.cooldown import Cooldown
from robotmem_ros.core.embedding.http import HttpEmbedder
from robotmem_ros.core.errors import ConfigError, EmbeddingError
from robotmem_ros.core.model import Experience, Query

KEY = "sk-very-secret-0123456789"


def settings(server: OllamaServer) -> dict[str, str]:
    return {
        "embed_backend": "ollama",
        "embed_api": "openai_compat",
        "ollama_url": server.url,
        "embed_api_key_env": "ROBOTMEM_TEST_KEY",
    }


def test_key_is_sent(
    opened: Opener, ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBOTMEM_TEST_KEY", KEY + "\n")
    memory = opened(**settings(ollama))
    assert wait_for(lambda: memory.status().embedder_available)
    assert ollama.headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("fault", ["unauthorized", "echo_key", "reset", "redirect", "invalid"])
@pytest.mark.usefixtures("no_waits")
def test_key_is_never_shown(
    fault: str,
    opened: Opener,
    ollama: OllamaServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ROBOTMEM_TEST_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    ollama.fault = fault
    memory = opened(**settings(ollama))
    memory.learn(Experience("hello"))
    assert wait_for(lambda: "is being asked" not in memory.status().embedder_reason)
    memory.recall(Query("hello"))
    status = memory.status()
    shown = [str(dataclasses.asdict(status)), caplog.text, *capfd.readouterr(), repr(memory)]
    assert not any(KEY in text for text in shown)
    if fault == "unauthorized":
        assert "refuses the API key" in status.embedder_reason
        assert "ROBOTMEM_TEST_KEY" in status.embedder_reason
        assert "embed_api_key_env" in status.embedder_reason


@pytest.mark.usefixtures("no_waits")
def test_key_is_in_no_traceback(ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setenv("ROBOTMEM_TEST_KEY", KEY)
    ollama.fault = "echo_key"
    backend = HttpEmbedder(Config(**settings(ollama)), Cooldown())  # type: ignore[arg-type]

    async def run() -> None:
        try:
            await backend.embed_one("hello")
        finally:
            await backend.close()

    with pytest.raises(EmbeddingError, match=r"Bearer \*\*\*") as caught:
        asyncio.run(run())
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in repr(backend)


@pytest.mark.parametrize(
    ("value", "part"),
    [(None, "is not set"), ("", "is not set"), ("a\nb", "cannot be"), ("sk-密", "cannot be")],
)
def test_key_that_is_none(
    value: str | None,
    part: str,
    opened: Opener,
    ollama: OllamaServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if value is None:
        monkeypatch.delenv("ROBOTMEM_TEST_KEY", raising=False)
    else:
        monkeypatch.setenv("ROBOTMEM_TEST_KEY", value)
    memory = opened(**settings(ollama))
    assert wait_for(lambda: part in memory.status().embedder_reason)
    assert "ROBOTMEM_TEST_KEY (parameter embed_api_key_env)" in memory.status().embedder_reason
    if value:
        assert value not in memory.status().embedder_reason
    assert ollama.requests == []


@pytest.mark.parametrize("name", ["sk-abc-secret", "hf_secretSecret", "MY KEY", "Bearer x"])
def test_key_in_place_of_the_name_is_not_shown(name: str, ollama: OllamaServer) -> None:
    config = Config(**settings(ollama) | {"embed_api_key_env": name})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="parameter embed_api_key_env") as caught:
        HttpEmbedder(config, Cooldown())
    assert name not in str(caught.value)


def test_no_parameter_holds_a_key() -> None:
    names = [item.name for item in settings_of(Config)]
    assert [name for name in names if "key" in name] == ["embed_api_key_env"]


def test_redirect_is_not_followed_with_the_key(
    opened: Opener, ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBOTMEM_TEST_KEY", KEY)
    ollama.fault = "redirect"
    memory = opened(**settings(ollama))
    assert wait_for(lambda: "not followed" in memory.status().embedder_reason)
    assert "stolen" not in memory.status().embedder_reason
