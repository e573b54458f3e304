# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a robot sensed at one moment, and how it becomes a part of a memory's context.

Pure: the node reads live topics with it and the importer reads bags with it, by the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from robotmem_ros import fields
from robotmem_ros.core.config import STRINGS, Setting
from robotmem_ros.core.errors import ConfigError
from robotmem_ros.core.model import Json, Pose
from robotmem_ros.fields import Describe, Rule, Target
from robotmem_ros.poses import clean_frame, pose_path, read_pose
from robotmem_ros.samples import Sample

TF = "tf"
"""As pose_source: the pose comes from tf2 and not from a source."""

STALE = "stale"

NOTES = (fields.NOT_FINITE, fields.TOO_LONG, fields.MISSING)
"""Reasons why a field was left out; each is a list of paths in the provenance."""

RESERVED = {TF, STALE, *NOTES}
"""Names a source cannot have, because they have a meaning beside the names of sources."""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Source:
    """One topic that is captured.

    Attributes
    ----------
    name: as in the parameters.
    topic, type: the topic and the type of its messages.
    max_age: seconds a message may be older than the event; 0 means any age.
    rules: which fields go where.
    pose: the field that is the pose of the memory, "" if it is not the pose source.
    """

    name: str
    topic: str
    type: str
    max_age: float
    rules: tuple[Rule, ...]
    pose: str = ""


def source_settings(name: str) -> tuple[Setting, ...]:
    """Return the parameters of the source with a name."""
    return (
        Setting(f"{name}.topic", str, "", f"Topic of the source {name}."),
        Setting(f"{name}.type", str, "", "Type of its messages, like nav_msgs/msg/Odometry."),
        Setting(
            f"{name}.max_age",
            float,
            2.0,
            "Seconds its newest message may be older than the event; older ones are left out. "
            "0 means any age.",
            low=0.0,
            high=1e9,
        ),
        Setting(
            f"{name}.fields",
            STRINGS,
            (),
            'What goes where, each like "spatial.position = pose.pose.position".',
        ),
    )


def read_sources(
    names: Sequence[str], pose_source: str, value_of: Callable[[Setting], Any], describe: Describe
) -> tuple[Source, ...]:
    """Return the sources with these names, checked.

    Parameters
    ----------
    names, pose_source: the parameters context_sources and pose_source.
    value_of: returns the checked value of a setting.
    describe: tells the fields of a message type.

    Raises
    ------
    ConfigError: a name, topic, type, field or target is wrong, or two rules write the same path.
    """
    names = [name.strip() for name in names if name.strip()]
    for name in names:
        if not _NAME.fullmatch(name) or name in RESERVED or names.count(name) > 1:
            raise ConfigError(
                f"parameter context_sources: {name!r} is not allowed; it must be a list of names "
                f"of letters, digits and _, each once, and none of {', '.join(sorted(RESERVED))}"
            )
    if pose_source not in ("", TF, *names):
        raise ConfigError(
            f"parameter pose_source: {pose_source!r} is not allowed; it must be empty, {TF} or "
            f"a name in context_sources ({', '.join(names) or 'there is none'})"
        )
    sources = []
    for name in names:
        topic, kind, max_age, texts = (value_of(item) for item in source_settings(name))
        sources.append(_source(name, topic, kind, max_age, texts, name == pose_source, describe))
    fields.check_targets((f"{s.name}.fields", rule) for s in sources for rule in s.rules)
    return tuple(sources)


def _source(
    name: str,
    topic: str,
    kind: str,
    max_age: float,
    texts: Sequence[str],
    is_pose: bool,
    describe: Describe,
) -> Source:
    if not topic.strip():
        raise ConfigError(f"parameter {name}.topic: it is missing; name the topic of {name}")
    try:
        describe(kind)
    except LookupError as error:
        raise ConfigError(f"parameter {name}.type: {kind!r}: {error.args[0]}") from error
    parameter = f"{name}.fields"
    rules = tuple(fields.parse(parameter, text) for text in texts if text.strip())
    for rule in rules:
        fields.check(parameter, rule, kind, describe)
    pose = pose_path(kind, describe) if is_pose else ""
    if is_pose and not pose:
        raise ConfigError(
            f"parameter pose_source: {name!r} is not allowed; messages of type {kind} have no "
            "header and pose, as those of PoseStamped, PoseWithCovarianceStamped and Odometry have"
        )
    return Source(name, topic.strip(), kind, max_age, rules, pose)


