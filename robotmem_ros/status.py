# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The ~/status topic: the state of the node, latched, at the start and whenever it changes."""

from __future__ import annotations

import copy
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from std_msgs.msg import Header

from robotmem_ros import qos
from robotmem_ros.msg import Status as StatusMessage
from robotmem_ros.worker import NotServedError

if TYPE_CHECKING:
    from rclpy.node import Node

    from robotmem_ros.boundary import Boundary

PERIOD = 1.0
"""Seconds between two looks at the state, and the least time between two messages."""


class StatusTopic:
    """Publishes the state that read returns, without a stamp, whenever it differs from before."""

    def __init__(
        self, node: Node, boundary: Boundary, read: Callable[[], Awaitable[StatusMessage]]
    ) -> None:
        self._node = node
        self._boundary = boundary
        self._read = read
        self._last: StatusMessage | None = None
        self._last_time = -PERIOD
        self._publisher = node.create_publisher(StatusMessage, "~/status", qos.STATUS)
        # Steady: with use_sim_time and no /clock the ROS time stands still.
        self._clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._group = MutuallyExclusiveCallbackGroup()
        node.create_timer(PERIOD, self.refresh, callback_group=self._group, clock=self._clock)

    def refresh_soon(self) -> None:
        """Look at the state as soon as the executor has time."""

        async def once() -> None:
            self._node.destroy_timer(timer)
            await self.refresh()

        # A timer and not a task: a coroutine that is made and never run makes Python complain.
        timer = self._node.create_timer(0.001, once, callback_group=self._group, clock=self._clock)

    async def refresh(self) -> None:
        """Publish the state if it is a new one, unless it is too soon after the last message."""
        if time.monotonic() - self._last_time < 0.9 * PERIOD:
            return  # the timer will see it
        try:
            message = await self._read()
            if message == self._last:
                return
            self._last, self._last_time = message, time.monotonic()
            stamped = copy.copy(message)
            stamped.header = Header(stamp=self._node.get_clock().now().to_msg())
            self._publisher.publish(stamped)
        except NotServedError:
            pass  # busy, or going down: the next look will tell
        except Exception as error:
            self._boundary.explain(error, "~/status")
