# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What was sensed becomes context: ages, provenance, and what the caller wrote."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from robotmem_ros.captured import Captured, Source, read_sources
from robotmem_ros.core.config import Setting
from robotmem_ros.core.errors import ConfigError
from robotmem_ros.samples import Sample

SECOND = 1_000_000_000
TYPES = {
    "nav_msgs/msg/Odometry": {
        "header": "std_msgs/Header",
        "pose": "geometry_msgs/PoseWithCovariance",
        "speed": "double",
    },
    "geometry_msgs/PoseWithCovariance": {"pose": "geometry_msgs/Pose"},
    "std_msgs/msg/Float64": {"data": "double"},
}
ODOM = {
    "odom.topic": "/odom",
    "odom.type": "nav_msgs/msg/Odometry",
    "odom.fields": ["robot.speed = speed", "robot.more.speed = speed"],
    "load.topic": "load",
    "load.type": "std_msgs/msg/Float64",
    "load.fields": ["params.load.value = data"],
}


def describe(name: str) -> Mapping[str, str]:
    if name not in TYPES:
        raise LookupError("there is no such type")
    return TYPES[name]


def sources(names: list[str], pose_source: str = "", **changes: Any) -> tuple[Source, ...]:
    values = {**ODOM, **{name.replace("__", "."): value for name, value in changes.items()}}

    def value_of(item: Setting) -> Any:
        return item.check(values.get(item.name, item.default))

    return read_sources(names, pose_source, value_of, describe)


def odometry(
    speed: float = 0.5, frame: str = "odom", x: float = 1.0, w: float = 2.0
) -> SimpleNamespace:
    position = SimpleNamespace(x=x, y=2.0, z=3.0)
    orientation = SimpleNamespace(x=0.0, y=0.0, z=0.0, w=w)
    pose = SimpleNamespace(pose=SimpleNamespace(position=position, orientation=orientation))
    return SimpleNamespace(header=SimpleNamespace(frame_id=frame), speed=speed, pose=pose)


def sense(message: Any, stamp: float = 9.5, event: float = 10.0, **changes: Any) -> Captured:
    (source,) = sources(["odom"], "odom", **changes)
    sample = Sample(int(stamp * SECOND), 0, 0, message)
    captured = Captured()
    captured.add(source, sample, lambda data: data, int(event * SECOND), 1000)
    return captured


ORIGIN = {"topic": "/odom", "frame": "odom", "stamp": 9.5, "age": 0.5}
TAKEN = ["pose", "robot.speed", "robot.more.speed"]


def test_values_pose_and_where_they_come_from() -> None:
    captured = sense(odometry())
    assert captured.context == {
        "robot": {"speed": 0.5, "more": {"speed": 0.5}},
        "ros": {"odom": {**ORIGIN, "fields": TAKEN}},
    }
    assert captured.pose is not None
    assert (captured.pose.frame_id, captured.pose.position) == ("odom", (1.0, 2.0, 3.0))
    assert captured.pose.orientation == (0.0, 0.0, 0.0, 1.0)
    assert captured.pose.stamp == 9.5 * SECOND


@pytest.mark.parametrize(
    ("written", "merged", "taken"),
    [
        ({"robot": {"speed": 9}}, {"speed": 9, "more": {"speed": 0.5}}, [TAKEN[0], TAKEN[2]]),
        (
            {"robot": {"speed": None}},
            {"speed": None, "more": {"speed": 0.5}},
            [TAKEN[0], TAKEN[2]],
        ),
        ({"robot": {"more": 1}}, {"speed": 0.5, "more": 1}, TAKEN[:2]),
        ({"robot": {"more": {}}}, {"speed": 0.5, "more": {"speed": 0.5}}, TAKEN),
        ({"robot": {"id": "r1"}}, {"id": "r1", "speed": 0.5, "more": {"speed": 0.5}}, TAKEN),
        ({"robot": "r1"}, "r1", TAKEN[:1]),
        ({"robot": ["r1"]}, ["r1"], TAKEN[:1]),
    ],
)
def test_what_the_caller_wrote_wins_leaf_by_leaf(
    written: dict[str, Any], merged: Any, taken: list[str]
) -> None:
    before = copy.deepcopy(written)
    context = sense(odometry()).merged_into(written)
    assert context == {"robot": merged, "ros": {"odom": {**ORIGIN, "fields": taken}}}
    assert written == before