@dataclass(slots=True)
class Reading:
    """What one source gave."""

    name: str
    origin: dict[str, Json]
    values: dict[Target, Json] = field(default_factory=dict)
    has_pose: bool = False


@dataclass(slots=True)
class Captured:
    """What was sensed at one moment.

    Attributes
    ----------
    readings: what each source gave that had something fresh.
    stale: sources whose newest message was too old, and how old, in seconds.
    left_out: for each of NOTES, the paths that got no value.
    pose: where the robot was, with frame and stamp.
    """

    readings: list[Reading] = field(default_factory=list)
    stale: dict[str, float] = field(default_factory=dict)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    pose: Pose | None = None

    def __bool__(self) -> bool:
        return bool(self.readings or self.stale or self.pose)

    @property
    def context(self) -> dict[str, Json]:
        """All of it as a context of its own."""
        return self.merged_into({})

    def merged_into(self, written: Mapping[str, Json], *, pose: bool = True) -> dict[str, Json]:
        """Return a context with what was captured added; what is written stays, leaf by leaf.

        Parameters
        ----------
        written: the context of the caller.
        pose: whether the captured pose is used.
        """
        context = dict(written)
        notes: dict[str, Json] = {}
        for reading in self.readings:
            taken = ["pose"] if reading.has_pose and pose else []
            for target, value in reading.values.items():
                if _is_free(written, target):
                    context = _merge(context, _nested(target, value))
                    taken.append(".".join(target))
            if taken:
                notes[reading.name] = {**reading.origin, "fields": taken}
        if self.stale:
            notes[STALE] = dict(self.stale)
        notes.update({reason: list(paths) for reason, paths in self.left_out.items()})
        return _merge(context, {fields.PROVENANCE: notes}) if notes else context

    def add(
        self,
        source: Source,
        sample: Sample | None,
        decode: Callable[[Any], Any],
        stamp: int,
        limit: int,
    ) -> None:
        """Add what a source said last before an event.

        Parameters
        ----------
        sample: its freshest message at or before the event, if there is one.
        decode: returns the message as an object.
        stamp: when the event was, ROS time in nanoseconds.
        limit: longest array or text that is kept.
        """
        if sample is None:
            return
        age = (stamp - sample.stamp) / 1e9
        if source.max_age and age > source.max_age:
            self.stale[source.name] = round(age, 6)
            return
        message = decode(sample.message)
        reading = Reading(source.name, origin(source.topic, _frame(message), sample.stamp, age))
        for rule in source.rules:
            try:
                reading.values[rule.target] = fields.read(rule, message, limit)
            except fields.LeftOutError as error:
                self.left_out.setdefault(str(error), []).append(".".join(rule.target))
        if source.pose:
            self.pose = read_pose(message, source.pose, sample.stamp)
            if self.pose is None:
                reason = fields.NOT_FINITE if reading.origin["frame"] else fields.MISSING
                self.left_out.setdefault(reason, []).append("pose")
            reading.has_pose = self.pose is not None
        self.readings.append(reading)


def origin(topic: str, frame: str, stamp: int, age: float) -> dict[str, Json]:
    """Return the provenance of one source: seconds, rounded to what a double can tell apart."""
    return {"topic": topic, "frame": frame, "stamp": round(stamp / 1e9, 6), "age": round(age, 6)}


def _frame(message: Any) -> str:
    return clean_frame(getattr(getattr(message, "header", None), "frame_id", ""))


def _is_free(context: Json, target: Target) -> bool:
    """Return whether nothing is written at target, nor instead of an object on the way to it."""
    for key in target:
        if not isinstance(context, Mapping):
            return False
        if key not in context:
            return True
        context = context[key]
    return False


def _nested(target: Target, value: Json) -> dict[str, Json]:
    *outer, last = target
    nested = {last: value}
    for key in reversed(outer):
        nested = {key: nested}
    return nested


def _merge(written: Mapping[str, Json], added: Mapping[str, Json]) -> dict[str, Json]:
    """Return written with what added has and it has not; neither is changed."""
    return {**written, **dict(_news(written, added))}


def _news(written: Mapping[str, Json], added: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for key, value in added.items():
        if key not in written:
            yield key, value
        elif isinstance(written[key], Mapping) and isinstance(value, Mapping):
            yield key, _merge(written[key], value)
