# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The onnx backend with a real model: what a directory holds, loading once, messages."""

from __future__ import annotations

import asyncio
import json
import pathlib
import shutil
import threading
from typing import Any

import numpy as np
import pytest
from backends import Opener, stored_vectors, wait_for

from robotmem_ros.core.config import Config
from robotmem_ros.core.embedding.cooldown import Cooldown
from robotmem_ros.core.embedding.onnx import OnnxEmbedder
from robotmem_ros.core.embedding.protocol import Vector
from robotmem_ros.core.model import Experience, Mode, Query

NAME = "sentence-transformers/all-MiniLM-L6-v2"
TEXT = "picking up a mug by its handle"


@pytest.fixture
def anonymous(model_path: str, tmp_path: pathlib.Path) -> pathlib.Path:
    """The model in a directory that does not tell which one it is."""
    folder = tmp_path / "embedder"
    folder.mkdir()
    for file in pathlib.Path(model_path).iterdir():
        if file.suffix == ".onnx":
            (folder / file.name).symlink_to(file)
        else:
            shutil.copy(file, folder)
    return folder


class Tried:
    """A backend after a check of it: its state, and the vector of TEXT."""

    def __init__(self, **settings: Any) -> None:
        backend = OnnxEmbedder(Config(**settings), Cooldown())

        async def run() -> Vector | None:
            if await backend.check_availability():
                return (await backend.embed_batch([TEXT]))[0]
            return None

        self.vector = asyncio.run(run())
        self.reason = backend.unavailable_reason
        self.model, self.identity = backend.model, backend.identity


@pytest.fixture(scope="module")
def expected(model_path: str) -> Vector:
    vector = Tried(model_path=model_path, onnx_model=NAME).vector
    assert vector is not None
    return vector


def test_memories_are_found_by_meaning(
    model_path: str, opened: Opener, tmp_path: pathlib.Path
) -> None:
    memory = opened(model_path=model_path, onnx_model=NAME)
    memory.learn(Experience("the battery is low"))
    memory.learn(Experience(TEXT))
    assert wait_for(lambda: memory.status().pending_embeddings == 0)
    result = memory.recall(Query("how to grasp a cup", n=1))
    assert result.mode in (Mode.HYBRID, Mode.VEC_ONLY)
    assert result.memories[0].memory.content == TEXT
    assert memory.status().model == NAME
    assert all(
        v.dtype == np.dtype("<f4") for v in stored_vectors(tmp_path / "memories.db").values()
    )


def test_model_path_alone_is_enough_where_the_name_of_the_directory_tells(
    anonymous: pathlib.Path, expected: Vector
) -> None:
    folder = anonymous.rename(anonymous.with_name("all-MiniLM-L6-v2"))
    tried = Tried(model_path=str(folder))
    assert (tried.reason, tried.model) == ("", NAME)
    assert np.allclose(tried.vector, expected)


def test_name_in_config_json(anonymous: pathlib.Path, expected: Vector) -> None:
    path = anonymous / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"_name_or_path": NAME}))
    tried = Tried(model_path=str(anonymous))
    assert (tried.reason, tried.model) == ("", NAME)
    assert np.allclose(tried.vector, expected)


def test_directory_of_the_hub_cache(anonymous: pathlib.Path, expected: Vector) -> None:
    parent = anonymous.parent / "models--Qdrant--all-MiniLM-L6-v2-onnx" / "snapshots"
    parent.mkdir(parents=True)
    tried = Tried(
        model_path=str(anonymous.rename(parent / "5f1b8cd78bc4fb444dd171e59b18f3a3af89a079"))
    )
    assert (tried.reason, tried.model) == ("", NAME)
    assert np.allclose(tried.vector, expected)


