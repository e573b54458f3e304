# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The robot's pose from tf2, on machines that have tf2_ros."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rclpy.duration import Duration
from rclpy.time import Time

from robotmem_ros.captured import TF, Captured, Reading, origin
from robotmem_ros.core.errors import ConfigError
from robotmem_ros.poses import make_pose

if TYPE_CHECKING:
    from rclpy.node import Node


class TfPose:
    """Looks up where base_frame is in map_frame.

    Parameters
    ----------
    max_age: seconds the transform may be older than the event; 0 means any age.
    history: seconds for which transforms are kept.

    Raises
    ------
    ConfigError: tf2_ros is not installed.
    """

    def __init__(
        self, node: Node, map_frame: str, base_frame: str, max_age: float, history: float
    ) -> None:
        try:
            self._tf2: Any = importlib.import_module("tf2_ros")
        except ImportError as error:
            raise ConfigError(
                'parameter pose_source: "tf" needs tf2_ros, which cannot be loaded here '
                f"({error}); install the package tf2_ros_py of your ROS 2, or name a source"
            ) from error
        self._node = node
        self._frames = map_frame, base_frame
        self._max_age = max_age
        self._history = history + max_age
        self._buffer: Any = None
        self._listener: Any = None

    def open(self) -> None:
        """Begin to listen to /tf and /tf_static."""
        self._buffer = self._tf2.Buffer(cache_time=Duration(seconds=self._history))
        self._listener = self._tf2.TransformListener(self._buffer, self._node)

    def close(self) -> None:
        """Listen no more."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.unregister()
        self._buffer = None

    def clear(self) -> None:
        """Forget all transforms that are not static."""
        if self._buffer is not None:
            self._buffer.clear()

    def add_to(self, captured: Captured, stamp: int) -> None:
        """Add the pose at the time of an event, or else the last one before it."""
        buffer = self._buffer
        if buffer is None:
            return
        found = self._lookup(buffer, stamp) or self._lookup(buffer, 0)
        if found is None:
            return
        found_stamp = found.header.stamp.sec * 1_000_000_000 + found.header.stamp.nanosec
        found_stamp = found_stamp or stamp  # all of it is static: true at any time
        age = (stamp - found_stamp) / 1e9
        if age < 0.0:
            return
        if self._max_age and age > self._max_age:
            captured.stale[TF] = round(age, 6)
            return
        transform = found.transform
        captured.pose = make_pose(
            found.header.frame_id, transform.translation, transform.rotation, found_stamp
        )
        if captured.pose is not None:
            where = origin("/tf", captured.pose.frame_id, found_stamp, age)
            captured.readings.append(Reading(TF, where, has_pose=True))

    def _lookup(self, buffer: Any, stamp: int) -> Any:
        try:
            return buffer.lookup_transform(*self._frames, Time(nanoseconds=stamp))
        except self._tf2.TransformException:
            return None
