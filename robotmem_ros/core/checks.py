# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Check single values of a request; each function names the field that is wrong."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from enum import Enum
from typing import NoReturn, TypeVar

from robotmem_ros.core.errors import InvalidRequestError

MAX_NAME = 256
"""Longest name of a collection, an episode or a frame, in bytes of UTF-8."""

_MAX_TIME = 2**63 - 1

_Choice = TypeVar("_Choice", bound=Enum)
_Kind = TypeVar("_Kind")


def text(field: str, value: str) -> str:
    """Return a text as it is.

    Raises
    ------
    InvalidRequestError: it is of another type.
    """
    if not isinstance(value, str):
        _refuse_type(field, "text", value)
    return value


def clean(field: str, value: str, max_bytes: int = MAX_NAME) -> str:
    """Return text without white space around it.

    Raises
    ------
    InvalidRequestError: it is too long, or holds what cannot be stored.
    """
    try:
        size = len(text(field, value).encode())
    except UnicodeEncodeError:
        raise InvalidRequestError(field, "holds half of a surrogate pair; send UTF-8") from None
    if size > max_bytes:
        raise InvalidRequestError(field, f"has {size} bytes; at most {max_bytes} are allowed")
    if "\x00" in value:
        raise InvalidRequestError(field, "holds a NUL character; remove it")
    return value.strip()


def choice(field: str, kind: type[_Choice], value: object) -> _Choice:
    """Return a member of an enumeration, which may be given by its value.

    Raises
    ------
    InvalidRequestError: it is none.
    """
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(str(member.value) for member in kind)
        raise InvalidRequestError(
            field, f"{str(value)[:100]!r} is not allowed; it must be one of {allowed}"
        ) from None


def instance(field: str, kind: type[_Kind], value: object) -> _Kind:
    """Return an object of a class.

    Raises
    ------
    InvalidRequestError: it is of another.
    """
    if not isinstance(value, kind):
        _refuse_type(field, f"a {kind.__name__}", value)
    return value


def several(field: str, values: Iterable[_Kind]) -> list[_Kind]:
    """Return what an iterable yields.

    Raises
    ------
    InvalidRequestError: it is none, or a text.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        _refuse_type(field, "a list", values)
    return list(values)


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


def limit(field: str, value: int) -> int:
    """Return how many at most: 0 for a negative number, and no more than the store can count.

    Raises
    ------
    InvalidRequestError: it is no integer.
    """
    return min(max(0, integer(field, value)), _MAX_TIME)


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
        raise InvalidRequestError(field, f"{shown(nanoseconds)} ns is no time")
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
    given = several(field, values)
    if len(given) != count:
        raise InvalidRequestError(field, f"has {len(given)} coordinates, not {count}")
    found = tuple(number(field, value) for value in given)
    if not all(map(math.isfinite, found)):
        raise InvalidRequestError(field, "has a coordinate that is not finite")
    return found


def shown(value: int) -> str:
    """Return an integer in digits, unless it has more than anybody reads."""
    return str(value) if abs(value) < 10**30 else f"a number of {value.bit_length()} bits"


def _refuse_type(field: str, wanted: str, value: object) -> NoReturn:
    raise InvalidRequestError(field, f"must be {wanted}, not {type(value).__name__}")
