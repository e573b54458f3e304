# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which memories of one episode say the same thing, so that one of them can stand for all.

Two memories are near-identical when they have

- the same type, sense, collection and time of expiry;
- the same context, but for its section `ros`, which tells when and by whom a value was sent:
  another parameter, number, unit, outcome or measured position is another experience;
- the same words in the same order: white space, letter case and the marks that end a sentence are
  all that may differ (see `plain`);
- no pose, or poses of one frame at most 5 cm and 0.1 rad apart.

Constraints and lessons (see `is_lasting`) and `episode` memories are left alone. The one with the
highest confidence stays, among equals the newest.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence

from robotmem_ros.core import context as ctx
from robotmem_ros.core.model import Json, Memory, MemoryType, Pose

MAX_DISTANCE = 0.05
"""Metres between the poses of near-identical memories, at most."""

MAX_ANGLE = 0.1
"""Radians between their orientations, at most."""

_MARKS = {"constraint", "constraints", "lesson", "lessons"}
_MARK_KEYS = ("kind", "type", "category", "tags")

_LASTING_WORDS = re.compile(
    r"\b(?:must|mustn't|never|always|do not|don't|shall|should not|shouldn't|cannot|can't"
    r"|may not|only if|unless|forbidden|prohibited|required|warning|caution|danger"
    r"|lesson|lessons|constraint|constraints|rule)\b"
    r"|不要|不得|不准|不许|不可|不能|必须|务必|切勿|切记|禁止|严禁|永远|总是|始终|绝不|千万"
    r"|教训|约束|规则|警告|危险",
)
_APOSTROPHES = str.maketrans("’‘", "''")

_SENTENCE_END = re.compile(r"[.!;…。！；]+(?=\s|$)|[。！；]+")
_LONG_WORD = 4  # letters; shorter ones may be units: mN is not MN


def merges(memories: Sequence[Memory]) -> dict[int, int]:
    """Return which memories are replaced, each with the one that stands for it, by number."""
    groups: dict[tuple[object, ...], list[Memory]] = defaultdict(list)
    for memory in memories:
        if memory.type is MemoryType.EPISODE or memory.superseded_by or is_lasting(memory):
            continue
        groups[_said(memory)].append(memory)
    merged: dict[int, int] = {}
    for group in groups.values():
        if len(group) > 1:
            merged |= _merged(group)
    return merged


def is_lasting(memory: Memory) -> bool:
    """Return whether a memory is a constraint or a lesson, which is never merged.

    It is when its context says so at the top or under `task` ("constraint": true, "lesson": "...",
    or one of these words as kind, type, category or tag), or when its text speaks of what must,
    must never or may always be done, in English or Chinese.
    """
    if any(_is_marked(section) for section in (memory.context, memory.context.get("task"))):
        return True
    text = memory.content.casefold().translate(_APOSTROPHES)
    return _LASTING_WORDS.search(text) is not None


def plain(text: str) -> str:
    """Return a text without what may differ between two ways to write the same words.

    Marks that end a sentence go, and white space is evened out. Case is folded in words of four
    letters and more, and of the first word of a sentence; other short words may be units.
    """
    words = []
    for sentence in _SENTENCE_END.split(unicodedata.normalize("NFC", text)):
        for i, word in enumerate(sentence.split()):
            letters = sum(map(str.isalpha, word))
            begins = i == 0 and word[:1].isupper() and word[1:] == word[1:].lower()
            words.append(word.casefold() if letters >= _LONG_WORD or begins else word)
    return " ".join(words)


def _is_marked(section: Json) -> bool:
    if not isinstance(section, dict):
        return False
    if any(section.get(mark) not in (None, False, "", 0) for mark in _MARKS):
        return True
    for key in _MARK_KEYS:
        value = section.get(key)
        named = value if isinstance(value, list) else [value]
        if any(isinstance(name, str) and name.strip().casefold() in _MARKS for name in named):
            return True
    return False


def _said(memory: Memory) -> tuple[object, ...]:
    """Return what near-identical memories have in common."""
    context = {key: value for key, value in memory.context.items() if key != "ros"}
    return (
        memory.type,
        memory.perception_type,
        memory.collection,
        memory.expires,
        ctx.write(context),
        plain(memory.content),
        memory.pose and memory.pose.frame_id,
    )


def _merged(group: Sequence[Memory]) -> dict[int, int]:
    """Return which memories of a group are near enough to one that stays.

    Those that stay are kept by cells of MAX_DISTANCE, so that the same words said at ten thousand
    places are not compared each with each.
    """
    best_first = sorted(group, key=lambda m: (m.stored_confidence, m.stamp, m.id), reverse=True)
    staying: dict[tuple[float, ...], list[Memory]] = defaultdict(list)
    merged = {}
    for memory in best_first:
        cell = _cell(memory.pose)
        around = itertools.product(*((c - 1, c, c + 1) for c in cell))
        near = (other for key in around for other in staying.get(key, ()))
        survivor = next((other for other in near if _close(memory.pose, other.pose)), None)
        if survivor is None:
            staying[cell].append(memory)
        else:
            merged[memory.id] = survivor.id
    return merged


def _cell(pose: Pose | None) -> tuple[float, ...]:
    return tuple(value // MAX_DISTANCE for value in pose.position) if pose else ()


def _close(one: Pose | None, other: Pose | None) -> bool:
    if one is None or other is None:
        return one is other
    if math.dist(one.position, other.position) > MAX_DISTANCE:
        return False
    cosine = abs(sum(map(operator.mul, one.orientation, other.orientation)))
    return 2.0 * math.acos(min(1.0, cosine)) <= MAX_ANGLE
