# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Live topics, published to the node over DDS, become context and pose of what it learns."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")
streams = pytest.importorskip("streams", reason="needs ROS 2")

from geometry_msgs.msg import Point, PointStamped, PoseWithCovarianceStamped  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64, Header  # noqa: E402

ODOM: dict[str, Any] = {
    "context_sources": ["odom"],
    "odom.topic": "odom",
    "odom.type": "nav_msgs/msg/Odometry",
    "odom.fields": [
        "spatial.position = pose.pose.position",
        "spatial.orientation = pose.pose.orientation",
        "robot.speed = twist.twist.linear.x",
    ],
}
LOAD: dict[str, Any] = {
    "context_sources": ["load"],
    "load.topic": "load",
    "load.type": "std_msgs/msg/Float64",
    "load.fields": ["params.load.value = data"],
}
numbers = itertools.count(1)


def odometry(x: float = 1.0, frame: str = "odom") -> Odometry:
    message = Odometry(header=Header(frame_id=frame))
    message.pose.pose.position.x = x
    message.pose.pose.orientation.z = message.pose.pose.orientation.w = math.sqrt(0.5)
    message.twist.twist.linear.x = 0.25
    return message


class Run:
    """A node with sources, and what it captures."""

    def __init__(self, process: Any, caller: Any) -> None:
        self.process = process
        self.name = process.name
        self.namespace = process.name.rsplit("/", 1)[0]
        self.robot = harness.Robot(caller, process.name).wait_ready()
        self.node = caller.node

    def stream(self, topic: str, message: Any, *arguments: Any, **options: Any) -> Any:
        return streams.Stream(
            self.node, f"{self.namespace}/{topic}", message, *arguments, **options
        )

    def learn(self, **request: Any) -> tuple[dict[str, Any], Any]:
        """Return the context and the memory of something learned now."""
        request.setdefault("insight", f"experience {next(numbers)}")
        answer = self.robot.learn(**request)
        assert answer.success, answer.message
        (memory,) = self.robot.get(memory_ids=[answer.memory_id]).memories
        assert json.loads(answer.context) == json.loads(memory.context)
        return json.loads(answer.context), memory

    def wait_captured(self, *path: str) -> tuple[dict[str, Any], Any]:
        """Return what is learned as soon as something is captured at a path."""

        def look() -> Any:
            context, memory = self.learn()
            value: Any = context
            for key in path:
                value = value.get(key) if isinstance(value, dict) else None
            return (context, memory) if value is not None else None

        found: tuple[dict[str, Any], Any] = harness.wait_for(look)
        return found


@pytest.fixture
def run(start_node: Callable[..., Any], caller: Any) -> Callable[..., Run]:
    return lambda **parameters: Run(start_node(**parameters), caller)


@pytest.mark.parametrize("profile", ["BEST_EFFORT", "RELIABLE", "LATCHED"])
def test_a_publisher_of_any_quality_is_captured(run: Callable[..., Run], profile: str) -> None:
    node = run(**ODOM, pose_source="odom")
    with node.stream("odom", odometry(), getattr(streams, profile)):
        context, memory = node.wait_captured("spatial")
    assert context["spatial"]["position"] == [1.0, 0.0, 0.0]
    assert context["spatial"]["orientation"] == pytest.approx([0, 0, 0.5**0.5, 0.5**0.5])
    assert context["robot"] == {"speed": 0.25}
    origin = context["ros"]["odom"]
    assert (origin["topic"], origin["frame"]) == (f"{node.namespace}/odom", "odom")
    assert 0.0 <= origin["age"] < 2.0
    stamp = memory.header.stamp.sec + memory.header.stamp.nanosec / 1e9
    assert origin["stamp"] + origin["age"] == pytest.approx(stamp, abs=1e-3)
    assert set(origin["fields"]) == {
        "pose",
        "spatial.position",
        "spatial.orientation",
        "robot.speed",
    }
    assert (memory.has_pose, memory.header.frame_id) == (True, "odom")
    near = PointStamped(header=Header(frame_id="odom"), point=Point(x=1.0, y=1.0))
    (found,) = node.robot.recall(
        query="*", n=1, use_near=True, near=near, near_radius=1.5
    ).memories
    assert found.distance == pytest.approx(1.0)


