# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Requests to core objects and back to messages: pure functions, no node."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

conversions = pytest.importorskip(
    "robotmem_ros.conversions", reason="needs ROS 2 and the built package"
)

from builtin_interfaces.msg import Time  # noqa: E402
from geometry_msgs.msg import Point, PointStamped, PoseStamped, Quaternion  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402
from robotmem_ros.msg import Memory as MemoryMessage  # noqa: E402
from std_msgs.msg import Header  # noqa: E402

from robotmem_ros import srv  # noqa: E402
from robotmem_ros.core.config import Config  # noqa: E402
from robotmem_ros.core.errors import InvalidRequestError  # noqa: E402
from robotmem_ros.core.model import (  # noqa: E402
    Fusion,
    Learned,
    LearnStatus,
    Memory,
    MemoryType,
    Mode,
    PerceptionType,
    Pose,
    Recalled,
    RecallResult,
)

MEMORY = Memory(
    id=7,
    uuid="0190a0a0-0000-7000-8000-000000000000",
    type=MemoryType.FACT,
    perception_type=None,
    content="a mug",
    context={"task": {"name": "pick"}},
    context_json='{"task":{"name":"pick"}}',
    collection="default",
    session_id="",
    confidence=0.5,
    stored_confidence=0.9,
    stamp=3_000_000_007,
    created_at=1_000_000_000_000_000_001,
    updated_at=1_000_000_000_000_000_002,
    expires=0,
    pose=Pose("map", (1.0, 2.0, 3.0)),
    last_access=0,
    access_count=3,
    return_count=3,
    superseded_by="",
)


def _pose(**quaternion: float) -> PoseStamped:
    message = PoseStamped(header=Header(frame_id="map"))
    message.pose.orientation = Quaternion(**{"w": 0.0, **quaternion})
    return message


def test_the_defaults_of_a_request_are_those_of_the_core() -> None:
    asked = conversions.query(srv.Recall.Request(query="x"))
    assert (asked.n, asked.min_confidence, asked.fusion, asked.near) == (5, 0.3, None, None)
    assert (asked.since, asked.until, asked.collection) == (0, 0, "")
    learned = conversions.experience(srv.Learn.Request(insight="x"), 5)
    assert (learned.confidence, learned.stamp, learned.pose, learned.expires) == (0.9, 5, None, 0)


def test_zero_is_kept() -> None:
    asked = conversions.query(srv.Recall.Request(query="x", n=0, min_confidence=0.0))
    assert (asked.n, asked.min_confidence) == (0, 0.0)
    assert conversions.experience(srv.Learn.Request(confidence=0.0), 5).confidence == 0.0


def test_a_stamp_of_the_caller_wins_over_the_time_of_arrival() -> None:
    request = srv.Learn.Request(stamp=Time(sec=3, nanosec=4), has_pose=True, pose=_pose())
    learned = conversions.experience(request, 99)
    assert learned.stamp == learned.pose.stamp == 3_000_000_004
    request.pose.header.stamp = Time(sec=2)
    assert conversions.experience(request, 99).pose.stamp == 2_000_000_000


@pytest.mark.parametrize(
    ("quaternion", "unit"),
    [
        ({}, (0.0, 0.0, 0.0, 1.0)),
        ({"w": 2.0}, (0.0, 0.0, 0.0, 1.0)),
        ({"z": 3.0, "w": 4.0}, (0.0, 0.0, 0.6, 0.8)),
        ({"x": -1e300, "y": 1e300}, (-math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)),
        ({"x": 5e-324}, (1.0, 0.0, 0.0, 0.0)),
    ],
)
def test_a_quaternion_becomes_a_unit_one(
    quaternion: dict[str, float], unit: tuple[float, ...]
) -> None:
    pose = conversions.pose("pose", _pose(**quaternion), 1)
    assert pose.orientation == pytest.approx(unit)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4))
def test_every_quaternion_becomes_a_unit_one(q: list[float]) -> None:
    pose = conversions.pose("pose", _pose(**dict(zip("xyzw", q, strict=True))), 1)
    assert math.sqrt(sum(v * v for v in pose.orientation)) == pytest.approx(1.0)


@pytest.mark.parametrize("frame", ["map", "/map", " map "])
def test_a_frame_has_no_leading_slash(frame: str) -> None:
    message = _pose()
    message.header.frame_id = frame
    assert conversions.pose("pose", message, 1).frame_id == "map"


def _refused(fields: dict[str, Any], kind: Any = srv.Learn) -> str:
    convert: dict[Any, Any] = {
        srv.Learn: lambda request: conversions.experience(request, 1),
        srv.Recall: conversions.query,
        srv.SavePerception: lambda request: conversions.perception(request, 1, Config()),
    }
    with pytest.raises(InvalidRequestError) as refusal:
        convert[kind](kind.Request(**fields))
    return refusal.value.field


