# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the robot of a recording was, from its /tf and /tf_static, by the rules of tf2.

Between two transforms of a frame is interpolated; where the newest of one frame on the way is
older than the event, the latest time that all of them have in common counts.
"""

from __future__ import annotations

import bisect
import math
from typing import Any, NamedTuple

from robotmem_ros.bags.bag import Bag
from robotmem_ros.bags.files import Record
from robotmem_ros.captured import TF, Captured, Reading, origin
from robotmem_ros.core.model import Pose
from robotmem_ros.node_config import NodeConfig
from robotmem_ros.poses import clean_frame, unit

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

STATIC = "/tf_static"
TOPICS = ("/tf", STATIC)
TYPE = "tf2_msgs/msg/TFMessage"

_MAX_DEPTH = 100  # frames on the way to the root, as a guard against loops


class Transform(NamedTuple):
    """Where a child frame is in its parent."""

    translation: Vector
    rotation: Quaternion

    def then(self, inner: Transform) -> Transform:
        """Return where the inner frame, which is in this one, is in the parent of this one."""
        moved = _rotate(self.rotation, inner.translation)
        where = (
            self.translation[0] + moved[0],
            self.translation[1] + moved[1],
            self.translation[2] + moved[2],
        )
        return Transform(where, _times(self.rotation, inner.rotation))

    def inverse(self) -> Transform:
        """Return where the parent is in this frame."""
        x, y, z, w = self.rotation
        back = (-x, -y, -z, w)
        moved = _rotate(back, self.translation)
        return Transform((-moved[0], -moved[1], -moved[2]), back)


_NOWHERE = Transform((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))


class _Link:
    """The transforms of one frame, by time."""

    def __init__(self, history: int) -> None:
        self._history = history
        self.parent = ""
        self.is_static = False
        self._stamps: list[int] = []
        self._transforms: list[Transform] = []

    @property
    def newest(self) -> int:
        return self._stamps[-1]

    def add(self, parent: str, stamp: int, transform: Transform, is_static: bool) -> None:
        if parent != self.parent or is_static:
            self._stamps, self._transforms = [], []
        self.parent, self.is_static = parent, is_static
        at = bisect.bisect_right(self._stamps, stamp)
        self._stamps.insert(at, stamp)
        self._transforms.insert(at, transform)
        old = bisect.bisect_left(self._stamps, self.newest - self._history)
        if old > 64:  # several at once: dropping one by one would move the rest each time
            del self._stamps[:old], self._transforms[:old]

    def at(self, stamp: int) -> Transform | None:
        """Return the transform at a time; None if that is before the first."""
        if self.is_static:
            return self._transforms[0]
        after = bisect.bisect_right(self._stamps, stamp)
        if after == 0:
            return None
        if after == len(self._stamps):
            return self._transforms[-1]
        first, last = self._stamps[after - 1], self._stamps[after]
        share = (stamp - first) / (last - first)
        return _between(self._transforms[after - 1], self._transforms[after], share)


class Transforms:
    """The tree of frames.

    Parameters
    ----------
    history: nanoseconds for which transforms are kept.
    """

    def __init__(self, history: int) -> None:
        self._history = history
        self._links: dict[str, _Link] = {}

    def add(self, message: Any, is_static: bool) -> None:
        """Take a tf2_msgs/msg/TFMessage; transforms that are not finite are dropped."""
        for stamped in message.transforms:
            t, q = stamped.transform.translation, stamped.transform.rotation
            numbers = (t.x, t.y, t.z, q.x, q.y, q.z, q.w)
            parent = clean_frame(stamped.header.frame_id)
            child = clean_frame(stamped.child_frame_id)
            if not parent or not child or not all(map(math.isfinite, numbers)):
                continue
            time = stamped.header.stamp
            transform = Transform(
                (float(t.x), float(t.y), float(t.z)),
                unit((float(q.x), float(q.y), float(q.z), float(q.w))),
            )
            stamp = int(time.sec) * 1_000_000_000 + int(time.nanosec)
            link = self._links.setdefault(child, _Link(self._history))
            link.add(parent, stamp, transform, is_static)

    def clear(self) -> None:
        """Forget all transforms that are not static."""
        self._links = {name: link for name, link in self._links.items() if link.is_static}

    def pose(self, target: str, source: str, stamp: int) -> Pose | None:
        """Return where a frame is in a target frame at a time, or at the last time before it.

        None if they are not connected, or not at that time.
        """
        down, up = self._way(target), self._way(source)
        shared = next((frame for frame in up if frame in down), None)
        if shared is None:
            return None
        down, up = down[: down.index(shared)], up[: up.index(shared)]
        links = [self._links[frame] for frame in (*down, *up)]
        # What is all static is true at any time.
        when = min([stamp, *(link.newest for link in links if not link.is_static)])
        outer, inner = self._whole(down, when), self._whole(up, when)
        if outer is None or inner is None:
            return None
        where = outer.inverse().then(inner)
        return Pose(target, where.translation, unit(where.rotation), when)

    def _way(self, frame: str) -> list[str]:
        """Return a frame and those above it, up to the root."""
        way = [frame]
        while (link := self._links.get(way[-1])) is not None and len(way) < _MAX_DEPTH:
            way.append(link.parent)
        return way

    def _whole(self, way: list[str], stamp: int) -> Transform | None:
        """Return where the first frame of a way is in the parent of the last one."""
        whole = _NOWHERE
        for frame in way:
            part = self._links[frame].at(stamp)
            if part is None:
                return None
            whole = part.then(whole)
        return whole


class TfPose:
    """The robot's pose from /tf, as the node has it from tf2."""

    def __init__(self, bag: Bag, settings: NodeConfig) -> None:
        self.transforms = Transforms(int((settings.capture_history + settings.tf_max_age) * 1e9))
        self.frames = clean_frame(settings.map_frame), clean_frame(settings.base_frame)
        self.found = False
        self._bag = bag
        self._max_age = settings.tf_max_age

    def hear(self, record: Record) -> None:
        """Keep the transforms of a message."""
        message = self._bag.decoded(record)
        if message is not None and record.topic.type == TYPE:
            self.transforms.add(message, record.topic.name == STATIC)

    def pose(self, stamp: int) -> Pose | None:
        """Return where the robot was at a time, or lately."""
        pose = self.transforms.pose(*self.frames, stamp)
        self.found = self.found or pose is not None
        return pose

    def add_to(self, captured: Captured, stamp: int) -> None:
        """Add the pose at the time of an event, or else the last one before it."""
        pose = self.pose(stamp)
        if pose is None:
            return
        age = (stamp - pose.stamp) / 1e9
        if self._max_age and age > self._max_age:
            captured.stale[TF] = round(age, 6)
            return
        captured.pose = pose
        where = origin(TOPICS[0], pose.frame_id, pose.stamp, age)
        captured.readings.append(Reading(TF, where, has_pose=True))


