# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Rules like "spatial.position = pose.pose.position": checked on a message type, read on messages.

Left of the = stands a path in the context of a memory, right of it a field of the message, with
[i] for an element of an array. A rule is checked once, on the names of types, and then read on
any object with such attributes: a message of rclpy or one that was read from a bag.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from robotmem_ros.core.context import SECTIONS
from robotmem_ros.core.errors import ConfigError
from robotmem_ros.core.model import Json

Target = tuple[str, ...]
"""Keys of a context, from the outside in."""

Describe = Callable[[str], Mapping[str, str]]
"""Returns the fields of a message type, with their types as ROS writes them (double, double[36],
sequence<std_msgs/Header>), and its constants, with the type CONSTANT. Raises LookupError where
the type is not known."""

CONSTANT = "constant"

PROVENANCE = "ros"
"""Top-level key of a context that tells where captured values came from; no rule may write it."""

SHAPES = {("x", "y", "z"), ("x", "y", "z", "w"), ("sec", "nanosec")}
"""Fields of messages that are one value: points and vectors, quaternions, times and durations."""

_TARGET = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*", re.ASCII)
_SOURCE = re.compile(r"[A-Za-z]\w*(\[\d{1,9}\])*(\.[A-Za-z]\w*(\[\d{1,9}\])*)*", re.ASCII)
_STEP = re.compile(r"(\w+)|\[(\d+)\]", re.ASCII)
_SEQUENCE = re.compile(r"sequence<(.+?)(?:, *(\d+))?>")
_ARRAY = re.compile(r"(.+)\[(\d+)\]")


class LeftOutError(Exception):
    """A field has no value that can be kept; the text is one of the reasons below."""