def test_what_cannot_be_used_is_named() -> None:
    bad = _pose(x=math.nan)
    assert _refused({"has_pose": True, "pose": bad}) == "pose.pose.orientation.x"
    bad = _pose()
    bad.pose.position.z = math.inf
    assert _refused({"has_pose": True, "pose": bad}) == "pose.pose.position.z"
    bad.header.frame_id = " /"
    assert _refused({"has_pose": True, "pose": bad}) == "pose.header.frame_id"
    bad = _pose()
    bad.header.stamp = Time(sec=-1)
    assert _refused({"has_pose": True, "pose": bad}) == "pose.header.stamp"
    assert _refused({"stamp": Time(sec=-1)}) == "stamp"
    assert _refused({"stamp": Time(nanosec=10**9)}) == "stamp"
    assert _refused({"expires": Time(sec=-5)}) == "expires"
    near = PointStamped(header=Header(frame_id="map"), point=Point(y=math.nan))
    assert _refused({"use_near": True, "near": near}, srv.Recall) == "near.point.y"
    near.point.y = 0.0
    radius = {"use_near": True, "near": near, "near_radius": -1.0}
    assert _refused(radius, srv.Recall) == "near_radius"
    assert _refused({"use_near": True}, srv.Recall) == "near.header.frame_id"
    assert _refused({"fusion": "Magic"}, srv.Recall) == "fusion"
    assert _refused({"since": Time(sec=-1)}, srv.Recall) == "since"
    assert _refused({"perception_type": ""}, srv.SavePerception) == "perception_type"
    assert _refused({"data": "{"}, srv.SavePerception) == "data"
    assert _refused({"data": "[" * 10_000}, srv.SavePerception) == "data"
    assert _refused({"metadata": "[]"}, srv.SavePerception) == "metadata"


def test_a_pose_that_is_not_given_is_not_read() -> None:
    bad = _pose(x=math.nan)
    assert conversions.experience(srv.Learn.Request(pose=bad), 1).pose is None


def test_near_and_fusion() -> None:
    near = PointStamped(header=Header(frame_id="map"), point=Point(x=1.0, y=2.0, z=3.0))
    request = srv.Recall.Request(use_near=True, near=near, near_radius=2.0, fusion="rrf")
    asked = conversions.query(request)
    assert (asked.near.frame_id, asked.near.point, asked.near.radius) == ("map", (1, 2, 3), 2.0)
    assert asked.fusion is Fusion.RRF


def test_a_perception_lifts_the_sections_of_its_metadata() -> None:
    request = srv.SavePerception.Request(
        description="x",
        perception_type="tactile",
        data="0",
        metadata='{"sensor": "skin", "robot": {"id": "r1"}, "params": {"f": 1}}',
    )
    seen = conversions.perception(request, 9, Config())
    assert (seen.type, seen.perception_type) == (MemoryType.PERCEPTION, PerceptionType.TACTILE)
    assert seen.stamp == 9
    assert seen.context == {
        "data": 0,
        "metadata": {"sensor": "skin", "robot": {"id": "r1"}, "params": {"f": 1}},
        "robot": {"id": "r1"},
        "params": {"f": 1},
    }
    assert conversions.perception(srv.SavePerception.Request(), 9, Config()).context == {}


def test_a_memory_as_a_message() -> None:
    message = conversions.memory_message(MEMORY)
    assert (message.id, message.uuid, message.type) == (7, MEMORY.uuid, "fact")
    assert message.header.stamp == Time(sec=3, nanosec=7)
    assert message.header.frame_id == "map"
    assert message.has_pose
    assert (message.pose.position.x, message.pose.orientation.w) == (1.0, 1.0)
    assert message.score == 0.0
    assert math.isnan(message.distance)
    assert message.created_at.nanosec == 1
    assert message.expires == Time()
    assert message.score_details == ""
    other = dataclasses.replace(
        MEMORY, pose=None, access_count=2**40, perception_type=PerceptionType.VISUAL
    )
    message = conversions.memory_message(other, 1.0, 0.25, {"rank": 1})
    assert (message.header.frame_id, message.has_pose) == ("", False)
    assert message.access_count == 2**32 - 1
    assert (message.score, message.distance) == (1.0, 0.25)
    assert json.loads(message.score_details) == {"rank": 1}


def test_answers() -> None:
    learned = conversions.learned_answer(Learned(MEMORY, LearnStatus.DUPLICATE))
    assert (learned.success, learned.status, learned.memory_id) == (True, "duplicate", 7)
    result = RecallResult((Recalled(MEMORY, 1.0),), Mode.HYBRID, 2.5)
    recalled = conversions.recall_answer(result)
    assert (recalled.total, recalled.mode, recalled.query_ms) == (1, "hybrid", 2.5)
    missing = conversions.get_answer([MEMORY], ["a", "b"])
    assert (missing.success, len(missing.memories)) == (False, 1)
    assert missing.message == "uuids: not stored: a, b"
    assert conversions.get_answer([MEMORY], []).success


@given(st.text(alphabet=st.characters(codec=None)))
def test_any_text_can_be_sent(value: str) -> None:
    message = conversions.memory_message(dataclasses.replace(MEMORY, content=value))
    arrived = deserialize_message(serialize_message(message), MemoryMessage)
    assert arrived.content == message.content
    assert arrived.content.replace("\ufffd", "") == "".join(
        c for c in value if c not in "\0\ufffd" and not "\ud800" <= c <= "\udfff"
    )


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_time_can_be_sent(nanoseconds: int) -> None:
    message = conversions.time_message(nanoseconds)
    if 0 <= nanoseconds < 2**31 * 10**9:
        assert conversions.nanoseconds("t", message) == nanoseconds


def test_a_refusal_is_never_long() -> None:
    message = conversions.refusal(InvalidRequestError("insight", "x" * 10_000))
    assert len(message) == conversions.MAX_MESSAGE
    assert message.startswith("insight: ")
