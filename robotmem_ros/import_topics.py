# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Topics of other robots and of played bags, whose memories and episodes are stored here, once.

What is heard is never published again: robots that listen to each other would pass everything on
for ever. A robot that wants to know what a third one knows listens to that one itself.

What comes in faster than it can be stored waits, up to import_queue_size messages; more are
dropped, counted on /diagnostics and logged. What DDS tells to be lost on the way is logged, too.
Memories that were published before we were connected never come here. Whatever is missed can come
again: in the Episode that holds it, or by `robotmem import` from a bag.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType

try:
    from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
except ModuleNotFoundError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks, UnsupportedEventTypeError

from robotmem_ros import importing, qos
from robotmem_ros.core.errors import ConfigError, InvalidRequestError
from robotmem_ros.importing import Importer
from robotmem_ros.msg import Episode as EpisodeMessage
from robotmem_ros.msg import Memory as MemoryMessage
from robotmem_ros.worker import Lane, NotServedError

if TYPE_CHECKING:
    from rclpy.node import Node
    from rclpy.subscription import Subscription

    from robotmem_ros.boundary import Boundary
    from robotmem_ros.core.memory import RobotMemory
    from robotmem_ros.core.model import Queue
    from robotmem_ros.node_config import NodeConfig

PERIOD = 0.5
"""Seconds between two looks for publishers."""

KINDS = {importing.MEMORY: MemoryMessage, importing.EPISODE: EpisodeMessage}


class ImportTopics:
    """Listens to the topics named in import_topics.

    Raises
    ------
    ConfigError: one of them is not a name of a topic, or is named twice.
    """

    def __init__(self, node: Node, boundary: Boundary, settings: NodeConfig) -> None:
        self._node = node
        self._boundary = boundary
        self._bound = settings.import_queue_size
        topics = [name for name in settings.import_topics if name.strip()]
        self._topics = [_Topic(node, name, self._take, self._warn) for name in topics]
        names = [topic.name for topic in self._topics]
        if len(set(names)) < len(names):
            raise ConfigError("parameter import_topics: it names a topic twice")
        self._importer: Importer | None = None
        self._lane: Lane | None = None
        self._timer: Any = None
        self._warned: set[str] = set()

    @property
    def queues(self) -> dict[str, Queue]:
        """How the queue does, if there is one."""
        return {"import": self._lane.queue} if self._lane is not None else {}

    def open(self, memory: RobotMemory) -> None:
        """Listen, and store in this memory."""
        if not self._topics or self._lane is not None:
            return
        self._importer = Importer(memory)
        self._lane = Lane("import", threads=1, bound=self._bound)
        self._look()
        self._timer = self._node.create_timer(
            PERIOD,
            self._look,
            callback_group=MutuallyExclusiveCallbackGroup(),
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def close(self) -> None:
        """Listen no more; what waits is dropped, with a warning. May be called twice."""
        timer, self._timer = self._timer, None
        lane, self._lane = self._lane, None
        with contextlib.suppress(Exception):  # ROS may be gone already
            if timer is not None:
                self._node.destroy_timer(timer)
        for topic in self._topics:
            topic.close()
        if lane is not None:
            lane.close(0.1)

    def _look(self) -> None:
        try:
            for topic in self._topics:
                self._warn(topic.adapt())
        except Exception as error:
            self._boundary.explain(error, "import_topics")

    def _take(self, topic: str, message: Any) -> None:
        lane, importer = self._lane, self._importer
        if lane is None or importer is None:
            return

        def done(result: Any, error: BaseException | None) -> None:
            if isinstance(error, NotServedError):
                self._warn(f"{topic}: some that was heard was not stored before the end")
            elif isinstance(error, InvalidRequestError):
                self._warn(f"{topic}: cannot be imported: {error}")
            elif isinstance(error, Exception):
                self._boundary.explain(error, f"importing from {topic}")

        store = importer.memory if isinstance(message, MemoryMessage) else importer.episode
        try:
            lane.submit(lambda: store(message), done)
        except NotServedError:
            self._warn(
                f"{topic}: {self._bound} messages wait (import_queue_size); others are dropped"
            )

    def _warn(self, sentence: str) -> None:
        if sentence and sentence not in self._warned and len(self._warned) < 100:
            self._warned.add(sentence)
            self._node.get_logger().warning(sentence)


class _Topic:
    """One topic, heard in the type and in every quality of service that its publishers have.

    Before there is a publisher, its name tells both, so that nothing of what is said first is
    missed. When one joins that needs another quality, a subscription is added and none is taken
    away: what waits in it, and what is said before a new one is connected, would be lost. What is
    then heard twice is stored once.
    """

    def __init__(
        self,
        node: Node,
        name: str,
        take: Callable[[str, Any], None],
        warn: Callable[[str], None],
    ) -> None:
        self._node = node
        self._take = take
        self._warn = warn
        try:
            self.name: str = node.resolve_topic_name(name.strip())
        except Exception as error:
            raise ConfigError(
                f"parameter import_topics: {name!r} is not a topic's name: "
                + " ".join(str(error).split())
            ) from error
        is_latched = self.name.endswith("episodes")
        self._kind = importing.EPISODE if is_latched else importing.MEMORY
        self._expected = qos.served_by([qos.EPISODES if is_latched else qos.MEMORIES])
        self._subscriptions: dict[tuple[bool, ...], Subscription] = {}

    def adapt(self) -> str:
        """Subscribe as the publishers need it; return what is wrong with them, or nothing."""
        found = self._node.get_publishers_info_by_topic(self.name)
        types = {info.topic_type for info in found}
        ours = sorted(types & KINDS.keys())
        if ours and self._kind not in ours:
            self.close()  # DDS allows one type of a topic; of the other one nobody publishes
            self._kind = ours[0]
        profiles = [info.qos_profile for info in found if info.topic_type == self._kind]
        for needed in (self._expected, *(qos.served_by([profile]) for profile in profiles)):
            if tuple(needed.values()) not in self._subscriptions:
                self._subscriptions[tuple(needed.values())] = self._subscribe(needed)
        others = sorted(types - {self._kind})
        if not others:
            return ""
        return f"{self.name}: not imported as {', '.join(others)}, only as {self._kind}"

    def close(self) -> None:
        """Unsubscribe."""
        subscriptions, self._subscriptions = self._subscriptions, {}
        for subscription in subscriptions.values():
            with contextlib.suppress(Exception):  # ROS may be gone already
                self._node.destroy_subscription(subscription)

    def _subscribe(self, needed: dict[str, bool]) -> Subscription:
        def subscribe(**options: Any) -> Subscription:
            return self._node.create_subscription(
                KINDS[self._kind],
                self.name,
                lambda message: self._take(self.name, message),
                qos.importing(**needed),
                **options,
            )

        try:
            # Not the usual ones: they tell of publishers that this subscription is not for.
            events = SubscriptionEventCallbacks(
                message_lost=self._on_lost, use_default_callbacks=False
            )
            return subscribe(event_callbacks=events)
        except UnsupportedEventTypeError:  # by this DDS
            return subscribe()

    def _on_lost(self, event: Any) -> None:
        self._warn(
            f"{self.name}: messages were lost on the way, they came faster than they could be "
            "taken; if they are in a bag, robotmem import brings them all"
        )
