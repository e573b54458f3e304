# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Text of any language is cut so that a query finds what was stored."""

from __future__ import annotations

import marshal
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotmem_ros.core.text import MAX_QUERY_TERMS, fold, index_tokens, query_terms


def found(query: str, stored: str) -> bool:
    """Return whether every word of the query is among the words of the stored text."""
    terms = query_terms(query)
    return bool(terms) and set(terms) <= set(index_tokens(stored))


@pytest.mark.parametrize(
    ("query", "stored"),
    [
        ("grasping cups", "grasp the cup"),
        ("How was the grasp?", "Grasping failed twice"),
        ("GRIPPER", "the gripper slipped"),
        ("joint 3", "torque limit on joint 3"),
        ("dock-3", "returned to dock-3"),
        ("dock 3", "returned to dock-3"),
        ("dock", "returned to dock-3"),
        ("PN-40117-B", "part PN-40117-B is worn"),
        ("40117", "part PN-40117-B is worn"),
        ("pn_40117_b", "part PN-40117-B is worn"),
        ("grip_force=12.5N", "grip_force=12.5N was too much"),
        ("grip_force", "grip_force=12.5N was too much"),
        ("12.5", "grip_force=12.5N was too much"),
        ("12.5 N", "grip_force=12.5N was too much"),
        ("12.50", "force 12.5"),
        ("12,5", "force 12.5"),
        ("1000", "weighs 1,000 g"),
        ("1,000", "weighs 1000 g"),
        ("don't", "don't enter room 4"),
        ("dont", "don't enter room 4"),
        ("don’t", "don't enter room 4"),
        ("@nasa", "a message from @nasa"),
        ("nasa", "a message from @nasa"),
        ("50%", "battery at 50%"),
        ("AND", "the AND gate"),
        ("muller", "Müller's desk"),
        ("MÜLLER", "Mu\u0308ller opened"),
        ("cafe", "the café on floor 2"),
        ("Ångström", "1 angstrom"),
        ("дверь", "Дверь закрыта"),
        ("Ёлка", "у ёлка стоит"),
        ("θύρα", "η θύρα είναι κλειστή"),
        ("ＡＢＣ１２３", "label abc123"),
        ("abc123", "label ＡＢＣ１２３"),
        ("ﾛﾎﾞｯﾄ", "ロボットが停止した"),
        ("ロボット", "ロボットが停止した"),
        ("停止", "ロボットが停止した"),
        ("赤いカップ", "赤いカップを掴む"),
        ("カップ", "赤いカップを掴む"),
        ("로봇", "로봇이 멈췄다"),
        ("로봇이", "로봇이 멈췄다"),
        ("컵", "빨간 컵을 잡다"),
        ("设备", "设备清单"),
        ("清单", "设备清单"),
        ("抓取", "机器人抓取杯子"),
        ("如何抓取杯子", "抓取杯子时要慢"),
        ("机器人的杯子", "机器人抓取杯子"),
        ("充电", "回到充电站"),
        ("หุ่นยนต์", "หุ่นยนต์หยุด"),
        ("🤖", "the 🤖 waved"),
        ("cup杯子", "抓cup杯子"),
        ("B区 dock-3", "去B区的dock-3"),
        ("the what", "what the"),
        ("的", "的"),
    ],
)
def test_query_finds_stored_text(query: str, stored: str) -> None:
    assert found(query, stored)


@pytest.mark.parametrize(
    ("query", "stored"),
    [
        ("dock-4", "returned to dock-3"),
        ("13.5", "force 12.5"),
        ("ロボット", "カメラが停止した"),
        ("дверь", "окно закрыто"),
        ("杯子", "打开抽屉"),
        ("が", "か"),
        ("й", "и"),
    ],
)
def test_query_does_not_find_other_text(query: str, stored: str) -> None:
    assert not found(query, stored)


def test_parts_of_a_code_are_found_where_they_stand_apart() -> None:
    assert {"dock", "3"} <= set(query_terms("dock-3")) & set(index_tokens("back to dock 3"))


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("What did the gripper do?", ["gripper"]),
        ("a b c", []),
        ("grasp x cup", ["grasp", "cup"]),
        ("joint 3", ["joint", "3"]),
        ("the", ["the"]),
        ("cup cup CUP cups", ["cup"]),
        ("杯子吗", ["杯子"]),
        ("", []),
        ("( ) * ^ : \" ' % & 。 、", []),
    ],
)
def test_terms_of_a_query(query: str, terms: list[str]) -> None:
    assert query_terms(query) == terms


def test_function_words_alone_are_searched_for() -> None:
    assert query_terms("what was that")


def test_a_query_has_a_bounded_number_of_terms() -> None:
    assert len(query_terms(" ".join(f"w{i}x" for i in range(10_000)))) == MAX_QUERY_TERMS


def test_folding_keeps_kana_hangul_cyrillic_and_greek() -> None:
    assert fold("ガ") == "ガ"
    assert fold("각") == "각"
    assert fold("Й") == "й"
    assert fold("Ά") == "ά"
    assert fold("Ü É Å ﬁ") == "u e a fi"


any_text = st.text(max_size=60)


@given(any_text)
def test_tokens_hold_only_what_the_keyword_index_takes_for_one_word(text: str) -> None:
    """The plain tokenizer of FTS5 must see the same words."""
    for token in index_tokens(text) + query_terms(text):
        assert token
        assert token == token.lower() or not token.isascii()
        assert re.fullmatch(r"[0-9a-z.\-\u0080-\U0010ffff]+", token), token
        assert len(token.split()) == 1


@given(any_text)
def test_every_term_of_a_text_finds_that_text(text: str) -> None:
    assert set(query_terms(text)) <= set(index_tokens(text))


@given(any_text, any_text)
def test_text_is_found_inside_longer_text(text: str, other: str) -> None:
    assert set(query_terms(text)) <= set(index_tokens(f"{other} {text} {other}"))


@given(any_text)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_the_dictionary_is_not_taken_from_where_anybody_may_write(tmp_path: Path) -> None:
    """jieba itself loads what it finds as jieba.cache in the folder of temporary files."""
    (tmp_path / "jieba.cache").write_bytes(marshal.dumps(({}, 1)))
    code = "from robotmem_ros.core import text; print(*text.query_terms('抓取杯子'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "TMPDIR": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONIOENCODING": "utf-8",
        },
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().split() == ["抓取", "杯子"]
    assert [item.name for item in tmp_path.iterdir()] == ["jieba.cache"]
