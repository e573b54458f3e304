# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the robot of a recording sensed, by the same sources and rules as on the live robot."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from robotmem_ros.bags.bag import Bag
from robotmem_ros.bags.files import BagError, Record, Topic
from robotmem_ros.bags.transforms import TOPICS, TfPose
from robotmem_ros.bags.types import Decoder
from robotmem_ros.captured import (
    TF,
    Captured,
    Source,
    read_sources,
    source_settings,
)
from robotmem_ros.core.model import Pose
from robotmem_ros.params_file import Parameters
from robotmem_ros.poses import read_pose
from robotmem_ros.samples import Sample, Samples, stamp_reader

_NOT_YET, _AGAIN = 0.9, 0.1
"""Shares of the interval between two poses of a trajectory: after one was kept none is looked at
so long, and then one every so often, until one is far enough away to be kept."""


class Senses:
    """The sources of the parameters, as far as a bag has them.

    What it lacks is noted among the bag's problems; the rest is captured.

    Parameters
    ----------
    namespace: where topics without a leading slash are.

    Raises
    ------
    ConfigError: a parameter is wrong.
    """

    def __init__(self, bag: Bag, parameters: Parameters, namespace: str = "") -> None:
        settings = parameters.node
        self._bag = bag
        self._limit = settings.max_captured_elements
        rate = settings.trajectory_rate
        self._interval = int(1e9 / rate) if rate > 0 else 0
        self._looked = 0  # stamp of the last pose that was looked at
        pose_source = settings.pose_source
        self._tf: TfPose | None = None
        if pose_source == TF:
            self._tf = TfPose(bag, settings)
            pose_source = ""
        names = [name for name in settings.context_sources if self._is_known(name, parameters)]
        if pose_source in settings.context_sources and pose_source not in names:
            pose_source = ""
        sources = read_sources(names, pose_source, parameters.value_of, bag.types.describe)
        history = int(settings.capture_history * 1e9)
        self._ears = [_Ear(bag, source, history, namespace) for source in sources]
        self._by_topic: dict[str, list[_Ear]] = {}
        for ear in self._ears:
            self._by_topic.setdefault(ear.topic, []).append(ear)

    def wants(self, topic: Topic) -> bool:
        """Return whether the messages of a topic are captured."""
        is_transform = self._tf is not None and topic.name in TOPICS
        return is_transform or topic.name in self._by_topic

    def hear(self, record: Record, now: int, kept: int) -> Pose | None:
        """Keep a message that came at a ROS time; return the pose in it, if one is due.

        Parameters
        ----------
        kept: stamp of the last pose that the trajectory has; 0 if it has none.
        """
        pose = None
        if self._tf is not None and record.topic.name in TOPICS:
            self._tf.hear(record)
            if self._is_due(now, kept):
                pose = self._tf.pose(now)
                self._looked = now if pose is not None else self._looked
        for ear in self._by_topic.get(record.topic.name, ()):
            sample = ear.hear(record, now)
            if sample is not None and ear.source.pose and self._is_due(sample.stamp, kept):
                message = ear.object(sample.message)
                if message is not None:
                    self._looked = sample.stamp
                    pose = read_pose(message, ear.source.pose, sample.stamp) or pose
        return pose

    def at(self, stamp: int) -> Captured:
        """Return what was sensed at a time, by the freshest messages at or before it."""
        captured = Captured()
        for ear in self._ears:
            sample = ear.samples.latest(stamp)
            if sample is not None and ear.object(sample.message) is not None:
                captured.add(ear.source, sample, ear.object, stamp, self._limit)
        if self._tf is not None:
            self._tf.add_to(captured, stamp)
        return captured

    def clear(self) -> None:
        """Forget what was heard; for when the clock was set back."""
        self._looked = 0
        for ear in self._ears:
            ear.samples.clear()
        if self._tf is not None:
            self._tf.transforms.clear()

    def missing(self) -> Iterator[str]:
        """Yield one sentence for each source whose topic is not in the bag."""
        for ear in self._ears:
            if not ear.heard and ear.topic not in self._bag.topics:
                like = [
                    name
                    for name, topic in sorted(self._bag.topics.items())
                    if topic.type == ear.source.type
                ]
                hint = f"; of its type there is {', '.join(like[:3])}" if like else ""
                yield f"source {ear.source.name}: topic {ear.topic} is not in the bag{hint}"
        if self._tf is not None and not self._tf.found:
            yield f"pose_source tf: {' <- '.join(self._tf.frames)} is not in the bag's transforms"

    def _is_due(self, stamp: int, kept: int) -> bool:
        return (
            self._interval > 0
            and not 0 <= stamp - kept < _NOT_YET * self._interval
            and not 0 <= stamp - self._looked < _AGAIN * self._interval
        )

    def _is_known(self, name: str, parameters: Parameters) -> bool:
        """Return whether the type of a source is known here; if not, note it."""
        kind = parameters.value_of(source_settings(name)[1])
        if "/" not in kind:
            return True  # wrong or missing, as read_sources will say
        try:
            self._bag.types.describe(kind)
        except LookupError as error:
            self._bag.problems.add(f"source {name}: type {kind} is not known", error.args[0])
            return False
        return True


