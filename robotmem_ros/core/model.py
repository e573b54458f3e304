# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What goes into a memory store and what comes out of it, as plain immutable values.

Times are integers: nanoseconds since the Unix epoch for wall times, nanoseconds of ROS time for
stamps. 0 means "not given" unless said otherwise.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any
"""A value as the json module reads it."""

Context = Mapping[str, Json]
"""The JSON object stored with a memory; read only."""

EVERY_COLLECTION = "*"
"""As the collection of a query: search all of them."""

REPLAY = "*"
"""As the text of a query: return memories in order instead of ranking them."""


class MemoryType(str, enum.Enum):
    """What a memory is about."""

    FACT = "fact"
    PERCEPTION = "perception"
    EPISODE = "episode"


class PerceptionType(str, enum.Enum):
    """The sense a perception came by."""

    VISUAL = "visual"
    TACTILE = "tactile"
    AUDITORY = "auditory"
    PROPRIOCEPTIVE = "proprioceptive"
    PROCEDURAL = "procedural"


class LearnStatus(str, enum.Enum):
    """Whether a learn made a new memory."""

    CREATED = "created"
    DUPLICATE = "duplicate"


class Fusion(str, enum.Enum):
    """How keyword and vector ranks become one score."""

    RRF = "rrf"
    ADAPTIVE = "adaptive"
    WEIGHTED = "weighted"


class Mode(str, enum.Enum):
    """Which engines really ranked an answer."""

    HYBRID = "hybrid"
    BM25_ONLY = "bm25_only"
    VEC_ONLY = "vec_only"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True)
class Pose:
    """A pose in a named frame.

    Attributes
    ----------
    frame_id: frame of the pose (REP-105); never empty.
    position: x, y, z in metres.
    orientation: unit quaternion x, y, z, w (REP-103).
    stamp: ROS time of the pose in nanoseconds.
    """

    frame_id: str
    position: tuple[float, float, float]
    orientation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    stamp: int = 0


@dataclass(frozen=True, slots=True)
class Experience:
    """Something to be stored.

    Attributes
    ----------
    content: plain text of any language; must hold more than white space.
    context: JSON object, as text or already parsed; empty means none.
    collection: empty means the configured one.
    session_id: episode it belongs to; empty means none.
    confidence: how sure the robot is, in [0, 1].
    stamp: when it happened, ROS time in nanoseconds; 0 means now.
    pose: where it happened.
    expires: when it stops being recalled, ROS time in nanoseconds; 0 means never.
    type, perception_type: what it is about; a perception needs its perception_type.
    uuid: empty gives it a new one.
    """

    content: str
    context: str | Context = ""
    collection: str = ""
    session_id: str = ""
    confidence: float = 0.9
    stamp: int = 0
    pose: Pose | None = None
    expires: int = 0
    type: MemoryType = MemoryType.FACT
    perception_type: PerceptionType | None = None
    uuid: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """One stored experience.

    Attributes
    ----------
    id: its number in this store, from 1.
    uuid: its name on every robot.
    context: the JSON object stored with it; context_json is the same as text.
    confidence: effective confidence in [0, 1] at the moment it was read.
    stored_confidence: the confidence it was learned with.
    stamp: when it happened, ROS time in nanoseconds.
    created_at, updated_at, last_access: wall times in nanoseconds.
    expires: ROS time in nanoseconds; 0 means never.
    superseded_by: uuid of the memory that replaced it; empty when none did.
    """

    id: int
    uuid: str
    type: MemoryType
    perception_type: PerceptionType | None
    content: str
    context: Context
    context_json: str
    collection: str
    session_id: str
    confidence: float
    stored_confidence: float
    stamp: int
    created_at: int
    updated_at: int
    expires: int
    pose: Pose | None
    last_access: int
    access_count: int
    return_count: int
    superseded_by: str

    @property
    def params(self) -> Json:
        """Parameters of the attempt, for example {"grip_force": {"value": 12.5, "unit": "N"}}."""
        return self.context.get("params", {})

    @property
    def spatial(self) -> Json:
        """Coordinate arrays in metres, for example {"object_position": [1.3, 0.7, 0.42]}."""
        return self.context.get("spatial", {})

    @property
    def robot(self) -> Json:
        """The robot: id, type and so on."""
        return self.context.get("robot", {})

    @property
    def task(self) -> Json:
        """The task: name, success, steps and so on."""
        return self.context.get("task", {})

    @property
    def env(self) -> Json:
        """The surroundings, for example {"sim_or_real": "real"}."""
        return self.context.get("env", {})


