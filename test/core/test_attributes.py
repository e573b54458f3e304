# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Encoded values sort as the values do, so that a condition is a range of an index."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference import Condition, holds

from robotmem_ros.core.filters import Test as Condition_
from robotmem_ros.core.filters import same
from robotmem_ros.core.store import attributes
from robotmem_ros.core.store.attributes import encode

numbers = st.one_of(
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.integers(-(10**400), 10**400),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2**53, 2**53 + 1, float(2**53), 0, -0.0, 5e-324, -5e-324, 1.7e308]),
    st.integers(-(2**60), 2**60).map(float),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=5))


@given(numbers, numbers)
@example(2**53, float(2**53))
@example(2**53 + 1, float(2**53))
@example(10**400, 1.7e308)
@example(127, 128)
@example(-127, -128.5)
def test_numbers_of_any_size_compare_exactly(one: float, other: float) -> None:
    assert (encode(one) < encode(other)) == (one < other)
    assert (encode(one) == encode(other)) == (one == other)


@given(st.text(), st.text())
def test_strings_compare_by_code_points(one: str, other: str) -> None:
    assert (encode(one) < encode(other)) == (one < other)
    assert (encode(one) == encode(other)) == (one == other)


def test_types_are_apart() -> None:
    values: list[Any] = [None, False, True, -1e308, 0, 1, 10**400, "", "1", "true", [], {}]
    codes = [encode(value) for value in values]
    assert codes == sorted(codes)
    assert len(set(codes)) == len(codes)
    assert encode(1) == encode(1.0) != encode(True)
    assert encode([1]) != encode([2])


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.sampled_from([0.0, 1.0, 1.5, "a"])),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


@given(values, values)
@example([1], [1.0])
@example([1], [True])
@example({"a": 1, "b": 2}, {"b": 2, "a": 1})
@example([2**53 + 1], [float(2**53)])
@example([-0.0], [0])
def test_arrays_and_objects_have_the_same_code_only_if_they_are_equal(
    one: Any, other: Any
) -> None:
    assert (encode(one) == encode(other)) == same(one, other)


@given(
    stored=scalars | values,
    operator=st.sampled_from(["$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$in", "$nin"]),
    operand=scalars | values,
    others=st.lists(scalars | values, max_size=3),
)
@example(stored="a\x00", operator="$lte", operand="a", others=[])
@example(stored="a\x00", operator="$gt", operand="a", others=[])
@example(stored=True, operator="$ne", operand=False, others=[])
@example(stored=1, operator="$ne", operand=True, others=[])
def test_ranges_hold_exactly_what_meets_a_condition(
    stored: Any, operator: str, operand: Any, others: list[Any]
) -> None:
    if operator in ("$in", "$nin"):
        operand = [operand, *others]
    elif operator not in ("$eq", "$ne") and not (
        isinstance(operand, (int, float, str)) and not isinstance(operand, bool)
    ):
        return  # the filter refuses it
    ranges = attributes.ranges(Condition_(("key",), operator, operand))
    assert ranges is not None
    code = encode(stored)
    inside = any(
        code == item.low if item.high is None else item.low <= code < item.high for item in ranges
    )
    assert inside == holds(Condition(("key",), operator, operand), {"key": stored})


@given(stored=st.one_of(scalars, st.just([]), st.just({})))
def test_exists_is_one_range(stored: Any) -> None:
    (everything,) = attributes.ranges(Condition_(("key",), "$exists", True)) or []
    assert everything.high is not None
    assert everything.low <= encode(stored) < everything.high


@pytest.mark.parametrize(
    ("path", "operator", "operand"),
    [
        (("key",), "$exists", False),
        (("key",), "$nin", []),
        (("key", 16), "$eq", 1),
        (("key", "16"), "$eq", 1),
    ],
)
def test_the_index_says_what_it_cannot_tell(
    path: tuple[Any, ...], operator: str, operand: Any
) -> None:
    assert attributes.ranges(Condition_(path, operator, operand)) is None


def test_entries_name_every_value_with_its_path() -> None:
    entries = attributes.entries({"a": {"b": [1, {"c": None}]}})
    assert entries == [
        ('["a"]', encode({"b": [1, {"c": None}]})),
        ('["a","b"]', encode([1, {"c": None}])),
        ('["a","b",0]', encode(1)),
        ('["a","b",1]', encode({"c": None})),
        ('["a","b",1,"c"]', encode(None)),
    ]


def test_too_many_values_are_left_out_altogether() -> None:
    at_most = {f"k{i}": i for i in range(attributes.MAX_VALUES)}
    assert len(attributes.entries(at_most) or []) == attributes.MAX_VALUES
    assert attributes.entries({**at_most, "one more": 1}) is None


def test_a_plain_number_may_be_a_key_or_an_index() -> None:
    assert sorted(attributes.path_texts(("a", "0"))) == ['["a","0"]', '["a",0]']
    assert attributes.path_texts(("a", 0)) == ['["a",0]']


@pytest.mark.parametrize("depth", [1, 7, 8, 9, 12])
def test_a_number_in_a_deep_path_is_a_key_or_an_index(depth: int) -> None:
    keys = tuple(f"k{i}" for i in range(depth))
    assert len(attributes.path_texts((*keys, "3"))) == 2
    assert attributes.ranges(Condition_((*keys, "3"), "$eq", 1)) is not None


def test_a_path_of_many_numbers_is_not_told_by_the_index() -> None:
    assert attributes.ranges(Condition_(("0",) * 9, "$eq", 1)) is None