def test_a_latched_pose_from_before_the_start_is_received(
    run: Callable[..., Run], caller: Any
) -> None:
    amcl = PoseWithCovarianceStamped(header=Header(frame_id="map"))
    amcl.header.stamp = streams.stamped(time.time() - 100.0)
    amcl.pose.pose.position.x = 7.0
    topic = "/before_the_start/amcl_pose"
    publisher = caller.node.create_publisher(type(amcl), topic, streams.LATCHED)
    publisher.publish(amcl)
    sources = {
        "context_sources": ["amcl"],
        "amcl.topic": topic,
        "amcl.type": "geometry_msgs/msg/PoseWithCovarianceStamped",
        "amcl.max_age": 0.0,
    }
    node = run(**sources, pose_source="amcl")
    context, memory = node.wait_captured("ros", "amcl")
    assert context["ros"]["amcl"]["age"] >= 100.0
    assert context["ros"]["amcl"]["fields"] == ["pose"]
    assert (memory.header.frame_id, memory.pose.position.x) == ("map", 7.0)
    caller.node.destroy_publisher(publisher)


def test_a_publisher_that_comes_later_with_another_quality_is_heard(
    run: Callable[..., Run],
) -> None:
    node = run(**{**LOAD, "load.max_age": 0.0})
    with node.stream("load", Float64(data=1.0), streams.LATCHED):
        node.wait_captured("params")
    with node.stream("load", Float64(data=2.0), streams.BEST_EFFORT):
        harness.wait_for(lambda: node.learn()[0]["params"]["load"]["value"] == 2.0)
        with node.stream("load", Float64(data=3.0), streams.RELIABLE):
            values = set()
            harness.wait_for(
                lambda: (
                    values.add(node.learn()[0]["params"]["load"]["value"]) or values >= {2.0, 3.0}
                )
            )
    publisher = node.node.create_publisher(Float64, f"{node.namespace}/load", streams.LATCHED)
    publisher.publish(Float64(data=4.0))  # once, before the node can have found its publisher
    harness.wait_for(lambda: node.learn()[0]["params"]["load"]["value"] == 4.0)
    node.node.destroy_publisher(publisher)


def test_a_source_that_stops_is_stale(run: Callable[..., Run]) -> None:
    node = run(**{**ODOM, "odom.max_age": 0.5}, pose_source="odom")
    stream = node.stream("odom", odometry())
    node.wait_captured("spatial")
    stream.stop()
    context, memory = node.wait_captured("ros", "stale")
    assert context["ros"]["stale"]["odom"] > 0.5
    assert "spatial" not in context
    assert not memory.has_pose
    stream.close()


def test_stamps_of_zero_and_from_the_future(run: Callable[..., Run]) -> None:
    node = run(**ODOM)
    with node.stream("odom", odometry(), clock=lambda: 0.0):
        context, memory = node.wait_captured("spatial")
        stamp = memory.header.stamp.sec + memory.header.stamp.nanosec / 1e9
        assert stamp - 2.0 <= context["ros"]["odom"]["stamp"] <= stamp
    with node.stream("odom", odometry(x=5.0), clock=lambda: time.time() + 3600.0):

        def in_an_hour() -> Any:
            stamp = streams.stamped(time.time() + 3601.0)
            return node.learn(stamp=stamp)[0].get("spatial")

        assert harness.wait_for(in_an_hour)["position"][0] == 5.0
        assert node.learn()[0]["spatial"]["position"][0] == 1.0


def test_an_event_of_the_past_gets_what_was_sensed_then(run: Callable[..., Run]) -> None:
    node = run(**ODOM, capture_history=5.0)
    begin = time.time()
    stream = node.stream("odom", odometry())
    stream.message.pose.pose.position.x = 0.0
    node.wait_captured("spatial")
    middle = time.time()
    time.sleep(0.2)
    stream.message.pose.pose.position.x = 9.0
    time.sleep(0.5)
    assert node.learn()[0]["spatial"]["position"][0] == 9.0
    then, _ = node.learn(stamp=streams.stamped(middle))
    assert then["spatial"]["position"][0] == 0.0
    assert 0.0 <= then["ros"]["odom"]["age"] < 0.2
    assert node.learn(stamp=streams.stamped(begin - 5.0))[0] == {}
    stream.close()


