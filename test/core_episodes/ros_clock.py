# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A clock of ROS time for the tests of episodes."""

from __future__ import annotations

SECOND = 1_000_000_000


class Clock:
    """ROS time that goes on by itself, a second with each look at it."""

    def __init__(self, start: int = 1_000 * SECOND) -> None:
        self.time = start
        self.step = SECOND

    def __call__(self) -> int:
        time = self.time
        self.time += self.step
        return time
