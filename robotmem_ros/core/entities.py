# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Find the names in a memory and in a query: robots, tasks, objects, places, codes, quantities.

Two texts that name the same thing are linked by it, however different they are otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from robotmem_ros.core import chinese
from robotmem_ros.core.model import Json
from robotmem_ros.core.text import fold

MAX_QUERY_ENTITIES = 8
"""Names of a query that are looked up; further ones are not."""

_MAX_ENTITIES = 64
_MAX_LENGTH = 64

_CONTEXT_KEYS = {
    "robot": ("id", "name", "model"),
    "task": ("name", "id", "object", "target", "tool", "place", "location"),
    "env": ("place", "location", "room", "site"),
    "params": ("object", "place", "location"),
}
_QUOTED = re.compile(r"[\"“”「『《](.{2,60}?)[\"“”」』》]|(?<!\w)'([^']{2,60})'(?!\w)")
# Each pattern must be linear in the length of any text: no look-ahead over a whole run.
_CODE = re.compile(r"(?<![A-Za-z0-9._/-])[A-Za-z0-9]+(?:[._/-][A-Za-z0-9]+)*")
_SNAKE = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b")
_QUANTITY = re.compile(
    r"(?<![A-Za-z0-9_.])(\d+(?:\.\d+)?) ?"
    r"(%|°C|°|mm|cm|km|m/s|rad/s|m|N·?m|kN|N|kg|mg|g|ml|l|L|ms|s|min|h|V|mV|A|mA|W|Hz|kHz|bar|kPa|Pa"
    r"|毫米|厘米|米|牛|千克|公斤|克|毫升|升|毫秒|秒|分钟|小时|伏|安|瓦|度)(?![A-Za-z])"
)
_CAPITALISED = re.compile(
    r"(?<![.!?。！？]\s)(?<!^)\b[A-Z][a-z]+(?:\s+[A-Z][a-z]+)*\b|\b[A-Z]{2,}\b(?![-_./]?\d)"
)
_HAN_PLACE = re.compile(
    r"[\u4e00-\u9fff]{1,8}?(?:室|房|厅|楼|门|台|架|柜|桌|区|站|库|梯|廊|厨房|机器人|机械臂|夹爪)"
)


def from_context(context: Mapping[str, Json]) -> list[str]:
    """Return the names a context gives to its robot, task, objects and places, folded."""
    return _distinct(_context_names(context))


def from_text(text: str) -> list[str]:
    """Return the names in a text, folded.

    They are what is quoted, codes ("E-217", "grip_force"), capitalised words that do not begin a
    sentence, numbers with a unit, and Chinese names of places and robots.
    """
    return _distinct(_text_names(text))


def _context_names(context: Mapping[str, Json]) -> Iterator[str]:
    for section, keys in _CONTEXT_KEYS.items():
        values = context.get(section)
        if isinstance(values, dict):
            for key in keys:
                if isinstance(values.get(key), str):
                    yield values[key]
    spatial = context.get("spatial")
    if isinstance(spatial, dict):
        for value in spatial.values():
            if isinstance(value, str):
                yield value


def _text_names(text: str) -> Iterator[str]:
    for match in _QUOTED.finditer(text):
        yield match.group(1) or match.group(2)
    for match in _CODE.finditer(text):
        code = match.group()[:_MAX_LENGTH]
        if re.search("[A-Za-z]", code) and re.search("[0-9]", code):
            yield code
    for pattern in (_SNAKE, _CAPITALISED):
        for match in pattern.finditer(text):
            yield match.group()
    for match in _QUANTITY.finditer(text):
        yield f"{float(match.group(1)):g} {match.group(2)}"
    for match in _HAN_PLACE.finditer(text):
        # The shortest dictionary words that end the match: 充电站 of 回到充电站.
        words = list(chinese.words(match.group()))
        yield "".join(words[-2:]) if len(words[-1]) == 1 else words[-1]


def _distinct(names: Iterator[str]) -> list[str]:
    seen: dict[str, None] = {}
    for name in names:
        folded = " ".join(fold(name).split())[:_MAX_LENGTH]
        if len(folded) > 1:
            seen.setdefault(folded)
        if len(seen) == _MAX_ENTITIES:
            break
    return list(seen)
