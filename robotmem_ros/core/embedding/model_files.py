# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a local directory holds: which model, in which file, and how its output becomes a vector.

A model is best known by a name of fastembed's registry. The name comes from the settings, from the
files, or from the name of the directory. A model that is not in the registry works too, if the
directory says how its output is pooled (1_Pooling/config.json of sentence-transformers).
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
from dataclasses import dataclass
from typing import Any

from robotmem_ros.core.errors import EmbeddingError

_PREFERRED = ("model.onnx", "model_optimized.onnx", "model_quantized.onnx", "model_int8.onnx")
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "config.json")

# Pooling by the class of fastembed that runs a registered model.
_POOLING = {
    "OnnxTextEmbedding": "CLS",
    "PooledEmbedding": "MEAN",
    "PooledNormalizedEmbedding": "MEAN",
    "LastTokenNormalizedEmbedding": "LAST_TOKEN",
}

_SAMPLES, _SAMPLE_BYTES = 1024, 65536


@dataclass(frozen=True, slots=True)
class Registered:
    """A model of fastembed's registry.

    Attributes
    ----------
    name: as the registry spells it.
    source: its repository on the hub; None when it comes from elsewhere.
    file, more_files: its files, the one to load first.
    pooling: how its output becomes a vector; "" when only its own class can do it.
    """

    name: str
    source: str | None
    file: str
    more_files: tuple[str, ...]
    pooling: str


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model on this computer.

    Attributes
    ----------
    directory, file: where its tokenizer is, and the model in it.
    name: what it is called in the store and in ~/status.
    registered: whether fastembed knows how to run it by that name.
    pooling: else, how its output becomes a vector; "" when the files do not say.
    """

    directory: pathlib.Path
    file: str
    name: str
    registered: bool
    pooling: str

    def digest(self) -> str:
        """Return what changes when another model is put there."""
        digest = hashlib.blake2b(self.pooling.encode(), digest_size=6)
        file = self.directory / self.file
        for path in (*sorted(file.parent.glob(file.name + "*")), self.directory / _TOKENIZER[0]):
            size = path.stat().st_size
            digest.update(f"{path.name} {size}".encode())
            step = max(_SAMPLE_BYTES, size // _SAMPLES)  # all of a file up to 64 MiB
            with path.open("rb") as stream:
                for start in range(0, size, step):
                    stream.seek(start)
                    digest.update(stream.read(_SAMPLE_BYTES))
        return digest.hexdigest()


def registry() -> dict[str, Registered]:
    """Return the text models that fastembed knows, by their name in small letters."""
    from fastembed import TextEmbedding

    found = {}
    for cls in TextEmbedding.EMBEDDINGS_REGISTRY:
        for model in cls._list_supported_models():
            found[model.model.lower()] = Registered(
                name=model.model,
                source=model.sources.hf,
                file=model.model_file,
                more_files=tuple(model.additional_files),
                pooling=_POOLING.get(cls.__name__, ""),
            )
    return found


def in_directory(
    model_path: str, asked: str, known: dict[str, Registered], default: str
) -> ModelFiles:
    """Return what a directory, or one .onnx file, holds.

    Parameters
    ----------
    model_path: as the settings have it.
    asked: the model's name in the settings, which may be the default because nobody set it.
    known: the registry.

    Raises
    ------
    EmbeddingError: no model is there, or not to be told which; names the parameter to set.
    """
    path = pathlib.Path(model_path).expanduser()
    file = ""
    if path.is_file() and path.suffix == ".onnx":
        file, path = path.name, path.parent
        if path.name == "onnx" and not (path / _TOKENIZER[0]).exists():
            file, path = f"onnx/{file}", path.parent
    if not path.is_dir():
        raise EmbeddingError(
            f"parameter model_path: {model_path!r} is not a directory with a model, or cannot be "
            "read"
        )
    for name in _TOKENIZER:
        if not (path / name).is_file():
            raise EmbeddingError(f"parameter model_path: {path} has no {name}")
    if asked != default:
        model = known.get(asked.lower())
    else:
        model = _told_by(path, known) or _if_it_is(path, known.get(default.lower()))
    wanted = model.file if model else ""
    file = file or (wanted if wanted and (path / wanted).is_file() else _only_model(path))
    pooling = _declared_pooling(path)
    if model is not None and file == wanted:
        return ModelFiles(path, file, model.name, registered=True, pooling="")
    if model is not None:
        pooling = pooling or model.pooling
        if not pooling:
            raise EmbeddingError(
                f"parameter model_path: {path} has no {wanted}, which {model.name} needs"
            )
        return ModelFiles(path, file, model.name, registered=False, pooling=pooling)
    if asked != default:
        return ModelFiles(path, file, asked, registered=False, pooling=pooling or "MEAN")
    return ModelFiles(path, file, path.resolve().name, registered=False, pooling=pooling)


def unknown(files: ModelFiles) -> EmbeddingError:
    """Return the error for a model whose pooling nothing tells."""
    return EmbeddingError(
        f"parameter onnx_model: which model is in {files.directory} cannot be told from its "
        "files; set onnx_model to its name, like sentence-transformers/all-MiniLM-L6-v2"
    )


def _told_by(path: pathlib.Path, known: dict[str, Registered]) -> Registered | None:
    """Return the registered model that the files or the path name."""
    config = _json(path / "config.json")
    names = [str(config.get("_name_or_path", ""))]
    names += re.findall(r"models--([^/]+)/snapshots/", f"{path.resolve().as_posix()}/")
    names = [name.replace("--", "/").lower() for name in names]
    names.append(path.resolve().name.lower())
    for name in filter(None, names):
        for model in known.values():
            full = {model.name.lower(), (model.source or "").lower()}
            if name in full or ("/" not in name and name in {n.split("/")[-1] for n in full}):
                return model
    return None


def _if_it_is(path: pathlib.Path, default: Registered | None) -> Registered | None:
    """Return the default model if the files look like its own."""
    config = _json(path / "config.json")
    shape = [config.get(key) for key in ("hidden_size", "num_hidden_layers", "vocab_size")]
    if default and (path / default.file).is_file() and shape == [384, 12, 30522]:
        return default
    return None


def _only_model(path: pathlib.Path) -> str:
    """Return the one .onnx file of a directory, or the one with the usual name."""
    found = [os.path.relpath(file, path) for file in sorted(path.glob("*.onnx"))]
    found += [os.path.relpath(file, path) for file in sorted(path.glob("onnx/*.onnx"))]
    for name in _PREFERRED:
        for file in (name, f"onnx/{name}"):
            if file in found:
                return file
    if len(found) == 1:
        return found[0]
    if found:
        raise EmbeddingError(
            f"parameter model_path: {path} holds {', '.join(found[:5])}; set model_path to the "
            "file to use"
        )
    raise EmbeddingError(f"parameter model_path: {path} has no .onnx file")


def _declared_pooling(path: pathlib.Path) -> str:
    config = _json(path / "1_Pooling" / "config.json")
    if config.get("pooling_mode_cls_token"):
        return "CLS"
    if config.get("pooling_mode_lasttoken"):
        return "LAST_TOKEN"
    if config.get("pooling_mode_mean_tokens"):
        return "MEAN"
    return {"cls": "CLS", "mean": "MEAN", "lasttoken": "LAST_TOKEN"}.get(
        str(config.get("pooling_mode", "")), ""
    )


def _json(path: pathlib.Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