def test_what_the_caller_wrote_wins_and_capture_can_be_refused(run: Callable[..., Run]) -> None:
    node = run(**ODOM, pose_source="odom")
    with node.stream("odom", odometry()):
        node.wait_captured("spatial")
        written = {"spatial": {"position": [8, 8, 8]}, "robot": {"id": "r2"}}
        pose = harness_pose("map", 4.0)
        context, memory = node.learn(context=json.dumps(written), has_pose=True, pose=pose)
        assert context["spatial"]["position"] == [8, 8, 8]
        assert context["robot"] == {"id": "r2", "speed": 0.25}
        assert set(context["ros"]["odom"]["fields"]) == {"spatial.orientation", "robot.speed"}
        assert (memory.header.frame_id, memory.pose.position.x) == ("map", 4.0)
        context, memory = node.learn(context=json.dumps(written), capture=False)
        assert (context, memory.has_pose) == (written, False)
        wrong = node.robot.learn(insight="x", context="[1]")
        assert not wrong.success
        assert wrong.message.startswith("context")


def harness_pose(frame: str, x: float) -> Any:
    from geometry_msgs.msg import PoseStamped

    pose = PoseStamped(header=Header(frame_id=frame))
    pose.pose.position.x = x
    pose.pose.orientation.w = 1.0
    return pose


def test_a_perception_captures_too(run: Callable[..., Run]) -> None:
    node = run(**ODOM, pose_source="odom")
    with node.stream("odom", odometry()):
        node.wait_captured("spatial")
        answer = node.robot.save_perception(description="a cup", data="[1]")
        (memory,) = node.robot.get(uuids=[answer.uuid]).memories
    context = json.loads(memory.context)
    assert context["data"] == [1]
    assert context["spatial"]["position"] == [1.0, 0.0, 0.0]
    assert memory.has_pose


def test_what_cannot_be_kept_is_named_and_the_rest_is_kept(run: Callable[..., Run]) -> None:
    sources = {
        "context_sources": ["joints", "odom"],
        "joints.topic": "joint_states",
        "joints.type": "sensor_msgs/msg/JointState",
        "joints.fields": [
            "robot.names = name",
            "robot.positions = position",
            "robot.wrist = velocity[1]",
            "robot.efforts = effort",
            "robot.elbow = effort[9]",
        ],
        **{name: value for name, value in ODOM.items() if name != "context_sources"},
    }
    node = run(**sources, pose_source="odom")
    joints = JointState(
        name=["a", "b"], position=[0.5] * 10_000, velocity=[0.1, -0.2], effort=[1.0, math.nan]
    )
    with node.stream("joint_states", joints), node.stream("odom", odometry(x=math.nan)):
        node.wait_captured("robot", "names")
        context, memory = node.wait_captured("spatial")
    assert context["robot"] == {"names": ["a", "b"], "wrist": -0.2, "speed": 0.25}
    assert not memory.has_pose
    ros = context["ros"]
    assert ros["too_long"] == ["robot.positions"]
    assert ros["not_finite"] == ["robot.efforts", "spatial.position", "pose"]
    assert ros["missing"] == ["robot.elbow"]
    assert ros["joints"]["fields"] == ["robot.names", "robot.wrist"]


def test_a_context_that_would_get_too_large_is_stored_without(run: Callable[..., Run]) -> None:
    node = run(**ODOM, pose_source="odom", max_context_bytes=500)
    with node.stream("odom", odometry()):
        node.wait_captured("spatial")
        written = {"note": "x" * 400}
        context, memory = node.learn(context=json.dumps(written))
    assert context == written
    assert memory.has_pose
    assert "goes without what was captured" in node.process.stderr


def test_a_topic_of_another_type_is_named_in_the_log(run: Callable[..., Run]) -> None:
    node = run(**ODOM)
    with node.stream("odom", Float64()):
        harness.wait_for(
            lambda: (
                "/odom is published as std_msgs/msg/Float64, but parameter odom.type is "
                "nav_msgs/msg/Odometry" in node.process.stderr
            )
        )
        assert node.learn()[0] == {}


