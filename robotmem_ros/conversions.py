# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Requests to core objects and core objects to messages, as pure functions.

What is checked here is what only the messages know: frames, quaternions, times, names of kinds.
Texts and JSON are checked by the core.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Pose as PoseMessage
from geometry_msgs.msg import PoseStamped

from robotmem_ros.core.config import Config
from robotmem_ros.core.context import SECTIONS, read_json, read_object, write
from robotmem_ros.core.errors import InvalidRequestError, NotFoundError
from robotmem_ros.core.model import (
    EndedSession,
    Episode,
    Experience,
    Fusion,
    Json,
    Learned,
    Memory,
    MemoryType,
    Near,
    PerceptionType,
    Pose,
    Query,
    RecallResult,
    Status,
)
from robotmem_ros.msg import Episode as EpisodeMessage
from robotmem_ros.msg import Memory as MemoryMessage
from robotmem_ros.msg import Status as StatusMessage
from robotmem_ros.poses import clean_frame, unit
from robotmem_ros.srv import EndSession, Get, Learn, Recall, SavePerception

MAX_MESSAGE = 1000
"""Longest `message` of an answer, in characters: it may quote the request."""

E = TypeVar("E", Fusion, PerceptionType)


def experience(request: Learn.Request, received: int) -> Experience:
    """Return what ~/learn is to store; received is the ROS time at which the request came."""
    stamp = nanoseconds("stamp", request.stamp) or received
    return Experience(
        content=request.insight,
        context=request.context,
        collection=request.collection,
        session_id=request.session_id,
        confidence=request.confidence,
        stamp=stamp,
        pose=pose("pose", request.pose, stamp) if request.has_pose else None,
        expires=nanoseconds("expires", request.expires),
    )


def perception(request: SavePerception.Request, received: int, config: Config) -> Experience:
    """Return what ~/save_perception is to store."""
    limits = config.max_context_bytes, config.max_context_depth
    data = read_json("data", request.data, *limits)
    metadata = read_object("metadata", request.metadata, *limits)
    context: dict[str, Json] = {s: metadata[s] for s in SECTIONS if s in metadata}
    if request.data.strip():
        context["data"] = data
    if metadata:
        context["metadata"] = metadata
    return Experience(
        content=request.description,
        context=context,
        collection=request.collection,
        session_id=request.session_id,
        stamp=received,
        type=MemoryType.PERCEPTION,
        perception_type=_one_of(PerceptionType, "perception_type", request.perception_type),
    )


def query(request: Recall.Request) -> Query:
    """Return what ~/recall is to look for."""
    near = None
    if request.use_near:
        point = request.near.point
        near = Near(
            frame_id=_frame("near.header.frame_id", request.near.header.frame_id),
            point=_finite("near.point", point.x, point.y, point.z),
            radius=_not_negative("near_radius", request.near_radius),
        )
    return Query(
        text=request.query,
        n=request.n,
        min_confidence=request.min_confidence,
        session_id=request.session_id,
        collection=request.collection,
        context_filter=request.context_filter,
        spatial_sort=request.spatial_sort,
        near=near,
        since=nanoseconds("since", request.since),
        until=nanoseconds("until", request.until),
        fusion=_one_of(Fusion, "fusion", request.fusion) if request.fusion else None,
        show_expired=request.show_expired,
        explain=request.explain,
    )


def pose(field: str, message: PoseStamped, stamp: int) -> Pose:
    """Return a pose; stamp is the time it gets when it brings none of its own."""
    p, q = message.pose.position, message.pose.orientation
    return Pose(
        frame_id=_frame(f"{field}.header.frame_id", message.header.frame_id),
        position=_finite(f"{field}.pose.position", p.x, p.y, p.z),
        orientation=unit(_finite(f"{field}.pose.orientation", q.x, q.y, q.z, q.w)),
        stamp=nanoseconds(f"{field}.header.stamp", message.header.stamp) or stamp,
    )


def nanoseconds(field: str, time: Time) -> int:
    """Return a time of a request as nanoseconds; 0 means that none was given."""
    if time.sec < 0:
        raise InvalidRequestError(field, f"sec is {time.sec}; it must not be negative")
    if time.nanosec >= 1_000_000_000:
        raise InvalidRequestError(field, f"nanosec is {time.nanosec}; it must be below 1000000000")
    return time.sec * 1_000_000_000 + time.nanosec


def learned_answer(learned: Learned) -> Learn.Response:
    """Return the answer to a ~/learn that went well."""
    return Learn.Response(
        success=True,
        memory_id=learned.memory.id,
        uuid=learned.memory.uuid,
        status=learned.status.value,
        context=text(learned.memory.context_json),
    )


def recall_answer(result: RecallResult) -> Recall.Response:
    """Return the answer to a ~/recall that went well."""
    return Recall.Response(
        success=True,
        message=text(result.note),
        memories=[
            memory_message(found.memory, found.score, found.distance, found.details)
            for found in result.memories
        ],
        total=len(result.memories),
        mode=result.mode.value,
        query_ms=float(result.query_ms),
    )


def get_answer(found: Sequence[Memory], missing: Sequence[int | str]) -> Get.Response:
    """Return the answer to a ~/get, which succeeds when nothing is missing."""
    names = ", ".join(str(key) for key in missing)
    field = "uuids" if missing and isinstance(missing[0], str) else "memory_ids"
    return Get.Response(
        success=not missing,
        message=refusal(NotFoundError(f"{field}: not stored: {names}")) if missing else "",
        memories=[memory_message(memory) for memory in found],
    )


