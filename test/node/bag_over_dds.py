# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What `ros2 bag play` and `ros2 bag record` do, with the library rosbags and real topics."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import harness
from bag_writer import FORMATS, SECOND, TYPES, offered
from rclpy.qos import QoSDurabilityPolicy, QoSProfile
from rosbags.interfaces import QosDurability
from rosbags.rosbag2 import Reader, Writer

from robotmem_ros.message_types import message_class

Meanwhile = Callable[[Any], None]
"""Called with a message while the playing is paused at it."""


class Player:
    """Publishers of the topics of a bag, in the quality of service they were recorded with.

    Attributes
    ----------
    clock: what it said last on /clock, in nanoseconds.
    stamps: of the last message of each topic that has a header, in nanoseconds.

    Parameters
    ----------
    rate: how many times faster than recorded.
    """

    def __init__(self, caller: Any, bag: Path, rate: float = 1.0) -> None:
        self.clock = 0
        self.stamps: dict[str, int] = {}
        self._node = caller.node
        self._rate = rate
        with Reader(bag) as reader:
            self._messages = [
                (connection.topic, connection.msgtype, moment, bytes(data))
                for connection, moment, data in reader.messages()
            ]
            self.publishers = {
                connection.topic: self._publisher(connection) for connection in reader.connections
            }

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *_: object) -> None:
        for publisher in self.publishers.values():
            self._node.destroy_publisher(publisher)

    def wait_for_listeners(self, topics: Iterable[str]) -> None:
        """Wait until somebody listens to each of these topics."""
        for topic in topics:
            publisher = self.publishers[topic]
            harness.wait_for(publisher.get_subscription_count)

    def play(self, pauses: dict[str, Meanwhile] | None = None) -> None:
        """Publish all of it, and pause at each message of some topics to do something."""
        begin, first = time.monotonic(), self._messages[0][2]
        for topic, kind, moment, data in self._messages:
            due = begin + (moment - first) / SECOND / self._rate
            time.sleep(max(0.0, due - time.monotonic()))
            message = TYPES.deserialize_cdr(data, kind)
            if topic == "/clock":
                self.clock = nanoseconds(message.clock)
            elif hasattr(message, "header"):
                self.stamps[topic] = nanoseconds(message.header.stamp)
            self.publishers[topic].publish(data)
            if pauses and topic in pauses:
                paused = time.monotonic()
                pauses[topic](message)
                begin += time.monotonic() - paused

    def _publisher(self, connection: Any) -> Any:
        profiles = connection.ext.offered_qos_profiles
        profile = QoSProfile(depth=max((p.depth for p in profiles), default=100))
        if profiles and all(p.durability is QosDurability.TRANSIENT_LOCAL for p in profiles):
            profile.durability = QoSDurabilityPolicy.TRANSIENT_LOCAL
        kind = message_class(connection.msgtype)
        return self._node.create_publisher(kind, connection.topic, profile)


class Recorder:
    """Writes what is said on some topics into a bag, as it comes.

    Attributes
    ----------
    counts: how many messages of each topic were written.

    Parameters
    ----------
    topics: with the type of their messages and the quality of service of their publisher.
    """

    def __init__(
        self, caller: Any, bag: Path, storage: str, topics: dict[str, tuple[Any, QoSProfile]]
    ) -> None:
        self.counts = dict.fromkeys(topics, 0)
        self._node = caller.node
        self._lock = threading.Lock()
        self._writer: Writer | None = Writer(bag, version=9, storage_plugin=FORMATS[storage])
        self._writer.open()
        self._subscriptions = []
        for topic, (kind, profile) in topics.items():
            latched = profile.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL
            connection = self._writer.add_connection(
                topic,
                f"robotmem_ros/msg/{kind.__name__}",
                typestore=TYPES,
                offered_qos_profiles=[offered(profile.depth, latched=latched)],
            )
            write = functools.partial(self._write, connection)
            self._subscriptions.append(
                self._node.create_subscription(kind, topic, write, profile, raw=True)
            )
        caller.executor.wake()

    def close(self) -> None:
        """Record nothing more, and end the bag."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        with self._lock:
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()

    def _write(self, connection: Any, data: bytes) -> None:
        with self._lock:
            if self._writer is not None:
                self._writer.write(connection, time.time_ns(), data)
                self.counts[connection.topic] += 1


def nanoseconds(time: Any) -> int:
    """Return the time of a message."""
    return int(time.sec) * SECOND + int(time.nanosec)
