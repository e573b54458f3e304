# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Embedding on this computer's CPU, by fastembed and ONNX Runtime."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Sequence
from typing import Any

from robotmem_ros.core.config import Config, settings_of
from robotmem_ros.core.embedding import hub, model_files, prefixes
from robotmem_ros.core.embedding.backend import Backend, RefusedError, one_line
from robotmem_ros.core.embedding.cooldown import Cooldown
from robotmem_ros.core.embedding.model_files import ModelFiles
from robotmem_ros.core.embedding.threads import in_thread, native_work
from robotmem_ros.core.errors import EmbeddingError

_LOG = logging.getLogger(__name__)

_DEFAULT_MODEL = next(
    str(item.default) for item in settings_of(Config) if item.name == "onnx_model"
)

_RUN_BYTES = 8192
"""Text that goes through the model in one run: a fraction of a second of work, and little memory.
Queries, and the end of the process, wait no longer than that."""

_TEXT_BYTES = 2048  # more than most models read of one text
_MAX_CHARS = 50_000  # more than any reads; spares the tokenizer


class OnnxEmbedder(Backend):
    """The onnx backend: a model from the hub, or from a local directory with no network at all.

    The model is loaded at first use, once.
    """

    def __init__(self, config: Config, cooldown: Cooldown) -> None:
        super().__init__(
            model=config.onnx_model,
            dim=config.onnx_dim,
            dim_setting="onnx_dim",
            prefixes=_prefixes(config, config.onnx_model),
            cooldown=cooldown,
            starting=f"the model {config.onnx_model} is being loaded"
            if not config.model_path
            else f"the model in {config.model_path} is being loaded",
        )
        self._config = config
        self._load_lock = threading.Lock()
        self._loaded: Any = None

    async def close(self) -> None:
        """Let go of the model."""
        await super().close()
        self._loaded = None

    async def _prepare(self) -> str:
        await in_thread(self._model)
        return self._origin or ""

    async def _embed(self, texts: Sequence[str], *, query: bool, tries: int) -> Sequence[object]:
        made: list[object] = [None] * len(texts)
        for run in _runs(texts):
            chosen = [texts[index][:_MAX_CHARS] for index in run]
            vectors = await in_thread(lambda chosen=chosen: self._run(chosen, query))  # type: ignore[misc]
            for index, vector in zip(run, vectors, strict=True):
                made[index] = vector
        return made

    def _run(self, texts: list[str], query: bool) -> list[object]:
        model = self._model()
        with native_work():
            try:
                if query:
                    return list(model.query_embed(texts))
                return list(model.passage_embed(texts, batch_size=len(texts)))
            except Exception as error:  # the libraries raise what they like
                raise RefusedError(f"the model {self.model} failed: {one_line(error)}") from error

    def _model(self) -> Any:
        if self._loaded is None:
            with self._load_lock:
                if self._closed:
                    raise EmbeddingError("the backend is closed")
                if self._loaded is None:
                    self._loaded = self._load()
        return self._loaded

    def _load(self) -> Any:
        config = self._config
        try:
            with native_work():
                import fastembed

                onnxruntime = importlib.import_module("onnxruntime")  # it has no types
        except Exception as error:  # a broken library raises what it likes
            raise EmbeddingError(
                f"fastembed cannot be imported ({one_line(error)}); pip install fastembed, or set "
                "embed_backend: none"
            ) from error
        _silence(onnxruntime)
        known = model_files.registry()
        if config.model_path:
            files = model_files.in_directory(
                config.model_path, config.onnx_model, known, _DEFAULT_MODEL
            )
        elif config.onnx_model.lower() in known:
            files = hub.fetch(known[config.onnx_model.lower()], config.fastembed_cache_dir)
        else:
            raise EmbeddingError(
                f"parameter onnx_model: {config.onnx_model!r} is not a model of fastembed; name "
                "one of its models, or set model_path to a directory with this one"
            )
        _LOG.debug("loading %s", files)
        try:
            with native_work():
                loaded, files = _open(fastembed.TextEmbedding, onnxruntime, files, config)
                origin = files.digest()
        except EmbeddingError:
            raise
        except Exception as error:  # the libraries raise what they like
            raise EmbeddingError(
                f"the model in {files.directory} could not be loaded ({one_line(error)}); check "
                + ("model_path and onnx_model" if config.model_path else "or delete these files")
            ) from error
        self.model = files.name
        self._prefixes = _prefixes(config, files.name)
        self._origin = origin
        return loaded


def _open(
    text_embedding: Any, onnxruntime: Any, files: ModelFiles, config: Config
) -> tuple[Any, ModelFiles]:
    """Load a model; return it, and its files with the pooling that was found out."""
    options: dict[str, Any] = {
        "specific_model_path": str(files.directory),
        "cache_dir": config.fastembed_cache_dir or None,
        "threads": config.onnx_threads,
        "providers": ["CPUExecutionProvider"],
    }
    if files.registered:
        return text_embedding(files.name, **options), files
    from fastembed.common.model_description import ModelSource, PoolingType

    session = onnxruntime.InferenceSession(
        str(files.directory / files.file), providers=options["providers"]
    )
    pooling = files.pooling
    if len(session.get_outputs()[0].shape) == 2:
        pooling = "DISABLED"  # the model does it itself
    if not pooling:
        raise model_files.unknown(files)
    del session
    files = ModelFiles(files.directory, files.file, files.name, False, pooling)
    # A name of our own: the registry is one for the process, and each name is taken once.
    name = f"robotmem/{files.file}/{pooling}/{config.onnx_dim}"
    if name.lower() not in model_files.registry():
        text_embedding.add_custom_model(
            model=name,
            pooling=PoolingType[pooling],
            normalization=True,
            sources=ModelSource(hf=name),
            dim=config.onnx_dim,
            model_file=files.file,
        )
    return text_embedding(name, **options), files


def _silence(onnxruntime: Any) -> None:
    """Keep the libraries from writing to stderr; their errors come as exceptions as well."""
    onnxruntime.set_default_logger_severity(4)
    try:
        from loguru import logger
    except ImportError:
        return
    logger.disable("fastembed")


def _prefixes(config: Config, model: str) -> prefixes.Prefixes:
    return prefixes.chosen(model, config.embed_query_prefix, config.embed_passage_prefix)


def _runs(texts: Sequence[str]) -> list[list[int]]:
    """Return the numbers of the texts in groups of similar length for one run of the model each.

    All texts of a run are padded to the longest.
    """
    sizes = [min(len(text.encode(errors="replace")), _TEXT_BYTES) for text in texts]
    runs: list[list[int]] = []
    for index in sorted(range(len(texts)), key=sizes.__getitem__):
        if runs and (len(runs[-1]) + 1) * sizes[index] <= _RUN_BYTES:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs
