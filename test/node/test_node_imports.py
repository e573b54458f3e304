# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""import_topics: two robots that listen to each other know the same, once, and without a storm."""

from __future__ import annotations

import itertools
import json
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from driving import pose_at  # noqa: E402
from lifecycle_msgs.msg import Transition  # noqa: E402
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy  # noqa: E402
from std_msgs.msg import String  # noqa: E402

from robotmem_ros import msg, qos  # noqa: E402

NOW = time.time_ns() // 10**9

COUNT = 3000
"""Messages of a burst: more than a node takes while they come."""

LATCHED = QoSProfile(depth=10, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)
BEST_EFFORT = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)


def pair(
    start_node: Callable[..., Any], caller: Any, tmp_path: Any, names: str
) -> tuple[list[Any], list[list[Any]]]:
    """Return two robots that listen to each other, and what each publishes on ~/memories."""
    robots, heard = [], []
    for one, other in (names, reversed(names)):
        topics = ", ".join(f"/{other}/robotmem/{topic}" for topic in ("memories", "episodes"))
        process = start_node(
            namespace=f"/{one}", db_path=str(tmp_path / f"{one}.db"), import_topics=f"[{topics}]"
        )
        robots.append(harness.Robot(caller, process.name).wait_ready())
        heard.append(caller.listen(msg.Memory, f"{process.name}/memories", qos.MEMORIES))
    for one, other in (robots, reversed(robots)):
        introduce(one, other)
    return robots, heard


def introduce(one: Any, other: Any) -> None:
    """Have a robot say something until the other has heard it: DDS takes a while to connect."""
    # Not the same words from both: what the other has said already would be a duplicate, unsaid.
    said = one.learn(insight=f"this is {one.name}")
    for number in itertools.count():
        if other.get(uuids=[said.uuid]).success:
            return
        assert number < 100, "they do not hear each other"
        time.sleep(0.3)
        one.update(memory_id=said.memory_id, context=f'{{"said": {number}}}')


def test_two_robots_learn_from_each_other(
    start_node: Callable[..., Any], caller: Any, tmp_path: Any
) -> None:
    (a, b), (said_a, said_b) = pair(start_node, caller, tmp_path, "ab")
    before = len(said_a), len(said_b)
    context = '{"params": {"speed": {"value": 0.5, "unit": "m/s"}}}'
    learned = a.learn(
        insight="slow down at the ramp", context=context, has_pose=True, pose=pose_at(3.0, 4.0)
    )
    assert b.learn(insight="the lift is narrow").success
    for number in range(20):
        assert a.learn(insight=f"a {number}").success
        assert b.learn(insight=f"b {number}").success

    def count(robot: Any) -> int:
        return len(robot.recall(query="*", n=100).memories)

    harness.wait_for(lambda: count(a) == count(b) == 44)
    there = b.get(uuids=[learned.uuid]).memories[0]
    here = a.get(uuids=[learned.uuid]).memories[0]
    for field in ("header", "uuid", "type", "content", "context", "pose", "created_at"):
        assert getattr(there, field) == getattr(here, field), field
    assert b.recall(query="ramp").memories[0].content == "slow down at the ramp"

    # Changed by its owner, it changes on the other robot too.
    assert a.update(memory_id=learned.memory_id, new_content="stop at the ramp").success
    harness.wait_for(lambda: b.recall(query="stop ramp").memories[0].content == "stop at the ramp")

    # Nobody passes on what it heard, so that nothing goes round and round.
    time.sleep(1.5)
    assert (len(said_a) - before[0], len(said_b) - before[1]) == (22, 21)
    assert count(a) == count(b) == 44


def test_episodes_are_imported_whole_also_by_whoever_comes_late(
    start_node: Callable[..., Any], caller: Any, tmp_path: Any
) -> None:
    first = start_node(namespace="/early", db_path=str(tmp_path / "early.db"))
    robot = harness.Robot(caller, first.name).wait_ready()
    session = robot.start_session(context='{"task": {"name": "carry"}}').session_id
    for text in ("picked it up", "carried it", "put it down"):
        assert robot.learn(insight=text).success
    assert robot.end_session(has_outcome=True, outcome_score=0.9).success
    second = start_node(
        namespace="/late",
        db_path=str(tmp_path / "late.db"),
        import_topics=f"[{first.name}/memories, {first.name}/episodes]",
    )
    late = harness.Robot(caller, second.name).wait_ready()
    replay = {"query": "*", "session_id": session, "n": 10}
    harness.wait_for(lambda: len(late.recall(**replay).memories) == 4)
    told, known = late.recall(**replay).memories, robot.recall(**replay).memories
    assert [m.uuid for m in told] == [m.uuid for m in known]
    assert [m.context for m in told] == [m.context for m in known]
    statuses = caller.listen(msg.Status, f"{second.name}/status", qos.STATUS)
    harness.wait_for(lambda: statuses and statuses[-1].episodes == 1)
    assert statuses[-1].open_session == ""

    # They are the first robot's to tell, also after a restart of the second.
    second.kill(signal.SIGTERM)
    assert second.wait() == 0
    third = start_node(namespace="/later", db_path=str(tmp_path / "late.db"))
    later = harness.Robot(caller, third.name).wait_ready()
    heard = caller.listen(msg.Episode, f"{third.name}/episodes", qos.EPISODES)
    assert later.start_session().success
    own = later.end_session().episode.session_id
    harness.wait_for(lambda: heard)
    assert [e.session_id for e in heard] == [own]