class _Ear:
    """The recent messages of one source."""

    def __init__(self, bag: Bag, source: Source, history: int, namespace: str) -> None:
        self.topic = absolute(source.topic, namespace)
        self.source = dataclasses.replace(source, topic=self.topic)
        self.samples = Samples(history)
        self.heard = False
        self._bag = bag
        self._fields = tuple(bag.types.describe(source.type).items())
        self._decoders: dict[Topic, Decoder | None] = {}
        self._decode: Decoder | None = None
        self._stamp: Any = None
        self._last: tuple[bytes, Any] | None = None

    def hear(self, record: Record, now: int) -> Sample | None:
        """Keep a message; None if it cannot be read."""
        data = record.data
        if data is None or not self._understands(record.topic):
            return None
        try:
            stamp = self._stamp(data)
        except ValueError as error:
            self._bag.problems.add(f"topic {self.topic}: messages cannot be decoded", error)
            return None
        self.heard = True
        sample = Sample(stamp if stamp > 0 else now, now, len(data), data)
        self.samples.add(sample)
        return sample

    def object(self, data: bytes) -> Any:
        """Return a message as an object; None, and the problem noted, if it is damaged."""
        if self._last is None or self._last[0] is not data:
            assert self._decode is not None
            try:
                self._last = data, self._decode(data)
            except ValueError as error:
                self._bag.problems.add(f"topic {self.topic}: messages cannot be decoded", error)
                self._last = data, None
        return self._last[1]

    def _understands(self, topic: Topic) -> bool:
        """Return whether messages of a topic can be read, and make ready to read them."""
        if topic not in self._decoders:
            self._decoders[topic] = None
            if topic.type != self.source.type.replace("/msg/", "/").replace("/", "/msg/"):
                self._bag.problems.add(
                    f"source {self.source.name}: topic {topic.name} is of type {topic.type}, "
                    f"not {self.source.type}"
                )
            else:
                try:
                    self._decoders[topic] = self._bag.types.decoder(topic)
                except BagError as error:
                    self._bag.problems.add(str(error))
        decode = self._decoders[topic]
        if decode is not None and decode is not self._decode:
            self._decode = decode
            self._stamp = stamp_reader(self._fields, decode)
        return decode is not None


def absolute(topic: str, namespace: str = "") -> str:
    """Return the full name of a topic, as a node named robotmem in a namespace resolves it."""
    base = "/" + namespace.strip("/")
    if topic.startswith("~"):
        topic = "robotmem" + topic[1:]
    return topic if topic.startswith("/") else f"{base.rstrip('/')}/{topic}"
