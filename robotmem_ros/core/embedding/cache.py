# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The vectors of the last queries, so that a repeated question is not embedded twice."""

from __future__ import annotations

import collections
import hashlib
import threading

from robotmem_ros.core.embedding.protocol import Vector

SIZE = 256


class QueryCache:
    """A bounded cache; the entry that was not used for longest goes first. Thread-safe."""

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._vectors: collections.OrderedDict[bytes, Vector] = collections.OrderedDict()

    def get(self, identity: str, text: str) -> Vector | None:
        """Return the vector of a text by a model, if it is known."""
        key = _key(identity, text)
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def put(self, identity: str, text: str, vector: Vector) -> None:
        """Remember a vector."""
        key = _key(identity, text)
        with self._lock:
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
            if len(self._vectors) > self._size:
                self._vectors.popitem(last=False)


def _key(identity: str, text: str) -> bytes:
    # Its digest stands for the text, which may be long.
    return hashlib.blake2b(f"{identity}\0{text}".encode(), digest_size=16).digest()
