# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which poses are taken for a trajectory."""

from __future__ import annotations

import math

import pytest

from robotmem_ros.core.model import Pose
from robotmem_ros.trajectory import Sampler


def pose(seconds: float, x: float = 0.0, frame: str = "map") -> Pose:
    return Pose(frame, (x, 0.0, 0.0), stamp=int(seconds * 1e9))


def taken(sampler: Sampler, poses: list[Pose]) -> list[int]:
    return [i for i, one in enumerate(poses) if sampler.offer(one)]


def test_at_most_so_many_a_second() -> None:
    poses = [pose(1 + i / 100, x=i) for i in range(1001)]
    assert len(taken(Sampler(2.0, 0.0), poses)) == 21
    assert taken(Sampler(2.0, 0.0), poses)[:3] == [0, 49, 98]


def test_a_robot_that_stands_is_not_sampled() -> None:
    poses = [pose(1 + i, x=min(i, 3) * 0.06) for i in range(10)]
    assert taken(Sampler(10.0, 0.05), poses) == [0, 1, 2, 3]


def test_small_steps_add_up() -> None:
    poses = [pose(1 + i, x=i * 0.02) for i in range(10)]
    assert taken(Sampler(10.0, 0.05), poses) == [0, 3, 6, 9]


def test_distances_are_not_taken_between_frames() -> None:
    poses = [pose(1), pose(2, frame="odom"), pose(3, frame="odom"), pose(4)]
    assert taken(Sampler(1.0, 0.05), poses) == [0, 1, 3]
    assert taken(Sampler(0.1, 0.05), poses) == [0]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_not_finite_is_dropped(number: float) -> None:
    sampler = Sampler(1.0, 0.0)
    assert not sampler.offer(pose(1, x=number))
    assert not sampler.offer(Pose("map", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, number), 10**9))
    assert sampler.offer(pose(1))


def test_without_time_there_is_no_sample() -> None:
    assert not Sampler(1.0, 0.0).offer(pose(0))


def test_a_clock_set_back_begins_anew_and_late_poses_do_not() -> None:
    sampler = Sampler(1.0, 0.0)
    assert sampler.offer(pose(100))
    assert not sampler.offer(pose(99.5))
    assert sampler.offer(pose(5))
    assert not sampler.offer(pose(5.5))
    assert sampler.offer(pose(6))
    sampler.restart()
    assert sampler.offer(pose(6))


def test_rate_zero_takes_none() -> None:
    assert not Sampler(0.0, 0.0).offer(pose(1))
