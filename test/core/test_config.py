# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Settings are checked, and a refusal names the setting, the value and what is allowed."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from robotmem_ros.core.config import Config, settings_of
from robotmem_ros.core.errors import ConfigError

SETTINGS = settings_of(Config)


def test_the_defaults_are_allowed() -> None:
    assert Config() == Config(**{item.name: item.default for item in SETTINGS})


@pytest.mark.parametrize("item", SETTINGS, ids=lambda item: item.name)
def test_every_setting_is_described(item: Any) -> None:
    assert item.description.endswith(".")
    assert item.default is not dataclasses.MISSING
    if item.type in (int, float):
        assert item.low is not None
        assert item.low <= item.default <= (math.inf if item.high is None else item.high)


@pytest.mark.parametrize("item", SETTINGS, ids=lambda item: item.name)
def test_a_value_of_another_type_is_refused(item: Any) -> None:
    wrong = {bool: (1, "true", None), int: (True, 1.0, "1"), float: (True, "1"), str: (1, b"x")}
    for value in wrong[item.type]:
        with pytest.raises(ConfigError) as error:
            Config(**{item.name: value})
        assert f"parameter {item.name}: {value!r} is not allowed" in str(error.value)
        assert item.allowed in str(error.value)


@pytest.mark.parametrize(
    "item", [item for item in SETTINGS if item.low is not None], ids=lambda item: item.name
)
def test_a_value_out_of_range_is_refused(item: Any) -> None:
    values = [item.low - 1, -(10**30)]
    if item.high is not None:
        values += [item.high + 1, 10**30]
    for value in map(item.type, values):
        with pytest.raises(ConfigError, match=f"parameter {item.name}: "):
            Config(**{item.name: value})


@pytest.mark.parametrize(
    "item", [item for item in SETTINGS if item.choices], ids=lambda item: item.name
)
def test_a_value_that_is_no_choice_is_refused(item: Any) -> None:
    for choice in item.choices:
        Config(**{item.name: choice})
    with pytest.raises(ConfigError, match="one of "):
        Config(**{item.name: "fastest"})


def test_not_a_number_is_refused() -> None:
    with pytest.raises(ConfigError, match="episode_spread"):
        Config(episode_spread=math.nan)


def test_an_integer_does_for_a_number() -> None:
    value = Config(real_weight=2).real_weight
    assert (value, type(value)) == (2.0, float)


@pytest.mark.parametrize("name", ["collection", "db_path"])
def test_an_empty_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"parameter {name}: '  ' is not allowed"):
        Config(**{name: "  "})


def test_the_name_of_all_collections_is_refused() -> None:
    with pytest.raises(ConfigError, match="collection"):
        Config(collection="*")