def test_simulated_time_that_starts_late_and_goes_back(
    run: Callable[..., Run], caller: Any
) -> None:
    parameters = {**ODOM, **LOAD, "context_sources": ["odom", "load"], "use_sim_time": True}
    node = run(**parameters, pose_source="odom")
    with node.stream("load", Float64(data=3.0)):
        refused = node.robot.learn(insight="too early")
        assert not refused.success
        assert node.learn(stamp=streams.stamped(50.0))[0] == {}
        with streams.SimulatedClock(caller.node, 100.0) as clock:
            stream = node.stream("odom", odometry(), clock=clock.now)
            harness.wait_for(lambda: node.robot.learn(insight="has the clock come?").success)
            node.wait_captured("spatial")
            context, memory = node.wait_captured("params")
            assert context["params"] == {"load": {"value": 3.0}}
            for source in ("odom", "load"):
                assert 100.0 <= context["ros"][source]["stamp"] < 200.0
                assert 0.0 <= context["ros"][source]["age"] < 2.0
            assert 100 <= memory.header.stamp.sec < 200
            stream.close()
            clock.set(50.0)  # a looped bag
            harness.wait_for(lambda: node.learn()[1].header.stamp.sec < 100)
            context, memory = node.wait_captured("params")
            assert "spatial" not in context
            assert not memory.has_pose
            assert 50.0 <= context["ros"]["load"]["stamp"] < 100.0
            clock.set(150.0)  # what was heard before it went back is forgotten
            harness.wait_for(lambda: node.learn()[1].header.stamp.sec >= 150)
            assert "spatial" not in node.learn()[0]


WRONG = [
    ({"odom.type": "nav_msg/msg/Odometry"}, ["odom.type", "nav_msg/msg/Odometry", "no package"]),
    ({"odom.type": "nav_msgs/msg/Odometri"}, ["odom.type", "no message Odometri", "Odometry?"]),
    ({"odom.type": "Odometry"}, ["odom.type", "'Odometry'", "like nav_msgs/msg/Odometry"]),
    ({"odom.topic": ""}, ["odom.topic"]),
    ({"odom.topic": "a b"}, ["odom.topic", "'a b'"]),
    ({"odom.topic": "1st"}, ["odom.topic", "'1st'"]),
    ({"odom.max_age": -1.0}, ["odom.max_age", "-1.0", "a number from 0 to"]),
    ({"odom.max_age": "old"}, ["odom.max_age", "'old'", "a number from 0 to"]),
    ({"odom.fields": ["robot.x = pose.pos"]}, ["odom.fields", "robot.x = pose.pos", "covariance"]),
    ({"odom.fields": ["ros.x = pose.pose.position"]}, ["odom.fields", "ros.x"]),
    ({"odom.fields": ["robot.x = child_frame_id", "robot.x = child_frame_id"]}, ["robot.x"]),
    (
        {
            "context_sources": ["odom", "amcl"],
            "amcl.topic": "amcl_pose",
            "amcl.type": "geometry_msgs/msg/PoseWithCovarianceStamped",
            "amcl.fields": ["spatial.position = pose.pose.position"],
        },
        ["amcl.fields", "odom.fields", "it writes spatial.position"],
    ),
    ({"context_sources": ["odom", "gps"]}, ["gps.topic"]),
    ({"context_sources": "odom"}, ["context_sources", "a list of texts"]),
    ({"pose_source": "gps"}, ["pose_source", "'gps'", "odom"]),
    ({"capture_history": -1.0}, ["capture_history"]),
    ({"trajectory_rate": -1.0}, ["trajectory_rate"]),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_a_wrong_source_stops_the_start_with_one_line(
    start_node: Callable[..., Any], changes: dict[str, Any], words: list[str]
) -> None:
    process = start_node(**{**ODOM, **changes})
    assert process.wait() == 2
    (line,) = process.stderr.splitlines()
    for word in ("parameter ", *words):
        assert word in line


def test_tf_without_tf2_stops_the_start(start_node: Callable[..., Any]) -> None:
    try:
        import tf2_ros  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("tf2_ros is installed")
    process = start_node(pose_source="tf")
    assert process.wait() == 2
    (line,) = process.stderr.splitlines()
    assert "parameter pose_source" in line
    assert "tf2_ros" in line


def test_sources_of_a_yaml_file(
    run: Callable[..., Run], start_node: Callable[..., Any], caller: Any, tmp_path: Path
) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text("""\
/**:
  ros__parameters:
    context_sources: [odom]
    odom.topic: odom
    odom.type: nav_msgs/msg/Odometry
    odom.max_age: 2
    odom.fields:
      - spatial.position = pose.pose.position
      - robot.speed = twist.twist.linear.x
""")
    node = Run(start_node(arguments=("--params-file", str(file))), caller)
    assert "not known" not in node.process.stderr
    with node.stream("odom", odometry()):
        context, _ = node.wait_captured("spatial")
    assert context["robot"] == {"speed": 0.25}
