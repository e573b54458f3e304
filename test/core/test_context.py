# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Contexts are read strictly, written in one form, and walked by paths."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotmem_ros.core import context as ctx
from robotmem_ros.core.errors import InvalidRequestError

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner)
    ),
    max_leaves=8,
)


def read(value: Any, max_bytes: int = 1000, max_depth: int = 5) -> dict[str, Any]:
    return ctx.read_object("context", value, max_bytes, max_depth)


@pytest.mark.parametrize("empty", ["", "  \n", "null"])
def test_nothing_is_the_empty_object(empty: str) -> None:
    assert read(empty) == {}


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values))
def test_what_is_written_is_read_again(value: dict[str, Any]) -> None:
    text = ctx.write(value)
    assert ctx.write(read(text, 10**6, 100)) == text
    assert ctx.write(read(value, 10**6, 100)) == text


def test_equal_objects_are_written_alike() -> None:
    assert ctx.write({"b": 1, "a": [1.0, "é"]}) == '{"a":[1.0,"é"],"b":1}'


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{", "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ("nonsense", "not valid JSON"),
        ("[1]", "must be a JSON object"),
        ('"x"', "must be a JSON object"),
        ("12", "must be a JSON object"),
        ("true", "must be a JSON object"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1e400}', "larger than any double"),
        ({"a": float("nan")}, "not valid JSON"),
        ({"a": float("inf")}, "not valid JSON"),
        ({"a": object()}, "not valid JSON"),
        ('{"a": ' + "1" * 5000 + "}", ""),
        ('{"a": "\\ud800"}', "surrogate"),
        ({"a": "\ud800"}, "surrogate"),
        ('{"\\udfff": 1}', "surrogate"),
        ("[" * 100_000, "nested deeper than 5"),
        ('{"a":' * 100_000, "nested deeper than 5"),
        ({"a": [[[[[1]]]]]}, "nested deeper than 5"),
        ('{"a": "' + "x" * 9000 + '"}', "at most 9000"),
        ('{"a": "' + "é" * 4500 + '"}', "at most 9000"),
    ],
)
def test_what_is_no_context_is_refused_with_the_reason(value: Any, said: str) -> None:
    with pytest.raises(InvalidRequestError) as error:
        read(value, max_bytes=9000 if "at most" in said else 10**6)
    assert str(error.value).startswith("context: ")
    assert said in str(error.value)


def test_an_object_that_holds_itself_is_refused() -> None:
    value: dict[str, Any] = {}
    value["me"] = value
    with pytest.raises(InvalidRequestError):
        read(value)


def test_brackets_in_strings_do_not_count_as_depth() -> None:
    assert read('{"a": "[[[[[[[[{{{{\\"[["}') == {"a": '[[[[[[[[{{{{"[['}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ("a[0].b", ("a", 0, "b")),
        ("a.0.b", ("a", "0", "b")),
        ("a[0][1]", ("a", 0, 1)),
        ('["a.b"].c', ("a.b", "c")),
        ('a["b\\"c"][""]', ("a", 'b"c', "")),
        ('a["[]"]', ("a", "[]")),
        ("über.杯子", ("über", "杯子")),
        ("a b.c-d", ("a b", "c-d")),
    ],
)
def test_paths_are_read(text: str, path: ctx.Path) -> None:
    assert ctx.parse_path("x", text) == path


@given(
    st.lists(st.integers(0, 99) | st.text(st.characters(exclude_categories=["Cs"])), min_size=1)
)
def test_any_path_can_be_written_in_brackets(path: list[str | int]) -> None:
    text = "".join(f"[{json.dumps(key)}]" for key in path)
    assert ctx.parse_path("x", text) == tuple(path)


def test_half_a_surrogate_pair_is_no_key() -> None:
    with pytest.raises(InvalidRequestError):
        ctx.parse_path("x", 'a["\\ud800"]')


@given(json_values)
def test_every_value_is_found_at_its_path(value: Any) -> None:
    for path, item in ctx.walk(value):
        assert list(ctx.lookup(value, path)) == [item]


@pytest.mark.parametrize(
    ("key", "index"),
    [
        (3, 3),
        ("0", 0),
        ("12", 12),
        ("01", None),
        ("-1", None),
        ("", None),
        ("²", None),
        ("x", None),
    ],
)
def test_which_keys_can_be_indexes(key: str | int, index: int | None) -> None:
    assert ctx.array_index(key) == index
