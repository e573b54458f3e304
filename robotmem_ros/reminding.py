# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The ~/reminders topic: what the robot learned at the places that it comes near."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType, JumpThreshold
from rclpy.duration import Duration

from robotmem_ros import conversions, qos
from robotmem_ros.core.errors import ConfigError
from robotmem_ros.core.model import Pose
from robotmem_ros.msg import Memory as MemoryMessage
from robotmem_ros.worker import Lane

if TYPE_CHECKING:
    from rclpy.node import Node

    from robotmem_ros.boundary import Boundary
    from robotmem_ros.core.memory import RobotMemory
    from robotmem_ros.core.reminders import Reminders
    from robotmem_ros.node_config import NodeConfig

PERIOD = 0.1
"""Seconds between two looks at where the robot is."""


class RemindersTopic:
    """Reminds the robot while it drives, in a thread of its own.

    Parameters
    ----------
    pose: returns where the robot is now, None if that is not known.

    Raises
    ------
    ConfigError: there is nothing that tells where the robot is.
    """

    def __init__(
        self,
        node: Node,
        boundary: Boundary,
        settings: NodeConfig,
        pose: Callable[[], Pose | None],
    ) -> None:
        self._node = node
        self._boundary = boundary
        self._settings = settings
        self._pose = pose
        self._reminders: Reminders | None = None
        self._lane: Lane | None = None
        self._timer: Any = None
        self._jumps: Any = None
        if settings.remind_radius > 0.0 and not settings.pose_source:
            raise ConfigError(
                f"parameter remind_radius: {settings.remind_radius} is not allowed without "
                "pose_source, which tells where the robot is; set that too, or 0"
            )
        self._publisher = node.create_publisher(MemoryMessage, "~/reminders", qos.REMINDERS)

    def check(self, memory: RobotMemory) -> None:
        """Refuse settings that cannot work.

        Raises
        ------
        ConfigError: the filter is wrong.
        """
        settings = self._settings
        # The filter is checked even where nobody is reminded: it will be switched on some day.
        self._reminders = memory.reminders(
            settings.remind_radius or 1.0, settings.remind_filter, rate=settings.remind_rate
        )

    def open(self, memory: RobotMemory) -> None:
        """Remind from now on."""
        if self._settings.remind_radius <= 0.0 or self._lane is not None:
            return
        reminders = self._reminders
        if reminders is None:
            return
        reminders.reset()
        self._lane = Lane("remind", threads=1, bound=1)
        self._jumps = self._node.get_clock().create_jump_callback(
            JumpThreshold(
                min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=True
            ),
            post_callback=lambda jump: reminders.reset(),
        )
        self._timer = self._node.create_timer(
            PERIOD,
            self._look,
            callback_group=MutuallyExclusiveCallbackGroup(),
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def close(self) -> None:
        """Remind no more; needs no ROS, and may be called twice."""
        timer, self._timer = self._timer, None
        jumps, self._jumps = self._jumps, None
        lane, self._lane = self._lane, None
        with contextlib.suppress(Exception):  # ROS may be gone already
            if jumps is not None:
                jumps.unregister()
            if timer is not None:
                self._node.destroy_timer(timer)
        if lane is not None:
            lane.close(0.1)

    def _look(self) -> None:
        lane, reminders = self._lane, self._reminders
        if lane is None or reminders is None or lane.pending:
            return  # the last look is not over: the next one will do
        try:
            now = self._node.get_clock().now().nanoseconds
            pose = self._pose() if now else None
            if pose is not None:
                lane.submit(lambda: self._remind(reminders, pose, now), self._done)
        except Exception as error:
            self._boundary.explain(error, "~/reminders")

    def _remind(self, reminders: Reminders, pose: Pose, now: int) -> None:
        for memory, distance in reminders.update(pose, now):
            self._publisher.publish(conversions.memory_message(memory, distance=distance))

    def _done(self, result: Any, error: BaseException | None) -> None:
        if isinstance(error, Exception):
            self._boundary.explain(error, "~/reminders")
