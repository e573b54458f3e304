# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Poses out of messages, whatever their class: where they stand, and what makes one usable."""

from __future__ import annotations

import math
import operator
from typing import Any

from robotmem_ros.core.model import Pose
from robotmem_ros.fields import Describe

Quaternion = tuple[float, float, float, float]


def pose_path(type_name: str, describe: Describe) -> str:
    """Return the field that holds the pose in messages of a type, "" if none does with a frame.

    PoseStamped, PoseWithCovarianceStamped, Odometry and what is built like them.
    """
    fields = describe(type_name)
    if _short(fields.get("header", "")) != "std_msgs/Header":
        return ""
    kinds = {"geometry_msgs/Pose": "pose", "geometry_msgs/PoseWithCovariance": "pose.pose"}
    return kinds.get(_short(fields.get("pose", "")), "")


def read_pose(message: Any, path: str, stamp: int) -> Pose | None:
    """Return the pose at a path of a stamped message, or None if it cannot be used."""
    found = operator.attrgetter(path)(message)
    return make_pose(message.header.frame_id, found.position, found.orientation, stamp)


def make_pose(frame_id: str, position: Any, orientation: Any, stamp: int) -> Pose | None:
    """Return a pose of its parts, None without a frame or with a number that is not finite."""
    frame_id = clean_frame(frame_id)
    where = (float(position.x), float(position.y), float(position.z))
    q = (orientation.x, orientation.y, orientation.z, orientation.w)
    turn = (float(q[0]), float(q[1]), float(q[2]), float(q[3]))
    if not frame_id or not all(map(math.isfinite, (*where, *turn))):
        return None
    return Pose(frame_id, where, unit(turn), stamp)


def clean_frame(frame_id: str) -> str:
    """Return a frame as tf2 knows it: without a leading slash, which some drivers still send."""
    return frame_id.strip().lstrip("/")


def unit(q: Quaternion) -> Quaternion:
    """Return a quaternion of length 1; of zeros, which is what nobody set, no rotation."""
    largest = max(map(abs, q))
    if largest == 0.0:
        return (0.0, 0.0, 0.0, 1.0)
    x, y, z, w = (v / largest for v in q)
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    return (x / norm, y / norm, z / norm, w / norm)


def _short(kind: str) -> str:
    return kind.replace("/msg/", "/")