def memory(number: int, **fields: Any) -> msg.Memory:
    message = msg.Memory(
        uuid=f"00000000-0000-4000-8000-{number:012d}", type="fact", content=f"played {number}",
        context="{}", collection="default", confidence=0.9,
    )  # fmt: skip
    message.header.stamp.sec = message.created_at.sec = message.updated_at.sec = NOW
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def test_a_player_of_any_quality_of_service_is_heard_and_bad_messages_do_no_harm(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(import_topics="[/player/things, /player/words]")
    robot = harness.Robot(caller, process.name).wait_ready()
    profile = QoSProfile(
        depth=100,
        reliability=QoSReliabilityPolicy.BEST_EFFORT,
        durability=QoSDurabilityPolicy.TRANSIENT_LOCAL,
    )
    player = caller.node.create_publisher(msg.Memory, "/player/things", profile)
    words = caller.node.create_publisher(String, "/player/words", 10)
    harness.wait_for(lambda: player.get_subscription_count())
    time.sleep(1.5)  # it may have to subscribe as the player needs it
    bad = [
        memory(1, uuid="no uuid"), memory(2, type="rumour"), memory(3, content=""),
        memory(4, context="{"), memory(5, collection="*"), memory(6, confidence=7.0),
        memory(7, has_pose=True),
    ]  # fmt: skip
    for message in (*bad, memory(8), memory(8), memory(9)):
        player.publish(message)
        time.sleep(0.02)
    words.publish(String(data="no memory"))
    harness.wait_for(lambda: len(robot.recall(query="*", n=100).memories) == 2)
    time.sleep(0.3)
    found = robot.recall(query="*", n=100).memories
    assert {m.content for m in found} == {"played 8", "played 9"}
    assert robot.learn(insight="still well").success
    assert "Traceback" not in process.stderr
    assert "no UUID" in process.stderr


def test_a_burst_is_stored_completely(start_node: Callable[..., Any], caller: Any) -> None:
    process = start_node(import_topics="[/burst/memories]")
    robot = harness.Robot(caller, process.name).wait_ready()
    deep = QoSProfile(depth=COUNT, durability=QoSDurabilityPolicy.VOLATILE)
    player = caller.node.create_publisher(msg.Memory, "/burst/memories", deep)
    harness.wait_for(lambda: player.get_subscription_count())
    time.sleep(0.5)
    for number in range(COUNT):
        player.publish(memory(number))
    statuses = caller.listen(msg.Status, f"{process.name}/status", qos.STATUS)
    harness.wait_for(lambda: statuses and statuses[-1].memories == COUNT)
    last = robot.get(uuids=[memory(COUNT - 1).uuid]).memories[0]
    assert last.content == f"played {COUNT - 1}"
    assert "lost" not in process.stderr


def test_what_a_player_says_faster_than_dds_carries_is_told_to_be_lost(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(import_topics="[/hasty/memories]")
    harness.Robot(caller, process.name).wait_ready()
    shallow = QoSProfile(depth=1, durability=QoSDurabilityPolicy.VOLATILE)
    player = caller.node.create_publisher(msg.Memory, "/hasty/memories", shallow)
    harness.wait_for(lambda: player.get_subscription_count())
    time.sleep(0.5)
    numbers = itertools.count()

    def is_told() -> bool:
        for number in itertools.islice(numbers, 1000):
            player.publish(memory(number, context=json.dumps({"padding": "x" * 5000})))
        return "/hasty/memories: messages were lost on the way" in process.stderr

    harness.wait_for(is_told)


def test_who_joins_with_another_quality_of_service_costs_the_others_no_message(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(import_topics="[/mixed/memories]")
    robot = harness.Robot(caller, process.name).wait_ready()
    steady = caller.node.create_publisher(msg.Memory, "/mixed/memories", qos.MEMORIES)
    harness.wait_for(lambda: steady.get_subscription_count())
    time.sleep(0.5)
    joined = []
    for number in range(900):
        if number in (100, 500):  # DDS and the node have both a good second to find each
            profile = LATCHED if number == 100 else BEST_EFFORT
            joined.append(caller.node.create_publisher(msg.Memory, "/mixed/memories", profile))
            joined[-1].publish(memory(1000 + number))
        steady.publish(memory(number))
        time.sleep(0.005)
    joined[-1].publish(memory(2000))
    numbers = (*range(900), 1100, 2000)
    uuids = [memory(number).uuid for number in numbers]
    for start in range(0, len(uuids), 100):
        some = uuids[start : start + 100]
        harness.wait_for(lambda some=some: robot.get(uuids=some).success, timeout=10.0)
    for publisher in (steady, *joined):
        caller.node.destroy_publisher(publisher)


@pytest.mark.parametrize(
    ("topics", "word"), [("['a b']", "a b"), ("[/x, /x]", "twice"), ("['/x', 'no//pe']", "no//pe")]
)
def test_a_wrong_name_stops_the_start_with_one_line(
    start_node: Callable[..., Any], topics: str, word: str
) -> None:
    process = start_node(import_topics=topics)
    assert process.wait() == 2
    assert len(process.stderr.strip().splitlines()) == 1
    assert "import_topics" in process.stderr
    assert word in process.stderr


def test_it_can_be_deactivated_and_activated(start_node: Callable[..., Any], caller: Any) -> None:
    process = start_node(import_topics="[/again/memories]")
    robot = harness.Robot(caller, process.name).wait_ready()
    player = caller.node.create_publisher(msg.Memory, "/again/memories", qos.MEMORIES)
    harness.wait_for(lambda: player.get_subscription_count())
    for label in ("deactivate", "activate"):
        assert robot.change_state(transition=Transition(label=label)).success
    harness.wait_for(lambda: player.get_subscription_count())
    time.sleep(0.5)
    player.publish(memory(1))
    harness.wait_for(lambda: len(robot.recall(query="*").memories) == 1)
