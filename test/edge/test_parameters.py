# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The table of parameters: its documents do not lag behind, and its rows say what they allow."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

parameters = pytest.importorskip(
    "robotmem_ros.parameters", reason="needs ROS 2 and the built package"
)

from rclpy.parameter import Parameter  # noqa: E402

from robotmem_ros.core.config import Config  # noqa: E402
from robotmem_ros.core.errors import ConfigError  # noqa: E402

ROOT = Path(__file__).parents[2]


def test_the_file_is_the_table() -> None:
    text = (ROOT / "config" / "robotmem.yaml").read_text(encoding="utf-8")
    assert text == parameters.as_yaml(), (
        "run: python3 -m robotmem_ros.parameters --yaml > config/robotmem.yaml"
    )


def test_the_file_holds_every_default() -> None:
    values = yaml.safe_load(parameters.as_yaml())["/**"]["ros__parameters"]
    assert values.pop("use_sim_time") is False
    assert list(values) == [item.name for item in parameters.TABLE]
    for item in parameters.TABLE:
        given = values[item.name]
        assert item.check(tuple(given) if isinstance(given, list) else given) == item.default
        assert type(given) is type(item.default) or isinstance(given, list)


def test_no_line_of_the_file_is_long() -> None:
    assert max(map(len, parameters.as_yaml().splitlines())) <= 99


def test_the_markdown_has_a_row_for_each() -> None:
    rows = parameters.as_markdown().splitlines()[2:]
    assert len(rows) == len(parameters.TABLE)
    for row, item in zip(rows, parameters.TABLE, strict=True):
        assert row.startswith(f"| `{item.name}` |")
        assert item.allowed in row
        assert row.count(" | ") == 3


def test_every_row_is_explained() -> None:
    for item in parameters.TABLE:
        assert item.description.endswith((".", "?")), item.name
        assert item.check(item.default) == item.default


def test_names_are_unique() -> None:
    names = [item.name for item in parameters.TABLE]
    assert len(names) == len(set(names))


def test_descriptors() -> None:
    described = {item.name: parameters.descriptor(item) for item in parameters.TABLE}
    assert described["rrf_k"].integer_range[0].from_value == 1
    assert not described["rrf_k"].read_only
    assert described["decay_rate"].floating_point_range[0].to_value == 0.999
    assert described["db_path"].read_only
    assert "rrf, adaptive, weighted" in described["fusion"].additional_constraints


def test_changes_are_checked_and_foreign_ones_left_alone() -> None:
    given = [Parameter("real_weight", value=2), Parameter("use_sim_time", value=True)]
    changes = parameters.changes(given)
    assert changes == {"real_weight": 2.0}
    assert type(changes["real_weight"]) is float
    with pytest.raises(ConfigError, match="parameter fusion: 'x' is not allowed; it must be one"):
        parameters.changes([Parameter("fusion", value="x")])


def test_a_new_setting_of_the_core_appears_by_itself() -> None:
    assert set(Config.__dataclass_fields__) <= {i.name for i in parameters.TABLE}


def test_the_readme_has_the_table() -> None:
    readme = Path(__file__).parents[2] / "README.md"
    _, _, rest = readme.read_text(encoding="utf-8").partition("--markdown -->\n")
    table, _, _ = rest.partition("<!-- end of parameters -->")
    assert table.strip() == parameters.as_markdown().strip(), (
        "run: python3 -m robotmem_ros.parameters --markdown"
    )