def test_sentence_transformers_pooling(anonymous: pathlib.Path, expected: Vector) -> None:
    (anonymous / "1_Pooling").mkdir()
    config = {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True}
    (anonymous / "1_Pooling" / "config.json").write_text(json.dumps(config))
    mean = Tried(model_path=str(anonymous))
    assert (mean.reason, mean.model) == ("", "embedder")
    assert np.allclose(mean.vector, expected, atol=1e-6)
    config = {"word_embedding_dimension": 384, "pooling_mode_cls_token": True}
    (anonymous / "1_Pooling" / "config.json").write_text(json.dumps(config))
    cls = Tried(model_path=str(anonymous))
    assert cls.reason == ""
    assert not np.allclose(cls.vector, expected, atol=1e-2)
    assert cls.identity != mean.identity


def test_model_in_the_onnx_folder(anonymous: pathlib.Path, expected: Vector) -> None:
    (anonymous / "onnx").mkdir()
    (anonymous / "model.onnx").rename(anonymous / "onnx" / "model_quantized.onnx")
    tried = Tried(model_path=str(anonymous), onnx_model=NAME)
    assert (tried.reason, tried.model) == ("", NAME)
    assert np.allclose(tried.vector, expected, atol=1e-6)


def test_model_path_may_be_the_file(anonymous: pathlib.Path, expected: Vector) -> None:
    (anonymous / "onnx").mkdir()
    shutil.copy(anonymous / "model.onnx", anonymous / "onnx" / "best.onnx")
    (anonymous / "model.onnx").rename(anonymous / "other.onnx")
    both = Tried(model_path=str(anonymous), onnx_model=NAME)
    assert "other.onnx, onnx/best.onnx" in both.reason
    assert "set model_path to the file" in both.reason
    one = Tried(model_path=str(anonymous / "onnx" / "best.onnx"), onnx_model=NAME)
    assert one.reason == ""
    assert np.allclose(one.vector, expected, atol=1e-6)


def test_model_that_nothing_tells(anonymous: pathlib.Path, expected: Vector) -> None:
    tried = Tried(model_path=str(anonymous))
    assert "parameter onnx_model" in tried.reason
    assert "set onnx_model to its name" in tried.reason
    assert "\n" not in tried.reason
    named = Tried(model_path=str(anonymous), onnx_model=NAME)
    assert np.allclose(named.vector, expected)
    # A name of the user's own: as most sentence-transformers, it is pooled by the mean.
    own = Tried(model_path=str(anonymous), onnx_model="acme/our-robot-model")
    assert (own.reason, own.model) == ("", "acme/our-robot-model")
    assert np.allclose(own.vector, expected, atol=1e-6)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "config.json"])
def test_file_that_is_missing(anonymous: pathlib.Path, name: str) -> None:
    (anonymous / name).unlink()
    reason = Tried(model_path=str(anonymous), onnx_model=NAME).reason
    assert "parameter model_path" in reason
    assert reason.endswith(f"has no {name}")


def test_directory_without_a_model(anonymous: pathlib.Path) -> None:
    (anonymous / "model.onnx").unlink()
    reason = Tried(model_path=str(anonymous), onnx_model=NAME).reason
    assert "parameter model_path" in reason
    assert "has no .onnx file" in reason


