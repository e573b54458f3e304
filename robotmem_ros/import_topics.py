# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Topics of other robots and of played bags, whose memories and episodes are stored here, once.

What is heard is never published again: robots that listen to each other would pass everything on
for ever. A robot that wants to know what a third one knows listens to that one itself.

What comes in faster than it can be stored waits, up to MAX_WAITING messages; more are dropped,
counted on /diagnostics and logged. Whatever is dropped can come again: in the Episode that holds
it, or by `robotmem import` from a bag.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType

from robotmem_ros import importing, qos
from robotmem_ros.core.errors import ConfigError, InvalidRequestError
from robotmem_ros.importing import Importer
from robotmem_ros.msg import Episode as EpisodeMessage
from robotmem_ros.msg import Memory as MemoryMessage
from robotmem_ros.worker import Lane, NotServedError, Queue

if TYPE_CHECKING:
    from rclpy.node import Node
    from rclpy.qos import QoSProfile
    from rclpy.subscription import Subscription

    from robotmem_ros.boundary import Boundary
    from robotmem_ros.core.memory import RobotMemory

MAX_WAITING = 5000
"""Messages that may wait to be stored."""

PERIOD = 0.5
"""Seconds between two looks for publishers."""

KINDS = {importing.MEMORY: MemoryMessage, importing.EPISODE: EpisodeMessage}


class ImportTopics:
    """Listens to the topics named in import_topics.

    Raises
    ------
    ConfigError: one of them is not a name of a topic, or is named twice.
    """

    def __init__(self, node: Node, boundary: Boundary, topics: Sequence[str]) -> None:
        self._node = node
        self._boundary = boundary
        self._topics = [_Topic(node, name, self._take) for name in topics if name.strip()]
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
        self._lane = Lane("import", threads=1, bound=MAX_WAITING)
        self._look()
        self._timer = self._node.create_timer(
            PERIOD,
            self._look,
            callback_group=MutuallyExclusiveCallbackGroup(),
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def close(self) -> None:
        """Listen no more; what waits is dropped. Needs no ROS, and may be called twice."""
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
            if isinstance(error, InvalidRequestError):
                self._warn(f"{topic}: cannot be imported: {error}")
            elif isinstance(error, Exception) and not isinstance(error, NotServedError):
                self._boundary.explain(error, f"importing from {topic}")

        store = importer.memory if isinstance(message, MemoryMessage) else importer.episode
        try:
            lane.submit(lambda: store(message), done)
        except NotServedError:
            self._warn(f"{topic}: more than {MAX_WAITING} messages wait; others are dropped")

    def _warn(self, sentence: str) -> None:
        if sentence and sentence not in self._warned and len(self._warned) < 100:
            self._warned.add(sentence)
            self._node.get_logger().warning(sentence)


class _Topic:
    """One topic, heard in the type and the quality of service that its publishers have.

    Before there is one, its name tells the type, so that nothing of what is said first is missed.
    """

    def __init__(self, node: Node, name: str, take: Callable[[str, Any], None]) -> None:
        self._node = node
        self._take = take
        try:
            self.name: str = node.resolve_topic_name(name.strip())
        except Exception as error:
            raise ConfigError(
                f"parameter import_topics: {name!r} is not a topic's name: "
                + " ".join(str(error).split())
            ) from error
        is_latched = self.name.endswith("episodes")
        self._kind = importing.EPISODE if is_latched else importing.MEMORY
        self._profile = qos.importing(best_effort=False, latched=is_latched)
        self._subscription: Subscription | None = None

    def adapt(self) -> str:
        """Subscribe as the publishers need it; return what is wrong with them, or nothing."""
        found = self._node.get_publishers_info_by_topic(self.name)
        types = {info.topic_type for info in found}
        ours = sorted(types & KINDS.keys())
        kind = self._kind if self._kind in ours or not ours else ours[0]
        profiles = [info.qos_profile for info in found if info.topic_type == kind]
        profile = qos.importing(**qos.served_by(profiles)) if profiles else self._profile
        if self._subscription is None or (kind, profile) != (self._kind, self._profile):
            self._subscribe(kind, profile)
        others = sorted(types - {kind})
        if not others:
            return ""
        return f"{self.name}: not imported as {', '.join(others)}, only as {kind}"

    def close(self) -> None:
        """Unsubscribe."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with contextlib.suppress(Exception):  # ROS may be gone already
                self._node.destroy_subscription(subscription)

    def _subscribe(self, kind: str, profile: QoSProfile) -> None:
        self.close()
        self._kind, self._profile = kind, profile
        self._subscription = self._node.create_subscription(
            KINDS[kind], self.name, lambda message: self._take(self.name, message), profile
        )
