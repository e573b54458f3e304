# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Names are found in text and in contexts, English and Chinese."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotmem_ros.core.entities import from_context, from_text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('take the "blue box" away', ["blue box"]),
        ("take the 'blue box' away", ["blue box"]),
        ("拿走“蓝色盒子”", ["蓝色盒子"]),
        ("error E-217 on PN-40117-B", ["e-217", "pn-40117-b"]),
        ("set grip_force higher", ["grip_force"]),
        ("we met Anna Schmidt there", ["anna schmidt"]),
        ("the LIDAR is dirty", ["lidar"]),
        ("pressed with 12.5 N", ["12.5 n"]),
        ("pressed with 12.50N", ["12.5 n"]),
        ("turn by 90°", ["90 °"]),
        ("等5秒", ["5 秒"]),
        ("回到充电站", ["充电站"]),
        ("Grasping failed", []),
        ("it failed. Then it worked", []),
        ("it isn't mine, it's yours", []),
        ("", []),
    ],
)
def test_names_in_text(text: str, names: list[str]) -> None:
    found = from_text(text)
    assert set(names) <= set(found)
    assert names or not found


def test_the_same_quantity_is_the_same_name_however_written() -> None:
    assert set(from_text("12.5N")) & set(from_text("about 12.50 N or so"))


@pytest.mark.parametrize(
    ("context", "names"),
    [
        ({"robot": {"id": "Arm-2", "type": "arm"}}, ["arm-2"]),
        ({"task": {"name": "Fill  Shelf", "success": True}}, ["fill shelf"]),
        ({"task": {"object": "杯子", "place": "厨房"}}, ["杯子", "厨房"]),
        ({"env": {"room": "Lab"}, "params": {"object": "mug"}}, ["lab", "mug"]),
        ({"spatial": {"location": "dock", "p": [1, 2]}}, ["dock"]),
        ({"robot": "Arm-2", "task": 3, "env": None, "spatial": []}, []),
        ({"robot": {"id": 3}, "task": {"name": ["x"]}}, []),
        ({"robot": {"id": "x"}}, []),
        ({}, []),
    ],
)
def test_names_in_a_context(context: Any, names: list[str]) -> None:
    assert from_context(context) == names


def test_many_and_long_names_are_bounded() -> None:
    assert len(from_text(" ".join(f"part-{i}x" for i in range(1000)))) == 64
    assert max(map(len, from_text("x1" * 500))) == 64


@given(st.text(max_size=200))
def test_any_text_gives_distinct_names(text: str) -> None:
    found = from_text(text)
    assert len(found) == len(set(found))
    assert all(1 < len(name) <= 64 for name in found)
