# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The parts of the embedding that need no model: prefixes, the check of vectors, the cache."""

from __future__ import annotations

import json
import pathlib
import threading

import numpy as np
import pytest

from robotmem_ros.core.embedding.cache import QueryCache
from robotmem_ros.core.embedding.model_files import Registered, in_directory
from robotmem_ros.core.embedding.onnx import _runs
from robotmem_ros.core.embedding.prefixes import chosen, known
from robotmem_ros.core.embedding.protocol import DimensionError, checked
from robotmem_ros.core.errors import EmbeddingError


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("multilingual-e5-small-q4", "query: ", "passage: "),
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("BAAI/bge-m3", "", ""),
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("nomic-embed-text:latest", "search_query: ", "search_document: "),
        ("nomic-ai/nomic-embed-text-v1.5-Q", "search_query: ", "search_document: "),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
        ("text-embedding-3-small", "", ""),
        ("", "", ""),
    ],
)
def test_prefixes_of_known_models(model: str, query: str, passage: str) -> None:
    assert known(model) == (query, passage)


def test_bge_wants_a_prefix_for_queries_alone() -> None:
    for model in ("BAAI/bge-small-en-v1.5", "bge-large-en", "mxbai-embed-large"):
        assert known(model).query == "Represent this sentence for searching relevant passages: "
        assert known(model).passage == ""
    assert known("BAAI/bge-small-zh-v1.5").query.startswith("为这个句子")


def test_settings_win_over_what_is_known() -> None:
    assert chosen("multilingual-e5-small", "auto", "auto") == ("query: ", "passage: ")
    assert chosen("multilingual-e5-small", "", "auto") == ("", "passage: ")
    assert chosen("multilingual-e5-small", "ask: ", "") == ("ask: ", "")


@pytest.mark.parametrize("good", [[1.0, 0.0], [1, 2], np.array([1.0, 2.0], np.float64)])
def test_good_vectors(good: object) -> None:
    assert checked(good, 2, "onnx_dim").dtype == np.float32


@pytest.mark.parametrize(
    "bad",
    [
        None,
        {},
        [],
        "text",
        ["1", "2"],
        [True, False],
        [[1.0, 2.0]],
        [[1.0], [1.0, 2.0]],
        [1.0, None],
        [0.0, 0.0],
        [float("nan"), 1.0],
        [float("inf"), 1.0],
        [1e300, 1.0],
        [10**400, 1.0],
        [1e-300, 0.0],
    ],
)
def test_bad_vectors(bad: object) -> None:
    with pytest.raises(EmbeddingError):
        checked(bad, 2, "onnx_dim")


def test_wrong_length_names_the_parameter() -> None:
    with pytest.raises(DimensionError, match="length 3, not 2; set onnx_dim: 3"):
        checked([1.0, 2.0, 3.0], 2, "onnx_dim")


def test_cache_is_bounded_and_forgets_what_was_not_used() -> None:
    cache = QueryCache(3)
    vector = np.ones(2, np.float32)
    for text in "abc":
        cache.put("model", text, vector)
    assert cache.get("model", "a") is not None
    cache.put("model", "d", vector)
    assert cache.get("model", "b") is None
    assert cache.get("model", "a") is not None
    assert cache.get("other model", "a") is None


def test_cache_from_many_threads() -> None:
    cache = QueryCache(10)

    def use(number: int) -> None:
        for i in range(1000):
            cache.put("m", str((i * number) % 30), np.full(2, i, np.float32))
            cache.get("m", str(i % 30))

    threads = [threading.Thread(target=use, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(cache.get("m", str(i)) is not None for i in range(30)) == 10


def directory(path: pathlib.Path, model: str, **config: int | str) -> str:
    """Make a directory that looks like one with a model."""
    (path / model).parent.mkdir(parents=True, exist_ok=True)
    (path / model).touch()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (path / name).write_text("{}")
    (path / "config.json").write_text(json.dumps(config))
    return str(path)


BGE = Registered("BAAI/bge-small-en-v1.5", "Qdrant/bge-q", "model_optimized.onnx", (), "CLS")
JINA = Registered("jinaai/jina-v3", "jinaai/jina-v3", "onnx/model.onnx", (), "")
KNOWN = {model.name.lower(): model for model in (BGE, JINA)}
SHAPE = {"hidden_size": 384, "num_hidden_layers": 12, "vocab_size": 30522}


def test_directory_with_the_default_model(tmp_path: pathlib.Path) -> None:
    path = directory(tmp_path / "m", "model_optimized.onnx", **SHAPE)
    assert in_directory(path, BGE.name, KNOWN, BGE.name).name == BGE.name
    # The same file name with another model in it is not taken for the default.
    path = directory(tmp_path / "n", "model_optimized.onnx", **SHAPE | {"vocab_size": 250037})
    assert in_directory(path, BGE.name, KNOWN, BGE.name).pooling == ""
    assert in_directory(path, BGE.name, KNOWN, BGE.name).name == "n"


def test_registered_model_in_another_file_keeps_its_pooling(tmp_path: pathlib.Path) -> None:
    path = directory(tmp_path / "m", "onnx/model.onnx", _name_or_path=BGE.name)
    found = in_directory(path, BGE.name, KNOWN, BGE.name)
    assert (found.name, found.file, found.pooling) == (BGE.name, "onnx/model.onnx", "CLS")
    assert not found.registered


def test_model_that_needs_its_own_class_needs_its_own_file(tmp_path: pathlib.Path) -> None:
    path = directory(tmp_path / "m", "model.onnx")
    with pytest.raises(EmbeddingError, match=r"has no onnx/model\.onnx, which jinaai/jina-v3"):
        in_directory(path, "jinaai/jina-v3", KNOWN, BGE.name)
    path = directory(tmp_path / "n", "onnx/model.onnx")
    assert in_directory(path, "JINAAI/jina-v3", KNOWN, BGE.name).registered


def test_runs_hold_every_text_once_and_are_small() -> None:
    texts = ["x" * n for n in (5000, 10, 300, 2000, 0, 10, 10, 700, 100_000)] + ["字" * 600] * 20
    runs = _runs(texts)
    assert sorted(index for run in runs for index in run) == list(range(len(texts)))
    for run in runs:
        assert len(run) * min(max(len(texts[i].encode()) for i in run), 2048) <= 8192
    assert len(_runs(["a short sentence about a mug"] * 32)) == 1


@pytest.mark.parametrize("number", [3e38, 1e-40, 1e-20, 1e15])
def test_a_vector_whose_length_cannot_be_measured_is_refused(number: float) -> None:
    with pytest.raises(EmbeddingError):
        checked([number] * 4, 4, "onnx_dim")
