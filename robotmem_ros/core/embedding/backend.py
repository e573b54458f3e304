# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What all backends have in common: state, cooldown, prefixes, checks, and failed batches.

When a batch fails, either the backend is down or one of the texts cannot be embedded. A test
embedding tells: if it fails too, the backend gets its cooldown; if not, the batch is cut in halves
until only the text that is at fault stays without a vector.
"""

from __future__ import annotations

import abc
import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from robotmem_ros.core.embedding.cooldown import Cooldown
from robotmem_ros.core.embedding.prefixes import Prefixes
from robotmem_ros.core.embedding.protocol import BATCH_SIZE, DimensionError, Vector, checked
from robotmem_ros.core.errors import EmbeddingError

_LOG = logging.getLogger(__name__)

TRIES = 3
"""How often one request is sent before it counts as failed."""

_PING = "ping"
_SHORT = 1000  # characters; a refused text is cut in halves down to this length


class RefusedError(EmbeddingError):
    """The backend works, but does not take these texts."""


class TooSlowError(EmbeddingError):
    """The backend did not answer in time."""


class Backend(abc.ABC):
    """Base of the backends; implements protocol.Embedder.

    Parameters
    ----------
    model: its name.
    dim, dim_setting: length of its vectors, and the parameter that says it.
    prefixes: what goes before the texts.
    cooldown: how long to wait after failures.
    starting: why it is not available before it was first tried.
    """

    batches_at_once = 1

    def __init__(
        self,
        *,
        model: str,
        dim: int,
        dim_setting: str,
        prefixes: Prefixes,
        cooldown: Cooldown,
        starting: str,
    ) -> None:
        self.model = model
        self.dim = dim
        self._dim_setting = dim_setting
        self._prefixes = prefixes
        self._cooldown = cooldown
        self._reason = starting
        self._reported = ""  # the reason that was last logged
        self._origin: str | None = None  # None: not known yet
        self._at_most = BATCH_SIZE  # texts in one request; less once that took too long
        self._closed = False

    @property
    def available(self) -> bool:
        """Whether it worked when it was last tried."""
        return not self._reason

    @property
    def unavailable_reason(self) -> str:
        """Why not, and what to do; "" when available."""
        return self._reason

    @property
    def cooldown(self) -> float:
        """Seconds in which it sends nothing, because it failed; 0 when it may be tried."""
        return self._cooldown.left

    @property
    def identity(self) -> str:
        """What made the vectors: the model as its backend knows it, and the prefix of passages."""
        parts = (self.model, self._origin or "", self._prefixes.passage.strip())
        return "|".join(parts).rstrip("|")

    @abc.abstractmethod
    async def _embed(self, texts: Sequence[str], *, query: bool, tries: int) -> Sequence[object]:
        """Return for each text what should be its vector.

        Raises
        ------
        RefusedError: these texts cannot be embedded.
        EmbeddingError: the backend does not work.
        """

    @abc.abstractmethod
    async def _prepare(self) -> str:
        """Make ready to embed; return what tells its model from others of the same name.

        Raises
        ------
        EmbeddingError: the backend does not work.
        """

    async def embed_one(self, text: str) -> Vector:
        """Return the vector of a query.

        Raises
        ------
        EmbeddingError: it cannot be had.
        """
        self._refuse_in_cooldown()
        text = self._prefixes.query + text
        try:
            raw = await self._embed([text], query=True, tries=TRIES)
            vector = self._vectors(raw, 1)[0]
        except EmbeddingError as error:
            await self._lives_after(error)
            raise
        assert vector is not None  # or _vectors would have raised
        self._succeeded()
        return vector

    async def embed_batch(
        self, texts: Sequence[str], batch_size: int = BATCH_SIZE
    ) -> list[Vector | None]:
        """Return the vectors of texts to be stored; None for those that failed."""
        texts = [self._prefixes.passage + text for text in texts]
        size = min(batch_size, self._at_most)
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        turn = asyncio.Semaphore(self.batches_at_once)

        async def one(batch: Sequence[str]) -> list[Vector | None]:
            async with turn:
                return await self._batch(batch, TRIES)

        done = await asyncio.gather(*map(one, batches))
        return [vector for batch in done for vector in batch]

    async def check_availability(self) -> bool:
        """Find out whether it works, cooldown or not, and remember why not."""
        try:
            self._origin = await self._prepare()
            await self._test()
        except EmbeddingError as error:
            self._failed(error)
        else:
            self._succeeded()
        return self.available

    async def close(self) -> None:
        """Release what it holds; idempotent."""
        self._closed = True
        self._reason = "the backend is closed"

    async def _batch(self, texts: Sequence[str], tries: int) -> list[Vector | None]:
        nothing: list[Vector | None] = [None] * len(texts)
        if self._cooldown.active:
            return nothing
        try:
            raw = await self._embed(texts, query=False, tries=tries)
            vectors = self._vectors(raw, len(texts))
        except EmbeddingError as error:
            if not await self._lives_after(error):
                return nothing
            if isinstance(error, TooSlowError):
                self._at_most = max(1, min(self._at_most, len(texts) // 2))
            if len(texts) > 1:
                half = len(texts) // 2
                return [
                    *await self._batch(texts[:half], 1),
                    *await self._batch(texts[half:], 1),
                ]
            if isinstance(error, RefusedError) and len(texts[0]) > _SHORT:
                # Most likely too long. Found by its beginning is better than not at all.
                return await self._batch([texts[0][: len(texts[0]) // 2]], 1)
            _LOG.debug("a text could not be embedded: %s", error)
            return nothing
        self._succeeded()
        return vectors

    async def _test(self) -> None:
        self._vectors(await self._embed([_PING], query=False, tries=1), 1)

    async def _lives_after(self, error: EmbeddingError) -> bool:
        """Return whether the backend still works; if not, that was a failure of it."""
        if self._cooldown.active or self._closed:
            return False
        if not isinstance(error, DimensionError):
            try:
                await self._test()
            except EmbeddingError:
                pass
            else:
                return True
        if not self._cooldown.active:  # another batch may have found out meanwhile
            self._failed(error)
        return False

    def _vectors(self, raw: Sequence[object], count: int) -> list[Vector | None]:
        """Return the vectors that are good, and None in place of the others.

        Raises
        ------
        EmbeddingError: there are not so many, or none of them is good.
        """
        if len(raw) != count:
            raise EmbeddingError(f"the backend answered with {len(raw)} vectors for {count} texts")
        vectors: list[Vector | None] = []
        problem: EmbeddingError | None = None
        for item in raw:
            try:
                vectors.append(checked(item, self.dim, self._dim_setting))
            except EmbeddingError as error:
                problem = problem or error
                vectors.append(None)
        if problem is not None and not any(vector is not None for vector in vectors):
            raise problem
        return vectors

    def _refuse_in_cooldown(self) -> None:
        if self._closed or self._cooldown.active:
            raise EmbeddingError(self._reason)

    def _failed(self, error: Exception) -> None:
        if self._closed:
            return
        self._cooldown.failed()
        self._reason = str(error)
        if self._reason != self._reported:
            _LOG.warning("no vectors for now: %s (next try in %.0f s)", error, self._cooldown.left)
        self._reported = self._reason

    def _succeeded(self) -> None:
        if self._closed:
            return
        self._cooldown.succeeded()
        if self._origin is None:
            return  # its vectors cannot be told from those of another model yet
        if self._reason:
            _LOG.info("the embedding model %s is ready", self.model)
        self._reason = self._reported = ""


def one_line(error: Any, limit: int = 200) -> str:
    """Return what an exception says as one line of limited length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 3] + "..."
