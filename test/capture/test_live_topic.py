# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A topic that is listened to anew, as its publishers need it: without a gap."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")
streams = pytest.importorskip("streams", reason="needs ROS 2")

from geometry_msgs.msg import PointStamped  # noqa: E402

from robotmem_ros.captured import Source  # noqa: E402
from robotmem_ros.live_topic import OVERLAP, LiveTopic  # noqa: E402

HISTORY = 60 * 10**9


def test_no_message_is_lost_while_it_is_subscribed_anew(caller: Any) -> None:
    source = Source("point", "/anew/point", "geometry_msgs/msg/PointStamped", 0.0, ())
    topic = LiveTopic(caller.node, source, HISTORY)
    topic.open()
    caller.executor.wake()
    reliable = caller.node.create_publisher(PointStamped, "/anew/point", streams.RELIABLE)
    harness.wait_for(lambda: reliable.get_subscription_count() == 1)
    harness.wait_for(lambda: len(topic.find_publishers()) == 1)
    numbers = itertools.count(1)

    def publish(count: int) -> None:
        for number in itertools.islice(numbers, count):
            message = PointStamped()
            message.header.stamp.nanosec = number
            reliable.publish(message)
            time.sleep(0.005)

    publish(10)
    topic.adapt(topic.find_publishers())  # to reliable; what waits in the queue is not polled yet
    publish(20)
    topic.poll(lambda timestamp: 0)
    other = caller.node.create_publisher(PointStamped, "/anew/point", streams.BEST_EFFORT)
    harness.wait_for(lambda: len(topic.find_publishers()) == 2)
    for _ in range(2 * OVERLAP):  # back to best effort, and until the old ones are gone
        topic.adapt(topic.find_publishers())
        publish(5)
        topic.poll(lambda timestamp: 0)
    last = next(numbers) - 1
    assert last == 30 + 10 * OVERLAP

    def heard() -> bool:
        topic.poll(lambda timestamp: 0)
        return all(topic.samples.latest(n).stamp == n for n in range(1, last + 1))

    harness.wait_for(heard, timeout=5.0)
    assert reliable.get_subscription_count() == 1
    topic.close()
    harness.wait_for(lambda: reliable.get_subscription_count() == 0)
    for publisher in (reliable, other):
        caller.node.destroy_publisher(publisher)