def test_damaged_model(anonymous: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
    (anonymous / "model.onnx").unlink()
    (anonymous / "model.onnx").write_bytes(b"not a model")
    reason = Tried(model_path=str(anonymous), onnx_model=NAME).reason
    assert "could not be loaded" in reason
    assert "check model_path and onnx_model" in reason
    assert tuple(capfd.readouterr()) == ("", "")


def test_model_path_that_is_not_there(opened: Opener) -> None:
    memory = opened(model_path="/nowhere/at/all")
    memory.learn(Experience("hello robot"))
    assert memory.recall(Query("robot")).mode is Mode.BM25_ONLY
    assert wait_for(lambda: "is being loaded" not in memory.status().embedder_reason)
    assert "parameter model_path: '/nowhere/at/all'" in memory.status().embedder_reason


def test_wrong_dimension_names_the_parameter(opened: Opener, model_path: str) -> None:
    memory = opened(model_path=model_path, onnx_model=NAME, onnx_dim=512)
    memory.learn(Experience("hello robot"))
    assert wait_for(lambda: "set onnx_dim: 384" in memory.status().embedder_reason)
    assert memory.recall(Query("robot")).mode is Mode.BM25_ONLY
    assert memory.status().pending_embeddings == 1


def test_unknown_name_without_a_directory() -> None:
    reason = Tried(onnx_model="acme/our-robot-model").reason
    assert "parameter onnx_model: 'acme/our-robot-model' is not a model of fastembed" in reason


def test_eight_threads_load_once(model_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import fastembed

    loads = []
    load = fastembed.TextEmbedding.__init__

    def counted(self: Any, *args: Any, **options: Any) -> None:
        loads.append(args)
        load(self, *args, **options)

    monkeypatch.setattr(fastembed.TextEmbedding, "__init__", counted)
    backend = OnnxEmbedder(Config(model_path=model_path, onnx_model=NAME), Cooldown())
    start = threading.Barrier(8)
    vectors: list[Vector] = []

    def ask() -> None:
        start.wait()
        vectors.append(asyncio.run(backend.embed_one("hello")))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    assert len(vectors) == 8
    assert all(np.allclose(vector, vectors[0], atol=1e-6) for vector in vectors)


def test_threads_of_the_model(model_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    seen = []
    session = onnxruntime.InferenceSession

    def opened_session(*args: Any, **options: Any) -> Any:
        seen.append(options["sess_options"].intra_op_num_threads)
        assert options["providers"] == ["CPUExecutionProvider"]
        return session(*args, **options)

    monkeypatch.setattr(onnxruntime, "InferenceSession", opened_session)
    assert Tried(model_path=model_path, onnx_model=NAME, onnx_threads=1).reason == ""
    assert Tried(model_path=model_path, onnx_model=NAME).reason == ""
    assert seen == [1, 2]


def test_another_model_in_the_same_place(anonymous: pathlib.Path) -> None:
    first = Tried(model_path=str(anonymous), onnx_model=NAME).identity
    assert Tried(model_path=str(anonymous), onnx_model=NAME).identity == first
    with (anonymous / "tokenizer.json").open("a") as file:
        file.write("\n")
    assert Tried(model_path=str(anonymous), onnx_model=NAME).identity != first


def test_passage_prefix_is_part_of_what_made_a_vector(model_path: str, expected: Vector) -> None:
    tried = Tried(model_path=model_path, onnx_model=NAME, embed_passage_prefix="passage: ")
    assert not np.allclose(tried.vector, expected, atol=1e-3)
    assert tried.identity.endswith("|passage:")


def test_long_and_odd_texts(model_path: str) -> None:
    backend = OnnxEmbedder(Config(model_path=model_path, onnx_model=NAME), Cooldown())
    texts = ["word " * 20_000, "a", "字" * 5000, "\u200b", "🤖" * 100, " . ", "x" * 100_000] * 3

    async def run() -> list[Vector | None]:
        await backend.check_availability()
        return await backend.embed_batch(texts)

    vectors = asyncio.run(run())
    assert all(vector is not None and vector.shape == (384,) for vector in vectors)
    for one, same in zip(vectors[:7], vectors[7:14], strict=True):
        assert np.allclose(one, same, atol=1e-2)  # int8 rounds by what else is in the batch


def test_batch_keeps_the_order(model_path: str) -> None:
    backend = OnnxEmbedder(Config(model_path=model_path, onnx_model=NAME), Cooldown())
    texts = [f"{'very ' * (number * 7 % 20)}long text number {number}" for number in range(40)]

    async def run() -> tuple[list[Vector | None], list[Vector | None]]:
        await backend.check_availability()
        singly = [(await backend.embed_batch([text]))[0] for text in texts]
        return singly, await backend.embed_batch(texts)

    for one, other in zip(*asyncio.run(run()), strict=True):
        assert one is not None
        assert other is not None
        assert float(one @ other) > 0.98
