# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Put an episode in a few words, made from what was learned in it, in its language.

What was learned in Chinese is framed in Chinese, everything else in English; the memories
themselves are quoted as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from robotmem_ros.core.consolidation import is_lasting, plain
from robotmem_ros.core.model import Context, Json, Memory, MemoryType

MAX_QUOTES = 3
"""Memories that are quoted, at most."""

_MAX_QUOTE = 160  # characters of each
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3041-\u30ff]")
_LETTER = re.compile(r"[^\W\d_]")
_HAN_SHARE = 0.3  # of the letters of a Chinese text that quotes codes and names


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of an episode at its end; lengths in metres, times in seconds."""

    outcome: float | None
    interrupted: bool
    reason: str
    duration: float
    path_length: float
    memories: int


@dataclass(frozen=True, slots=True)
class _Phrases:
    task: str
    no_task: str
    succeeded: str
    failed: str
    partly: str
    ended: str
    interrupted: str
    counts: str
    moved: str
    nothing: str
    quotes: str
    between: str
    stop: str


_ENGLISH = _Phrases(
    task="Task {}",
    no_task="An episode",
    succeeded=" succeeded (outcome {:.3g})",
    failed=" failed (outcome {:.3g})",
    partly=" partly succeeded (outcome {:.3g})",
    ended=" ended",
    interrupted=" was interrupted",
    counts=" after {:.0f} s with {} memories",
    moved=" and {:.1f} m of travel",
    nothing=" after {:.0f} s; nothing was learned",
    quotes=" Learned: {}",
    between="; ",
    stop=".",
)
_CHINESE = _Phrases(
    task="任务“{}”",
    no_task="本次任务",
    succeeded="成功（得分 {:.3g}）",
    failed="失败（得分 {:.3g}）",
    partly="部分成功（得分 {:.3g}）",
    ended="结束",
    interrupted="中断",
    counts="，用时 {:.0f} 秒，记忆 {} 条",
    moved="，行程 {:.1f} 米",
    nothing="，用时 {:.0f} 秒，没有学到内容",
    quotes="要点：{}",
    between="；",
    stop="。",
)


def summarise(context: Context, memories: Sequence[Memory], facts: Facts, max_bytes: int) -> str:
    """Return a plain summary of an episode.

    Parameters
    ----------
    context: of the episode; its task.name names the task.
    memories: of the episode, in the order they happened.
    """
    quoted = telling(memories)
    task = context.get("task")
    name = task.get("name") if isinstance(task, dict) else None
    name = " ".join(name.split()) if isinstance(name, str) else ""
    samples = [memory.content for memory in quoted] or [name]
    phrases = _CHINESE if _is_chinese(" ".join(samples)) else _ENGLISH
    text = phrases.task.format(_cut(name)) if name else phrases.no_task
    text += _ending(phrases, facts)
    if not facts.memories:
        return _within(text + phrases.nothing.format(facts.duration) + phrases.stop, max_bytes)
    text += phrases.counts.format(facts.duration, facts.memories)
    if facts.path_length > 0:
        text += phrases.moved.format(facts.path_length)
    text += phrases.stop
    quotes = [_cut(" ".join(memory.content.split())).rstrip(".;。；") for memory in quoted]
    text += phrases.quotes.format(phrases.between.join(quotes)) + phrases.stop
    return _within(text, max_bytes)


def telling(memories: Sequence[Memory]) -> list[Memory]:
    """Return the few memories that tell most, in the order they happened.

    Constraints and lessons tell most, then what failed, then what was learned rather than sensed;
    among equals the surest and the latest.
    """

    def weight(memory: Memory) -> tuple[object, ...]:
        return (
            is_lasting(memory),
            _failed(memory.context.get("task")),
            memory.type is MemoryType.FACT,
            memory.stored_confidence,
            memory.stamp,
            memory.id,
        )

    chosen: dict[str, Memory] = {}
    for memory in sorted(memories, key=weight, reverse=True):
        if memory.type is not MemoryType.EPISODE and not memory.superseded_by:
            chosen.setdefault(plain(memory.content), memory)
        if len(chosen) == MAX_QUOTES:
            break
    return sorted(chosen.values(), key=lambda memory: (memory.stamp, memory.id))


def _failed(task: Json) -> bool:
    return isinstance(task, dict) and task.get("success") is False


def _ending(phrases: _Phrases, facts: Facts) -> str:
    if facts.interrupted:
        return phrases.interrupted + (f" ({facts.reason})" if facts.reason else "")
    if facts.outcome is None:
        return phrases.ended
    if facts.outcome >= 1.0:
        return phrases.succeeded.format(facts.outcome)
    return (phrases.failed if facts.outcome < 0.5 else phrases.partly).format(facts.outcome)


def _is_chinese(text: str) -> bool:
    letters = len(_LETTER.findall(text))
    return not _KANA.search(text) and len(_HAN.findall(text)) > _HAN_SHARE * letters


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_QUOTE else text[: _MAX_QUOTE - 1].rstrip() + "…"


def _within(text: str, max_bytes: int) -> str:
    return text.encode()[:max_bytes].decode(errors="ignore")