def memory_message(
    memory: Memory,
    score: float = 0.0,
    distance: float = math.nan,
    details: Mapping[str, Json] | None = None,
) -> MemoryMessage:
    """Return a memory as a message."""
    message = MemoryMessage(
        uuid=memory.uuid,
        id=memory.id,
        type=memory.type.value,
        perception_type=memory.perception_type.value if memory.perception_type else "",
        content=text(memory.content),
        context=text(memory.context_json),
        collection=text(memory.collection),
        session_id=text(memory.session_id),
        confidence=float(memory.confidence),
        score=float(score),
        distance=float(distance),
        has_pose=memory.pose is not None,
        created_at=time_message(memory.created_at),
        updated_at=time_message(memory.updated_at),
        expires=time_message(memory.expires),
        superseded_by=memory.superseded_by,
        access_count=min(memory.access_count, 2**32 - 1),
        score_details=text(write(details)) if details else "",
    )
    message.header.stamp = time_message(memory.stamp)
    if memory.pose is not None:
        message.header.frame_id = text(memory.pose.frame_id)
        message.pose = _pose_message(memory.pose)
    return message


def episode_message(episode: Episode) -> EpisodeMessage:
    """Return an episode as a message."""
    message = EpisodeMessage(
        session_id=text(episode.session_id),
        collection=text(episode.collection),
        context=text(episode.context_json),
        start=time_message(episode.start),
        end=time_message(episode.end),
        has_outcome=episode.outcome is not None,
        outcome_score=float(episode.outcome or 0.0),
        summary=text(episode.summary),
        interrupted=episode.interrupted,
        memories=[memory_message(memory) for memory in episode.memories],
        trajectory=[_stamped(pose) for pose in episode.trajectory],
    )
    message.header.stamp = time_message(episode.end)
    if episode.trajectory:
        message.header.frame_id = text(episode.trajectory[0].frame_id)
    return message


def ended_answer(ended: EndedSession) -> EndSession.Response:
    """Return the answer to an ~/end_session that went well."""
    return EndSession.Response(
        success=True,
        episode=episode_message(ended.episode),
        related=[
            memory_message(found.memory, found.score, found.distance) for found in ended.related
        ],
        decayed_count=ended.decayed_count,
        consolidated_count=ended.consolidated_count,
    )


def status_message(
    status: Status | None, *, ready: bool, version: str, last_error: str, open_session: str = ""
) -> StatusMessage:
    """Return the state of the node; status is None while no store is open."""
    message = StatusMessage(ready=ready, version=version, last_error=text(last_error))
    if status is None:
        closed = "no store is open; configure and activate the node"
        message.embedder_reason = message.keyword_reason = message.vector_reason = closed
        return message
    message.db_path = text(status.db_path)
    message.db_bytes = status.db_bytes
    message.schema_version = status.schema_version
    message.backend = status.backend
    message.model = text(status.model)
    message.dimension = status.dimension
    message.embedder_available = status.embedder_available
    message.embedder_reason = text(status.embedder_reason)
    message.keyword_available = not status.keyword_reason
    message.keyword_reason = text(status.keyword_reason)
    message.vector_available = not status.vector_reason
    message.vector_reason = text(status.vector_reason)
    message.memories = status.memories
    message.superseded = status.superseded
    message.episodes = status.episodes
    message.collections = status.collections
    message.pending_embeddings = status.pending_embeddings
    message.task = text(status.task)
    message.task_done = status.task_done
    message.task_total = status.task_total
    message.task_result = text(status.task_result)
    message.open_session = text(open_session)
    message.last_error = text(last_error or status.last_error)
    return message


def refusal(error: Exception) -> str:
    """Return the `message` that answers a request which raised an error."""
    words = text(str(error))
    return words if len(words) <= MAX_MESSAGE else words[: MAX_MESSAGE - 3] + "..."


def time_message(time: int) -> Time:
    """Return nanoseconds as a message, which ends in January 2038."""
    seconds, rest = divmod(time, 1_000_000_000)
    if not 0 <= seconds < 2**31:
        return Time(sec=2**31 - 1 if seconds > 0 else 0, nanosec=0)
    return Time(sec=seconds, nanosec=rest)


def text(value: str) -> str:
    """Return a string that any message can carry.

    rclpy cuts a string at a NUL without a word, and fails on half of a surrogate pair when the
    answer is sent, so that the caller would wait for ever.
    """
    if value.isascii():
        return value.replace("\0", "\ufffd") if "\0" in value else value
    value = value.replace("\0", "\ufffd")
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _stamped(value: Pose) -> PoseStamped:
    message = PoseStamped(pose=_pose_message(value))
    message.header.stamp = time_message(value.stamp)
    message.header.frame_id = text(value.frame_id)
    return message


def _pose_message(value: Pose) -> PoseMessage:
    message = PoseMessage()
    p, q = message.position, message.orientation
    p.x, p.y, p.z = map(float, value.position)
    q.x, q.y, q.z, q.w = map(float, value.orientation)
    return message


def _frame(field: str, frame_id: str) -> str:
    frame_id = clean_frame(frame_id)
    if not frame_id:
        raise InvalidRequestError(field, 'must not be empty; name the frame, for example "map"')
    return frame_id


def _finite(field: str, *values: float) -> tuple[Any, ...]:
    for name, value in zip("xyzw", values, strict=False):
        if not math.isfinite(value):
            raise InvalidRequestError(f"{field}.{name}", f"is {value}; it must be a finite number")
    return values


def _not_negative(field: str, value: float) -> float:
    if not (math.isfinite(value) and value >= 0.0):
        raise InvalidRequestError(field, f"is {value}; it must be a number of at least 0")
    return value


def _one_of(kind: type[E], field: str, name: str) -> E:
    try:
        return kind(name)
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise InvalidRequestError(field, f"{name!r} is not one of {allowed}") from None
