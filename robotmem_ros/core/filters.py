# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The conditions a recalled memory must meet: read them from a request, and decide them.

`Conditions` is what a store must honour inside its search; the functions here that decide a
condition on one memory are its meaning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from robotmem_ros.core import checks
from robotmem_ros.core import context as ctx
from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.model import Json, Near

OPERATORS = ("$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$in", "$nin", "$exists")

NANOSECONDS_PER_DAY = 86_400 * 10**9

_MAX_TESTS = 64


@dataclass(frozen=True, slots=True)
class Test:
    """One condition on the value at one path of a context.

    Attributes
    ----------
    types, scalars: of the items of an $in or $nin: their types, and those that are neither arrays
        nor objects, each with its type. Deciding one memory does not walk through them all.
    """

    path: ctx.Path
    operator: str
    operand: Json
    types: frozenset[str] = field(init=False, repr=False, compare=False)
    scalars: frozenset[tuple[str, Json]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        items = self.operand if self.operator in ("$in", "$nin") else ()
        scalars = (item for item in items if not isinstance(item, (list, dict)))
        object.__setattr__(self, "types", frozenset(map(kind, items)))
        object.__setattr__(self, "scalars", frozenset((kind(item), item) for item in scalars))

    def names(self, value: Json) -> bool:
        """Return whether a value is one of the items of an $in or $nin."""
        if isinstance(value, (list, dict)):
            return any(same(value, item) for item in self.operand)
        return (kind(value), value) in self.scalars


@dataclass(frozen=True, slots=True)
class Place:
    """A point that distances are measured from.

    Attributes
    ----------
    frame_id: measure to the memory's own pose, if it is in this frame; None measures to a field.
    path: the coordinate array in the context to measure to.
    target: coordinates in metres.
    max_distance: greatest distance that counts, in metres; infinity means any.
    """

    frame_id: str | None
    path: ctx.Path
    target: tuple[float, ...]
    max_distance: float


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a memory must meet to be part of an answer.

    Attributes
    ----------
    collection, session_id: its collection and episode; None means any.
    other_than_session: it must be of another episode than this one; None means any or none.
    since, until: bounds of its stamp, both included, ROS time in nanoseconds; 0 means open.
    min_confidence: least effective confidence.
    decay_rate, wall_time: what the effective confidence is computed from.
    alive_at: ROS time in nanoseconds at which it must not be expired; None takes expired ones too.
    tests: conditions on its context.
    place: it must have a position there, near enough.
    """

    collection: str | None = None
    session_id: str | None = None
    since: int = 0
    until: int = 0
    min_confidence: float = 0.0
    decay_rate: float = 0.0
    wall_time: int = 0
    alive_at: int | None = None
    tests: tuple[Test, ...] = ()
    place: Place | None = None
    other_than_session: str | None = None

    @property
    def narrow(self) -> bool:
        """Whether the request asked for more than the defaults."""
        return bool(
            self.session_id is not None or self.since or self.until or self.tests or self.place
        )


def effective_confidence(
    confidence: float, decay_rate: float, last_access: int, now: int
) -> float:
    """Return confidence * (1 - decay_rate) ^ (whole days between two wall times).

    Whole days, so that a memory learned with 0.9 is found with min_confidence 0.9 all day long.
    """
    days = max(0, now - last_access) // NANOSECONDS_PER_DAY
    return float(confidence * (1.0 - decay_rate) ** days)


def parse_context_filter(
    value: str | Mapping[str, Json], max_bytes: int, max_depth: int
) -> tuple[Test, ...]:
    """Return the conditions of a context_filter, all of which must hold.

    Raises
    ------
    InvalidRequestError: malformed JSON, an unknown operator or an operand it cannot take.
    """
    field = "context_filter"
    tests: list[Test] = []
    for key, wanted in ctx.read_object(field, value, max_bytes, max_depth).items():
        if key.startswith("$"):
            raise InvalidRequestError(
                field,
                f"{key!r} stands where a path belongs; all conditions are AND-ed as they are",
            )
        path = ctx.parse_path(field, key)
        if not (isinstance(wanted, dict) and any(name.startswith("$") for name in wanted)):
            tests.append(Test(path, "$eq", wanted))
            continue
        for operator, operand in wanted.items():
            _check_operator(field, key, operator, operand)
            tests.append(Test(path, operator, operand))
    if len(tests) > _MAX_TESTS:
        raise InvalidRequestError(field, f"has {len(tests)} conditions; at most {_MAX_TESTS} work")
    return tuple(tests)


def parse_spatial_sort(
    value: str | Mapping[str, Json], max_bytes: int, max_depth: int
) -> Place | None:
    """Return the place a spatial_sort measures from, None for an empty one.

    Raises
    ------
    InvalidRequestError: malformed JSON, a key that is missing, unknown or of the wrong type.
    """
    name = "spatial_sort"
    fields = ctx.read_object(name, value, max_bytes, max_depth)
    if not fields:
        return None
    unknown = set(fields) - {"field", "target", "max_distance"}
    if unknown:
        raise InvalidRequestError(
            name, f"does not know {min(unknown)!r}; it takes field, target and max_distance"
        )
    if not isinstance(fields.get("field"), str):
        raise InvalidRequestError(name, 'field must be a path like "spatial.object_position"')
    target = ctx.coordinates(fields.get("target"))
    if target is None:
        raise InvalidRequestError(name, "target must be an array of numbers in metres")
    reach: tuple[float, ...] | None = (math.inf,)
    if fields.get("max_distance") is not None:
        reach = ctx.coordinates([fields["max_distance"]])
    if reach is None or reach[0] < 0:
        raise InvalidRequestError(name, "max_distance must be a number of metres, 0 or more")
    return Place(None, ctx.parse_path(name, fields["field"]), target, reach[0])


def place_near(near: Near) -> Place:
    """Return the place that `near` measures from.

    Raises
    ------
    InvalidRequestError: no frame, a coordinate that is not finite, a negative radius.
    """
    checks.instance("near", Near, near)
    point = checks.coordinates("near", near.point, 3)
    radius = checks.number("near_radius", near.radius)
    if not radius >= 0:
        raise InvalidRequestError("near_radius", "must be 0 (any distance) or more, in metres")
    return Place(checks.frame("near", near.frame_id), (), point, radius or math.inf)


def meets_tests(context: Json, tests: Sequence[Test]) -> bool:
    """Return whether all conditions hold for a context."""
    return all(_meets(context, test) for test in tests)


def distance(here: Sequence[float], there: Sequence[float]) -> float:
    """Return the Euclidean distance of two points of the same dimension."""
    return math.dist(here, there)


def distance_to_field(context: Json, place: Place) -> float | None:
    """Return the distance in metres from a place to the field of a context it measures to.

    None where the field is missing, no coordinates, or of another dimension.
    """
    for value in ctx.lookup(context, place.path):
        point = ctx.coordinates(value)
        if point is not None and len(point) == len(place.target):
            return distance(point, place.target)
    return None


def same(left: Json, right: Json) -> bool:
    """Return whether two JSON values are equal, with strict types: true is not 1, but 1.0 is."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == right
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def kind(value: Json) -> str:
    """Return the JSON type of a value; integers and other numbers are one type."""
    return ctx.type_name(value)


def _check_operator(field: str, path: str, operator: str, operand: Json) -> None:
    if operator not in OPERATORS:
        problem = (
            "does not know the operator" if operator.startswith("$") else "mixes operators with"
        )
        raise InvalidRequestError(
            field, f"{path!r} {problem} {operator!r}; there are {' '.join(OPERATORS)}"
        )
    if operator in ("$in", "$nin") and not isinstance(operand, list):
        raise InvalidRequestError(field, f"{path!r}: {operator} takes an array")
    if operator == "$exists" and not isinstance(operand, bool):
        raise InvalidRequestError(field, f"{path!r}: $exists takes true or false")
    if operator in ("$lt", "$lte", "$gt", "$gte") and kind(operand) not in (
        "a number",
        "a string",
    ):
        raise InvalidRequestError(
            field, f"{path!r}: {operator} takes a number or a string, not {kind(operand)}"
        )


def _meets(context: Json, test: Test) -> bool:
    found = list(ctx.lookup(context, test.path))
    if test.operator == "$exists":
        return bool(found) is test.operand
    if not found:
        return False
    value, operand = found[0], test.operand
    if test.operator == "$in":
        return test.names(value)
    if test.operator == "$nin":
        # Like $ne, only values of a type that was named are compared at all.
        comparable = not operand or kind(value) in test.types
        return comparable and not test.names(value)
    if kind(value) != kind(operand):
        return False
    if test.operator == "$eq":
        return same(value, operand)
    if test.operator == "$ne":
        return not same(value, operand)
    if test.operator == "$lt":
        return bool(value < operand)
    if test.operator == "$lte":
        return bool(value <= operand)
    if test.operator == "$gt":
        return bool(value > operand)
    return bool(value >= operand)
