# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Memories and episodes as messages: into a bag or over a topic, into another store, unchanged."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bag_writer import (
    FORMATS,
    SECOND,
    START,
    Sent,
    header,
    make,
    stamp,
    write_bag,
)

from robotmem_ros.core.config import Config
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
from robotmem_ros.importing import Importer, episode_from_message, memory_from_message

Open = Callable[[str], RobotMemory]

QUERIES = (
    Query("slippery floor at the sink", n=10),
    Query("grasp the red cup", n=5, context_filter={"task.success": True}),
    Query("*", n=50),
    Query("cup", n=10, near=Near("map", (3.0, 4.0, 0.0), radius=5.0)),
    Query("抓取 杯子", n=10),
)


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Open]:
    opened: list[RobotMemory] = []

    def start(name: str) -> RobotMemory:
        config = Config(db_path=str(tmp_path / f"{name}.db"), embed_backend="none")
        opened.append(RobotMemory(config, now=lambda: START + 60 * SECOND, owner=name))
        return opened[-1]

    yield start
    for store in opened:
        store.close()


def fill(store: RobotMemory) -> tuple[list[Memory], list[Episode]]:
    """Learn all kinds of things, some in an episode; return what a node would have published."""
    chance = random.Random(5)
    texts = [
        "grasped the red cup",
        "slippery floor at the sink",
        "抓取红色杯子",
        "door was closed",
    ]
    experiences = [
        Experience(
            f"{chance.choice(texts)}, attempt {number}",
            context={"task": {"success": number % 2 == 0}, "params": {"force": number / 7}},
            stamp=START + number * SECOND,
            pose=Pose("map", (number / 3, 4.0, 0.1), (0.0, 0.0, 0.6, 0.8), START + number * SECOND)
            if number % 3
            else None,
            confidence=0.5 + number / 100,
            expires=START + 10**6 * SECOND if number % 7 == 0 else 0,
            type=MemoryType.PERCEPTION if number % 5 == 0 else MemoryType.FACT,
            perception_type=PerceptionType.VISUAL if number % 5 == 0 else None,
        )
        for number in range(40)
    ]
    learned = [store.learn(one).memory for one in experiences[:20]]
    store.start_session({"task": {"name": "fetch"}})
    store.add_trajectory([Pose("map", (n / 2, 0.0, 0.0), stamp=START + n) for n in range(30)])
    learned += [store.learn(one).memory for one in experiences[20:]]
    ended = store.end_session(outcome=0.75, summary="fetched the cup").episode
    return learned, [ended]


def memory_message(memory: Memory) -> Any:
    """Return a Memory message as the node makes it, of the classes that rosbags makes."""
    pose = memory.pose or Pose("", (0.0, 0.0, 0.0))
    return make(
        "robotmem_ros/msg/Memory",
        header=header(memory.stamp, pose.frame_id),
        uuid=memory.uuid,
        id=memory.id,
        type=memory.type.value,
        perception_type=memory.perception_type.value if memory.perception_type else "",
        content=memory.content,
        context=memory.context_json,
        collection=memory.collection,
        session_id=memory.session_id,
        confidence=memory.confidence,
        score=0.0,
        distance=float("nan"),
        has_pose=memory.pose is not None,
        pose=pose_message(pose),
        created_at=stamp(memory.created_at),
        updated_at=stamp(memory.updated_at),
        expires=stamp(memory.expires),
        superseded_by=memory.superseded_by,
        access_count=memory.access_count,
        score_details="",
    )


def pose_message(pose: Pose) -> Any:
    (x, y, z), (qx, qy, qz, qw) = pose.position, pose.orientation
    return make(
        "geometry_msgs/msg/Pose",
        position=make("geometry_msgs/msg/Point", x=x, y=y, z=z),
        orientation=make("geometry_msgs/msg/Quaternion", x=qx, y=qy, z=qz, w=qw),
    )


def episode_message(episode: Episode) -> Any:
    return make(
        "robotmem_ros/msg/Episode",
        header=header(episode.end, "map"),
        session_id=episode.session_id,
        collection=episode.collection,
        context=episode.context_json,
        start=stamp(episode.start),
        end=stamp(episode.end),
        has_outcome=episode.outcome is not None,
        outcome_score=episode.outcome or 0.0,
        summary=episode.summary,
        interrupted=episode.interrupted,
        memories=[memory_message(memory) for memory in episode.memories],
        trajectory=[
            make(
                "geometry_msgs/msg/PoseStamped",
                header=header(pose.stamp, pose.frame_id),
                pose=pose_message(pose),
            )
            for pose in episode.trajectory
        ],
    )


def recorded(memories: list[Memory], episodes: list[Episode]) -> list[Sent]:
    """Return what a recorder hears of ~/memories and ~/episodes."""
    messages = [("memories", memory_message(one)) for one in memories]
    messages += [("episodes", episode_message(one)) for one in episodes]
    return [
        Sent(START + number, f"/robot1/robotmem/{topic}", message)
        for number, (topic, message) in enumerate(messages)
    ]


