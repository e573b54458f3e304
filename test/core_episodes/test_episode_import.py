# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What one store has published, put into another: by uuid, once, in any order, also twice."""

from __future__ import annotations

import dataclasses
import itertools
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from episode_making import made
from ros_clock import SECOND

from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import (
    Episode,
    Experience,
    Memory,
    MemoryType,
    Near,
    PerceptionType,
    Pose,
    Query,
)

Open = Callable[..., RobotMemory]

LOCAL = {"id": 0, "last_access": 0, "return_count": 0}
"""What a memory has in one store alone, and no message carries."""


def as_sent(memory: Memory) -> Memory:
    return dataclasses.replace(memory, **LOCAL)


def foreign(content: str = "from afar", **fields: Any) -> Memory:
    fields = {"uuid": str(uuid.uuid4()), "session_id": "", "stamp": 5, **LOCAL, **fields}
    return made(content, **fields)


def all_of(memory: RobotMemory) -> dict[str, Memory]:
    ids = range(1, memory.status().memories + memory.status().superseded + 1)
    found, _ = memory.get(ids=list(ids))
    return {item.uuid: dataclasses.replace(item, access_count=0, **LOCAL) for item in found}


def a_day(memory: RobotMemory) -> tuple[list[Memory], list[Episode]]:
    """Return what a robot publishes in a day, in the order it does."""
    heard: list[Memory] = []

    def learn(content: str, **fields: Any) -> Memory:
        learned = memory.learn(Experience(content, **fields)).memory
        heard.append(learned)
        return learned

    learn("the dock is behind the red door", pose=Pose("map", (1.0, 2.0, 0.0), stamp=3))
    learn("door code 4711", expires=9_000 * SECOND, confidence=0.5, collection="secret")
    learn(
        "a rattling noise",
        type=MemoryType.PERCEPTION,
        perception_type=PerceptionType.AUDITORY,
        context={"env": {"sim_or_real": "real"}, "spatial": {"p": [1, 2, 3]}},
    )
    episodes = []
    for run in range(3):
        memory.start_session({"task": {"name": "push", "run": run}})
        for i in range(4):
            learn(f"push {i} moved the cup {run} cm", pose=Pose("map", (i * 1.0, run * 1.0, 0.0)))
        learn("Grip slipped."), learn("grip slipped")
        memory.add_trajectory([Pose("map", (0.1 * i, 0.0, 0.0), stamp=i + 1) for i in range(5)])
        if run == 2:
            episode = memory.interrupt_session("dusk")
            assert episode is not None
        else:
            episode = memory.end_session(outcome=run / 2, summary=f"run {run}").episode
        heard.append(episode.memories[-1])
        episodes.append(episode)
    first = heard[0].id
    heard.append(memory.update(first, "the dock is behind the blue door")[1])
    return heard, episodes


QUERIES = [
    Query("dock door", n=20),
    Query("grip slipped", n=20),
    Query("push cup", n=20, context_filter={"task.run": 1}),
    Query("noise", spatial_sort={"field": "spatial.p", "target": [1, 2, 3]}),
    Query("cup", near=Near("map", (1.0, 1.0, 0.0), 1.5), n=20),
    Query("code", collection="secret"),
    Query("*", n=100),
]


def answers(memory: RobotMemory) -> list[list[tuple[str, float]]]:
    return [
        [(i.memory.uuid, round(i.score, 6)) for i in memory.recall(query).memories]
        for query in QUERIES
    ]


@pytest.mark.parametrize("order", ["as sent", "reversed", "episodes first", "shuffled", "twice"])
def test_a_store_made_from_what_another_published_answers_the_same(
    open_memory: Open, tmp_path: Path, order: str
) -> None:
    source = open_memory(owner="a")
    memories, episodes = a_day(source)
    heard: list[Memory | Episode] = [*memories, *episodes]
    if order == "reversed":
        heard.reverse()
    elif order == "episodes first":
        heard = [*episodes, *memories]
    elif order == "shuffled":
        random.Random(5).shuffle(heard)
    elif order == "twice":
        heard = heard * 2
    target = open_memory(db_path=str(tmp_path / "target.db"))
    for item in heard:
        if isinstance(item, Memory):
            target.import_memory(as_sent(item))
        else:
            memories = tuple(map(as_sent, item.memories))
            target.import_episode(dataclasses.replace(item, memories=memories))

    assert all_of(target) == all_of(source)
    there, here = source.episodes(collection="*"), target.episodes(collection="*")
    assert [e.session_id for e in here] == [e.session_id for e in there]
    for one, other in zip(here, there, strict=True):
        assert dataclasses.replace(one, memories=()) == dataclasses.replace(other, memories=())
        assert [m.uuid for m in one.memories] == [m.uuid for m in other.memories]
    assert target.status().superseded == 3
    assert (target.status().episodes, target.status().memories) == (
        source.status().episodes, source.status().memories,
    )  # fmt: skip
    ours, theirs = answers(target), answers(source)
    if order in ("as sent", "twice"):
        assert ours == theirs
    else:  # the numbers of the memories break ties, and follow the order
        assert [dict(one) for one in ours] == [dict(other) for other in theirs]


