# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Random memories, changes and queries, made to collide: few words, few values, many ties.

All comes from a seed: the same seed with a smaller number of changes or queries gives the first of
them, so that a failure can be made small.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from reference import DAY, Condition, Entry, Path, Sort, json_type

from robotmem_ros.core.model import Fusion, Near, Pose, Query

DIMENSION = 16
WALL_TIME = 2000 * DAY + 12345
ROS_TIME = 10

_LATIN = "grasp grasping cup cups red door drawer the not don't kitchen joint Müller Robot Arm AND"
_CODES = "dock-3 12.5 12.5N grip_force Lab-2 PN-40117-B E-217 5 kg 3 @nasa 50% ( * 'blue box'"
_OTHERS = (
    "НЕТ дверь ロボット ロボットが 로봇 로봇이 🤖 抓取杯子 杯子 设备清单 设备 充电站 在厨房 的"
)
WORDS = [word for words in (_LATIN, _CODES, _OTHERS) for word in words.split(" ")]

SCALARS: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 10, 20, 0.0, 1.0, 0.1, 12.5, -2.5, 1e300, 5e-324),
    *(2**53, 2**53 + 1, float(2**53), -(2**53) - 1, 10**30, 10**30 + 1, 1e30, 10**400),
    *("", "1", "true", "real", "sim", "a", "a\x00", "ab", "b", "Blue Box", "dock-3", "杯子", "🤖"),
]
KEYS = ["success", "name", "p", "value", "0", "1", "a.b", 'q"t', "", "[", "$eq", "é"]
SECTIONS = ["params", "spatial", "robot", "task", "env", "x", "a.b"]
NUMBERS = [0, 0, 0.5, 1, 1.0, 1.3, -2, 0.7, 100]

Change = tuple[Any, ...]


@dataclass(frozen=True)
class Asked:
    """A query as it is sent, what its JSON means, and which of QUERY_VECTORS it has."""

    query: Query
    conditions: list[Condition]
    sort: Sort | None
    vector: int | None


