# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Models from the hub: from its cache on this computer, else by a download.

fastembed would download by itself, but sleeps between tries for most of a minute, shows progress
bars and uses threads that hold up the end of the process. Here the hub is asked once, with a time
limit, and files come one after the other in the calling thread.
"""

from __future__ import annotations

import logging
import pathlib

from robotmem_ros.core.embedding.backend import one_line
from robotmem_ros.core.embedding.model_files import ModelFiles, Registered
from robotmem_ros.core.errors import EmbeddingError

_NEEDED = ("tokenizer.json",)
_WANTED = ("config.json", "tokenizer_config.json", "special_tokens_map.json")
_HUB_TIMEOUT = 5.0


def fetch(model: Registered, cache_dir: str) -> ModelFiles:
    """Return the files of a registered model; may take as long as a download does.

    Raises
    ------
    EmbeddingError: they are not here and cannot be downloaded.
    """
    from fastembed.common.utils import define_cache_dir
    from huggingface_hub.utils import logging as hub_logging
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    hub_logging.set_verbosity(logging.CRITICAL)  # its handler writes to stderr
    if model.source is None:
        raise EmbeddingError(f"the model {model.name} is not on the hub; set model_path")
    folder = str(pathlib.Path(cache_dir).expanduser()) if cache_dir else None
    try:
        cache = str(define_cache_dir(folder))
    except OSError as error:
        raise EmbeddingError(
            f"parameter fastembed_cache_dir: {cache_dir!r} cannot be used ({one_line(error)})"
        ) from error
    directory = _cached(model, model.source, cache)
    if directory is None:
        try:
            directory = _download(model, model.source, cache)
        except Exception as error:  # the hub's library raises many kinds
            raise EmbeddingError(
                f"the model {model.name} could not be downloaded ({one_line(error)}); without a "
                "network, put its files in a directory and set model_path to it"
            ) from error
    return ModelFiles(directory, model.file, model.name, registered=True, pooling="")


def _cached(model: Registered, source: str, cache: str) -> pathlib.Path | None:
    """Return the directory of a model that was downloaded before, asking nobody."""
    from huggingface_hub import hf_hub_download

    directories = set()
    for name in (*_NEEDED, *model.more_files, model.file):
        try:
            path = hf_hub_download(source, name, cache_dir=cache, local_files_only=True)
        except Exception:  # not there, whatever it raises for that
            return None
        directories.add(str(path)[: -len(name)])
    return pathlib.Path(directories.pop()) if len(directories) == 1 else None


def _download(model: Registered, source: str, cache: str) -> pathlib.Path:
    from huggingface_hub import hf_hub_download, model_info

    # One question that is not repeated, so that a missing network is known at once.
    files = model_info(source, timeout=_HUB_TIMEOUT).siblings or []
    there = {file.rfilename for file in files}
    directory = ""
    # The model last: where it is, all is.
    for name in (*_WANTED, *_NEEDED, *model.more_files, model.file):
        if name in _WANTED and name not in there:
            continue
        path = hf_hub_download(source, name, cache_dir=cache)
        directory = str(path)[: -len(name)]
    return pathlib.Path(directory)
