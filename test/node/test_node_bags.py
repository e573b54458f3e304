# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""One recording, played to a running node and imported offline, makes the same memories, once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")
pytest.importorskip("rosbags", reason="reads and writes the bags")

from bag_over_dds import Player, nanoseconds  # noqa: E402
from bag_writer import (  # noqa: E402
    FORMATS,
    SECOND,
    START,
    Sent,
    amcl_pose,
    drive,
    header,
    joints,
    make,
    odometry,
    pose,
    write_bag,
)
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402

from robotmem_ros import qos  # noqa: E402
from robotmem_ros.cli.main import main  # noqa: E402
from robotmem_ros.core.config import Config  # noqa: E402
from robotmem_ros.core.memory import RobotMemory  # noqa: E402
from robotmem_ros.core.model import Episode, Memory, MemoryType, Query  # noqa: E402

SIMULATED = 100 * SECOND
"""When the recording begins for the robot in it: far from the wall time, which is START."""

NOTES = ((1.05, "picked the red cup"), (2.55, "the floor is wet"), (4.05, "lost the cup"))

SOURCES = """
/**:
  ros__parameters:
    context_sources: [odom, amcl, joints]
    pose_source: amcl
    odom.topic: /odom
    odom.type: nav_msgs/msg/Odometry
    odom.fields: ["spatial.odom = pose.pose.position", "robot.speed = twist.twist.linear.x"]
    amcl.topic: /amcl_pose
    amcl.type: geometry_msgs/msg/PoseWithCovarianceStamped
    amcl.max_age: 0.0
    amcl.fields: ["spatial.position = pose.pose.position"]
    joints.topic: /joint_states
    joints.type: sensor_msgs/msg/JointState
    joints.fields: ["robot.wrist = position[2]", "robot.joints = position"]
"""
HEARD = {"/odom": "odom", "/amcl_pose": "amcl", "/joint_states": "joints"}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    file = tmp_path / "sources.yaml"
    file.write_text(SOURCES)
    return file


def driven() -> list[Sent]:
    """Return what is heard of a drive, in which the robot is told once more where it is."""
    sent = [*drive(5.0, simulated_from=SIMULATED, notes=NOTES), at(2.0, amcl_pose, 12.0, 20.5)]
    return [one for one in sent if one.topic != "/grip"]  # of a type that ROS does not have here


def troubled() -> list[Sent]:
    """Return the same with all that can be wrong in what a robot senses."""
    sent = []
    for one in driven():
        seconds = (one.time - START) / SECOND
        if one.topic == "/odom" and 0.9 < seconds < 1.06:
            one = at(seconds, odometry, math.nan)
        elif one.topic == "/joint_states" and seconds > 2.51:
            continue  # it stops
        elif one.topic == "/joint_states" and seconds > 2.49:
            one = at(seconds, joints, *[0.25] * 10_000)
        sent.append(one)
    sent.append(at(0.5, amcl_pose, math.nan, 20.0))
    in_an_hour = amcl_pose(SIMULATED + 3600 * SECOND, 77.0, 77.0)
    sent.append(Sent(START + 3 * SECOND, "/amcl_pose", in_an_hour))
    cup = make("geometry_msgs/msg/PoseStamped", header=header(0, "map"), pose=pose(1.0, 2.0))
    sent.append(Sent(START + 4 * SECOND, "/cup", cup))  # its stamp is 0
    return sent


def at(seconds: float, kind: Callable[..., Any], *values: float) -> Sent:
    """Return what is said that many seconds after the beginning."""
    topic = {odometry: "/odom", amcl_pose: "/amcl_pose", joints: "/joint_states"}[kind]
    offset = round(seconds * SECOND)
    return Sent(START + offset, topic, kind(SIMULATED + offset, *values))


def record(path: Path, storage: str, sent: list[Sent]) -> Path:
    """Write a recording."""
    in_order = sorted(sent, key=lambda one: one.time)
    return write_bag(path, storage, in_order, latched=["/amcl_pose"])


class Senses:
    """What a node has heard of a player, by its /diagnostics."""

    def __init__(self, caller: Any, process: Any) -> None:
        self._name = f"{process.name.strip('/')}: sources"
        self._last: Any = None
        caller.node.create_subscription(
            DiagnosticArray, "/diagnostics", self._on_array, qos.DIAGNOSTICS
        )
        caller.executor.wake()

    def wait_for(self, player: Player) -> None:
        """Wait until the node has heard all that a player has said, its /clock too."""
        ages = {
            name: f"{topic}: {(player.clock - player.stamps[topic]) / SECOND:.2f} s old"
            for topic, name in HEARD.items()
        }
        harness.wait_for(lambda: self._last == (player.clock, ages))

    def _on_array(self, array: Any) -> None:
        for status in array.status:
            if status.name == self._name:
                values = {value.key: value.value for value in status.values}
                # Without what stands behind, such as that it is stale.
                ages = {name: values.get(name, "").partition(";")[0] for name in HEARD.values()}
                self._last = nanoseconds(array.header.stamp), ages