def test_what_is_new_is_said(memory: RobotMemory) -> None:
    heard = foreign()
    assert memory.import_memory(heard) is True
    assert memory.import_memory(heard) is False
    (stored,), _ = memory.get(uuids=[heard.uuid])
    assert (stored.content, stored.stamp, stored.created_at) == ("from afar", 5, 1)
    assert stored.last_access > 1  # it was learned here just now


def test_the_later_version_counts(memory: RobotMemory) -> None:
    old = foreign("old", updated_at=10, context={"v": 1})
    new = dataclasses.replace(old, content="new words", context={"v": 2}, updated_at=20)
    assert memory.import_memory(new) is True
    assert memory.import_memory(old) is False
    assert memory.import_memory(dataclasses.replace(new, content="same time")) is False
    newest = dataclasses.replace(new, content="newest", updated_at=30)
    assert memory.import_memory(newest) is True
    (stored,), _ = memory.get(uuids=[old.uuid])
    assert (stored.content, stored.context, stored.updated_at) == ("newest", {"v": 2}, 30)
    assert memory.recall(Query("newest")).memories[0].memory.uuid == old.uuid
    assert memory.recall(Query("words")).memories == ()


def test_an_update_made_here_is_later_than_one_heard(memory: RobotMemory) -> None:
    heard = foreign("theirs")
    memory.import_memory(heard)
    (stored,), _ = memory.get(uuids=[heard.uuid])
    memory.update(stored.id, "ours")
    assert memory.import_memory(dataclasses.replace(heard, updated_at=2)) is False
    assert memory.get(uuids=[heard.uuid])[0][0].content == "ours"


def test_what_was_forgotten_stays_forgotten(memory: RobotMemory) -> None:
    heard = foreign()
    memory.import_memory(heard)
    (stored,), _ = memory.get(uuids=[heard.uuid])
    memory.forget(stored.id, "wrong")
    assert memory.import_memory(heard) is False
    later = dataclasses.replace(heard, updated_at=99)
    assert memory.import_memory(later) is False
    session = Episode("s", "default", {}, "{}", 1, 2, None, "", False, (later,), ())
    assert memory.import_episode(session) == 0
    assert memory.status().memories == 0
    assert memory.episode("s").memories == ()


def test_experiences_of_two_robots_are_two(memory: RobotMemory) -> None:
    ours = memory.learn(Experience("door 3 is locked")).memory
    heard = foreign("door 3 is locked")
    assert memory.import_memory(heard) is True
    assert memory.get(uuids=[ours.uuid, heard.uuid])[1] == []
    again = memory.learn(Experience("door 3 is locked")).memory
    assert again.uuid == ours.uuid


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_what_replaced_a_memory_may_come_later(memory: RobotMemory, order: tuple[int]) -> None:
    stays = foreign("Cup.")
    plain = foreign("cup")
    merged = dataclasses.replace(plain, superseded_by=stays.uuid)
    other = foreign("cup!", superseded_by=stays.uuid)
    for i in order:
        memory.import_memory((stays, plain, merged, other)[i])
    assert [i.memory.uuid for i in memory.recall(Query("cup")).memories] == [stays.uuid]
    assert memory.import_memory(merged) is False
    found, _ = memory.get(uuids=[plain.uuid, other.uuid])
    assert [item.superseded_by for item in found] == [stays.uuid] * 2


def test_what_waits_for_its_replacement_is_recalled_until_then(memory: RobotMemory) -> None:
    stays, gone = foreign("Cup."), foreign("cup")
    gone = dataclasses.replace(gone, superseded_by=stays.uuid)
    assert memory.import_memory(gone) is True
    assert memory.import_memory(gone) is False
    assert [i.memory.uuid for i in memory.recall(Query("cup")).memories] == [gone.uuid]
    restored = memory.restore(memory.get(uuids=[gone.uuid])[0][0].id)
    memory.import_memory(stays)
    assert restored.superseded_by == ""
    assert len(memory.recall(Query("cup")).memories) == 2


