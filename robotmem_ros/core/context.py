# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The JSON object stored with a memory: read it strictly, write it in one form, walk through it.

A place in a context is a path: a tuple of object keys (str) and array indexes (int). In text it is
written with dots, array indexes in brackets or as plain numbers, and keys that hold a dot, a
bracket, a quote or nothing at all as JSON strings in brackets:

    task.success    steps[0].name    steps.0.name    params["grip.force"].value
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import NoReturn

from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.model import Json

Path = tuple[str | int, ...]

SECTIONS = ("params", "spatial", "robot", "task", "env")
"""Top-level keys of a context that come back as fields of a memory."""


def read_object(
    field: str, value: str | Mapping[str, Json], max_bytes: int, max_depth: int
) -> dict[str, Json]:
    """Return the JSON object in value, which is text or already parsed; {} for empty text.

    Raises
    ------
    InvalidRequestError: not JSON, not an object, too large, too deep, or with a number that JSON
        does not know (NaN, infinity).
    """
    parsed = read_json(field, value, max_bytes, max_depth)
    if parsed is None:
        return {}
    if not isinstance(parsed, dict):
        kind = type_name(parsed)
        raise InvalidRequestError(field, f'must be a JSON object like {{"key": 1}}, not {kind}')
    return parsed


def read_json(field: str, value: Json, max_bytes: int, max_depth: int) -> Json:
    """Return the JSON value in text, or a checked copy of one already parsed; None for "".

    Raises
    ------
    InvalidRequestError: as read_object.
    """
    if isinstance(value, str):
        if not value.strip():
            return None
        text = value
    else:
        text = _serialise(field, value)
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > max_bytes:
        raise InvalidRequestError(field, f"has {size} bytes; at most {max_bytes} are allowed")
    if _depth(text) > max_depth:
        raise InvalidRequestError(field, f"is nested deeper than {max_depth} levels")
    try:
        parsed = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except ValueError as error:
        raise InvalidRequestError(field, f"is not valid JSON: {error}") from None
    try:
        write(parsed).encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(field, "holds half of a surrogate pair in a string") from None
    except ValueError as error:  # an integer of more digits than Python prints
        raise InvalidRequestError(field, str(error)) from None
    return parsed


def write(value: Json) -> str:
    """Return value as compact JSON text with sorted keys, so that equal values give equal text."""
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )


def type_name(value: Json) -> str:
    """Return what JSON calls the type of value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"


def walk(value: Json, path: Path = (), elements: int | None = None) -> Iterator[tuple[Path, Json]]:
    """Yield every value below value with its path: objects and arrays, then what is in them.

    Parameters
    ----------
    elements: so many of each array, the first ones; None means all.
    """
    items: Iterator[tuple[str | int, Json]]
    if isinstance(value, dict):
        items = iter(value.items())
    elif isinstance(value, list):
        items = enumerate(itertools.islice(value, elements))
    else:
        return
    for key, item in items:
        inner = (*path, key)
        yield inner, item
        if isinstance(item, (dict, list)):
            yield from walk(item, inner, elements)


def parse_path(field: str, text: str) -> Path:
    """Return the path written in text; a plain number stands as the key "0" in it, not as 0.

    Raises
    ------
    InvalidRequestError: the text is not a path.
    """

    def refuse(problem: str) -> NoReturn:
        raise InvalidRequestError(
            field, f'{text!r} is not a path ({problem}); write a.b, a[0].b or a["b.c"]'
        )

    path: list[str | int] = []
    rest = text
    while rest or not path:
        if rest.startswith("["):
            try:
                key, end = json.JSONDecoder().raw_decode(rest, 1)
            except ValueError:
                refuse("no number or quoted key in the brackets")
            if type(key) not in (str, int) or (type(key) is int and key < 0):
                refuse("no number or quoted key in the brackets")
            if isinstance(key, str) and any("\ud800" <= char <= "\udfff" for char in key):
                refuse("a key holds half of a surrogate pair")
            if rest[end : end + 1] != "]":
                refuse("a bracket is not closed")
            path.append(key)
            rest = rest[end + 1 :]
        else:
            if path:
                if not rest.startswith("."):
                    refuse("a dot is missing after a bracket")
                rest = rest[1:]
            end = min((i for i in (rest.find("."), rest.find("[")) if i >= 0), default=len(rest))
            if end == 0:
                refuse("a key is empty")
            path.append(rest[:end])
            rest = rest[end:]
    return tuple(path)


def lookup(context: Json, path: Path) -> Iterator[Json]:
    """Yield the value at path, if there is one.

    A key that is a plain number finds the key of an object or the element of an array.
    """
    value = context
    for key in path:
        if isinstance(value, dict) and isinstance(key, str) and key in value:
            value = value[key]
        elif isinstance(value, list) and (index := array_index(key)) is not None:
            if index >= len(value):
                return
            value = value[index]
        else:
            return
    yield value


def array_index(key: str | int) -> int | None:
    """Return the array index that a key of a path can mean, if any."""
    if isinstance(key, int):
        return key
    if key.isascii() and key.isdigit() and len(key) < 10 and (key == "0" or key[0] != "0"):
        return int(key)
    return None


def coordinates(value: Json) -> tuple[float, ...] | None:
    """Return value as coordinates if it is an array of one or more finite numbers, else None."""
    if not isinstance(value, list) or not value:
        return None
    numbers = []
    for item in value:
        if type(item) not in (int, float):
            return None
        try:
            number = float(item)
        except OverflowError:
            return None
        if not math.isfinite(number):
            return None
        numbers.append(number)
    return tuple(numbers)


def _serialise(field: str, value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequestError(field, f"is not valid JSON: {error}") from None


def _depth(text: str) -> int:
    """Return how deep brackets are nested in JSON text, without building anything.

    The parser is recursive; this keeps it from the recursion limit.
    """
    depth = deepest = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is larger than any double")
    return number
