# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The robot's pose from the transforms of a recording."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_writer import SECOND, START, Sent, header, make, odometry, write_bag
from hypothesis import given, settings
from hypothesis import strategies as st

from robotmem_ros.bags.transforms import Transform, Transforms
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.poses import unit

numbers = st.floats(-10, 10)
turns = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: math.hypot(*q) > 0.1).map(unit)
transforms = st.builds(Transform, st.tuples(numbers, numbers, numbers), turns)


def matrix(transform: Transform) -> Any:
    x, y, z, w = transform.rotation
    found = np.eye(4)
    found[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    found[:3, 3] = transform.translation
    return found


def message(time: int, *links: tuple[str, str, float, float]) -> Any:
    """Make a TFMessage of links: parent, child, x, yaw."""
    return make(
        "tf2_msgs/msg/TFMessage",
        transforms=[
            make(
                "geometry_msgs/msg/TransformStamped",
                header=header(time, parent),
                child_frame_id=child,
                transform=make(
                    "geometry_msgs/msg/Transform",
                    translation=make("geometry_msgs/msg/Vector3", x=x, y=0.0, z=0.0),
                    rotation=make(
                        "geometry_msgs/msg/Quaternion",
                        x=0.0,
                        y=0.0,
                        z=math.sin(yaw / 2),
                        w=math.cos(yaw / 2),
                    ),
                ),
            )
            for parent, child, x, yaw in links
        ],
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(transforms, transforms)
def test_transforms_are_chained_and_inverted_as_matrices_are(
    one: Transform, other: Transform
) -> None:
    assert np.allclose(matrix(one.then(other)), matrix(one) @ matrix(other), atol=1e-9)
    assert np.allclose(matrix(one.inverse()), np.linalg.inv(matrix(one)), atol=1e-9)


def test_the_last_time_that_all_links_have_in_common_counts() -> None:
    tree = Transforms(10 * SECOND)
    tree.add(message(START, ("base", "/lidar", 0.2, 0.0)), True)
    for tick in range(5):
        tree.add(message(START + tick * SECOND, ("map", "odom", 1.0, math.pi / 2)), False)
    for tick in range(31):
        time = START + tick * SECOND // 10
        tree.add(message(time, ("odom", "base", tick / 10, 0.0)), False)
    pose = tree.pose("map", "lidar", START + 10 * SECOND)
    assert pose is not None
    assert pose.stamp == START + 3 * SECOND
    assert pose.position == pytest.approx((1.0, 3.2, 0.0))
    assert pose.orientation == pytest.approx((0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5)))
    between = tree.pose("map", "base", START + 155 * SECOND // 100)
    assert between is not None
    assert between.position == pytest.approx((1.0, 1.55, 0.0))
    assert between.stamp == START + 155 * SECOND // 100
    assert tree.pose("base", "map", START + SECOND) is not None  # upward as well
    assert tree.pose("map", "base", START - 1) is None
    assert tree.pose("map", "gripper", START) is None
    static = tree.pose("base", "lidar", START + 99 * SECOND)
    assert static is not None
    assert static.stamp == START + 99 * SECOND
    tree.clear()
    assert tree.pose("map", "base", START + SECOND) is None
    assert tree.pose("base", "lidar", START) is not None


def test_turns_are_interpolated_the_short_way() -> None:
    tree = Transforms(10 * SECOND)
    tree.add(message(START, ("map", "base", 0.0, math.radians(170))), False)
    tree.add(message(START + SECOND, ("map", "base", 0.0, math.radians(190))), False)
    pose = tree.pose("map", "base", START + SECOND // 2)
    assert pose is not None
    assert abs(pose.orientation[2]) == pytest.approx(1.0)  # 180 degrees


def test_loops_and_broken_transforms_do_no_harm() -> None:
    tree = Transforms(10 * SECOND)
    tree.add(message(START, ("a", "b", 0.0, 0.0), ("b", "a", 0.0, 0.0)), False)
    tree.add(message(START, ("map", "base", math.nan, 0.0), ("", "x", 0.0, 0.0)), False)
    assert tree.pose("map", "b", START) is None
    assert tree.pose("map", "base", START) is None


def test_pose_source_tf_gives_poses_of_the_recording(
    tmp_path: Path, run: Callable[..., Any], memory: Callable[[], RobotMemory]
) -> None:
    sent = [Sent(START, "/tf_static", message(START, ("map", "odom", 5.0, 0.0)))]
    for tick in range(101):
        time = START + tick * SECOND // 20
        sent.append(Sent(time, "/tf", message(time, ("odom", "base_link", tick / 20, 0.0))))
        sent.append(Sent(time, "/odom", odometry(time, tick / 20)))
    bag = write_bag(tmp_path / "bag", "mcap", sent)
    ran = run(bag, "--set", "pose_source=tf", parameters=None)
    assert (ran.code, ran.problems) == (0, [])
    (episode,) = memory().episodes(10)
    pose = episode.memories[-1].pose
    assert pose is not None
    assert (pose.frame_id, pose.stamp) == ("map", START + 5 * SECOND)
    assert pose.position == pytest.approx((10.0, 0.0, 0.0))
    assert [p.position[0] for p in episode.trajectory] == pytest.approx(
        [5.0 + n / 2 for n in range(11)]
    )
    assert episode.memories[-1].context["ros"]["tf"]["fields"] == ["pose"]
    other = ("--set", "pose_source=tf", "--set", "base_frame=gripper")
    nowhere = run(bag, *other, parameters=None)
    assert nowhere.code == 1
    assert "pose_source tf: map <- gripper is not in the bag's transforms" in nowhere.problems[0]
