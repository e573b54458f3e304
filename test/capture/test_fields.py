# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Rules: what they read from messages, and what is said of wrong ones."""

from __future__ import annotations

import array
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robotmem_ros import fields
from robotmem_ros.core.errors import ConfigError

POINT = {"x": "double", "y": "double", "z": "double"}
TYPES: dict[str, dict[str, str]] = {
    "a/Point": POINT,
    "a/Quaternion": {**POINT, "w": "double"},
    "a/Pose": {"position": "a/Point", "orientation": "a/Quaternion"},
    "a/Time": {"sec": "int32", "nanosec": "uint32"},
    "a/Header": {"stamp": "a/Time", "frame_id": "string"},
    "a/Track": {
        "MODE_FAST": fields.CONSTANT,
        "header": "a/Header",
        "pose": "a/Pose",
        "poses": "sequence<a/Pose>",
        "points": "sequence<a/Point, 8>",
        "effort": "sequence<double>",
        "covariance": "double[36]",
        "names": "sequence<string>",
        "mode": "uint8",
    },
}


def describe(name: str) -> dict[str, str]:
    return TYPES[name]


def point(*numbers: float) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip("xyzw", numbers, strict=False)))


MESSAGE = SimpleNamespace(
    MODE_FAST=3,
    header=SimpleNamespace(stamp=SimpleNamespace(sec=7, nanosec=250_000_000), frame_id="map"),
    pose=SimpleNamespace(position=point(1.0, 2.0, 3.0), orientation=point(0.0, 0.0, 0.6, 0.8)),
    poses=[SimpleNamespace(position=point(4.0, 5.0, 6.0))],
    points=[point(1.0, 0.0, 0.0), point(2.0, 0.0, 0.0)],
    effort=array.array("d", [0.5, 1.5, 2.5]),
    covariance=np.arange(36, dtype=np.float64),
    names=["left", "right"],
    mode=2,
)

READS = [
    ("pose.position", [1.0, 2.0, 3.0]),
    ("pose.orientation", [0.0, 0.0, 0.6, 0.8]),
    ("pose.position.y", 2.0),
    ("poses[0].position", [4.0, 5.0, 6.0]),
    ("points", [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]),
    ("points[1].x", 2.0),
    ("effort", [0.5, 1.5, 2.5]),
    ("effort[2]", 2.5),
    ("covariance[35]", 35.0),
    ("covariance", [float(i) for i in range(36)]),
    ("names", ["left", "right"]),
    ("names[1]", "right"),
    ("header.stamp", 7.25),
    ("header.frame_id", "map"),
    ("mode", 2),
    ("MODE_FAST", 3),
]


@pytest.mark.parametrize(("source", "value"), READS)
def test_a_rule_reads(source: str, value: Any) -> None:
    rule = fields.parse("s.fields", f"robot.value = {source}")
    fields.check("s.fields", rule, "a/Track", describe)
    read = fields.read(rule, MESSAGE, 100)
    assert read == value
    assert type(read) is type(value)