def answers(store: RobotMemory, everything: bool = False) -> list[list[tuple[Any, ...]]]:
    """Return what a store answers: all that is the same in every store."""
    found = []
    for query in QUERIES:
        result = store.recall(dataclasses.replace(query, n=100) if everything else query)
        found.append(
            [
                (one.memory.uuid, round(one.score, 9), one.memory.content, one.memory.stamp,
                 one.memory.context_json, place(one.memory.pose), one.memory.session_id)
                for one in result.memories
            ]
        )  # fmt: skip
    return found


def place(pose: Pose | None) -> Pose | None:
    """Return a pose without its stamp: a message carries that of the memory instead."""
    return pose and dataclasses.replace(pose, stamp=0)


@pytest.mark.parametrize("storage", FORMATS)
def test_a_recorded_store_answers_the_same_from_another_one(
    tmp_path: Path, open_store: Open, storage: str, run: Callable[..., Any], db: Path
) -> None:
    store = open_store("robot1")
    learned, ended = fill(store)
    before = answers(store)
    assert all(len(answer) > 3 for answer in before)
    bag = write_bag(tmp_path / "bag", storage, recorded(learned, ended))
    ran = run(bag, parameters=None)
    assert (ran.code, ran.problems) == (0, [])
    assert "41 memories new, 0 updated" in ran.out
    assert "1 of 1 episodes new" in ran.out
    again = run(bag, parameters=None)
    assert "0 memories new, 0 updated" in again.out
    assert "0 of 1 episodes new" in again.out
    other = open_store(db.stem)
    assert answers(other) == before
    (episode,) = other.episodes(10, "*")
    assert without_ids(episode) == without_ids(ended[0])


def without_ids(episode: Episode) -> Episode:
    """Return an episode without what is each store's own affair."""
    memories = tuple(
        dataclasses.replace(
            memory,
            id=0,
            last_access=0,
            confidence=0.0,
            access_count=0,
            return_count=0,
            pose=place(memory.pose),
        )
        for memory in episode.memories
    )
    return dataclasses.replace(episode, memories=memories)


def test_messages_in_any_order_and_twice_make_the_same_store(open_store: Open) -> None:
    """What scores the same is ordered by arrival; all else is the same."""
    store = open_store("robot1")
    learned, ended = fill(store)
    before = [{row[0]: row for row in answer} for answer in answers(store, everything=True)]
    messages = [sent.message for sent in recorded(learned, ended)]
    for seed in range(4):
        order = messages * 2
        random.Random(seed).shuffle(order)
        other = open_store(f"other{seed}")
        importer = Importer(other)
        for message in order:
            is_memory = message.__msgtype__.endswith("Memory")
            (importer.memory if is_memory else importer.episode)(message)
        after = [{row[0]: row for row in answer} for answer in answers(other, everything=True)]
        assert after == before


def test_what_is_known_changes_nothing(open_store: Open) -> None:
    store = open_store("robot1")
    learned, ended = fill(store)
    importer = Importer(store)  # its own messages come back to it
    assert not any(importer.memory(memory_message(one)) for one in learned)
    assert not any(importer.episode(episode_message(one)) for one in ended)


def test_only_the_collections_asked_for_are_stored(open_store: Open) -> None:
    learned, _ = fill(open_store("robot1"))
    importer = Importer(open_store("other"), ["kitchen"])
    assert not importer.memory(memory_message(learned[0]))
    kitchen = dataclasses.replace(learned[0], collection="kitchen")
    assert importer.memory(memory_message(kitchen))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uuid", "no uuid"),
        ("type", "rumour"),
        ("perception_type", "smell"),
        ("content", ""),
        ("context", "{"),
        ("collection", ""),
        ("collection", "*"),
        ("confidence", float("nan")),
        ("header", header(0, "map")),
        ("created_at", make("builtin_interfaces/msg/Time", sec=-5, nanosec=0)),
        ("pose", pose_message(Pose("map", (float("inf"), 0.0, 0.0)))),
    ],
)
def test_a_message_that_cannot_be_used_is_refused_by_field_and_stores_nothing(
    open_store: Open, field: str, value: Any
) -> None:
    learned, _ = fill(open_store("robot1"))
    message = memory_message(learned[1])
    setattr(message, field, value)
    other = open_store("other")
    with pytest.raises(InvalidRequestError):
        Importer(other).memory(message)
    assert other.status().memories == 0


def test_conversions_keep_every_field(open_store: Open) -> None:
    learned, ended = fill(open_store("robot1"))
    for memory in learned:
        pose = memory.pose and dataclasses.replace(memory.pose, stamp=memory.stamp)
        same = dataclasses.replace(
            memory, id=0, pose=pose, last_access=0, stored_confidence=memory.confidence
        )
        assert memory_from_message(memory_message(memory)) == same
    episode = episode_from_message(episode_message(ended[0]))
    assert episode.trajectory == ended[0].trajectory
    assert dataclasses.replace(episode, memories=()) == dataclasses.replace(ended[0], memories=())
