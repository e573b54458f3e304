# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which of the robot's poses belong to the trajectory of an episode."""

from __future__ import annotations

import math

from robotmem_ros.core.model import Pose

CLOCK_JUMP = 1.0
"""Seconds by which a stamp lies before the last one only when the clock was set back."""

_EARLY = 0.02
"""Share of the interval by which a pose may come early, because none comes like clockwork."""


class Sampler:
    """Takes poses that are far enough apart, in time and in space.

    It holds the last one alone; how many make a trajectory is the business of who keeps them.

    Parameters
    ----------
    rate: most poses in a second; 0 takes none.
    min_distance: metres from the pose taken last; not asked for between two frames.
    """

    def __init__(self, rate: float, min_distance: float) -> None:
        self._interval = (1.0 - _EARLY) / rate if rate > 0.0 else math.inf
        self._min_distance = min_distance
        self._last: Pose | None = None

    def restart(self) -> None:
        """Begin a new trajectory."""
        self._last = None

    def offer(self, pose: Pose) -> bool:
        """Return whether a pose belongs to the trajectory; then the next is measured from it."""
        wanted = self._is_wanted(pose)
        if wanted:
            self._last = pose
        return wanted

    def _is_wanted(self, pose: Pose) -> bool:
        finite = all(map(math.isfinite, (*pose.position, *pose.orientation)))
        if not finite or pose.stamp <= 0 or self._interval == math.inf:
            return False
        last = self._last
        if last is None:
            return True
        passed = (pose.stamp - last.stamp) / 1e9
        if passed < -CLOCK_JUMP:
            return True
        if passed < self._interval:
            return False
        if pose.frame_id != last.frame_id:
            return True
        return math.dist(pose.position, last.position) >= self._min_distance
