# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Index of every value in every context, so that a filter finds its few matches among millions.

A value is stored as bytes that compare as the values do: first the type, then the value, numbers
exactly, whatever their size and whether they are integers or not. A condition is then one range
of an ordinary index.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from robotmem_ros.core import context as ctx
from robotmem_ros.core.filters import Test
from robotmem_ros.core.model import Json
from robotmem_ros.core.store import rows

MAX_VALUES = 256
"""A context of more values is not indexed; its memory is checked by reading the context."""

MAX_ELEMENTS = 16
"""Array elements from this index on are not indexed."""

MAX_RANGES = 64
"""A condition that would be more ranges of the index is decided by reading the contexts."""

_MAX_INDEXES = 8  # in a path; each may be a key or an element, so they make 2^8 paths

_NULL, _FALSE, _TRUE, _NUMBER, _STRING, _ARRAY, _OBJECT, _END = (bytes([i]) for i in range(1, 9))
_ZERO, _POSITIVE, _NEGATIVE = b"\x80", b"\x81", b"\x7f"


@dataclass(frozen=True, slots=True)
class Range:
    """Encoded values from low on and below high; exactly low if high is None."""

    low: bytes
    high: bytes | None = None

    @property
    def end(self) -> bytes:
        """What is greater than every value in the range, and no other value is less."""
        return self.low + b"\x00" if self.high is None else self.high


def encode(value: Json) -> bytes:
    """Return the bytes of a value; those of arrays and objects have no order, but tell them apart.

    What is equal has the same bytes, and what is not has others (but for one chance in 2^96).
    """
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, (int, float)):
        return _NUMBER + _encode_number(value)
    if isinstance(value, str):
        return _STRING + value.encode()
    text = json.dumps(_with_integers(value), sort_keys=True)
    digest = hashlib.blake2b(text.encode(), digest_size=12).digest()
    return (_ARRAY if isinstance(value, list) else _OBJECT) + digest


def ranges(test: Test) -> list[Range] | None:
    """Return the ranges of encoded values that meet a test; None where the index cannot tell."""
    indexes = [ctx.array_index(key) for key in test.path]
    if any((index or 0) >= MAX_ELEMENTS for index in indexes):
        return None
    if sum(index is not None for index in indexes) > _MAX_INDEXES:
        return None
    operand = test.operand
    if test.operator in ("$in", "$nin") and len(operand) > MAX_RANGES:
        return None
    if test.operator == "$exists":
        return [Range(_NULL, _END)] if operand else None
    if test.operator in ("$eq", "$in"):
        wanted = [operand] if test.operator == "$eq" else operand
        return [Range(low) for low in sorted({encode(item) for item in wanted})]
    if test.operator in ("$ne", "$nin"):
        excluded = [operand] if test.operator == "$ne" else operand
        if not excluded:
            return None
        return _all_but(sorted({encode(item) for item in excluded}))
    low = encode(operand)
    first, last = _of_type(low)
    after = low + b"\x00"  # no encoding lies between
    return [
        {
            "$lt": Range(first, low),
            "$lte": Range(first, after),
            "$gt": Range(after, last),
            "$gte": Range(low, last),
        }[test.operator]
    ]


def positive_ranges(test: Test) -> tuple[list[Range] | None, bool]:
    """Return the ranges that meet a test, and whether what is meant are the values in none."""
    negated = test.operator == "$exists" and not test.operand
    found = ranges(dataclasses.replace(test, operand=True) if negated else test)
    return None if found is None or len(found) > MAX_RANGES else found, negated


def path_texts(path: ctx.Path) -> list[str]:
    """Return the names under which values at a path are stored.

    A key that is a plain number may name a key of an object or an element of an array.
    """
    choices = [
        [key] if isinstance(key, int) or (index := ctx.array_index(key)) is None else [key, index]
        for key in path
    ]
    return [ctx.write(list(path)) for path in itertools.product(*choices)]


def entries(context: Json) -> list[tuple[str, bytes]] | None:
    """Return (path, encoded value) for all values of a context; None if there are too many."""
    found = list(itertools.islice(_indexed_values(context), MAX_VALUES + 1))
    return None if len(found) > MAX_VALUES else found


