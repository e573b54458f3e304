# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""While the end of a long episode is decided about, others write; what they change counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from robotmem_ros.core import episodes
from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, MemoryType, Pose


@pytest.mark.parametrize(
    "change",
    [
        lambda memory, name: memory.learn(Experience("late", session_id=name)),
        lambda memory, name: memory.forget(1),
        lambda memory, name: memory.update(1, "changed"),
        lambda memory, name: memory._store.sessions.add_poses(
            name, [(7, Pose("map", (1.0, 2.0, 3.0), stamp=time.time_ns()))], 1
        ),
    ],
    ids=["learn", "forget", "update", "pose"],
)
def test_what_is_changed_meanwhile_is_seen(
    open_memory: Callable[..., RobotMemory],
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[RobotMemory, str], Any],
) -> None:
    memory = open_memory()
    name = memory.start_session().episode.session_id
    memory.learn(Experience("early"))
    seen = []
    true_ending = episodes.ending

    def ending(episode: Any, *rest: Any) -> Any:
        seen.append(episode)
        if len(seen) == 1:
            change(memory, name)  # would wait for ever for the transaction, were it in one
        return true_ending(episode, *rest)

    monkeypatch.setattr(episodes, "ending", ending)
    episode = memory.end_session(outcome=1.0).episode
    assert len(seen) == 2
    of_it = [item for item in episode.memories if item.type is not MemoryType.EPISODE]
    assert [item.content for item in of_it] == [item.content for item in seen[1].memories]
    assert episode.trajectory == seen[1].trajectory
    assert len(episode.memories) == len(of_it) + 1


def test_what_others_do_elsewhere_is_no_reason_to_decide_again(
    open_memory: Callable[..., RobotMemory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory()
    memory.start_session()
    seen = []
    true_ending = episodes.ending

    def ending(episode: Any, *rest: Any) -> Any:
        seen.append(episode)
        memory.learn(Experience("elsewhere", session_id="another"))
        return true_ending(episode, *rest)

    monkeypatch.setattr(episodes, "ending", ending)
    memory.end_session()
    assert len(seen) == 1


def test_of_two_that_end_it_one_is_told(
    open_memory: Callable[..., RobotMemory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, other = open_memory(), open_memory()
    name = memory.start_session().episode.session_id
    true_ending = episodes.ending

    def ending(*arguments: Any) -> Any:
        monkeypatch.setattr(episodes, "ending", true_ending)
        other.end_session(name, 0.25)
        return true_ending(*arguments)

    monkeypatch.setattr(episodes, "ending", ending)
    with pytest.raises(InvalidRequestError, match="has ended already"):
        memory.end_session(name, 0.75)
    episode = memory.episode(name)
    assert episode.outcome == 0.25
    assert len(episode.memories) == 1
