# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Check single values of a request; each function names the field that is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable

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
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidRequestError(field, "holds half of a surrogate pair; send UTF-8") from None
    if size > max_bytes:
        raise InvalidRequestError(field, f"has {size} bytes; at most {max_bytes} are allowed")
    if "\x00" in text:
        raise InvalidRequestError(field, "holds a NUL character; remove it")
    return text.strip()


def time(field: str, nanoseconds: int) -> int:
    """Return a time; 0 means that none was given.

    Raises
    ------
    InvalidRequestError: it is negative, or greater than can be stored.
    """
    if not 0 <= nanoseconds <= _MAX_TIME:
        raise InvalidRequestError(field, f"{nanoseconds} ns is no time")
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


def finite(field: str, coordinates: Iterable[float]) -> None:
    """Refuse coordinates that are not all finite.

    Raises
    ------
    InvalidRequestError: one of them is not.
    """
    if not all(map(math.isfinite, coordinates)):
        raise InvalidRequestError(field, "has a coordinate that is not finite")
