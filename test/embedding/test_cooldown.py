# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The cooldown by an injected clock, alone and in a backend."""

from __future__ import annotations

import asyncio

import pytest
from ollama_server import OllamaServer

from robotmem_ros.core.config import Config
from robotmem_ros.core.embedding.cooldown import Cooldown
from robotmem_ros.core.embedding.failures import Failures
from robotmem_ros.core.embedding.http import HttpEmbedder
from robotmem_ros.core.errors import EmbeddingError


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_steps_and_reset() -> None:
    clock = Time()
    cooldown = Cooldown(clock)
    assert not cooldown.active
    for seconds in (60, 120, 240, 300, 300, 300):
        cooldown.failed()
        assert cooldown.left == seconds
        clock.now += seconds - 0.001
        assert cooldown.active
        clock.now += 0.001
        assert not cooldown.active
    cooldown.failed()
    cooldown.succeeded()
    assert cooldown.left == 0.0
    cooldown.failed()
    assert cooldown.left == 60


@pytest.mark.usefixtures("no_waits")
def test_backend_sends_nothing_while_it_lasts(ollama: OllamaServer) -> None:
    clock = Time()
    config = Config(embed_backend="ollama", ollama_url=ollama.url)
    backend = HttpEmbedder(config, Cooldown(clock))

    async def run() -> None:
        assert await backend.check_availability()
        ollama.fault = "500"
        for seconds in (60, 120, 240, 300, 300):
            with pytest.raises(EmbeddingError, match="status 500"):
                await backend.embed_one("hello")
            assert not backend.available
            assert backend.cooldown == seconds
            sent = len(ollama.requests)
            clock.now += seconds - 1
            with pytest.raises(EmbeddingError, match="status 500"):
                await backend.embed_one("hello")
            assert await backend.embed_batch(["one", "two"]) == [None, None]
            assert len(ollama.requests) == sent
            clock.now += 1
        ollama.fault = ""
        await backend.embed_one("hello")
        assert backend.available
        assert backend.unavailable_reason == ""
        assert backend.cooldown == 0.0
        ollama.fault = "500"
        assert await backend.embed_batch(["one", "two"]) == [None, None]
        assert backend.cooldown == 60
        await backend.close()

    asyncio.run(run())


def test_single_memories_wait_longer_each_time() -> None:
    clock = Time()
    failures = Failures(clock)
    for seconds in (60, 120, 240, 480, 960, 1920, 3600, 3600):
        failures.add(7)
        assert failures.next_due() == seconds
        assert failures.due(10) == []
        clock.now += seconds
        assert failures.due(10) == [7]
    failures.add(8)
    failures.retry()
    assert failures.due(10) == [7, 8]
    assert failures.ids() == {7, 8}
    failures.keep_only([7, 8], {8})
    assert failures.ids() == {8}
    failures.forget(8)
    failures.forget(8)
    assert failures.next_due() == float("inf")