def play(
    caller: Any, senses: Senses, bag: Path, at_note: Callable[[str], Any], rate: float = 3.0
) -> None:
    """Play a bag to a node, and do something at the moments of its notes."""

    def pause(message: Any) -> None:
        senses.wait_for(player)
        at_note(message.data)

    with Player(caller, bag, rate) as player:
        player.wait_for_listeners(("/clock", *HEARD))
        player.play({"/note": pause})
        senses.wait_for(player)


def stored(db: Path, kind: MemoryType) -> list[Memory]:
    """Return the memories of a kind in the order in which they happened.

    Without what is each store's own affair: numbers and names, the episode, wall times, and in
    which bag it was.
    """
    with RobotMemory(Config(db_path=str(db), embed_backend="none"), owner="test") as memory:
        found = [one.memory for one in memory.recall(Query("*", n=100)).memories]
    return [
        dataclasses.replace(
            one,
            id=0,
            uuid="",
            session_id="",
            confidence=0.0,
            created_at=0,
            updated_at=0,
            last_access=0,
            access_count=0,
            return_count=0,
            context={key: value for key, value in one.context.items() if key != "recording"},
            context_json="",
        )
        for one in sorted(found, key=lambda one: one.stamp)
        if one.type is kind
    ]


def episodes(db: Path) -> list[Episode]:
    with RobotMemory(Config(db_path=str(db), embed_backend="none"), owner="test") as memory:
        return sorted(memory.episodes(100, "*"), key=lambda episode: episode.start)