WRONG = [
    ("robot.x", "there is no ="),
    ("= mode", "not a path in a context"),
    ("robot..x = mode", "'robot..x' is not a path in a context"),
    ("robot[0] = mode", "'robot[0]' is not a path in a context"),
    ("ros.x = mode", "ros is where the node says"),
    ("spatial = pose.position", "spatial holds named values; write spatial.NAME"),
    ("robot.x = ", "'' is not a field of a message"),
    ("robot.x = pose..x", "'pose..x' is not a field of a message"),
    ("robot.x = effort[-1]", "'effort[-1]' is not a field of a message"),
    ("robot.x = mode == 2", "is not a field of a message"),
    ("robot.x = pos.position", "a/Track has no field pos; it has header, pose,"),
    ("robot.x = pose.positon", "a/Pose has no field positon; it has position, orientation; did"),
    ("robot.x = pose", "pose is of type a/Pose; it has position, orientation"),
    ("robot.x = poses", "poses[0] is of type a/Pose; it has position, orientation"),
    ("robot.x = poses.position", "poses is an array; name an element: poses[0].position"),
    ("robot.x = mode[0]", "mode is of type uint8, not an array"),
    ("robot.x = mode.x", "mode is one uint8 and has no fields"),
    ("robot.x = covariance[36]", "covariance has no element 36, only 36"),
    ("robot.x = points[8].x", "points has no element 8, only 8"),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_a_wrong_rule_is_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        fields.check("s.fields", fields.parse("s.fields", text), "a/Track", describe)
    assert f"parameter s.fields: {text!r}: " in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize("target", ["battery", "battery.level", "robot.joint-1", "task.a.b.c"])
def test_targets_that_are_allowed(target: str) -> None:
    assert fields.parse("s.fields", f"{target}=mode").target == tuple(target.split("."))


@pytest.mark.parametrize(
    ("one", "other"),
    [("robot.x", "robot.x"), ("robot.x", "robot.x.y"), ("robot.x.y", "robot.x"), ("b", "b.c")],
)
def test_two_rules_for_one_path_are_both_named(one: str, other: str) -> None:
    first = fields.parse("odom.fields", f"{one} = mode")
    second = fields.parse("joints.fields", f"{other} = mode")
    with pytest.raises(ConfigError) as error:
        fields.check_targets([("odom.fields", first), ("joints.fields", second)])
    for words in ("odom.fields", "joints.fields", f"'{one} = mode'", f"'{other} = mode'"):
        assert words in str(error.value)
    fields.check_targets([("a", first), ("b", fields.parse("b", "robot.xy = mode"))])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "not_finite"),
        (-math.inf, "not_finite"),
        ([1.0, math.nan], "not_finite"),
        (np.array([math.inf]), "not_finite"),
        (np.float32("nan"), "not_finite"),
        (point(1.0, math.nan, 0.0), "not_finite"),
        ([0.0] * 11, "too_long"),
        (np.zeros(10_000), "too_long"),
        ("x" * 11, "too_long"),
        (SimpleNamespace(), "missing"),
        (None, "missing"),
    ],
)
def test_what_cannot_be_kept_is_left_out(value: Any, reason: str) -> None:
    with pytest.raises(fields.LeftOutError, match=reason):
        fields.plain(value, 10)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (True, True),
        (b"\x07", 7),
        ([b"\x01", b"\x02"], [1, 2]),
        (np.uint8(3), 3),
        (np.bool_(True), True),
        (np.float32(0.5), 0.5),
        (np.array([1, 2], dtype=np.int16), [1, 2]),
        ("grüße", "grüße"),
        ("a\0b", "a\ufffdb"),
        ("\ud800", "?"),
        ([], []),
    ],
)
def test_numbers_and_texts_of_any_library(value: Any, kept: Any) -> None:
    plain = fields.plain(value, 10)
    assert plain == kept
    assert type(plain) is type(kept)


@pytest.mark.parametrize("source", ["effort[9]", "gone.x", "names[2]"])
def test_an_element_that_is_not_there_is_missing(source: str) -> None:
    rule = fields.parse("s.fields", f"robot.x = {source}")
    with pytest.raises(fields.LeftOutError, match="missing"):
        fields.read(rule, MESSAGE, 10)


def test_rules_are_read_on_messages_from_bags() -> None:
    typesys = pytest.importorskip("rosbags.typesys", reason="needs rosbags")
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    types = store.types
    numbers = np.array([1.0, 2.0, 3.0])
    stamp = types["builtin_interfaces/msg/Time"](sec=5, nanosec=500_000_000)
    header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="base")
    joints = types["sensor_msgs/msg/JointState"](
        header=header, name=["a", "b", "c"], position=numbers, velocity=numbers, effort=numbers
    )
    again = store.deserialize_cdr(
        store.serialize_cdr(joints, "sensor_msgs/msg/JointState"), "sensor_msgs/msg/JointState"
    )
    for source, value in (
        ("position", [1.0, 2.0, 3.0]),
        ("position[2]", 3.0),
        ("name", ["a", "b", "c"]),
        ("header.stamp", 5.5),
    ):
        read = fields.read(fields.parse("f", f"robot.x = {source}"), again, 10)
        assert read == value
        assert type(read) is type(value)