@dataclass(frozen=True, slots=True)
class Episode:
    """One run of a task.

    Attributes
    ----------
    context: the JSON object it was opened with; context_json is the same as text.
    start, end: ROS time in nanoseconds; end is 0 while it is open.
    outcome: how well it went, in [0, 1]; None when nobody said.
    summary: what happened, in plain text; empty when nobody said.
    interrupted: it was not ended by its owner, but by a crash, a shutdown or a jump of the clock.
    memories: in the order they happened, merged ones included, its `episode` memory last.
    trajectory: where the robot went, oldest first.
    """

    session_id: str
    collection: str
    context: Context
    context_json: str
    start: int
    end: int
    outcome: float | None
    summary: str
    interrupted: bool
    memories: tuple[Memory, ...]
    trajectory: tuple[Pose, ...]


@dataclass(frozen=True, slots=True)
class Learned:
    """Answer to a learn: the memory as it is on disk, and whether it is new."""

    memory: Memory
    status: LearnStatus


@dataclass(frozen=True, slots=True)
class Near:
    """A point to measure from.

    Attributes
    ----------
    frame_id: only poses of this frame are compared; never empty.
    point: x, y, z in metres.
    radius: only memories at most this far, in metres; 0 means any distance.
    """

    frame_id: str
    point: tuple[float, float, float]
    radius: float = 0.0


@dataclass(frozen=True, slots=True)
class Query:
    """What to recall. Empty and 0 mean what the fields of srv/Recall.srv mean by them.

    Attributes
    ----------
    text: what to look for; REPLAY returns memories in order.
    n: how many at most; held to 1..100.
    min_confidence: least effective confidence, in [0, 1].
    session_id: only this episode; empty means any.
    collection: empty means the configured one, EVERY_COLLECTION all of them.
    context_filter, spatial_sort: JSON text, or the same already parsed; empty means none.
    near: measure the distance of each memory's own pose from here.
    since, until: first and last stamp, ROS time in nanoseconds; 0 means open.
    fusion: None means the configured one.
    show_expired: return expired memories as well.
    explain: fill Recalled.details.
    exact: rank with the true vectors only, however long it takes; None means as configured.
    """

    text: str
    n: int = 5
    min_confidence: float = 0.3
    session_id: str = ""
    collection: str = ""
    context_filter: str | Mapping[str, Json] = ""
    spatial_sort: str | Mapping[str, Json] = ""
    near: Near | None = None
    since: int = 0
    until: int = 0
    fusion: Fusion | None = None
    show_expired: bool = False
    explain: bool = False
    exact: bool | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """One memory of an answer.

    Attributes
    ----------
    score: relevance in [0, 1]; the best of the answer has exactly 1.
    distance: metres from the target of a spatial sort, else NaN.
    details: terms of the score, filled when the query asked to explain.
    """

    memory: Memory
    score: float
    distance: float = math.nan
    details: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Answer to a query: what was found, best first, and which engines ranked it.

    Attributes
    ----------
    query_ms: time it took in milliseconds, embedding of the query included.
    note: what the caller may not expect, such as a field that was held to its range.
    """

    memories: tuple[Recalled, ...]
    mode: Mode
    query_ms: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class StartedSession:
    """Answer to a start: the open episode, and those that had to be closed for it."""

    episode: Episode
    interrupted: tuple[Episode, ...]


@dataclass(frozen=True, slots=True)
class EndedSession:
    """Answer to an end.

    Attributes
    ----------
    related: memories of other episodes that resemble this one, best first.
    decayed_count: memories of the episode whose effective confidence is below the stored one.
    consolidated_count: memories of the episode that were merged into another one of it.
    """

    episode: Episode
    related: tuple[Recalled, ...]
    decayed_count: int
    consolidated_count: int


@dataclass(frozen=True, slots=True)
class Queue:
    """How a queue of bounded length does.

    Attributes
    ----------
    length: how much waits or is under way.
    refused: how much was refused since the start because it was full.
    refused_at: when that happened last, in seconds of the steady clock.
    """

    length: int
    refused: int = 0
    refused_at: float = -math.inf


@dataclass(frozen=True, slots=True)
class Status:
    """State of a store and of its engines, as msg/Status.msg explains field by field."""

    db_path: str
    db_bytes: int
    schema_version: int
    backend: str
    model: str
    dimension: int
    embedder_available: bool
    embedder_reason: str
    keyword_reason: str
    vector_reason: str
    memories: int
    superseded: int
    episodes: int
    collections: int
    pending_embeddings: int
    task: str
    task_done: int
    task_total: int
    task_result: str
    last_error: str