def add(connection: apsw.Connection, memory_id: int, context: Json) -> bool:
    """Index a context; return whether all of it was, as memories.attributed records."""
    found = entries(context)
    for path, value in found or ():
        connection.execute(
            "INSERT INTO attributes VALUES (?, ?, ?)",
            (memory_id, _path_id(connection, path), value),
        )
    return found is not None


def encode_arrays_anew(connection: apsw.Connection) -> None:
    """Bring the entries of arrays and objects up to date, which once told no two apart."""
    last = 0
    while True:
        batch: Any = connection.execute(
            "SELECT m.id, t.context FROM memories AS m JOIN texts AS t ON t.memory_id = m.id "
            "WHERE m.attributed AND m.id > ? ORDER BY m.id LIMIT 1000",
            (last,),
        ).fetchall()
        if not batch:
            return
        last = batch[-1][0]
        connection.executemany(
            "UPDATE attributes SET value = ?3 WHERE memory_id = ?1 AND path_id = "
            "(SELECT id FROM paths WHERE path = ?2)",
            [
                (number, path, value)
                for number, context in batch
                for path, value in entries(rows.context(context)) or ()
                if value[:1] in (_ARRAY, _OBJECT)
            ],
        )


def remove(connection: apsw.Connection, memory_id: int) -> None:
    """Take a context out of the index."""
    connection.execute("DELETE FROM attributes WHERE memory_id = ?", (memory_id,))


def path_ids(connection: apsw.Connection, path: ctx.Path) -> list[int]:
    """Return the numbers of those paths in the store that a path can mean."""
    found = (
        connection.execute("SELECT id FROM paths WHERE path = ?", (text,)).get
        for text in path_texts(path)
    )
    return [number for number in found if number is not None]


def _path_id(connection: apsw.Connection, path: str) -> int:
    found = connection.execute("SELECT id FROM paths WHERE path = ?", (path,)).get
    if found is None:
        connection.execute("INSERT INTO paths (path) VALUES (?)", (path,))
        found = connection.last_insert_rowid()
    return int(found)


def _indexed_values(context: Json) -> Iterator[tuple[str, bytes]]:
    for path, value in ctx.walk(context, elements=MAX_ELEMENTS):
        yield ctx.write(list(path)), encode(value)


def _all_but(excluded: Sequence[bytes]) -> list[Range]:
    """Return the ranges of all values of the types of some values, without these."""
    found = []
    for first, last in sorted({_of_type(value) for value in excluded}):
        low = first
        for value in excluded:
            if first <= value < last:
                found.append(Range(low, value))
                low = value + b"\x00"
        found.append(Range(low, last))
    return found


def _of_type(encoded: bytes) -> tuple[bytes, bytes]:
    """Return the range of all encodings of the JSON type of one."""
    if encoded in (_FALSE, _TRUE):
        return _FALSE, _NUMBER
    return encoded[:1], bytes([encoded[0] + 1])


def _with_integers(value: Json) -> Json:
    """Return a value in which every number that is an integer is written as one."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_integers(item) for key, item in value.items()}
    return value


def _encode_number(value: int | float) -> bytes:
    """Return bytes that sort as numbers do: sign, binary exponent, then the bits of the mantissa.

    The bits are cut in groups of seven; a group is stored as 1..128, so that a shorter mantissa,
    being the smaller one, sorts first. A negative number is the complement of its absolute value
    with an end mark above every group.
    """
    if value == 0:
        return _ZERO
    if isinstance(value, int):
        mantissa, exponent = abs(value), abs(value).bit_length()
    else:
        numerator, denominator = abs(value).as_integer_ratio()
        mantissa = numerator
        exponent = numerator.bit_length() - denominator.bit_length() + 1
    mantissa >>= (mantissa & -mantissa).bit_length() - 1  # 12 and 12.0 have one mantissa
    bits = mantissa.bit_length()
    count = -(-bits // 7)
    mantissa <<= count * 7 - bits
    groups = bytes(1 + (mantissa >> 7 * i & 127) for i in range(count - 1, -1, -1))
    encoded = (exponent + 2**31).to_bytes(4, "big") + groups
    if value > 0:
        return _POSITIVE + encoded
    return _NEGATIVE + bytes(255 - byte for byte in encoded) + b"\xff"