def test_provenance_of_the_caller_stays_and_names_only_what_was_used() -> None:
    captured = sense(odometry())
    written = {"robot": "r1", "ros": {"odom": {"topic": "mine"}, "bag": "a.mcap"}}
    assert captured.merged_into(written, pose=False) == written
    assert captured.merged_into({"ros": "mine"})["ros"] == "mine"
    assert captured.merged_into(written)["ros"] == {
        "odom": {**ORIGIN, "topic": "mine", "fields": ["pose"]},
        "bag": "a.mcap",
    }


def test_a_message_too_old_is_stale() -> None:
    captured = sense(odometry(), stamp=7.9)
    assert captured.context == {"ros": {"stale": {"odom": 2.1}}}
    assert captured.pose is None
    assert sense(odometry(), stamp=8.0).stale == {}
    assert sense(odometry(), stamp=1.0, odom__max_age=0).context["ros"]["odom"]["age"] == 9.0


def test_what_cannot_be_kept_is_named() -> None:
    captured = sense(odometry(speed=math.nan, x=math.inf))
    assert captured.pose is None
    assert captured.context == {"ros": {"not_finite": ["robot.speed", "robot.more.speed", "pose"]}}
    no_frame = sense(odometry(frame=""))
    assert no_frame.pose is None
    assert no_frame.context["ros"]["missing"] == ["pose"]


def test_frames_lose_their_slash_and_quaternions_get_their_length() -> None:
    pose = sense(odometry(frame="/odom", w=0.0)).pose
    assert pose is not None
    assert (pose.frame_id, pose.orientation) == ("odom", (0.0, 0.0, 0.0, 1.0))


def test_nothing_before_the_first_message() -> None:
    (source,) = sources(["odom"])
    captured = Captured()
    captured.add(source, None, lambda data: data, SECOND, 1000)
    assert not captured
    assert captured.context == {}


WRONG: list[tuple[list[str], str, dict[str, Any], str]] = [
    (["a b"], "", {}, "parameter context_sources: 'a b' is not allowed"),
    (["odom", "odom"], "", {}, "parameter context_sources: 'odom' is not allowed"),
    (["stale"], "", {}, "parameter context_sources: 'stale' is not allowed"),
    (["tf"], "", {}, "parameter context_sources: 'tf' is not allowed"),
    (["odom"], "amcl", {}, "parameter pose_source: 'amcl' is not allowed; it must be empty, tf"),
    (["load"], "load", {}, "parameter pose_source: 'load' is not allowed; messages of type std"),
    (["odom"], "", {"odom__topic": ""}, "parameter odom.topic: it is missing"),
    (["odom"], "", {"odom__type": ""}, "parameter odom.type: '': there is no such type"),
    (["odom"], "", {"odom__type": "x/msg/Y"}, "parameter odom.type: 'x/msg/Y': there is no"),
    (["odom"], "", {"odom__max_age": -1.0}, "parameter odom.max_age: -1.0 is not allowed"),
    (["odom"], "", {"odom__fields": "a = b"}, "parameter odom.fields: 'a = b' is not allowed"),
    (["odom"], "", {"odom__fields": ["a"]}, "parameter odom.fields: 'a': there is no ="),
    (["odom"], "", {"odom__fields": ["a = b"]}, "Odometry has no field b; it has header, pose"),
    (
        ["odom", "load"],
        "",
        {"load__fields": ["robot.speed = data"]},
        "parameter load.fields: 'robot.speed = data': it writes robot.speed, as does "
        "'robot.speed = speed' of parameter odom.fields",
    ),
]


@pytest.mark.parametrize(("names", "pose_source", "changes", "words"), WRONG)
def test_wrong_sources_are_refused(
    names: list[str], pose_source: str, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as error:
        sources(names, pose_source, **changes)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_empty_names_and_fields_are_nothing() -> None:
    assert sources([""]) == ()
    (source,) = sources(["odom"], "odom", odom__fields=[""])
    assert (source.rules, source.pose) == ((), "pose.pose")
