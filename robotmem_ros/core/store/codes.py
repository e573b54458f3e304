# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""One bit a dimension of each vector of a large store: on which side of their centre it lies.

A code has a thirty-second of the size of its vector, so a million of them are read and compared
in little time. They stand in the database beside the vectors and change in the same transactions.
The centre is the mean of a sample, taken once, when a store has become large; the vectors that
were there before get their codes little by little with the vectors that come.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

EXACT_LIMIT = 20_000
"""Up to this many vectors a store has no codes."""

_LOOKED_AT = 512  # changes of vectors, after which their number is counted again
_SAMPLE = 4096
_AT_ONCE = 256  # older vectors that get their code with each new one
_COMPARED_AT_ONCE = 4096

Ids = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint64]


def put(connection: apsw.Connection, memory_id: int, vector: Vector) -> None:
    """Store the code of a memory's new vector, if the store has codes or needs them by now."""
    known = centre(connection)
    if known is None:
        changes = connection.execute("SELECT max(seq) FROM vector_changes").get or 0
        if changes % _LOOKED_AT == 0:
            begin(connection)
        return
    _store(connection, np.array([memory_id]), vector[np.newaxis], known[0])
    catch_up(connection)


def remove(connection: apsw.Connection, memory_id: int) -> None:
    """Remove the code of a memory, if it has one."""
    connection.execute("DELETE FROM codes WHERE memory_id = ?", (memory_id,))


def remove_all(connection: apsw.Connection) -> None:
    """Remove all codes, and their centre, which was that of another model."""
    connection.execute("DELETE FROM codes")
    connection.execute("DELETE FROM code_centre")


def begin(connection: apsw.Connection) -> None:
    """Take the centre of the vectors anew, if they are many; they have no codes yet."""
    remove_all(connection)
    count = "SELECT count(*) FROM (SELECT 1 FROM vectors LIMIT ?)"
    if connection.execute(count, (EXACT_LIMIT + 1,)).get <= EXACT_LIMIT:
        return
    last: Any = connection.execute("SELECT max(memory_id) FROM vectors").get
    spread = np.unique(np.linspace(1, last, _SAMPLE).astype(np.int64))
    rows: Any = connection.execute(
        "SELECT v.memory_id, v.vector FROM carray(?) AS c CROSS JOIN vectors AS v "
        "ON v.memory_id = c.value WHERE length(v.vector) = 4 * (SELECT dimension FROM embedder)",
        (apsw.carray(spread),),
    ).fetchall()
    numbers, vectors = sound(rows)
    if len(numbers):
        blob = mean(vectors).astype("<f4").tobytes()
        connection.execute("INSERT INTO code_centre VALUES (?, 0)", (blob,))
        # Copies in memory may have taken another centre.
        connection.execute("INSERT INTO vector_changes (memory_id) VALUES (0)")


def catch_up(connection: apsw.Connection) -> bool:
    """Give some of the older vectors their codes; return whether there may be more."""
    known = centre(connection)
    if known is None or known[1] is None:
        return False
    middle, coded_to = known
    rows: Any = connection.execute(
        "SELECT memory_id, vector FROM vectors WHERE memory_id > ? AND length(vector) = ? "
        "ORDER BY memory_id LIMIT ?",
        (coded_to, 4 * len(middle), _AT_ONCE),
    ).fetchall()
    if rows:
        _store(connection, *sound(rows), middle)
    is_last = len(rows) < _AT_ONCE  # those that come bring their own
    connection.execute("UPDATE code_centre SET coded_to = ?", (None if is_last else rows[-1][0],))
    return not is_last


def centre(connection: apsw.Connection) -> tuple[Vector, int | None] | None:
    """Return the centre, and up to which memory the older vectors have codes (None: all)."""
    state: Any = connection.execute(
        "SELECT centre, coded_to, length(centre) = 4 * (SELECT dimension FROM embedder) "
        "FROM code_centre"
    ).get
    if state is None:
        return None
    blob, coded_to, is_whole = state
    if not is_whole or not isinstance(blob, bytes):
        raise apsw.CorruptError("the centre of the codes is damaged; call ~/reindex")
    return np.frombuffer(blob, "<f4"), coded_to


def differing(connection: apsw.Connection) -> list[int]:
    """Return the memories whose code is not that of their vector, or missing, or of no vector.

    Raises
    ------
    apsw.CorruptError: the centre is damaged.
    """
    known = centre(connection)
    if known is None:
        strays: Any = connection.execute("SELECT memory_id FROM codes").fetchall()
        return [row[0] for row in strays]
    middle, coded_to = known
    strays = connection.execute(
        "SELECT memory_id FROM codes WHERE memory_id NOT IN (SELECT memory_id FROM vectors)"
    ).fetchall()
    found = [row[0] for row in strays]
    rows: Any = connection.execute(
        "SELECT v.memory_id, v.vector, c.code FROM vectors AS v "
        "LEFT JOIN codes AS c ON c.memory_id = v.memory_id "
        "WHERE length(v.vector) = ? AND (c.code NOT NULL OR coalesce(v.memory_id <= ?, TRUE))",
        (4 * len(middle), coded_to),
    )
    while batch := list(itertools.islice(rows, _COMPARED_AT_ONCE)):
        stored = {number: code for number, _, code in batch}
        numbers, vectors = sound([(number, vector) for number, vector, _ in batch])
        for number, code in zip(numbers.tolist(), of(vectors, middle), strict=True):
            if code.tobytes() != stored[number]:
                found.append(number)
    return found


def of(vectors: Vector, centre: Vector) -> Codes:
    """Return the codes of vectors of length 1, (n, ceil(dimension / 64)) words."""
    bits = np.packbits(vectors > centre, axis=1)
    padding = -bits.shape[1] % 8
    return np.pad(bits, ((0, 0), (0, padding))).view(np.uint64)


def sound(rows: Sequence[tuple[int, bytes]]) -> tuple[Ids, Vector]:
    """Return memories and their stored vectors, at length 1, but for damaged ones."""
    numbers = np.array([row[0] for row in rows], np.int64)
    vectors = np.frombuffer(b"".join(row[1] for row in rows), "<f4").reshape(len(rows), -1)
    norms = np.linalg.norm(vectors, axis=1)
    good = np.isfinite(norms) & (norms > 0)
    return numbers[good], vectors[good] / norms[good, np.newaxis]


def mean(vectors: Vector) -> Vector:
    """Return the mean of vectors of length 1."""
    found: Vector = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    return found


def _store(connection: apsw.Connection, numbers: Ids, vectors: Vector, centre: Vector) -> None:
    made = zip(numbers.tolist(), of(vectors, centre), strict=True)
    connection.executemany(
        "INSERT OR REPLACE INTO codes VALUES (?, ?)",
        ((number, code.tobytes()) for number, code in made),
    )
