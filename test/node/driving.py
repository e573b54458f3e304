# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A robot that says where it is, and the parameters of a memory that listens to it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from geometry_msgs.msg import PoseStamped

POSES: dict[str, Any] = {
    "context_sources": "[pose]",
    "pose_source": "pose",
    "pose.topic": "pose",
    "pose.type": "geometry_msgs/msg/PoseStamped",
}


class Driver:
    """Publishes the pose of the robot whose memory runs under a name like /run1/robotmem."""

    def __init__(self, caller: Any, name: str) -> None:
        self._caller = caller
        self._publisher = caller.node.create_publisher(
            PoseStamped, f"{name.rpartition('/')[0]}/pose", 10
        )
        deadline = time.monotonic() + 30.0
        while not self._publisher.get_subscription_count():
            assert time.monotonic() < deadline, "nobody listens to the pose"
            time.sleep(0.02)

    def at(self, x: float, y: float = 0.0, stamp: int = 0, frame: str = "map") -> PoseStamped:
        """Say that the robot is at a place, now or at a stamp in nanoseconds."""
        pose = pose_at(x, y, frame)
        pose.header.stamp.sec, pose.header.stamp.nanosec = divmod(stamp or time.time_ns(), 10**9)
        self._publisher.publish(pose)
        return pose

    def along(self, places: Iterable[float], seconds: float = 0.05) -> None:
        """Drive along the x axis, one place after the other."""
        for x in places:
            self.at(x)
            time.sleep(seconds)


def pose_at(x: float, y: float = 0.0, frame: str = "map") -> PoseStamped:
    """Return a pose without a stamp."""
    pose = PoseStamped()
    pose.header.frame_id = frame
    pose.pose.position.x, pose.pose.position.y = float(x), float(y)
    return pose
