# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Make stores of any size for the benchmarks: text, contexts, places, episodes and vectors.

The text is drawn from a vocabulary with Zipf's distribution, as words are in real text, and
begins with a word that every memory holds. The vectors lie in clusters, as those of texts do.
Everything follows from a seed.
"""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from robotmem_ros.core.model import MemoryType, Pose
from robotmem_ros.core.store import NewMemory, Store

DIMENSION = 384
EVERYWHERE = "robot"
SESSION_LENGTH = 50
HALL_METRES = (100.0, 60.0)
START = 1_700_000_000 * 10**9
MODEL = "synthetic"

_SYLLABLES = ("ba", "ke", "di", "lo", "mu", "ra", "se", "ti", "vo", "nu", "pa", "ge")
_VOCABULARY = 20_000
_WORDS_PER_MEMORY = 16
_CLUSTERS = 500
_SPREAD = 0.9  # length of the random part of a vector against that of its cluster
_BATCH = 2_000

Vectors = npt.NDArray[np.float32]


def word(number: int) -> str:
    """Return a made-up word; the lower its number, the more frequent it is."""
    letters = ""
    number += 12
    while number:
        number, rest = divmod(number, 12)
        letters += _SYLLABLES[rest]
    return letters


class Maker:
    """Draws memories, vectors and queries from a seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._words = [word(i) for i in range(_VOCABULARY)]
        self._weights = list(itertools.accumulate(1 / (i + 1) for i in range(_VOCABULARY)))
        # The same for every seed: what is asked for is about what is stored.
        centres = np.random.default_rng(1).standard_normal((_CLUSTERS, DIMENSION))
        self._centres = centres.astype(np.float32)
        self._centres /= np.linalg.norm(self._centres, axis=1, keepdims=True)

    def words(self, count: int) -> list[str]:
        """Return words as frequent as in the memories."""
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def vectors(self, count: int) -> Vectors:
        """Return vectors of length 1, each near the centre of a random cluster."""
        clusters = self._numbers.integers(0, _CLUSTERS, count)
        noise = self._numbers.standard_normal((count, DIMENSION)).astype(np.float32)
        noise *= _SPREAD / np.sqrt(DIMENSION)
        found: Vectors = self._centres[clusters] + noise
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found

    def memory(self, number: int) -> NewMemory:
        """Return the memory of a number: one of 100 collections, 50 to an episode."""
        draw = self._random.random
        x, y = draw() * HALL_METRES[0], draw() * HALL_METRES[1]
        return NewMemory(
            uuid=str(uuid.UUID(int=self._random.getrandbits(128), version=4)),
            type=MemoryType.FACT,
            perception_type=None,
            content=" ".join([EVERYWHERE, *self.words(_WORDS_PER_MEMORY)]),
            context={
                "params": {"force": {"value": round(draw() * 20, 1), "unit": "N"}},
                "task": {"name": f"task{number % 20}", "success": draw() < 0.5},
                "robot": {"id": f"r{number % 1000}"},
                "spatial": {"object_position": [x, y, round(draw() * 2, 2)]},
            },
            collection=f"c{number % 100}",
            session_id=f"s{number // SESSION_LENGTH}",
            confidence=0.9,
            stamp=START + number * 10**9,
            pose=Pose("map", (x, y, 0.0)),
            expires=0,
            now=START + number * 10**9,
        )


def plain(text: str) -> NewMemory:
    """Return a memory that has nothing but a text."""
    return NewMemory(
        uuid="",
        type=MemoryType.FACT,
        perception_type=None,
        content=text,
        context={},
        collection="default",
        session_id="",
        confidence=0.9,
        stamp=START,
        pose=None,
        expires=0,
        now=START,
    )


def fill(store: Store, maker: Maker, count: int) -> Iterator[int]:
    """Fill an empty store; yield how many memories are stored so far."""
    store.use_model(MODEL, DIMENSION)
    for start in range(0, count, _BATCH):
        batch = [maker.memory(number) for number in range(start, min(count, start + _BATCH))]
        numbers = store.add_many(batch)
        vectors = maker.vectors(len(batch))
        texts = [memory.content for memory in batch]
        store.put_vectors(MODEL, list(zip(numbers, texts, vectors, strict=True)))
        yield start + len(batch)