def test_a_later_version_that_was_restored_is_back(memory: RobotMemory) -> None:
    stays = foreign("Cup.")
    gone = foreign("cup", superseded_by=stays.uuid)
    memory.import_memory(stays), memory.import_memory(gone)
    assert memory.import_memory(dataclasses.replace(gone, superseded_by="", updated_at=9)) is True
    assert len(memory.recall(Query("cup")).memories) == 2


def test_memories_that_replace_each_other_are_not_all_lost(memory: RobotMemory) -> None:
    names = [str(uuid.uuid4()) for _ in range(3)]
    for i in range(3):
        memory.import_memory(foreign("cup", uuid=names[i], superseded_by=names[(i + 1) % 3]))
    memory.import_memory(foreign("cup", superseded_by=names[0]))
    assert len(memory.recall(Query("cup")).memories) == 1
    alone = str(uuid.uuid4())
    memory.import_memory(foreign("lid", uuid=alone, superseded_by=alone))
    assert memory.recall(Query("lid")).memories[0].memory.superseded_by == ""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uuid", "17"),
        ("uuid", ""),
        ("content", "  "),
        ("content", "a\x00b"),
        ("content", "x" * 100_001),
        ("context_json", "[1]"),
        ("collection", ""),
        ("collection", "*"),
        ("session_id", "\ud800"),
        ("stored_confidence", 1.5),
        ("stored_confidence", float("nan")),
        ("stamp", 0),
        ("stamp", -1),
        ("expires", -1),
        ("created_at", 2**63),
        ("updated_at", -5),
        ("superseded_by", "17"),
        ("pose", Pose("", (0.0, 0.0, 0.0))),
        ("pose", Pose("map", (float("nan"), 0.0, 0.0))),
    ],
)
def test_a_memory_that_cannot_be_stored_is_refused(
    memory: RobotMemory, field: str, value: object
) -> None:
    name = {"context_json": "context", "stored_confidence": "confidence"}.get(field, field)
    wrong = dataclasses.replace(foreign(), **{field: value})
    with pytest.raises(InvalidRequestError, match=f"^{name}: "):
        memory.import_memory(wrong)
    session = Episode("s", "default", {}, "{}", 1, 2, None, "", False, (foreign(), wrong), ())
    with pytest.raises(InvalidRequestError, match=f"^{name}: "):
        memory.import_episode(session)
    assert (memory.status().memories, memory.status().episodes) == (0, 0)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("session_id", "", "session_id"),
        ("collection", "*", "collection"),
        ("context_json", "3", "context"),
        ("start", 0, "start"),
        ("end", 0, "end"),
        ("outcome", 2.0, "outcome_score"),
        ("summary", "\ud800", "summary"),
        ("trajectory", (Pose("", (0.0, 0.0, 0.0)),), "trajectory"),
    ],
)
def test_an_episode_that_cannot_be_stored_is_refused(
    memory: RobotMemory, field: str, value: object, name: str
) -> None:
    good = Episode("s", "default", {}, "{}", 1, 2, None, "", False, (), ())
    with pytest.raises(InvalidRequestError, match=f"^{name}: "):
        memory.import_episode(dataclasses.replace(good, **{field: value}))
    assert memory.status().episodes == 0
    assert memory.import_episode(good) == 0
    assert memory.status().episodes == 1


def test_ones_own_episode_heard_again_changes_nothing(memory: RobotMemory) -> None:
    memory.start_session()
    memory.learn(Experience("cup"))
    ended = memory.end_session(outcome=1.0).episode
    opened = memory.start_session().episode
    heard = dataclasses.replace(ended, outcome=0.0, memories=tuple(map(as_sent, ended.memories)))
    assert memory.import_episode(heard) == 0
    assert memory.episode(ended.session_id) == ended
    assert memory.import_episode(dataclasses.replace(heard, session_id=opened.session_id)) == 0
    assert memory.open_session == opened.session_id
    memory.end_session()


def test_an_imported_memory_gets_its_vector(open_memory: Open) -> None:
    memory = open_memory()
    memory.import_memory(foreign())
    with memory._store.snapshot() as snapshot:
        assert snapshot.counts().pending_embeddings == 1
