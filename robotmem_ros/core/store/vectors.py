# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Vector search: cosine similarity over the vectors of the memories.

The table of vectors is the only truth. For speed a copy is kept in memory: the vectors themselves
up to codes.EXACT_LIMIT of them, above that one bit a dimension (codes.py). The copy orders the
candidates: by the bits in which their codes differ from that of the query, and the best of these
once more by the query as it is. What is returned was measured on the true vectors by sqlite-vec's
vec_distance_cosine.
Up to EXACT_LIMIT, and in an exact search of any size, the order is that of the true vectors.

The copy follows the table by its log of changes, so it is right after a crash and when another
process writes to the file.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from robotmem_ros.core.store import codes, schema
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.eligibility import Eligibility
from robotmem_ros.core.store.order import Ids, Keys, Order, grown

RESCORED = 400
"""Vectors that are measured, at least; the more there are, the closer they lie, so it is 1.5
times the root of their number where that is more."""

BY_BITS = 2_000
"""Candidates by the bits alone, at least twice as many as are measured."""

_ROUNDING = 1e-5  # of products in single precision
_AS_QUICK = 8  # vectors in a row, as one from the database
_AT_ONCE = 4096  # rows read in one go
_CODES_AT_ONCE = 50_000
_IN_CACHE = 16_384  # codes

Vector = npt.NDArray[np.float32]


def put(connection: apsw.Connection, memory_id: int, vector: Vector) -> None:
    """Store the vector of a memory, finite and not zero; it no longer waits for one."""
    blob = vector.astype("<f4").tobytes()
    connection.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (memory_id, blob))
    connection.execute("DELETE FROM unembedded WHERE memory_id = ?", (memory_id,))
    schema.log_change(connection, "vector_changes", memory_id)
    codes.put(connection, memory_id, unit(vector))


def remove(connection: apsw.Connection, memory_id: int) -> None:
    """Remove the vector of a memory, if it has one; it no longer waits for one."""
    connection.execute("DELETE FROM unembedded WHERE memory_id = ?", (memory_id,))
    connection.execute("DELETE FROM vectors WHERE memory_id = ?", (memory_id,))
    codes.remove(connection, memory_id)
    schema.log_change(connection, "vector_changes", memory_id)


def remove_all(connection: apsw.Connection) -> None:
    """Remove all vectors; every memory waits for a new one."""
    connection.execute("DELETE FROM vectors")
    codes.remove_all(connection)
    connection.execute("INSERT OR IGNORE INTO unembedded SELECT id FROM memories")
    schema.log_change(connection, "vector_changes", 0)


def problem(connection: apsw.Connection) -> str:
    """Return why vector search cannot work, or "" if it can."""
    try:
        connection.execute("SELECT memory_id, vector FROM vectors LIMIT 0").fetchall()
        connection.execute("SELECT 1 FROM vector_changes, codes, code_centre LIMIT 0").fetchall()
    except apsw.SQLError as error:
        return f"the vector table is broken ({error}); call ~/reindex"
    return ""


