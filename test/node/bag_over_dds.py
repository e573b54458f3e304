# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What `ros2 bag play` and `ros2 bag record` do, with the library rosbags and real topics."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import harness
from bag_writer import FORMATS, SECOND, TYPES, offered
from rclpy.qos import QoSDurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
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
    """Takes what is said on some topics, as it is, for a bag.

    Attributes
    ----------
    heard: topic, wall time and serialised message, in the order in which they came.

    Parameters
    ----------
    topics: with the type of their messages and the quality of service of their publisher.
    """

    def __init__(self, caller: Any, topics: dict[str, tuple[Any, QoSProfile]]) -> None:
        self.heard: list[tuple[str, int, bytes]] = []
        self._topics = topics
        self._node = caller.node
        self._subscriptions = [
            self._node.create_subscription(
                kind, topic, functools.partial(self._take, topic), profile, raw=True
            )
            for topic, (kind, profile) in topics.items()
        ]
        caller.executor.wake()

    def of(self, topic: str) -> list[Any]:
        """Return what was heard of a topic."""
        kind, _ = self._topics[topic]
        return [deserialize_message(data, kind) for name, _, data in self.heard if name == topic]

    def close(self, bag: Path, storage: str) -> None:
        """Take nothing more, and write the bag."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        with Writer(bag, version=9, storage_plugin=FORMATS[storage]) as writer:
            connections = {
                topic: writer.add_connection(
                    topic,
                    f"robotmem_ros/msg/{kind.__name__}",
                    typestore=TYPES,
                    offered_qos_profiles=[offered(profile.depth, latched=_is_latched(profile))],
                )
                for topic, (kind, profile) in self._topics.items()
            }
            for topic, moment, data in list(self.heard):
                writer.write(connections[topic], moment, data)

    def _take(self, topic: str, data: bytes) -> None:
        self.heard.append((topic, time.time_ns(), data))


def _is_latched(profile: QoSProfile) -> bool:
    return bool(profile.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL)


def nanoseconds(time: Any) -> int:
    """Return the time of a message."""
    return int(time.sec) * SECOND + int(time.nanosec)
