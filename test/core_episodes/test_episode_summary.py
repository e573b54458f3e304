# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The words an episode is put in when nobody gave any."""

from __future__ import annotations

import pytest
from episode_making import made

from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Query
from robotmem_ros.core.summary import Facts, summarise, telling


def facts(**fields: object) -> Facts:
    given = {
        "outcome": None,
        "interrupted": False,
        "reason": "",
        "duration": 34.4,
        "path_length": 0.0,
        "memories": 2,
        **fields,
    }
    return Facts(**given)  # type: ignore[arg-type]


def test_it_tells_task_outcome_counts_and_what_was_learned() -> None:
    memories = [made("the cup slipped."), made("a slower grip held it")]
    text = summarise(
        {"task": {"name": "push"}}, memories, facts(outcome=0.85, path_length=5.23), 10_000
    )
    assert text == (
        "Task push partly succeeded (outcome 0.85) after 34 s with 2 memories and 5.2 m of "
        "travel. Learned: the cup slipped; a slower grip held it."
    )


def test_it_speaks_chinese_when_the_memories_do() -> None:
    memories = [made("抓取杯子 E-217 失败。"), made("夹爪力 12.5N 成功")]
    text = summarise(
        {"task": {"name": "推杯子"}}, memories, facts(outcome=1.0, path_length=5.0), 10_000
    )
    assert text == (
        "任务“推杯子”成功（得分 1），用时 34 秒，记忆 2 条，行程 5.0 米。"
        "要点：抓取杯子 E-217 失败；夹爪力 12.5N 成功。"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"outcome": 0.0}, "failed (outcome 0)"),
        ({"outcome": 0.4}, "failed (outcome 0.4)"),
        ({"outcome": 1.0}, "succeeded (outcome 1)"),
        ({}, "An episode ended after"),
        ({"interrupted": True, "reason": "power"}, "An episode was interrupted (power) after"),
        ({"memories": 0, "duration": 0.0}, "An episode ended after 0 s; nothing was learned."),
    ],
)
def test_it_says_how_it_went(given: dict[str, object], said: str) -> None:
    memories = [] if given.get("memories") == 0 else [made("the cup")]
    assert said in summarise({}, memories, facts(**given), 10_000)


@pytest.mark.parametrize("task", [None, 3, "push", [], {"name": 7}, {"name": ""}])
def test_a_task_without_a_name_is_an_episode(task: object) -> None:
    assert summarise({"task": task}, [], facts(memories=0), 1000).startswith("An episode ended")


def test_the_most_telling_memories_are_quoted_in_order() -> None:
    lesson = made("never push the blue cup", stored_confidence=0.1)
    failure = made("the red cup fell", {"task": {"success": False}}, stored_confidence=0.2)
    sure = made("the table is flat", stored_confidence=1.0)
    others = [made(f"saw cup {i}") for i in range(10)]
    chosen = telling([*others, sure, failure, lesson])
    assert [m.id for m in chosen] == sorted([lesson.id, failure.id, sure.id])


def test_the_same_words_are_quoted_once() -> None:
    assert len(telling([made("grip slipped"), made("Grip slipped.")])) == 1


def test_it_is_short_whatever_was_learned(memory: RobotMemory) -> None:
    memories = [made("word " * 10_000), made("杯" * 10_000), made("x\n\ny " * 5000)]
    text = summarise({"task": {"name": "n" * 1000}}, memories, facts(memories=3), 10_000)
    assert len(text) < 1000
    assert "\n" not in text
    for limit in (100, 101, 102, 103):
        cut = summarise({"task": {"name": "推" * 100}}, memories, facts(memories=3), limit)
        assert len(cut.encode()) <= limit


def test_the_summary_that_was_made_is_the_content_of_the_episode_memory(
    memory: RobotMemory,
) -> None:
    memory.start_session({"task": {"name": "推杯子"}})
    memory.learn(Experience("蓝色杯子滑落了"))
    episode = memory.end_session(outcome=0.0).episode
    assert episode.summary == ""  # nobody said
    last = episode.memories[-1]
    assert last.content.startswith("任务“推杯子”失败")
    assert memory.recall(Query("推杯子 失败")).memories[0].memory.id == last.id
