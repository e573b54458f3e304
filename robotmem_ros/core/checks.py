# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Check single values of a request; each function names the field that is wrong."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import NoReturn

from robotmem_ros.core.errors import InvalidRequestError

MAX_NAME = 256
"""Longest name of a collection, an episode or a frame, in bytes of UTF-8."""

_MAX_TIME = 2**63 - 1


def clean(field: str, text: str, max_bytes: int = MAX_NAME) -> str:
    """Return text without white space around it.

    Raises
    ------
    InvalidRequestError: it is too long, or holds what cannot be stored.
    """
    if not isinstance(text, str):
        _refuse_type(field, "text", text)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidRequestError(field, "holds half of a surrogate pair; send UTF-8") from None
    if size > max_bytes:
        raise InvalidRequestError(field, f"has {size} bytes; at most {max_bytes} are allowed")
    if "\x00" in text:
        raise InvalidRequestError(field, "holds a NUL character; remove it")
    return text.strip()


def integer(field: str, value: int) -> int:
    """Return an integer.

    Raises
    ------
    InvalidRequestError: it is none; true, 1.0 and "1" are none.
    """
    try:
        if not isinstance(value, bool):
            return operator.index(value)  # those of numpy are integers too
    except TypeError:
        pass
    _refuse_type(field, "an integer", value)


def number(field: str, value: float) -> float:
    """Return a number, which may be infinite or none at all (NaN).

    Raises
    ------
    InvalidRequestError: it is of another type, or greater than any double.
    """
    try:
        if not isinstance(value, (bool, str, bytes)):
            return float(value)
    except TypeError:
        pass
    except OverflowError:
        raise InvalidRequestError(field, "is larger than any double") from None
    _refuse_type(field, "a number", value)


def share(field: str, value: float) -> float:
    """Return a number from 0 to 1.

    Raises
    ------
    InvalidRequestError: it is not.
    """
    if not 0.0 <= number(field, value) <= 1.0:
        raise InvalidRequestError(field, f"{value} is not allowed; it must be from 0 to 1")
    return float(value)


def time(field: str, nanoseconds: int) -> int:
    """Return a time; 0 means that none was given.

    Raises
    ------
    InvalidRequestError: it is negative, or greater than can be stored.
    """
    nanoseconds = integer(field, nanoseconds)
    if not 0 <= nanoseconds <= _MAX_TIME:
        raise InvalidRequestError(field, f"{_shown(nanoseconds)} ns is no time")
    return nanoseconds


def frame(field: str, frame_id: str) -> str:
    """Return the name of a frame.

    Raises
    ------
    InvalidRequestError: it is empty, or no name.
    """
    if not clean(field, frame_id):
        raise InvalidRequestError(field, 'header.frame_id is empty; name a frame like "map"')
    return frame_id


def coordinates(field: str, values: Iterable[float], count: int) -> tuple[float, ...]:
    """Return so many coordinates.

    Raises
    ------
    InvalidRequestError: they are more or fewer, or one of them is no finite number.
    """
    try:
        given = tuple(values)
    except TypeError:
        _refuse_type(field, f"{count} coordinates", values)
    if len(given) != count:
        raise InvalidRequestError(field, f"has {len(given)} coordinates, not {count}")
    found = tuple(number(field, value) for value in given)
    if not all(map(math.isfinite, found)):
        raise InvalidRequestError(field, "has a coordinate that is not finite")
    return found


def _refuse_type(field: str, wanted: str, value: object) -> NoReturn:
    raise InvalidRequestError(field, f"must be {wanted}, not {type(value).__name__}")


def _shown(value: int) -> str:
    """Return an integer in digits, unless it has more than anybody reads."""
    return str(value) if abs(value) < 10**30 else f"a number of {value.bit_length()} bits"