def _exact_vector(source: random.Random) -> np.ndarray:
    """Return an integer vector of length 16 or 64: its cosines have no rounding at all.

    Any integer is a sum of four squares, so the last four coordinates can complete the length.
    """
    length = source.choice((16, 64))
    while True:
        first = [source.randint(-length // 4, length // 4) for _ in range(DIMENSION - 4)]
        rest = length**2 - sum(x * x for x in first)
        if rest < 0:
            continue
        a, b, c = next(
            (a, b, c)
            for a, b, c in itertools.product(range(math.isqrt(rest) + 1), repeat=3)
            if (left := rest - a * a - b * b - c * c) >= 0 and math.isqrt(left) ** 2 == left
        )
        last = (a, b, c, math.isqrt(rest - a * a - b * b - c * c))
        return np.array([*first, *(x * source.choice((-1, 1)) for x in last)], np.float32)


_VECTOR_SOURCE = random.Random(7)
VECTORS = [_exact_vector(_VECTOR_SOURCE) for _ in range(24)]
QUERY_VECTORS = [*VECTORS[:4], *(_exact_vector(_VECTOR_SOURCE) for _ in range(8)), -VECTORS[0]]


class Maker:
    """Makes what happens to one store, and what it is asked."""

    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)
        self._seed = seed
        self._texts = [self._text() for _ in range(10)]
        self._contexts = [self._context() for _ in range(8)]
        self._places = [places for item in self._contexts if (places := list(_walk(item)))]

    def changes(self, number: int) -> list[Change]:
        """Return what happens first."""
        self._source = random.Random(f"{self._seed} changes")
        return [self._change() for _ in range(number)]

    def queries(self, number: int) -> list[Asked]:
        """Return what is asked first."""
        self._source = random.Random(f"{self._seed} queries")
        return [self._asked() for _ in range(number)]

    def _one_of(self, *choices: Any) -> Any:
        return self._source.choice(choices)

    def _mostly(self, usual: Any, *others: Any, chance: float = 0.2) -> Any:
        return self._source.choice(others) if self._source.random() < chance else usual

    def _text(self) -> str:
        return " ".join(self._source.choices(WORDS, k=self._source.randint(1, 6)))

    def _value(self, depth: int = 0) -> Any:
        kind = self._source.random()
        if kind < 0.7 or depth == 3:
            return self._source.choice(SCALARS)
        number = self._source.randint(0, 3)
        if kind < 0.85:
            return [self._value(depth + 1) for _ in range(number)]
        return {self._source.choice(KEYS): self._value(depth + 1) for _ in range(number)}

    def _coordinates(self) -> Any:
        kind = self._source.random()
        if kind < 0.6:
            return self._source.choices(NUMBERS, k=3)
        if kind < 0.8:
            return self._source.choices(NUMBERS, k=self._source.randint(1, 4))
        if kind < 0.95:
            return self._source.choices([*NUMBERS, *SCALARS], k=self._source.randint(0, 4))
        return self._source.choice(SCALARS)

    def _context(self) -> dict[str, Any]:
        context: dict[str, Any] = {}
        if self._source.random() < 0.6:
            context["spatial"] = {"p": self._coordinates(), "q": self._coordinates()}
            context["spatial"]["list"] = [self._coordinates(), self._coordinates()]
        if self._source.random() < 0.5:
            context["params"] = {"p": self._coordinates(), "value": self._value()}
        if self._source.random() < 0.5:
            context["env"] = {"sim_or_real": self._one_of("real", "real", "sim", True, ["real"])}
        if self._source.random() < 0.5:
            context["task"] = {"success": self._one_of(True, False, 1), "name": self._value()}
        if self._source.random() < 0.3:
            context["robot"] = {"id": self._one_of("Robot", "dock-3", "Blue Box", 3)}
        if self._source.random() < 0.4:
            context[self._source.choice(SECTIONS)] = self._value()
        if self._source.random() < 0.1:  # elements that the index of attributes does not take
            context["x"] = self._source.choices(SCALARS, k=20)
        elif self._source.random() < 0.15:  # more values than it takes of one context
            context["x"] = {key: self._source.choice(SCALARS) for key in KEYS}
            context["x"].update({f"filler {i}": i for i in range(260)})
        return context

    def _point(self) -> tuple[float, float, float]:
        x, y, z = self._source.choices(NUMBERS, k=3)
        return float(x), float(y), float(z)

    def _entry(self) -> Entry:
        days = self._mostly(0, 1, 10, 50, 120)
        return Entry(
            id=0,
            content=self._mostly(self._source.choice(self._texts), self._text()),
            context=self._mostly(self._source.choice(self._contexts), {}, self._context()),
            collection=self._mostly("default", "c2", "c3"),
            session_id=self._one_of("", "s1", "s1", "s2"),
            confidence=self._mostly(0.9, 0.3, 0.29, 1.0, 0.0, 0.5, chance=0.4),
            stamp=self._source.randint(1, 20),
            pose=self._one_of(
                None,
                Pose("map", self._point()),
                Pose("map", self._point()),
                Pose("odom", self._point()),
            ),
            expires=self._mostly(0, ROS_TIME - 1, ROS_TIME, ROS_TIME + 1),
            last_access=WALL_TIME - days * DAY,
        )

    def _change(self) -> Change:
        kind = self._mostly("learn", "update", "forget", "supersede", chance=0.25)
        number = self._source.randint(0, 99)
        if kind == "learn":
            few = self._source.randrange(4)  # many memories share a vector
            any_vector = self._source.randrange(len(VECTORS))
            return kind, self._entry(), self._one_of(any_vector, any_vector, any_vector, few, None)
        if kind == "update":
            text = self._one_of(None, self._source.choice(self._texts))
            return kind, number, text, self._one_of(None, self._source.choice(self._contexts))
        return kind, number

    def _steps(self, path: Path) -> str:
        """Return a path as text, in one of the ways to write it."""
        text = ""
        for key in path:
            plain = isinstance(key, str) and key and not set('."[]') & set(key)
            if not plain or self._source.random() < 0.2:
                text += f"[{json.dumps(key, ensure_ascii=self._one_of(True, False))}]"
            else:
                text += f".{key}" if text else key
        return text

    def _tests(self) -> tuple[Path, list[tuple[str, Any]]]:
        """Return a path and conditions on it, more often than not of something that is stored."""
        if not self._places or self._source.random() < 0.1:
            path: Path = tuple(self._source.choices([*SECTIONS, *KEYS, 0, 1, 2], k=3))
            value = self._value()
        else:
            path, value = self._source.choice(self._source.choice(self._places))
            # An index may be written as a plain key too.
            path = tuple(self._mostly(key, str(key)) for key in path)
        if isinstance(path[0], int) or path[0].startswith("$"):
            path = ("x", *path)
        alike = [other for other in SCALARS if json_type(other) == json_type(value)] or [value]
        names = ["$eq", "$ne", "$exists", "$in", "$nin"]
        if json_type(value) in ("number", "string"):
            names += ["$lt", "$lte", "$gt", "$gte"]
        tests = []
        for name in self._source.sample(names, self._one_of(1, 1, 2)):
            operand = self._mostly(value, self._source.choice(alike), chance=0.4)
            if name == "$exists":
                operand = self._mostly(True, False)
            elif name in ("$in", "$nin"):
                some = [value, self._source.choice(alike), self._value()]
                operand = self._source.sample(some, self._source.randint(0, 3))
            elif name in ("$eq", "$ne"):
                operand = self._mostly(operand, self._value())
            tests.append((name, operand))
        return path, tests

    def _as_json(self, tests: list[tuple[str, Any]]) -> Any:
        name, operand = tests[0]
        ambiguous = isinstance(operand, dict) and any(key.startswith("$") for key in operand)
        if len(tests) == 1 and name == "$eq" and not ambiguous:
            return self._one_of(operand, {name: operand})
        return dict(tests)

    def _sort(self) -> Sort:
        return Sort(
            self._one_of(
                *(("spatial", "p"), ("spatial", "p"), ("spatial", "q"), ("params", "p")),
                *(("spatial", "list", 0), ("spatial", "list", "1")),
            ),
            self._mostly(list(self._point()), self._source.choices(NUMBERS, k=2)),
            self._one_of(math.inf, math.inf, 0.0, 0.5, 1.0, 3.0),
        )

    def _asked(self) -> Asked:
        """Return a query; most have at most one restriction, some have many."""
        chance = self._one_of(0.05, 0.05, 0.1, 0.5)
        query = Query(
            text=self._mostly(self._text(), "*"),
            n=self._one_of(1, 2, 3, 5, 5, 10, 100),
            min_confidence=self._mostly(0.0, 0.3, 0.5, 0.9, chance=chance * 2),
            session_id=self._mostly("", "s1", "s1", "s2", "s9", chance=chance),
            collection=self._mostly("*", "", "", "c2", "c9", chance=0.4),
            since=self._mostly(0, 5, 10, chance=chance),
            until=self._mostly(0, 10, 15, chance=chance),
            fusion=self._one_of(None, *Fusion),
            show_expired=self._one_of(True, False),
            explain=self._one_of(True, False),
            exact=self._one_of(None, False, True),
        )
        written: dict[str, tuple[Path, list[tuple[str, Any]]]] = {}
        for _ in range(self._mostly(0, 1, 1, 1, 2, chance=max(0.3, chance))):
            path, tests = self._tests()
            written[self._steps(path)] = path, tests
        conditions = [
            Condition(path, name, operand)
            for path, tests in written.values()
            for name, operand in tests
        ]
        if written:
            wanted = {text: self._as_json(tests) for text, (_, tests) in written.items()}
            query = replace(query, context_filter=self._one_of(wanted, json.dumps(wanted)))
        sort = None
        if self._source.random() < max(0.2, chance):
            if self._source.random() < 0.4:
                near = Near(
                    self._mostly("map", "odom", "nowhere"),
                    self._point(),
                    self._one_of(0.0, 0.0, 0.5, 1.0, 3.0),
                )
                query = replace(query, near=near)
            else:
                sort = self._sort()
                place = {"field": self._steps(sort.path), "target": sort.target}
                if sort.max_distance != math.inf:
                    place["max_distance"] = sort.max_distance
                query = replace(query, spatial_sort=json.dumps(place))
        vector = self._mostly(self._source.randrange(len(QUERY_VECTORS)), None)
        return Asked(query, conditions, sort, vector)


def _walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in itertools.islice(inner, 20):
        yield (*path, key), item
        if isinstance(item, (dict, list)):
            yield from _walk(item, (*path, key))
