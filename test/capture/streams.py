# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Publishers of the tests: a message at a rate, with a stamp of its time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy

RELIABLE = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.RELIABLE)
BEST_EFFORT = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(
    depth=1,
    reliability=QoSReliabilityPolicy.RELIABLE,
    durability=QoSDurabilityPolicy.TRANSIENT_LOCAL,
)


def stamped(seconds: float) -> Time:
    """Return a time as a message."""
    whole, rest = divmod(round(seconds * 1e9), 1_000_000_000)
    return Time(sec=whole, nanosec=rest)


class Stream:
    """Publishes a message again and again, until it is closed.

    Parameters
    ----------
    clock: gives the stamp of its header in seconds; None leaves the stamp as it is.
    """

    def __init__(
        self,
        node: Any,
        topic: str,
        message: Any,
        profile: QoSProfile = RELIABLE,
        rate: float = 50.0,
        clock: Callable[[], float] | None = time.time,
    ) -> None:
        self._node = node
        self.message = message
        self._clock = clock
        self._period = 1.0 / rate
        self._publisher = node.create_publisher(type(message), topic, profile)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Fall silent, but stay."""
        self._stop.set()
        self._thread.join()

    def close(self) -> None:
        """Go."""
        self.stop()
        self._node.destroy_publisher(self._publisher)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        while not self._stop.wait(self._period):
            if self._clock is not None and hasattr(self.message, "header"):
                self.message.header.stamp = stamped(self._clock())
            self._publisher.publish(self.message)


class SimulatedClock(Stream):
    """Publishes /clock, which runs at a factor of real time from where it is set."""

    def __init__(self, node: Any, seconds: float, factor: float = 1.0) -> None:
        from rosgraph_msgs.msg import Clock

        self._factor = factor
        self.set(seconds)
        super().__init__(node, "/clock", Clock(), rate=100.0, clock=None)

    def set(self, seconds: float) -> None:
        """Jump."""
        self._start = seconds - time.monotonic() * self._factor

    def now(self) -> float:
        """Return the simulated time, in seconds."""
        return self._start + time.monotonic() * self._factor

    def _run(self) -> None:
        while not self._stop.wait(self._period):
            self.message.clock = stamped(self.now())
            self._publisher.publish(self.message)
