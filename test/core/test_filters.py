# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a context_filter and a spatial_sort mean, and what is said of wrong ones."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from random_stores import Maker
from reference import holds

from robotmem_ros.core import filters
from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.model import Near

CONTEXT = {
    "task": {"success": True, "name": "grasp", "steps": [{"name": "open"}, {"name": "close"}]},
    "params": {"force": {"value": 12.5, "unit": "N"}, "count": 1, "big": 2**53 + 1},
    "spatial": {"p": [1, 2, 2], "words": ["x", 1], "nothing": None},
    "a.b": {'c"d': {"": {"0": "zero"}}},
    "env": {"sim_or_real": "real"},
}


def meets(wanted: Any, context: Any = CONTEXT) -> bool:
    return filters.meets_tests(context, filters.parse_context_filter(wanted, 10_000, 32))


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"task.success": True},
        {"task.success": {"$eq": True}},
        {"task.success": True, "params.force.value": {"$gte": 10, "$lte": 20}},
        {"params.force.value": 12.5},
        {"params.force": {"unit": "N", "value": 12.5}},
        {"params.count": 1.0},
        {"params.count": {"$ne": 2}},
        {"params.count": {"$in": ["x", True, 1]}},
        {"params.count": {"$nin": [2, 3]}},
        {"params.count": {"$nin": []}},
        {"params.big": 2**53 + 1},
        {"params.big": {"$gt": 2**53}},
        {"params.big": {"$gt": float(2**53)}},
        {"task.steps[0].name": "open"},
        {"task.steps.1.name": "close"},
        {"task.steps": {"$exists": True}},
        {"task.steps[2]": {"$exists": False}},
        {"task.nothing": {"$exists": False}},
        {"spatial.nothing": None},
        {"spatial.nothing": {"$exists": True}},
        {"spatial.p": [1.0, 2, 2]},
        {"spatial.p": {"$ne": [1, 2]}},
        {"spatial.words[0]": {"$lt": "y", "$gte": "x"}},
        {'["a.b"]["c\\"d"][""]["0"]': "zero"},
        {'["a.b"]["c\\"d"][""].0': "zero"},
        {"env.sim_or_real": {"$in": ["real"]}},
    ],
)
def test_what_is_met(wanted: Any) -> None:
    assert meets(wanted)
    assert meets(json.dumps(wanted))


@pytest.mark.parametrize(
    "wanted",
    [
        {"task.success": 1},
        {"task.success": "true"},
        {"task.success": {"$ne": 0}},
        {"params.count": True},
        {"params.count": {"$in": [True, "1"]}},
        {"params.count": {"$in": []}},
        {"params.count": {"$nin": [1]}},
        {"params.count": {"$nin": ["x"]}},
        {"params.count": {"$ne": "x"}},
        {"params.count": {"$gt": "0"}},
        {"params.big": float(2**53)},
        {"params.big": {"$lte": 2**53}},
        {"params.force": {"value": 12.5}},
        {"task.name": {"$gt": 1}},
        {"task.missing": {"$ne": 1}},
        {"task.missing": {"$nin": [1]}},
        {"task.missing": None},
        {"task.steps[2].name": "open"},
        {"task[0]": {"$exists": True}},
        {"task.steps.01": {"$exists": True}},
        {"task.steps.-1": {"$exists": True}},
        {"task.name.x": {"$exists": True}},
        {"spatial.p": [1, 2]},
        {"spatial.p": [True, 2, 2]},
        {"task.success": True, "params.count": 2},
        {"params.force.value": {"$gte": 10, "$lt": 12.5}},
    ],
)
def test_what_is_not_met(wanted: Any) -> None:
    assert not meets(wanted)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ("3", "must be a JSON object"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1e999}', "larger than any double"),
        ({"a": {"$regex": "x"}}, "$regex"),
        ({"a": {"$gt": 1, "$foo": 1}}, "$foo"),
        ({"a": {"$gt": 1, "b": 1}}, "'b'"),
        ({"$or": [{"a": 1}]}, "$or"),
        ({"a": {"$in": 1}}, "takes an array"),
        ({"a": {"$nin": "x"}}, "takes an array"),
        ({"a": {"$exists": 1}}, "true or false"),
        ({"a": {"$gt": True}}, "a number or a string"),
        ({"a": {"$lt": None}}, "a number or a string"),
        ({"a": {"$lte": [1]}}, "a number or a string"),
        ({"": 1}, "not a path"),
        ({"a..b": 1}, "not a path"),
        ({"a.": 1}, "not a path"),
        ({".a": 1}, "not a path"),
        ({"a[": 1}, "not a path"),
        ({"a[x]": 1}, "not a path"),
        ({"a[-1]": 1}, "not a path"),
        ({"a[0": 1}, "not a path"),
        ({"a[0]b": 1}, "not a path"),
        ({"a[true]": 1}, "not a path"),
        ({f"k{i}": i for i in range(65)}, "at most 64"),
    ],
)
def test_a_wrong_filter_is_refused_with_the_reason(wanted: Any, said: str) -> None:
    with pytest.raises(InvalidRequestError) as error:
        meets(wanted)
    assert error.value.field == "context_filter"
    assert str(error.value).startswith("context_filter: ")
    assert said in str(error.value)


