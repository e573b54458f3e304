# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""One topic that is listened to, in the quality of service that its publishers have.

Waking the executor for each message costs ten times more than taking the message. So nobody waits
for messages here: DDS queues them, and they are taken, several at once and still serialised, when
poll is called. They become objects only if a memory needs them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import CallbackGroup
from rclpy.qos import QoSDurabilityPolicy
from rclpy.serialization import deserialize_message

from robotmem_ros import qos
from robotmem_ros.captured import Source
from robotmem_ros.core.errors import ConfigError
from robotmem_ros.message_types import message_class
from robotmem_ros.samples import Sample, Samples, stamp_reader

if TYPE_CHECKING:
    from rclpy.node import Node
    from rclpy.subscription import Subscription
    from rclpy.topic_endpoint_info import TopicEndpointInfo

OVERLAP = 8
"""For how many looks at the publishers, two seconds in all, an old subscription is kept beside the
new one: until that is connected, what is said comes to the old one alone."""


class _Unwaited(CallbackGroup):
    """A group whose members no executor waits for."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


class LiveTopic:
    """The recent messages of one source. Not thread-safe: its owner holds a lock.

    Parameters
    ----------
    history: nanoseconds for which messages are kept.

    Raises
    ------
    ConfigError: the topic's name is not valid.
    """

    def __init__(self, node: Node, source: Source, history: int) -> None:
        self._node = node
        self._topic = source.topic  # the subscription and the graph resolve it themselves
        try:
            resolved = node.resolve_topic_name(source.topic)
        except Exception as error:
            raise ConfigError(
                f"parameter {source.name}.topic: {source.topic!r} is not a topic's name: "
                + " ".join(str(error).split())
            ) from error
        self.source = dataclasses.replace(source, topic=resolved)
        self.samples = Samples(history)
        self.publishers = 0
        self.problem = ""
        self._class = message_class(source.type)
        self._stamp = stamp_reader(
            tuple(self._class.get_fields_and_field_types().items()), self.decode
        )
        self._group = _Unwaited()
        self._profile = qos.sensor(best_effort=True, latched=False)
        self._subscription: Subscription | None = None
        self._leaving: list[tuple[int, Subscription]] = []  # old ones, and how long they stay
        self._renew = False

    def open(self) -> None:
        """Subscribe, in the quality of service that any publisher can serve until one is known."""
        if self._subscription is None:
            self._subscription = self._node.create_subscription(
                self._class,
                self._topic,
                _never_called,
                self._profile,
                callback_group=self._group,
                raw=True,
            )

    def close(self) -> None:
        """Unsubscribe, and forget the messages."""
        subscriptions = self._subscriptions()
        self._subscription, self._leaving = None, []
        for subscription in subscriptions:
            self._destroy(subscription)
        self.samples.clear()

    def poll(self, received: Callable[[int], int]) -> None:
        """Take the messages that have come.

        Parameters
        ----------
        received: makes ROS time of the time at which DDS received a message.
        """
        for subscription in self._subscriptions():
            handle = subscription.handle
            with handle:
                while (taken := handle.take_message(self._class, True)) is not None:
                    data, info = taken
                    when = received(info["received_timestamp"])
                    try:
                        stamp = self._stamp(data)
                    except Exception as error:  # one message that is none must not hide the others
                        self.problem = f"{self.source.topic}: a message cannot be read: {error}"
                        continue
                    self.samples.add(Sample(stamp if stamp > 0 else when, when, len(data), data))

    def clear(self) -> None:
        """Forget all messages, those in the queue too; ask for latched ones again."""
        self.poll(lambda timestamp: 0)
        self.samples.clear()
        self._renew = self._profile.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL

    def decode(self, data: bytes) -> Any:
        """Return a message as an object."""
        return deserialize_message(data, self._class)

    def find_publishers(self) -> list[TopicEndpointInfo]:
        """Return who publishes on the topic, of whatever type."""
        found: list[TopicEndpointInfo] = self._node.get_publishers_info_by_topic(self._topic)
        return found

    def adapt(self, found: Iterable[TopicEndpointInfo]) -> None:
        """Subscribe anew if the publishers need another quality of service.

        Nothing is lost by that; some messages may come twice.
        """
        self._leaving = [(looks - 1, subscription) for looks, subscription in self._leaving]
        while self._leaving and self._leaving[0][0] <= 0:
            self._destroy(self._leaving.pop(0)[1])
        found = list(found)
        kind = self._class.__module__.split(".")[0] + "/msg/" + self._class.__name__
        ours = [info.qos_profile for info in found if info.topic_type == kind]
        others = sorted({info.topic_type for info in found if info.topic_type != kind})
        self.publishers = len(ours)
        self.problem = ""
        if others:
            self.problem = (
                f"{self.source.topic} is published as {', '.join(others)}, but parameter "
                f"{self.source.name}.type is {self.source.type}"
            )
        wanted = qos.sensor(**qos.served_by(ours)) if ours else self._profile
        if self._subscription is None or (wanted == self._profile and not self._renew):
            return
        old, before = self._subscription, self._profile
        self._subscription, self._profile = None, wanted
        try:
            self.open()
        except Exception:
            self._subscription, self._profile = old, before
            raise
        self._renew = False
        self._leaving.append((OVERLAP, old))

    def _subscriptions(self) -> list[Subscription]:
        old = [subscription for _, subscription in self._leaving]
        return old if self._subscription is None else [*old, self._subscription]

    def _destroy(self, subscription: Subscription) -> None:
        with contextlib.suppress(Exception):  # ROS may be gone already
            self._node.destroy_subscription(subscription)


def _never_called(message: Any) -> None:
    """Stand where a callback is asked for."""
