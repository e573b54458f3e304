# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the robot senses when it learns: live topics into the context and pose of a memory."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType, JumpThreshold
from rclpy.duration import Duration

from robotmem_ros import parameters
from robotmem_ros.captured import TF, Captured, read_sources
from robotmem_ros.core.context import read_object
from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.model import Experience, Pose
from robotmem_ros.live_topic import LiveTopic
from robotmem_ros.message_types import describe
from robotmem_ros.tf_pose import TfPose

if TYPE_CHECKING:
    from rclpy.node import Node

    from robotmem_ros.core.config import Config
    from robotmem_ros.node_config import NodeConfig

POLL_PERIOD = 0.05
"""Seconds between two looks for messages, when no memory asks for them."""

ADAPT_EVERY = 5
"""At how many of these looks the publishers are looked at, too."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """How one source does, for diagnostics.

    Attributes
    ----------
    age: seconds since its newest message by its stamp; None before the first.
    stale: whether a memory that is learned now would go without it.
    problem: what is wrong with its publishers; empty if nothing is.
    dropped: messages that did not fit into the history, since the start.
    """

    name: str
    topic: str
    publishers: int
    age: float | None
    stale: bool
    problem: str
    dropped: int = 0


class Capture:
    """The sources named in the parameters of a node, and what they said lately.

    Declares the parameters of the sources. Safe to use from any thread.

    Parameters
    ----------
    node: whose topics, parameters and clock are used.
    settings: the checked settings of the node.
    explain: takes an exception and where it was raised, and logs it.

    Raises
    ------
    ConfigError: a parameter has a value that is not allowed; the text names it.
    """

    def __init__(
        self, node: Node, settings: NodeConfig, explain: Callable[[Exception, str], str]
    ) -> None:
        self._node = node
        self._explain = explain
        self._limit = settings.max_captured_elements
        self._lock = threading.Lock()
        self._before: tuple[int, int] | None = None  # a look back: wall time, ROS time
        self._looks = 0
        self._warned: set[str] = set()
        self._timer: Any = None
        self._jumps: Any = None
        sources = read_sources(
            settings.context_sources,
            settings.pose_source,
            lambda item: parameters.declare_one(node, item),
            describe,
        )
        history = int(settings.capture_history * 1e9)
        self._topics = [LiveTopic(node, source, history) for source in sources]
        self._tf: TfPose | None = None
        if settings.pose_source == TF:
            self._tf = TfPose(
                node,
                settings.map_frame,
                settings.base_frame,
                settings.tf_max_age,
                settings.capture_history,
            )

    def open(self) -> None:
        """Begin to listen; may be called twice."""
        if self._timer is not None or not (self._topics or self._tf):
            return
        with self._lock:
            for topic in self._topics:
                topic.open()
            if self._tf is not None:
                self._tf.open()
        back = JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=True
        )
        self._jumps = self._node.get_clock().create_jump_callback(
            back, post_callback=lambda jump: self.clear()
        )
        self._timer = self._node.create_timer(
            POLL_PERIOD,
            self._look,
            callback_group=MutuallyExclusiveCallbackGroup(),
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def close(self) -> None:
        """Listen no more; may be called twice."""
        timer, self._timer = self._timer, None
        jumps, self._jumps = self._jumps, None
        if jumps is not None:
            jumps.unregister()
        if timer is not None:
            self._node.destroy_timer(timer)
        with self._lock:
            for topic in self._topics:
                topic.close()
            if self._tf is not None:
                self._tf.close()

    def at(self, stamp: int) -> Captured:
        """Return what was sensed at a time, by the freshest messages at or before it; 0 means now.

        Before there is any ROS time, that is nothing. Never raises.
        """
        return self._sensed(stamp, self._topics)

    def pose(self, stamp: int = 0) -> Pose | None:
        """Return where the robot was at a time; 0 means now. Never raises."""
        return self._sensed(stamp, [topic for topic in self._topics if topic.source.pose]).pose

    def added_to(self, experience: Experience, config: Config) -> Experience:
        """Return an experience with what was sensed when it happened; what it says itself stays.

        A context that would get too large is left as it is.

        Raises
        ------
        InvalidRequestError: its context cannot be used.
        """
        captured = self.at(experience.stamp)
        if not captured:
            return experience
        limits = config.max_context_bytes, config.max_context_depth
        written = read_object("context", experience.context, *limits)
        pose = experience.pose or captured.pose
        context = captured.merged_into(written, pose=experience.pose is None)
        try:
            context = read_object("context", context, *limits)
        except InvalidRequestError as error:
            self._warn(f"a memory goes without what was captured for it: {error}")
            context = written
        return dataclasses.replace(experience, context=context, pose=pose)

    def clear(self) -> None:
        """Forget what was heard; for when the clock was set back."""
        try:  # called by the clock, which must not be asked for the time meanwhile
            with self._lock:
                self._before = None
                for topic in self._topics:
                    topic.clear()
                if self._tf is not None:
                    self._tf.clear()
        except Exception as error:
            self._explain(error, "capture")

    def states(self) -> list[SourceState]:
        """Return how each source does."""
        states = []
        wall, now = self._clocks()
        with self._lock:
            self._poll(wall, now)
            for topic in self._topics:
                newest = topic.samples.newest
                age = (now - newest.stamp) / 1e9 if newest and now else None
                stale = age is None or 0.0 < topic.source.max_age < age
                states.append(
                    SourceState(
                        topic.source.name,
                        topic.source.topic,
                        topic.publishers,
                        age,
                        stale,
                        topic.problem,
                        topic.samples.dropped,
                    )
                )
        return states

    def _sensed(self, stamp: int, topics: list[LiveTopic]) -> Captured:
        captured = Captured()
        wall, now = self._clocks()
        stamp = stamp or now
        if not now:
            return captured
        try:
            with self._lock:
                self._poll(wall, now)
                found = [(topic, topic.samples.latest(stamp)) for topic in topics]
        except Exception as error:
            self._explain(error, "capture")
            return captured
        for topic, sample in found:
            try:
                captured.add(topic.source, sample, topic.decode, stamp, self._limit)
            except Exception as error:
                self._explain(error, f"capture of {topic.source.topic}")
        if self._tf is not None:
            try:
                self._tf.add_to(captured, stamp)
            except Exception as error:
                self._explain(error, "capture from tf2")
        return captured

    def _look(self) -> None:
        try:
            wall, now = self._clocks()
            with self._lock:
                self._poll(wall, now)
            if self._looks % ADAPT_EVERY == 0:
                self._adapt()
            self._looks += 1
        except Exception as error:
            self._explain(error, "capture")

    def _adapt(self) -> None:
        found = [topic.find_publishers() for topic in self._topics]
        with self._lock:
            for topic, publishers in zip(self._topics, found, strict=True):
                topic.adapt(publishers)
        for topic in self._topics:
            self._warn(topic.problem)

    def _poll(self, wall: int, now: int) -> None:
        """Take the messages that have come; they wait in their queues while there is no time."""
        if now:
            received = self._received(wall, now)
            for topic in self._topics:
                topic.poll(received)
            self._before = wall, now

    def _clocks(self) -> tuple[int, int]:
        # Never under the lock: the clock calls clear, which takes the lock, when it jumps back.
        return time.time_ns(), self._node.get_clock().now().nanoseconds

    def _received(self, wall: int, now: int) -> Callable[[int], int]:
        """Return a function that makes ROS time of the wall time at which a message came.

        That was between the last look and this one; in simulated time it is taken from the share
        of the wall time that had passed. Without a wall time (not every DDS tells it) it is the
        last look, so that a message is not missed by an event that came after it.
        """
        wall_before, before = self._before or (wall, now)
        passed = max(1, wall - wall_before)

        def received(timestamp: int) -> int:
            since = min(max(timestamp - wall_before, 0), passed)
            return before + (now - before) * since // passed

        return received

    def _warn(self, sentence: str) -> None:
        if sentence and sentence not in self._warned:
            self._warned.add(sentence)
            self._node.get_logger().warning(sentence)