def test_random_filters_mean_what_the_reference_says() -> None:
    decided = []
    for seed in range(60):
        maker = Maker(seed)
        contexts = [change[1].context for change in maker.changes(12) if change[0] == "learn"]
        for asked in maker.queries(30):
            tests = filters.parse_context_filter(asked.query.context_filter, 10**6, 32)
            for context in contexts if tests else ():
                expected = all(holds(condition, context) for condition in asked.conditions)
                assert filters.meets_tests(context, tests) is expected
                decided.append(expected)
    assert len(decided) > 3000
    assert 0.05 < sum(decided) / len(decided) < 0.95


def test_spatial_sort_is_read() -> None:
    place = filters.parse_spatial_sort(
        '{"field": "spatial.p", "target": [1.3, 0, 2], "max_distance": 1}', 1000, 8
    )
    assert place == filters.Place(None, ("spatial", "p"), (1.3, 0.0, 2.0), 1.0)
    anywhere = filters.parse_spatial_sort({"field": "a[0]", "target": [1]}, 1000, 8)
    assert anywhere is not None
    assert anywhere.max_distance == math.inf
    assert filters.parse_spatial_sort("", 1000, 8) is None


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("[]", "must be a JSON object"),
        ({"target": [1]}, "field"),
        ({"field": 3, "target": [1]}, "field"),
        ({"field": "a"}, "target"),
        ({"field": "a", "target": []}, "target"),
        ({"field": "a", "target": [1, "2"]}, "target"),
        ({"field": "a", "target": [True]}, "target"),
        ({"field": "a", "target": [10**400]}, "target"),
        ({"field": "a", "target": [1], "max_distance": -0.1}, "max_distance"),
        ({"field": "a", "target": [1], "max_distance": "1"}, "max_distance"),
        ({"field": "a", "target": [1], "max_distance": True}, "max_distance"),
        ({"field": "a", "target": [1], "max_distance": 10**400}, "max_distance"),
        ({"field": "a", "target": [1], "radius": 1}, "radius"),
        ({"field": "a..b", "target": [1]}, "not a path"),
    ],
)
def test_a_wrong_spatial_sort_is_refused_with_the_reason(wanted: Any, said: str) -> None:
    with pytest.raises(InvalidRequestError) as error:
        filters.parse_spatial_sort(wanted, 2000, 8)
    assert error.value.field == "spatial_sort"
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("near", "field"),
    [
        (Near("", (0, 0, 0)), "near"),
        (Near("map", (0, math.nan, 0)), "near"),
        (Near("map", (0, 0, math.inf)), "near"),
        (Near("map", (0, 0, 0), -1.0), "near_radius"),
        (Near("map", (0, 0, 0), math.nan), "near_radius"),
    ],
)
def test_a_wrong_point_is_refused(near: Near, field: str) -> None:
    with pytest.raises(InvalidRequestError) as error:
        filters.place_near(near)
    assert error.value.field == field


@pytest.mark.parametrize(
    ("value", "target", "distance"),
    [
        ([1, 2, 2], (0.0, 0.0, 0.0), 3.0),
        ([3, 4], (0.0, 0.0), 5.0),
        ([1, 2, 2], (0.0, 0.0), None),
        ([1, "2", 2], (0.0, 0.0, 0.0), None),
        ([1, True, 2], (0.0, 0.0, 0.0), None),
        ([1, None, 2], (0.0, 0.0, 0.0), None),
        ([10**400, 0, 0], (0.0, 0.0, 0.0), None),
        ([[1, 2, 2]], (0.0,), None),
        ([], (), None),
        ("xyz", (0.0, 0.0, 0.0), None),
        (None, (0.0,), None),
    ],
)
def test_distance_to_a_field_of_any_shape(
    value: Any, target: tuple[float, ...], distance: float | None
) -> None:
    place = filters.Place(None, ("spatial", "p"), target, math.inf)
    assert filters.distance_to_field({"spatial": {"p": value}}, place) == distance
    assert filters.distance_to_field({}, place) is None


@pytest.mark.parametrize(
    ("days", "expected"), [(0, 0.8), (0.999, 0.8), (1, 0.792), (30, 0.59176), (-5, 0.8)]
)
def test_confidence_fades_by_whole_days(days: float, expected: float) -> None:
    now = 10**18
    then = now - int(days * filters.NANOSECONDS_PER_DAY)
    assert filters.effective_confidence(0.8, 0.01, then, now) == pytest.approx(expected, abs=1e-5)