def top(
    connection: Connection,
    vectors: Vectors,
    query: Vector,
    k: int,
    eligible: Eligibility,
    exact: bool,
) -> list[tuple[int, float]]:
    """Return the k nearest eligible memories with their cosine similarity, nearest first."""
    if eligible.ids is not None and vectors.is_slower(len(eligible.ids)):
        found = eligible.ids
    else:
        order, measured = vectors.order(connection, query, eligible, exact)
        if measured:
            found = order.first_eligible(k, eligible)
        else:
            count = max(RESCORED, 3 * math.isqrt(order.length) // 2, 10 * k)
            by_bits = order.first_eligible(max(BY_BITS, 2 * count), eligible)
            found = vectors.likeliest(count, query, by_bits)
    nearest = similarities(connection, query, np.sort(found))
    return heapq.nsmallest(k, nearest.items(), key=lambda item: (-item[1], item[0]))


def similarities(
    connection: Connection, query: Vector, ids: Sequence[int] | Ids
) -> dict[int, float]:
    """Return the cosine similarity of those memories that have a vector."""
    if not len(ids):
        return {}
    numbers = apsw.carray(np.array(ids, np.int64))
    return {
        memory_id: 1.0 - distance
        for memory_id, distance in connection.execute(
            "SELECT v.memory_id, vec_distance_cosine(v.vector, ?1) FROM carray(?2) AS c "
            "CROSS JOIN vectors AS v ON v.memory_id = c.value "
            "WHERE length(v.vector) = length(?1)",
            (query.astype("<f4").tobytes(), numbers),
        )
        if distance is not None  # of a damaged vector
    }


@dataclass(frozen=True, slots=True)
class Vectors:
    """The copy of all vectors in memory at one moment.

    Attributes
    ----------
    ids: the memory of each row; 0: it is gone.
    rows: of each memory, by its number; -1: it has none.
    data: the vectors, each of length 1, or their codes.
    whole: whether they are vectors.
    mean: of all vectors; where they are not whole, of the sample that codes are taken from.
    """

    ids: Ids
    rows: Ids
    data: npt.NDArray[Any]
    whole: bool
    mean: Vector

    def is_slower(self, count: int) -> bool:
        """Return whether it takes longer to order all than to measure some one by one."""
        return not self.whole or count < len(self.ids) // _AS_QUICK

    def mean_similarity(self, query: Vector) -> float:
        """Return the mean cosine similarity of all vectors, 0 if there are none."""
        return float(unit(query) @ self.mean) if len(self.ids) else 0.0

    def order(
        self, connection: Connection, query: Vector, eligible: Eligibility, exact: bool
    ) -> tuple[Order, bool]:
        """Return the order of the vectors from a query, and whether it was truly measured.

        Parameters
        ----------
        eligible: who may be left out where others are known to be few.
        """
        measured = self.whole or exact
        rounding = _ROUNDING if measured else 0.0
        rows = None if exact and not self.whole else self._rows_of_few(eligible)
        data = self.data if rows is None else self.data[rows]
        keys: Keys = np.zeros(0, np.float32)
        if not len(data):
            pass
        elif self.whole:
            keys = -_products(data, unit(query))
        elif exact:
            keys = self._measured(connection, query)
        else:
            keys = _distances(data, codes.of(unit(query)[np.newaxis], self.mean)[0])
        if rows is None:
            return Order(self.ids, keys, self._positions, rounding), measured
        few = rows

        def positions(numbers: Ids) -> Ids:
            return np.searchsorted(few, self._positions(numbers))

        return Order(self.ids[few], keys, positions, rounding), measured

    def _rows_of_few(self, eligible: Eligibility) -> Ids | None:
        """Return the rows of the eligible memories where they are known and few, else None."""
        if eligible.flags is None:
            return None
        allowed = eligible.flags.take(self.ids, mode="clip")
        if np.count_nonzero(allowed) * _AS_QUICK > len(allowed):
            return None
        return np.flatnonzero(allowed)

    def likeliest(self, count: int, query: Vector, ids: Ids) -> Ids:
        """Return those of some memories that seem nearest to a query, of which the code is known.

        The query is not cut to bits here: a vector is taken to lie as far on its side of the
        centre in one dimension as in another, so that its product with the query is, but for what
        is the same for all, the sum of the query's numbers where the code has a one.
        """
        if len(ids) <= count:
            return ids
        data = np.ascontiguousarray(self.data[self._positions(ids)]).view(np.uint8)
        numbers = np.zeros((data.shape[1], 8), np.float32)
        numbers.ravel()[: len(query)] = unit(query)
        # What each byte of a code adds, for all its 256 values.
        sums = numbers @ np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).T
        products = sums[np.arange(len(sums)), data].sum(axis=1)
        return ids[np.argsort(-products, kind="stable")[:count]]

    def _measured(self, connection: Connection, query: Vector) -> Keys:
        keys = np.full(len(self.ids), np.inf, np.float32)
        for memory_id, distance in connection.execute(
            "SELECT memory_id, vec_distance_cosine(vector, ?1) FROM vectors "
            "WHERE length(vector) = length(?1)",
            (query.astype("<f4").tobytes(),),
        ):
            known = memory_id < len(self.rows) and self.rows[memory_id] >= 0
            if known and distance is not None:
                keys[self.rows[memory_id]] = distance
        return keys

    def _positions(self, numbers: Ids) -> Ids:
        known = numbers < len(self.rows)
        found = np.full(len(numbers), -1, np.int64)
        found[known] = self.rows[numbers[known]]
        return found


