# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What every embedding backend offers, and the check of every vector it makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from robotmem_ros.core.errors import EmbeddingError

Vector = npt.NDArray[np.float32]

BATCH_SIZE = 32


class DimensionError(EmbeddingError):
    """The model makes vectors of another length than the settings say."""


class Embedder(Protocol):
    """A backend that turns texts into vectors.

    Its methods never block the event loop they are awaited in.
    """

    @property
    def available(self) -> bool:
        """Whether it worked when it was last tried."""

    @property
    def unavailable_reason(self) -> str:
        """Why not, and what to do; "" when available."""

    @property
    def cooldown(self) -> float:
        """Seconds in which it sends nothing, because it failed; 0 when it may be tried."""

    @property
    def model(self) -> str:
        """Name of the model, for people."""

    @property
    def identity(self) -> str:
        """What made the vectors: only those of one identity may be compared.

        Known once it has been available.
        """

    @property
    def dim(self) -> int:
        """Length of its vectors."""

    @property
    def batches_at_once(self) -> int:
        """How many batches embed_batch works on at the same time."""

    async def embed_one(self, text: str) -> Vector:
        """Return the vector of a query.

        Raises
        ------
        EmbeddingError: it cannot be had.
        """

    async def embed_batch(
        self, texts: Sequence[str], batch_size: int = BATCH_SIZE
    ) -> list[Vector | None]:
        """Return the vectors of texts to be stored; None for those that failed."""

    async def check_availability(self) -> bool:
        """Find out whether it works, cooldown or not, and remember why not."""

    async def close(self) -> None:
        """Release what it holds; idempotent."""


_LEAST_LENGTH, _GREATEST_LENGTH = 1e-12, 1e12
"""Of a vector; beyond, its cosine cannot be computed in single precision."""


def checked(vector: object, dim: int, setting: str) -> Vector:
    """Return a vector that may be stored: finite numbers, not all zero, dim of them.

    Parameters
    ----------
    setting: the parameter that says the length, for the message.

    Raises
    ------
    DimensionError: it has another length.
    EmbeddingError: it is anything else.
    """
    try:
        array = np.asarray(vector)
    except ValueError:  # lists of different lengths
        array = np.asarray(None)
    if array.ndim != 1 or array.dtype.kind not in "fi":
        raise EmbeddingError("the backend answered with something that is not a vector")
    if len(array) != dim:
        raise DimensionError(
            f"the model makes vectors of length {len(array)}, not {dim}; "
            f"set {setting}: {len(array)}"
        )
    with np.errstate(over="ignore"):  # what is too great becomes infinite, and is refused
        array = array.astype(np.float32)
    length = float(np.linalg.norm(array.astype(np.float64)))
    if not _LEAST_LENGTH <= length <= _GREATEST_LENGTH:  # never true of NaN
        raise EmbeddingError("the model made a vector that is zero or not finite")
    return array
