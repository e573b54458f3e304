# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A hall with a slippery floor, and a base with two driven wheels in it: no ROS, only physics."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

WHEEL_RADIUS = 0.1
WHEEL_DISTANCE = 0.4
ACCELERATION = 1.5
"""Most change of a wheel's speed over the ground, in m/s each second."""


@dataclass(frozen=True)
class Spot:
    """A round place of the floor where wheels that turn too fast spin.

    Attributes
    ----------
    x, y, radius: where it is, in metres in the frame map.
    grip: fastest speed at which the wheels still grip, in m/s.
    """

    x: float
    y: float
    radius: float
    grip: float

    def covers(self, x: float, y: float) -> bool:
        """Return whether a point is inside."""
        return math.hypot(x - self.x, y - self.y) < self.radius


SPOTS = (Spot(2.6, 0.0, 0.5, 0.6), Spot(6.2, 0.2, 0.6, 0.35))
"""Oil at x = 2.6 m and water at x = 6.2 m; nobody has told the robots."""

ROUTE = ((2.0, 0.1), (4.5, 0.0), (7.6, 0.1))
"""Waypoints through the hall, in metres in the frame map."""


@dataclass
class Pose2D:
    """A place and a heading in the plane, in metres and radians."""

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0

    def move(self, speed: float, turn: float, seconds: float) -> None:
        """Go on for a moment at a speed (m/s) and a rate of turn (rad/s)."""
        middle = self.yaw + turn * seconds / 2
        self.x += speed * math.cos(middle) * seconds
        self.y += speed * math.sin(middle) * seconds
        self.yaw = math.remainder(self.yaw + turn * seconds, math.tau)


@dataclass
class Base:
    """A differential drive.

    Attributes
    ----------
    pose: where it really is, in the frame map.
    odometry: where it must be if its wheels never slip.
    wheels: speed of the left and the right wheel's rim, in m/s.
    angles: how far each wheel has turned, in radians.
    slipping: whether its wheels spin at this moment.
    """

    pose: Pose2D = field(default_factory=Pose2D)
    odometry: Pose2D = field(default_factory=Pose2D)
    wheels: tuple[float, float] = (0.0, 0.0)
    angles: tuple[float, float] = (0.0, 0.0)
    slipping: bool = False
    noise: random.Random = field(default_factory=lambda: random.Random(7))

    @property
    def speed(self) -> float:
        """Speed forwards that the wheels tell, in m/s."""
        return sum(self.wheels) / 2

    @property
    def turn(self) -> float:
        """Rate of turn that the wheels tell, in rad/s."""
        return (self.wheels[1] - self.wheels[0]) / WHEEL_DISTANCE

    def step(self, speed: float, turn: float, seconds: float) -> None:
        """Go on for a moment with a speed and a rate of turn that somebody asks for."""
        wanted = (speed - turn * WHEEL_DISTANCE / 2, speed + turn * WHEEL_DISTANCE / 2)
        most = ACCELERATION * seconds
        left, right = (
            now + max(-most, min(most, then - now))
            for now, then in zip(self.wheels, wanted, strict=True)
        )
        self.wheels = left, right
        self.angles = (
            self.angles[0] + left / WHEEL_RADIUS * seconds,
            self.angles[1] + right / WHEEL_RADIUS * seconds,
        )
        self.odometry.move(self.speed, self.turn, seconds)
        grip = min((s.grip for s in SPOTS if s.covers(self.pose.x, self.pose.y)), default=math.inf)
        self.slipping = abs(self.speed) > grip
        if self.slipping:
            # The wheels spin: little of their motion moves the robot, and it turns where it likes.
            self.pose.move(0.35 * self.speed, self.noise.uniform(-0.6, 0.6), seconds)
        else:
            self.pose.move(self.speed, self.turn, seconds)