@pytest.mark.parametrize("storage", FORMATS)
def test_a_bag_played_live_and_imported_offline_makes_the_same_memories_once(
    start_node: Callable[..., Any],
    caller: Any,
    tmp_path: Path,
    sources: Path,
    storage: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bag = record(tmp_path / "bag", storage, driven())
    live, offline = tmp_path / "live.db", tmp_path / "offline.db"

    process = start_node(
        db_path=str(live), use_sim_time=True, arguments=("--params-file", str(sources))
    )
    robot = harness.Robot(caller, process.name).wait_ready()
    senses = Senses(caller, process)
    said: list[str] = []

    def learn(text: str) -> None:
        answer = robot.learn(insight=text)
        assert answer.success, answer.message
        said.append(answer.status)

    play(caller, senses, bag, learn)
    assert said == ["created"] * len(NOTES)
    process.end()
    once = stored(live, MemoryType.FACT)

    process = start_node(
        db_path=str(live), use_sim_time=True, arguments=("--params-file", str(sources))
    )
    robot = harness.Robot(caller, process.name).wait_ready()
    senses = Senses(caller, process)
    said.clear()
    for _ in range(2):  # to a node that has just started, and to one whose /clock jumps back
        play(caller, senses, bag, learn)
    assert said == ["duplicate"] * 2 * len(NOTES)
    process.end()
    assert stored(live, MemoryType.FACT) == once

    command = ["import", str(bag), "--marker", "/note", "--params-file", str(sources)]
    assert main([*command, "--db", str(offline)]) == 0
    assert " 0 already there" in capsys.readouterr().out
    assert stored(offline, MemoryType.FACT) == once
    assert main([*command, "--db", str(offline)]) == 0
    assert " 0 memories new, 0 updated" in capsys.readouterr().out
    assert stored(offline, MemoryType.FACT) == once

    # And both are what the recording says.
    assert [one.content for one in once] == [text for _, text in NOTES]
    assert [one.stamp for one in once] == [SIMULATED + round(at * SECOND) for at, _ in NOTES]
    where = [(one.pose.frame_id, one.pose.position, one.pose.stamp) for one in once if one.pose]
    first = ("map", (10.0, 20.0, 0.0), SIMULATED - SECOND)
    moved = ("map", (12.0, 20.5, 0.0), SIMULATED + 2 * SECOND)
    assert where == [first, moved, moved]
    wet = once[1].context
    assert wet["spatial"] == {"odom": [1.25, 0.0, 0.0], "position": [12.0, 20.5, 0.0]}
    assert wet["robot"] == {"speed": 0.5, "wrist": 0.5, "joints": [0.1, 0.2, 0.5]}
    assert wet["ros"]["odom"] == {
        "topic": "/odom",
        "frame": "odom",
        "stamp": 102.5,
        "age": 0.05,
        "fields": ["spatial.odom", "robot.speed"],
    }


def test_episodes_between_notes_begin_end_and_lead_along_as_in_the_recording(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path, sources: Path
) -> None:
    """Live, whoever hears the notes opens and ends them; offline the importer does."""
    bag = record(tmp_path / "bag", "mcap", driven())
    live, offline = tmp_path / "live.db", tmp_path / "offline.db"
    process = start_node(
        db_path=str(live),
        use_sim_time=True,
        arguments=("--params-file", str(sources)),
        pose_source="odom",
        trajectory_rate=5.0,
    )
    robot = harness.Robot(caller, process.name).wait_ready()
    texts: list[str] = []

    def cut(text: str) -> None:
        if texts:
            assert robot.end_session(summary=texts[-1]).success
        assert robot.start_session().success
        assert robot.learn(insight=text).success
        texts.append(text)

    # As fast as it was: the way is sampled by the wall clock.
    play(caller, Senses(caller, process), bag, cut, rate=1.0)
    assert robot.end_session(summary=texts[-1]).success
    process.end()
    command = ["import", str(bag), "--marker", "/note", "--params-file", str(sources)]
    command += ["--set", "pose_source=odom", "--set", "trajectory_rate=5.0"]
    assert main([*command, "--db", str(offline)]) == 0

    told = [
        [(one.start, one.end, one.summary, one.interrupted) for one in episodes(db)]
        for db in (live, offline)
    ]
    assert told[0] == told[1][1:]  # the importer makes one of what was before the first note, too
    assert stored(live, MemoryType.FACT) == stored(offline, MemoryType.FACT)
    for one in (*episodes(live), *episodes(offline)):
        assert len(one.trajectory) >= 2
        for place in one.trajectory:
            seconds = (place.stamp - SIMULATED) / SECOND  # at 0.5 m/s along x
            assert place.frame_id == "odom"
            assert place.position == pytest.approx((0.5 * seconds, 0.0, 0.0))
            assert one.start - SECOND // 10 <= place.stamp <= one.end


def test_what_is_wrong_in_a_recording_is_treated_the_same_live_and_offline(
    start_node: Callable[..., Any], caller: Any, tmp_path: Path, sources: Path
) -> None:
    bag = record(tmp_path / "bag", "sqlite3", troubled())
    live, offline = tmp_path / "live.db", tmp_path / "offline.db"
    with sources.open("a") as file:
        file.write("""\
    joints.max_age: 1.0
    cup.topic: /cup
    cup.type: geometry_msgs/msg/PoseStamped
    cup.fields: ["spatial.object_position = pose.position"]
""")
    more = "context_sources=[odom, amcl, joints, cup]"
    process = start_node(
        db_path=str(live),
        use_sim_time=True,
        arguments=("--params-file", str(sources), "-p", more.replace("=", ":=")),
    )
    robot = harness.Robot(caller, process.name).wait_ready()
    senses = Senses(caller, process)
    play(caller, senses, bag, lambda text: robot.learn(insight=text))
    process.end()
    command = ["import", str(bag), "--marker", "/note", "--params-file", str(sources)]
    assert main([*command, "--set", more, "--db", str(offline)]) == 0

    both = [stored(db, MemoryType.FACT) for db in (live, offline)]
    # Without a stamp of its own a message happened when it came, which only the importer knows
    # exactly.
    came = [one[2].context["ros"].pop("cup") for one in both]
    assert came[1]["stamp"] == 104.0
    assert came[0]["stamp"] == pytest.approx(104.0, abs=0.2)
    assert both[0] == both[1]

    nan, array, stopped = both[0]
    assert nan.pose is None
    assert nan.context["ros"]["not_finite"] == ["spatial.odom", "spatial.position", "pose"]
    assert "spatial" not in nan.context
    assert nan.context["robot"] == {"speed": 0.5, "wrist": 0.2, "joints": [0.1, 0.2, 0.2]}
    assert array.context["ros"]["too_long"] == ["robot.joints"]
    assert array.context["robot"] == {"speed": 0.5, "wrist": 0.25}
    assert stopped.context["ros"]["stale"] == {"joints": 1.55}
    assert stopped.context["robot"] == {"speed": 0.5}
    assert stopped.pose is not None  # that of the past, not the one of the future
    assert stopped.pose.position == (12.0, 20.5, 0.0)
    assert stopped.context["spatial"]["object_position"] == [1.0, 2.0, 0.0]
