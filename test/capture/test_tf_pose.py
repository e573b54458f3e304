# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The pose from tf2, at the event or the last before it. A stand-in plays tf2_ros itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import TransformStamped

from robotmem_ros.captured import Captured
from robotmem_ros.core.errors import ConfigError
from robotmem_ros.tf_pose import TfPose

SECOND = 1_000_000_000


class TransformError(Exception):
    """Stands for tf2_ros.TransformException."""


class Buffer:
    """Knows transforms by their stamps in seconds; asked for others it extrapolates nothing."""

    known: tuple[int, ...] = ()

    def __init__(self, cache_time: Any) -> None:
        self.cache_time = cache_time

    def lookup_transform(self, target: str, source: str, time: Any) -> TransformStamped:
        assert (target, source) == ("map", "base_link")
        stamp = time.nanoseconds // SECOND or max(self.known, default=-1)
        if stamp not in self.known:
            raise TransformError(stamp)
        found = TransformStamped()
        found.header.frame_id = target
        found.header.stamp.sec = stamp
        found.transform.translation.x = float(stamp)
        return found

    def clear(self) -> None:
        type(self).known = ()


@pytest.fixture
def pose_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Captured]:
    module = ModuleType("tf2_ros")
    module.Buffer = Buffer  # type: ignore[attr-defined]
    module.TransformException = TransformError  # type: ignore[attr-defined]
    module.TransformListener = lambda buffer, node: SimpleNamespace(  # type: ignore[attr-defined]
        unregister=lambda: None
    )
    monkeypatch.setitem(sys.modules, "tf2_ros", module)

    def sense(known: tuple[int, ...], stamp: int, max_age: float = 2.0) -> Captured:
        monkeypatch.setattr(Buffer, "known", known)
        tf = TfPose(SimpleNamespace(), "map", "base_link", max_age, 10.0)  # type: ignore[arg-type]
        captured = Captured()
        tf.add_to(captured, stamp * SECOND)  # not open: nothing
        assert not captured
        tf.open()
        tf.add_to(captured, stamp * SECOND)
        tf.clear()
        tf.close()
        return captured

    return sense


def test_the_pose_at_the_event(pose_at: Callable[..., Captured]) -> None:
    captured = pose_at((7, 8, 9), 8)
    assert captured.pose is not None
    assert (captured.pose.frame_id, captured.pose.position[0]) == ("map", 8.0)
    assert captured.pose.stamp == 8 * SECOND
    assert captured.context == {
        "ros": {
            "tf": {"topic": "/tf", "frame": "map", "stamp": 8.0, "age": 0.0, "fields": ["pose"]}
        }
    }


def test_else_the_last_before_the_event(pose_at: Callable[..., Captured]) -> None:
    captured = pose_at((7,), 9)
    assert captured.pose is not None
    assert (captured.pose.position[0], captured.readings[0].origin["age"]) == (7.0, 2.0)


def test_too_old_from_the_future_or_unknown(pose_at: Callable[..., Captured]) -> None:
    stale = pose_at((5,), 9)
    assert (stale.pose, stale.stale) == (None, {"tf": 4.0})
    assert pose_at((5,), 9, max_age=0.0).pose is not None
    assert not pose_at((10,), 9)
    assert not pose_at((), 9)


def test_a_static_transform_is_true_at_any_time(pose_at: Callable[..., Captured]) -> None:
    captured = pose_at((0,), 9)
    assert captured.pose is not None
    assert captured.pose.stamp == 9 * SECOND


def test_without_tf2_ros_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    with pytest.raises(ConfigError, match=r"parameter pose_source: .*tf2_ros"):
        TfPose(SimpleNamespace(), "map", "base_link", 2.0, 10.0)  # type: ignore[arg-type]
