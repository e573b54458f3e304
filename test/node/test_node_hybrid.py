# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Learn and recall end to end, with a real embedding model and over real DDS."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from robotmem_ros import msg, qos  # noqa: E402

MODEL = os.environ.get("ROBOTMEM_MODEL_PATH", "")

pytestmark = pytest.mark.skipif(not MODEL, reason="ROBOTMEM_MODEL_PATH names no model directory")

DAY = (
    "How to grasp a cup: approach from above, close to 8 N",
    "The battery is low after forty minutes of driving",
    "The floor near the coffee machine is slippery",
    "抓取 杯子: 从上方接近，夹持力 8 牛",
    "Door 7 opens inwards",
)


def test_hybrid_recall_by_meaning_and_by_chinese_words(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(
        embed_backend="onnx", model_path=MODEL, onnx_model="sentence-transformers/all-MiniLM-L6-v2"
    )
    robot = harness.Robot(caller, process.name).wait_ready()
    for insight in DAY:
        assert robot.learn(insight=insight).success
    heard = caller.listen(msg.Status, f"{process.name}/status", qos.STATUS)
    status = harness.wait_for(
        lambda: (
            heard
            and heard[-1].memories == len(DAY)
            and heard[-1].pending_embeddings == 0
            and heard[-1]
        )
    )
    assert status.embedder_available
    assert status.vector_available
    assert status.dimension == 384

    found = robot.recall(query="picking up a mug by its handle", n=1)
    assert found.success, found.message
    assert found.memories[0].content == DAY[0]
    found = robot.recall(query="grasp a cup", explain=True)
    assert found.mode == "hybrid"
    assert found.memories[0].content == DAY[0]
    assert found.memories[0].score == 1.0
    found = robot.recall(query="如何抓取杯子", n=1)
    assert found.memories[0].content == DAY[3]
    process.end()
    assert process.wait() == 0
    assert "Traceback" not in process.stderr
