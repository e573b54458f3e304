# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Makes the backend that the settings ask for."""

from __future__ import annotations

import time
from collections.abc import Callable

from robotmem_ros.core.config import Config
from robotmem_ros.core.embedding.cooldown import Cooldown
from robotmem_ros.core.embedding.protocol import Embedder


def make_embedder(config: Config, clock: Callable[[], float] = time.monotonic) -> Embedder | None:
    """Return the configured backend, not yet tried; None for embed_backend none.

    Parameters
    ----------
    clock: seconds that never go back, for the cooldown.

    Raises
    ------
    ConfigError: a setting of the backend cannot work.
    """
    # Each backend is imported when it is used: their libraries take time to load.
    cooldown = Cooldown(clock)
    if config.embed_backend == "onnx":
        from robotmem_ros.core.embedding.onnx import OnnxEmbedder

        return OnnxEmbedder(config, cooldown)
    if config.embed_backend == "ollama":
        from robotmem_ros.core.embedding.http import HttpEmbedder

        return HttpEmbedder(config, cooldown)
    return None
