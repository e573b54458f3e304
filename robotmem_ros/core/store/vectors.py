# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Vector search: cosine similarity over the vectors of the memories.

The table of vectors is the only truth. For speed a copy is kept in memory: the vectors themselves
up to EXACT_LIMIT of them, above that one bit a dimension. The copy orders the candidates; what is
returned was measured on the true vectors by sqlite-vec's vec_distance_cosine. Up to EXACT_LIMIT,
and in an exact search of any size, the order is that of the true vectors.

The copy follows the table by its log of changes, so it is right after a crash and when another
process writes to the file.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from robotmem_ros.core.store import schema
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.eligibility import Eligibility
from robotmem_ros.core.store.order import Ids, Order, grown

EXACT_LIMIT = 20_000
"""Up to this many vectors are kept whole in memory."""

_RESCORED = 300  # candidates by bits that are measured, at least
_MEASURED_ALL = 2_000  # up to so many eligible memories are all measured
_ROUNDING = 1e-5  # of products in single precision

Vector = npt.NDArray[np.float32]


def put(connection: apsw.Connection, memory_id: int, vector: Vector) -> None:
    """Store the vector of a memory, finite and not zero; it no longer waits for one."""
    blob = vector.astype("<f4").tobytes()
    connection.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (memory_id, blob))
    connection.execute("DELETE FROM unembedded WHERE memory_id = ?", (memory_id,))
    schema.log_change(connection, "vector_changes", memory_id)


def remove(connection: apsw.Connection, memory_id: int) -> None:
    """Remove the vector of a memory, if it has one; it no longer waits for one."""
    connection.execute("DELETE FROM unembedded WHERE memory_id = ?", (memory_id,))
    connection.execute("DELETE FROM vectors WHERE memory_id = ?", (memory_id,))
    schema.log_change(connection, "vector_changes", memory_id)


def remove_all(connection: apsw.Connection) -> None:
    """Remove all vectors; every memory waits for a new one."""
    connection.execute("DELETE FROM vectors")
    connection.execute("INSERT OR IGNORE INTO unembedded SELECT id FROM memories")
    schema.log_change(connection, "vector_changes", 0)


def problem(connection: apsw.Connection) -> str:
    """Return why vector search cannot work, or "" if it can."""
    try:
        connection.execute("SELECT memory_id, vector FROM vectors LIMIT 0").fetchall()
        connection.execute("SELECT seq FROM vector_changes LIMIT 0").fetchall()
    except apsw.SQLError as error:
        return f"the vector table is broken ({error}); call ~/reindex"
    return ""


class VectorSearch:
    """Vector search over one store; safe to use from any thread."""

    def __init__(self) -> None:
        self._copy = VectorCopy()

    def top(
        self,
        connection: Connection,
        query: Vector,
        k: int,
        eligible: Eligibility,
        exact: bool,
    ) -> list[tuple[int, float]]:
        """Return the k nearest eligible memories with their cosine similarity, nearest first."""
        order, measured = self._copy.order(connection, query, exact)
        wanted = k if measured else max(_RESCORED, 10 * k)
        if not measured and eligible.ids is not None and len(eligible.ids) <= _MEASURED_ALL:
            wanted = len(eligible.ids)
        found = order.first_eligible(connection, wanted, eligible)
        nearest = self.similarities(connection, query, found)
        return sorted(nearest.items(), key=lambda item: (-item[1], item[0]))[:k]

    def similarities(
        self, connection: Connection, query: Vector, ids: Sequence[int]
    ) -> dict[int, float]:
        """Return the cosine similarity of those memories that have a vector."""
        return {
            memory_id: 1.0 - distance
            for memory_id, distance in connection.execute(
                "SELECT v.memory_id, vec_distance_cosine(v.vector, ?1) FROM json_each(?2) AS j "
                "CROSS JOIN vectors AS v ON v.memory_id = j.value "
                "WHERE length(v.vector) = length(?1)",
                (query.astype("<f4").tobytes(), json.dumps(list(ids))),
            )
            if distance is not None  # of a damaged vector
        }

    def mean_similarity(self, connection: Connection, query: Vector) -> float:
        """Return the mean cosine similarity of all vectors, 0 if there are none."""
        return self._copy.mean_similarity(connection, query)