def _rotate(q: Quaternion, v: Vector) -> Vector:
    x, y, z, w = q
    cx, cy, cz = y * v[2] - z * v[1], z * v[0] - x * v[2], x * v[1] - y * v[0]
    return (
        v[0] + 2.0 * (w * cx + y * cz - z * cy),
        v[1] + 2.0 * (w * cy + z * cx - x * cz),
        v[2] + 2.0 * (w * cz + x * cy - y * cx),
    )


def _times(a: Quaternion, b: Quaternion) -> Quaternion:
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def _between(one: Transform, other: Transform, share: float) -> Transform:
    """Return a transform between two, on the straight line and the shortest turn."""
    a, b = one.translation, other.translation
    where = (
        a[0] + share * (b[0] - a[0]),
        a[1] + share * (b[1] - a[1]),
        a[2] + share * (b[2] - a[2]),
    )
    p, q = one.rotation, other.rotation
    dot = sum(x * y for x, y in zip(p, q, strict=True))
    sign = -1.0 if dot < 0.0 else 1.0
    angle = math.acos(min(1.0, abs(dot)))
    if angle < 1e-6:
        first, last = 1.0 - share, share
    else:
        first = math.sin((1.0 - share) * angle) / math.sin(angle)
        last = math.sin(share * angle) / math.sin(angle)
    last *= sign
    turn = (
        first * p[0] + last * q[0],
        first * p[1] + last * q[1],
        first * p[2] + last * q[2],
        first * p[3] + last * q[3],
    )
    return Transform(where, unit(turn))