class VectorCopy:
    """All vectors in memory, whole or one bit a dimension; used under the lock of copies.py."""

    def __init__(self) -> None:
        self._seq = -1  # last change that the copy holds; -1: nothing was read yet
        self._ids: Ids  # by row; 0: dead
        self._rows: Ids  # by memory
        self._centre: Vector
        self._clear(0, whole=True)

    def view(self, connection: Connection, shared: bool) -> Vectors:
        """Return the vectors as the connection sees them.

        Parameters
        ----------
        shared: whether others may be reading what was returned earlier, who must see no change.
        """
        self._follow(connection, shared)
        mean = self._centre
        if self._whole:
            mean = (self._sum / max(self._live, 1)).astype(np.float32)
        return Vectors(
            self._ids[: self._count], self._rows, self._data[: self._count], self._whole, mean
        )

    def _follow(self, connection: Connection, shared: bool) -> None:
        latest, changed = schema.changes_since(connection, "vector_changes", self._seq)
        if changed is None or self._seq < 0:
            self._load(connection)
        elif changed:
            if shared:
                self._ids, self._rows = self._ids.copy(), self._rows.copy()
            for memory_id in changed:
                self._discard(memory_id)
                self._take_in(connection, memory_id)
            dead = self._count - self._live
            if (self._whole and self._live > codes.EXACT_LIMIT) or dead > 1000 + self._live:
                self._load(connection)
        self._seq = latest

    def _take_in(self, connection: Connection, memory_id: int) -> None:
        """Read what there is of one memory, which has no row here."""
        if not self._whole:
            code = connection.execute(
                "SELECT code FROM codes WHERE memory_id = ?", (memory_id,)
            ).get
            if code is not None and len(code) == 8 * self._data.shape[1]:
                self._append(np.array([memory_id]), np.frombuffer(code, np.uint64)[np.newaxis])
                return
        blob = connection.execute(
            "SELECT vector FROM vectors WHERE memory_id = ?", (memory_id,)
        ).get
        if blob is not None and len(blob) == 4 * self._dimension:
            self._append_vectors([(memory_id, blob)])

    def _load(self, connection: Connection) -> None:
        """Read everything anew."""
        self._seq = -1  # until it is done
        known = codes.centre(connection)
        dimension = connection.execute("SELECT dimension FROM embedder").get or 0
        if known is None:
            few = "SELECT count(*) FROM (SELECT 1 FROM vectors LIMIT ?)"
            count = connection.execute(few, (codes.EXACT_LIMIT + 1,)).get
            self._clear(dimension, whole=count <= codes.EXACT_LIMIT)
            self._load_vectors(connection, "TRUE")
            return
        self._clear(dimension, whole=False)
        self._centre, coded_to = known
        last: Any = connection.execute("SELECT max(memory_id) FROM codes").get or 0
        for first in range(0, last, _CODES_AT_ONCE):
            # As a text, into which SQLite does not look: a row each would take twice as long.
            found: Any = connection.execute(
                "SELECT group_concat(memory_id, ' '), CAST(group_concat(code, '') AS BLOB) "
                "FROM (SELECT memory_id, code FROM codes WHERE memory_id > ? AND memory_id <= ? "
                "AND typeof(code) = 'blob' AND length(code) = ? ORDER BY memory_id)",
                (first, first + _CODES_AT_ONCE, 8 * self._data.shape[1]),
            ).get
            if found[0] is not None:
                numbers = np.fromstring(found[0], np.int64, sep=" ")
                self._append(numbers, np.frombuffer(found[1], np.uint64).reshape(len(numbers), -1))
        if coded_to is not None:
            without_code = "memory_id NOT IN (SELECT memory_id FROM codes)"
            self._load_vectors(connection, f"memory_id > {coded_to:d} AND {without_code}")

    def _load_vectors(self, connection: Connection, where: str) -> None:
        rows: Any = connection.execute(
            f"SELECT memory_id, vector FROM vectors WHERE length(vector) = ? AND {where} "
            "ORDER BY memory_id",
            (4 * self._dimension,),
        )
        while batch := list(itertools.islice(rows, _AT_ONCE)):
            self._append_vectors(batch)

    def _clear(self, dimension: int, whole: bool) -> None:
        self._dimension = dimension
        self._whole = whole
        self._count = self._live = 0
        self._centre = np.zeros(0, np.float32)  # codes are taken from it; empty: from none yet
        self._sum = np.zeros(dimension, np.float64)  # of all live vectors, each of length 1
        self._ids = np.zeros(0, np.int64)
        self._rows = np.zeros(0, np.int64)
        width, kind = (dimension, np.float32) if whole else (-(-dimension // 64), np.uint64)
        # Codes are compared word by word. Not empty: that would be of both orders.
        self._data: npt.NDArray[Any] = np.zeros((64, width), kind, order="C" if whole else "F")

    def _discard(self, memory_id: int) -> None:
        if memory_id < len(self._rows) and self._rows[memory_id] >= 0:
            row = self._rows[memory_id]
            if self._whole:
                self._sum -= self._data[row]
            self._ids[row] = 0
            self._rows[memory_id] = -1
            self._live -= 1

    def _append_vectors(self, rows: Sequence[tuple[int, bytes]]) -> None:
        numbers, vectors = codes.sound(rows)
        if not len(numbers):
            return
        if self._whole:
            self._sum += vectors.sum(axis=0, dtype=np.float64)
            self._append(numbers, vectors)
            return
        if not len(self._centre):  # the store has none yet
            self._centre = codes.mean(vectors)
        self._append(numbers, codes.of(vectors, self._centre))

    def _append(self, numbers: Ids, data: npt.NDArray[Any]) -> None:
        end = self._count + len(numbers)
        self._ids = grown(self._ids, end)
        self._data = grown(self._data, end)
        self._rows = grown(self._rows, int(numbers.max()) + 1, fill=-1)
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


def _products(vectors: Vector, query: Vector) -> Keys:
    """Return the inner products of vectors with that of a query, (n,) float32."""
    # Not the product of a matrix: that would take all cores.
    products: Keys
    if hasattr(np, "vecdot"):  # numpy 2
        products = np.vecdot(vectors, query)
    else:
        products = np.einsum("ij,j->i", vectors, query)
    return products


def _distances(
    data: npt.NDArray[np.uint64], query: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint16]:
    """Return the number of bits in which codes differ from that of a query, (n,) uint16.

    Piece by piece, so that what lies between stays in the processor's cache.
    """
    distances = np.zeros(len(data), np.uint16)
    for start in range(0, len(data), _IN_CACHE):
        piece = distances[start : start + _IN_CACHE]
        for word in range(data.shape[1]):
            piece += _bit_count(data[start : start + _IN_CACHE, word] ^ query[word])
    return distances


def _bit_count(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    if hasattr(np, "bitwise_count"):  # numpy 2
        counts: npt.NDArray[np.uint8] = np.bitwise_count(words)
        return counts
    halves = words.view(np.uint16).reshape(-1, 4)
    sums: npt.NDArray[np.uint8] = _BITS_OF_16[halves].sum(axis=1, dtype=np.uint8)
    return sums


_BITS_OF_16 = np.array([bin(i).count("1") for i in range(1 << 16)], np.uint8)