class VectorCopy:
    """The copy of all vectors in memory, whole or one bit a dimension."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seq = -1  # last change that the copy holds; -1: nothing was read yet
        self._centre: Vector | None = None
        self._clear(0, whole=True)

    def order(self, connection: Connection, query: Vector, exact: bool) -> tuple[Order, bool]:
        """Return the order of all vectors from a query, and whether it was truly measured."""
        with self._lock:
            self._follow(connection)
            ids, data, rows = self._ids[: self._count], self._data[: self._count], self._rows
            whole, centre = self._whole, self._centre
        if not len(ids):
            keys = np.zeros(0, np.float32)
        elif whole:
            # Not the product of a matrix: that would take all cores.
            keys = -np.einsum("ij,j->i", data, unit(query))
        elif exact:
            keys = np.full(len(ids), np.inf, np.float32)
            for memory_id, distance in connection.execute(
                "SELECT memory_id, vec_distance_cosine(vector, ?1) FROM vectors "
                "WHERE length(vector) = length(?1)",
                (query.astype("<f4").tobytes(),),
            ):
                known = memory_id < len(rows) and rows[memory_id] >= 0
                if known and distance is not None:
                    keys[rows[memory_id]] = distance
        else:
            code = _codes(unit(query)[np.newaxis], centre)
            keys = np.zeros(len(ids), np.uint16)
            for word in range(data.shape[1]):
                keys += _bit_count(data[:, word] ^ code[0, word])
        keys[ids == 0] = np.inf if keys.dtype.kind == "f" else np.iinfo(np.uint16).max

        def positions(numbers: Ids) -> Ids:
            known = numbers < len(rows)
            found = np.full(len(numbers), -1, np.int64)
            found[known] = rows[numbers[known]]
            return found

        measured = whole or exact
        return Order(ids, keys, positions, _ROUNDING if measured else 0.0), measured

    def mean_similarity(self, connection: Connection, query: Vector) -> float:
        """Return the mean cosine similarity of all vectors, 0 if there are none."""
        with self._lock:
            self._follow(connection)
            return float(unit(query) @ self._sum) / self._live if self._live else 0.0

    def _follow(self, connection: Connection) -> None:
        """Take in what has changed in the table since the last time."""
        latest, changed = schema.changes_since(connection, "vector_changes", self._seq)
        if latest < self._seq:
            return  # the copy is of a later moment: what is gone by now will not be found
        if changed is None or self._seq < 0:
            self._load(connection)
        else:
            for memory_id in changed:
                blob = connection.execute(
                    "SELECT vector FROM vectors WHERE memory_id = ?", (memory_id,)
                ).get
                self._discard(memory_id)
                if blob is not None and len(blob) == 4 * len(self._sum):
                    self._append([memory_id], np.frombuffer(blob, "<f4")[np.newaxis])
            dead = self._count - self._live
            if (self._whole and self._live > EXACT_LIMIT) or dead > 1000 + self._live:
                self._load(connection)
        self._seq = latest

    def _load(self, connection: Connection) -> None:
        count, dimension = connection.execute(
            "SELECT count(*), coalesce((SELECT dimension FROM embedder), 0) FROM vectors"
        ).get
        self._clear(dimension, whole=count <= EXACT_LIMIT)
        rows = connection.execute(
            "SELECT memory_id, vector FROM vectors WHERE length(vector) = ? ORDER BY memory_id",
            (4 * dimension,),
        )
        while batch := list(itertools.islice(rows, 4096)):
            numbers = [row[0] for row in batch]
            vectors = np.frombuffer(b"".join(row[1] for row in batch), "<f4")
            vectors = vectors.reshape(-1, dimension)
            if not self._whole and self._centre is None:
                self._centre = np.mean([unit(vector) for vector in vectors], axis=0)
            self._append(numbers, vectors)

    def _clear(self, dimension: int, whole: bool) -> None:
        self._whole = whole
        self._count = self._live = 0
        self._centre = None
        self._sum = np.zeros(dimension, np.float64)  # of all live vectors, each of length 1
        self._ids = np.zeros(0, np.int64)  # by row; 0: dead
        self._rows = np.zeros(0, np.int64)
        width, kind = (dimension, np.float32) if whole else (-(-dimension // 64), np.uint64)
        self._data: npt.NDArray[Any] = np.zeros((0, width), kind, order="C" if whole else "F")

    def _discard(self, memory_id: int) -> None:
        if memory_id < len(self._rows) and self._rows[memory_id] >= 0:
            row = self._rows[memory_id]
            if self._whole:
                self._sum -= self._data[row]
            elif self._live:  # its vector is gone: take away an average one
                self._sum -= self._sum / self._live
            self._ids[row] = 0
            self._rows[memory_id] = -1
            self._live -= 1

    def _append(self, numbers: Sequence[int], vectors: Vector) -> None:
        norms = np.linalg.norm(vectors, axis=1)
        sound = np.isfinite(norms) & (norms > 0)  # all, unless the file is damaged
        numbers = [number for number, good in zip(numbers, sound, strict=True) if good]
        vectors = vectors[sound] / norms[sound, np.newaxis]
        if not numbers:
            return
        data = vectors if self._whole else _codes(vectors, self._centre)
        self._sum += vectors.sum(axis=0, dtype=np.float64)
        end = self._count + len(numbers)
        self._ids = grown(self._ids, end)
        self._data = grown(self._data, end)
        self._rows = grown(self._rows, max(numbers) + 1, fill=-1)
        # Searches under way hold these arrays: rows they know are never written again, but for
        # the id of one that died.
        self._ids[self._count : end] = numbers
        self._data[self._count : end] = data
        self._rows[numbers] = np.arange(self._count, end)
        self._count = end
        self._live += len(numbers)


def unit(vector: Vector) -> Vector:
    """Return a vector of length 1 in the direction of one that is not zero."""
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _codes(vectors: Vector, centre: Vector | None) -> npt.NDArray[np.uint64]:
    """Return one bit a dimension: on which side of the centre a vector lies."""
    bits = np.packbits(vectors > (0.0 if centre is None else centre), axis=1)
    padding = -bits.shape[1] % 8
    return np.pad(bits, ((0, 0), (0, padding))).view(np.uint64)


def _bit_count(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    if hasattr(np, "bitwise_count"):  # numpy 2
        counts: npt.NDArray[np.uint8] = np.bitwise_count(words)
        return counts
    halves = words.view(np.uint16).reshape(-1, 4)
    sums: npt.NDArray[np.uint8] = _BITS_OF_16[halves].sum(axis=1, dtype=np.uint8)
    return sums


_BITS_OF_16 = np.array([bin(i).count("1") for i in range(1 << 16)], np.uint8)
