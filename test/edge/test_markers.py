# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Markers: one place for each memory, told apart by outcome, and lines of episodes."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("robotmem_ros.msg", reason="needs ROS 2 and the built package")

from visualization_msgs.msg import Marker

from robotmem_ros import markers
from robotmem_ros.core.model import Episode, Memory, MemoryType, Pose
from robotmem_ros.markers import Outcome


def memory(number: int, **fields: Any) -> Memory:
    values: dict[str, Any] = dict.fromkeys(Memory.__slots__, 0)
    values.update(
        id=number, uuid=f"uuid-{number}", type=MemoryType.FACT, perception_type=None,
        content=f"memory {number}", context={}, context_json="{}", collection="default",
        session_id="", confidence=0.9, pose=Pose("map", (float(number), 2.0, 0.5)),
        superseded_by="",
    )  # fmt: skip
    return Memory(**{**values, **fields})


def episode(trajectory: list[Pose], outcome: float | None = None) -> Episode:
    return Episode(
        session_id="s1", collection="default", context={}, context_json="{}", start=1, end=2,
        outcome=outcome, summary="", interrupted=False, memories=(),
        trajectory=tuple(trajectory),
    )  # fmt: skip


def line(frame: str, count: int) -> list[Pose]:
    return [Pose(frame, (float(i), 0.0, 0.0), stamp=i) for i in range(count)]


def test_the_scene_begins_by_taking_away_what_was_there() -> None:
    assert [m.action for m in markers.scene([], []).markers] == [Marker.DELETEALL]


def test_a_memory_is_a_place_and_a_text_in_its_frame() -> None:
    _, spot, words = markers.scene([memory(7)], []).markers
    assert (spot.ns, spot.id, spot.action) == ("default", 7, Marker.ADD)
    assert spot.header.frame_id == "map"
    assert spot.header.stamp.sec == 0  # the newest transform, whenever it is drawn
    assert (spot.pose.position.x, spot.pose.position.y, spot.pose.position.z) == (7.0, 2.0, 0.5)
    assert spot.scale.x == spot.scale.y == spot.scale.z > 0.0
    assert words.type == Marker.TEXT_VIEW_FACING
    assert (words.ns, words.id, words.text) == ("default/text", 7, "memory 7")
    assert words.pose.position.z > spot.pose.position.z


def test_ids_are_those_of_the_memories_whatever_else_is_shown() -> None:
    alone = markers.scene([memory(5)], []).markers[1]
    among = markers.scene([memory(9), memory(5), memory(1)], []).markers[3]
    assert (alone.ns, alone.id) == (among.ns, among.id) == ("default", 5)


def test_no_two_markers_share_a_namespace_and_an_id() -> None:
    memories = [memory(i, collection=c) for i, c in enumerate(["default", "lab", "default"])]
    drawn = markers.scene(memories, [episode(line("map", 3) + line("odom", 3))]).markers[1:]
    assert len({(m.ns, m.id) for m in drawn}) == len(drawn) == 8
    assert {m.ns for m in drawn} == {
        "default", "default/text", "default/trajectories", "lab", "lab/text",
    }  # fmt: skip


def test_a_memory_without_a_pose_is_not_shown() -> None:
    assert len(markers.scene([memory(1, pose=None)], []).markers) == 1


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({}, Outcome.UNKNOWN),
        ({"task": {"success": True}}, Outcome.SUCCESS),
        ({"task": {"success": False}}, Outcome.FAILURE),
        ({"task": {"success": 1}}, Outcome.UNKNOWN),
        ({"task": {"success": "yes"}}, Outcome.UNKNOWN),
        ({"task": "sweep"}, Outcome.UNKNOWN),
        ({"task": None, "env": ["hazard"]}, Outcome.UNKNOWN),
        ({"env": {"hazard": "water leak"}}, Outcome.HAZARD),
        ({"env": {"hazard": False}, "task": {"success": True}}, Outcome.SUCCESS),
        ({"env": {"hazard": "ice"}, "task": {"success": False}}, Outcome.HAZARD),
    ],
)
def test_the_outcome_comes_from_the_context(context: Any, expected: Outcome) -> None:
    assert markers.outcome(memory(1, context=context)) is expected


def test_each_outcome_has_its_colour() -> None:
    contexts: list[Any] = [
        {}, {"task": {"success": True}}, {"task": {"success": False}}, {"env": {"hazard": "x"}},
    ]  # fmt: skip
    spots = [markers.scene([memory(1, context=c)], []).markers[1] for c in contexts]
    assert len({(m.color.r, m.color.g, m.color.b) for m in spots}) == 4
    assert len({m.type for m in spots}) == 3


def test_what_is_less_sure_is_fainter() -> None:
    sure, unsure = markers.scene(
        [memory(1, confidence=1.0), memory(2, confidence=0.1)], []
    ).markers[1::2]
    assert sure.color.a == 1.0
    assert 0.2 < unsure.color.a < 0.5


@pytest.mark.parametrize("content", ["x" * 100_000, "two\nlines\tand a tab " * 20, "雨" * 500])
def test_a_long_text_is_shortened_to_one_line(content: str) -> None:
    words = markers.scene([memory(1, content=content)], []).markers[2]
    assert len(words.text) <= markers.TEXT_LENGTH
    assert "\n" not in words.text
    assert words.text.endswith("...")


def test_a_trajectory_is_a_line_for_each_stretch_in_one_frame() -> None:
    poses = line("map", 4) + line("odom", 2) + line("map", 3)
    lines = markers.scene([], [episode(poses, outcome=1.0)]).markers[1:]
    assert [m.type for m in lines] == [Marker.LINE_STRIP] * 3
    assert [m.header.frame_id for m in lines] == ["map", "odom", "map"]
    assert [len(m.points) for m in lines] == [4, 2, 3]
    assert lines == markers.scene([], [episode(poses, outcome=1.0)]).markers[1:]


def test_a_single_pose_makes_no_line() -> None:
    assert len(markers.scene([], [episode(line("map", 1))]).markers) == 1


def test_a_long_trajectory_is_thinned_from_end_to_end() -> None:
    points = markers.scene([], [episode(line("map", 9999))]).markers[1].points
    assert markers.MAX_POINTS / 2 < len(points) <= markers.MAX_POINTS + 1
    assert (points[0].x, points[-1].x) == (0.0, 9998.0)


def test_a_trajectory_that_changes_its_frame_all_the_time_is_bounded() -> None:
    poses = [Pose(f, (float(i), 0.0, 0.0)) for i in range(500) for f in ("a", "a", "b", "b")]
    assert len(markers.scene([], [episode(poses)]).markers) == 1 + markers.MAX_LINES


def test_what_no_message_can_carry_is_replaced() -> None:
    drawn = markers.scene([memory(2**40 + 3, content="a\0b", collection="c\ud800")], []).markers
    assert drawn[1].id == 3
    assert drawn[2].text == "a\ufffdb"
    assert drawn[1].ns == "c\ufffd"
