# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""With a real embedding model: by meaning and by words, from learning to recalling."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Fusion, Mode, Query

MODEL = os.environ.get("ROBOTMEM_MODEL_PATH", "")

pytestmark = pytest.mark.skipif(
    not MODEL, reason="ROBOTMEM_MODEL_PATH names no directory with all-MiniLM-L6-v2"
)

TEXTS = (
    "how to grasp a cup",
    "the battery ran empty on the way to the dock",
    "the door of room 4 opens inwards",
    "抓取杯子时夹爪力为12.5牛",
    "wheel odometry drifts on the wet floor",
    "error E-217: the left drive is too hot",
)


@pytest.fixture
def start(open_memory: Callable[..., RobotMemory]) -> Callable[[], RobotMemory]:
    settings: dict[str, Any] = {
        "embed_backend": "onnx",
        "onnx_model": "sentence-transformers/all-MiniLM-L6-v2",
        "model_path": MODEL,
        "embed_timeout": 20.0,
    }

    def opened() -> RobotMemory:
        memory = open_memory(**settings)
        wait(lambda: memory.status().embedder_available)
        return memory

    return opened


def wait(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def learn_all(memory: RobotMemory) -> None:
    for text in TEXTS:
        memory.learn(Experience(text))
    wait(lambda: memory.status().pending_embeddings == 0)


@pytest.mark.parametrize("fusion", Fusion)
def test_meaning_and_words_are_found(start: Callable[[], RobotMemory], fusion: Fusion) -> None:
    memory = start()
    learn_all(memory)
    for query, text in (
        ("picking up a mug by its handle", TEXTS[0]),
        ("the robot has no more power", TEXTS[1]),
        ("E-217", TEXTS[5]),
        ("如何抓取杯子", TEXTS[3]),
    ):
        result = memory.recall(Query(query, fusion=fusion))
        assert result.memories[0].memory.content == text
        assert result.memories[0].score == 1.0
        assert result.mode in (Mode.HYBRID, Mode.VEC_ONLY)
    assert memory.recall(Query("grasp the mug", fusion=fusion)).mode is Mode.HYBRID
    if fusion is not Fusion.ADAPTIVE:
        assert len(memory.recall(Query("grasp", n=6, fusion=fusion)).memories) == 6


def test_an_update_moves_a_memory_to_its_new_meaning(start: Callable[[], RobotMemory]) -> None:
    memory = start()
    learn_all(memory)

    def similarity(text: str) -> float:
        found = memory.recall(Query(text, n=10, explain=True)).memories
        details = next(item.details for item in found if item.memory.id == 1)
        return float(details["vector"]["cosine"])

    old, new = "picking up a mug by its handle", "the picture is blurred by dust on the camera"
    before = similarity(old), similarity(new)
    memory.update(1, "the camera lens is dirty")
    wait(lambda: memory.status().pending_embeddings == 0)
    after = similarity(old), similarity(new)
    assert after[0] < before[0] - 0.2
    assert after[1] > before[1] + 0.2
    assert memory.recall(Query(new, n=1)).memories[0].memory.id == 1


def test_a_filter_is_part_of_the_search_by_meaning(start: Callable[[], RobotMemory]) -> None:
    memory = start()
    for i in range(60):
        memory.learn(Experience(f"picked up a mug by its handle, trial {i}"))
    far = memory.learn(Experience("the wet floor", {"task": {"name": "rare"}})).memory.id
    wait(lambda: memory.status().pending_embeddings == 0)
    result = memory.recall(Query("mug handle", n=3, context_filter={"task.name": "rare"}))
    assert [item.memory.id for item in result.memories] == [far]


def test_what_is_learned_before_the_model_is_ready_gets_its_vector(
    open_memory: Callable[..., RobotMemory], start: Callable[[], RobotMemory]
) -> None:
    without = open_memory()
    without.learn(Experience(TEXTS[0]))
    assert without.recall(Query("grasp a cup")).mode is Mode.BM25_ONLY
    without.close()
    memory = start()
    wait(lambda: memory.status().pending_embeddings == 0)
    result = memory.recall(Query("picking up a mug by its handle"))
    assert result.memories[0].memory.content == TEXTS[0]