NOT_FINITE = "not_finite"
TOO_LONG = "too_long"
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, parsed.

    Attributes
    ----------
    text: as it was written.
    target: keys in the context.
    source: fields (str) and elements (int) of the message.
    get: takes what source names out of a message.
    """

    text: str
    target: Target
    source: tuple[str | int, ...]
    get: Callable[[Any], Any] = field(compare=False, repr=False)


def parse(parameter: str, text: str) -> Rule:
    """Return the rule written in text.

    Raises
    ------
    ConfigError: it is no rule, or its target is not allowed.
    """
    target, equals, source = (part.strip() for part in text.partition("="))
    if not equals:
        _refuse(parameter, text, 'there is no =; write "spatial.position = pose.pose.position"')
    if not _TARGET.fullmatch(target):
        _refuse(parameter, text, f"{target!r} is not a path in a context; write a.b.c")
    keys = tuple(target.split("."))
    if keys[0] == PROVENANCE:
        _refuse(parameter, text, f"{PROVENANCE} is where the node says what it captured from")
    if len(keys) == 1 and keys[0] in SECTIONS:
        _refuse(parameter, text, f"{target} holds named values; write {target}.NAME")
    if not _SOURCE.fullmatch(source):
        _refuse(parameter, text, f"{source!r} is not a field of a message; write a.b or a.b[0]")
    steps = tuple(name or int(index) for name, index in _STEP.findall(source))
    return Rule(text, keys, steps, _getter(steps))


def check(parameter: str, rule: Rule, type_name: str, describe: Describe) -> None:
    """Check that the messages of a type have the field that a rule reads.

    Raises
    ------
    ConfigError: they have not; the text names the rule, the field, and what is there.
    """
    kind, seen = type_name, ""
    for step in rule.source:
        if isinstance(step, int):
            element, size = _element(kind)
            if not element:
                _refuse(parameter, rule.text, f"{seen} is of type {kind}, not an array")
            if size is not None and step >= size:
                _refuse(parameter, rule.text, f"{seen} has no element {step}, only {size}")
            kind, seen = element, f"{seen}[{step}]"
            continue
        if _element(kind)[0]:
            _refuse(parameter, rule.text, f"{seen} is an array; name an element: {seen}[0].{step}")
        fields = describe(kind) if "/" in kind else {}
        if step not in fields:
            where = f"{kind} has no field {step}" if "/" in kind else f"{seen} is one {kind}"
            _refuse(parameter, rule.text, where + _hint(step, fields))
        kind, seen = fields[step], f"{seen}.{step}".lstrip(".")
    inner = _element(kind)[0] or kind
    if "/" in inner and not is_shape(fields := describe(inner)):
        name = f"{seen}[0]" if inner != kind else seen
        _refuse(parameter, rule.text, f"{name} is of type {inner}" + _hint("", fields))


def check_targets(rules: Iterable[tuple[str, Rule]]) -> None:
    """Check that no two rules write the same path, or one a part of another's.

    Raises
    ------
    ConfigError: two do; the text names both.
    """
    seen: list[tuple[str, Rule]] = []
    for parameter, rule in rules:
        for other_parameter, other in seen:
            shorter = min(len(rule.target), len(other.target))
            if rule.target[:shorter] == other.target[:shorter]:
                where = f", as does {other.text!r} of parameter {other_parameter}"
                _refuse(parameter, rule.text, f"it writes {'.'.join(rule.target)}{where}")
        seen.append((parameter, rule))


def is_shape(fields: Mapping[str, str]) -> bool:
    """Return whether a message with these fields is one value, such as a point."""
    numbers = tuple(name for name, kind in fields.items() if kind != CONSTANT)
    return numbers in SHAPES and not any("/" in fields[name] for name in numbers)


def read(rule: Rule, message: Any, limit: int) -> Json:
    """Return what a rule takes from a message, as JSON; arrays and texts up to a length.

    Raises
    ------
    LeftOutError: there is no such value, or it is not finite or longer than the limit.
    """
    try:
        value = rule.get(message)
    except (AttributeError, IndexError):
        raise LeftOutError(MISSING) from None
    return plain(value, limit)


def plain(value: Any, limit: int) -> Json:
    """Return a value of a message as JSON.

    Raises
    ------
    LeftOutError: as read.
    """
    if isinstance(value, str):
        if len(value) > limit:
            raise LeftOutError(TOO_LONG)
        return value.replace("\0", "\ufffd").encode(errors="replace").decode()
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, (bytes, bytearray)) and len(value) == 1:  # what rclpy makes of an octet
        return value[0]
    if hasattr(value, "__len__"):
        if len(value) > limit:
            raise LeftOutError(TOO_LONG)
        return [plain(item, limit) for item in _items(value)]
    if hasattr(value, "nanosec"):
        return float(value.sec + value.nanosec * 1e-9)
    if hasattr(value, "x") and hasattr(value, "z"):
        names = "xyzw" if hasattr(value, "w") else "xyz"
        return [plain(getattr(value, name), limit) for name in names]
    if hasattr(value, "item"):  # a number of numpy
        return plain(value.item(), limit)
    raise LeftOutError(MISSING)


def _items(value: Any) -> Iterable[Any]:
    # numpy and array.array give numbers of Python at once.
    items: Iterable[Any] = value.tolist() if hasattr(value, "tolist") else value
    return items


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise LeftOutError(NOT_FINITE)
    return float(value)


def _getter(steps: tuple[str | int, ...]) -> Callable[[Any], Any]:
    """Return a function that follows steps; fields in a row are one call into C."""
    parts: list[Callable[[Any], Any]] = []
    names: list[str] = []
    for step in (*steps, None):
        if isinstance(step, str):
            names.append(step)
            continue
        if names:
            parts.append(operator.attrgetter(".".join(names)))
            names = []
        if step is not None:
            parts.append(operator.itemgetter(step))
    get = parts[0]
    for part in parts[1:]:
        get = _chain(get, part)
    return get


def _chain(first: Callable[[Any], Any], then: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda message: then(first(message))


def _element(kind: str) -> tuple[str, int | None]:
    """Return the type of an array's elements and its size if that is fixed; "" for no array."""
    if match := _ARRAY.fullmatch(kind):
        return match[1], int(match[2])
    if match := _SEQUENCE.fullmatch(kind):
        return match[1], int(match[2]) if match[2] else None
    return "", None


def _hint(name: str, fields: Mapping[str, str]) -> str:
    names = [n for n, kind in fields.items() if kind != CONSTANT]
    if not names:
        return " and has no fields"
    close = difflib.get_close_matches(name, fields, n=1)
    return f"; it has {', '.join(names)}" + (f"; did you mean {close[0]}?" if close else "")


def _refuse(parameter: str, rule: str, problem: str) -> NoReturn:
    raise ConfigError(f"parameter {parameter}: {rule!r}: {problem}")
