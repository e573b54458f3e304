# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Memories and episodes as the markers that RViz and Foxglove draw, and their topic ~/markers.

Colour and shape tell the outcome, so that it shows without colours too: a green ball worked, a red
cube failed, an orange cylinder is a hazard, a grey ball is anything else. The fainter it is, the
less sure the robot is of it. Each collection has three namespaces, which a viewer shows or hides
one by one: COLLECTION (places), COLLECTION/text and COLLECTION/trajectories.
"""

from __future__ import annotations

import enum
import itertools
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from geometry_msgs.msg import Point, Vector3
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from robotmem_ros import qos
from robotmem_ros.conversions import text
from robotmem_ros.core.model import EVERY_COLLECTION, Episode, Memory, MemoryType, Pose

if TYPE_CHECKING:
    from rclpy.node import Node

    from robotmem_ros.core.memory import RobotMemory
    from robotmem_ros.node_config import NodeConfig
    from robotmem_ros.serving import Server

PERIOD = 1.0
"""Seconds between two looks at the store while somebody watches: changes are drawn together."""

RENEWAL = 10.0
"""Seconds after which the scene is made anew all the same: memories expire and fade."""

MAX_EPISODES = 10
"""Of how many episodes, the last ones, the way is drawn."""

SIZE = 0.2
"""Metres from side to side of the marker of a place."""

TEXT_SIZE = 0.12
"""Height of a capital letter in metres: to be read from near, and out of the way from afar."""

TEXT_LENGTH = 60
"""Most characters of a memory that are shown."""

LINE_WIDTH = 0.03
"""Metres."""

MAX_POINTS = 1000
"""Most points of one line; a longer trajectory is drawn with every second, third ... of them."""

MAX_LINES = 20
"""Most lines of one episode, which gets a new one wherever its frame changes."""


class MarkersTopic:
    """Publishes the scene on ~/markers when it has changed and somebody watches.

    Parameters
    ----------
    server: reads the store in its lane for reading.
    """

    def __init__(self, node: Node, server: Server, settings: NodeConfig) -> None:
        self._server = server
        self._limit = settings.markers_max
        self._memory: RobotMemory | None = None
        self._is_busy = False
        self._change: int | None = None
        self._time = 0.0
        self._episodes: list[Episode] = []
        self._episodes_of: set[str] = set()
        self._last: MarkerArray | None = None
        self._publisher = node.create_publisher(MarkerArray, "~/markers", qos.MARKERS)
        if self._limit:
            node.create_timer(
                PERIOD,
                self._look,
                callback_group=MutuallyExclusiveCallbackGroup(),
                clock=Clock(clock_type=ClockType.STEADY_TIME),
            )

    def open(self, memory: RobotMemory) -> None:
        """Draw what this store holds."""
        self._memory, self._change, self._episodes_of = memory, None, set()
        self._is_busy = False

    def close(self) -> None:
        """Draw nothing more; may be called twice."""
        self._memory = None

    def _look(self) -> None:
        memory = self._memory
        if memory is None or self._is_busy or not self._publisher.get_subscription_count():
            return
        self._is_busy = True
        if not self._server.begin("read", lambda: self._draw(memory), "~/markers"):
            self._is_busy = False

    def _draw(self, memory: RobotMemory) -> None:
        try:
            change = memory.change
            if change == self._change and time.monotonic() - self._time < RENEWAL:
                return
            self._change, self._time = change, time.monotonic()
            memories = memory.places(self._limit)
            # An episode that went anywhere has left a memory with a pose.
            ends = {m.uuid for m in memories if m.type is MemoryType.EPISODE}
            if ends != self._episodes_of:
                self._episodes = memory.episodes(MAX_EPISODES, EVERY_COLLECTION)
                self._episodes_of = ends
            message = scene(memories, self._episodes)
            if message != self._last:
                self._last = message
                self._publisher.publish(message)
        finally:
            self._is_busy = False


class Outcome(enum.Enum):
    """What a memory or an episode tells about its place; the value is a colour."""

    SUCCESS = (0.16, 0.65, 0.27)
    FAILURE = (0.84, 0.15, 0.16)
    HAZARD = (1.0, 0.6, 0.0)
    UNKNOWN = (0.6, 0.6, 0.65)


_SHAPES = {Outcome.FAILURE: Marker.CUBE, Outcome.HAZARD: Marker.CYLINDER}


def scene(memories: Iterable[Memory], episodes: Iterable[Episode]) -> MarkerArray:
    """Return everything to be seen.

    It begins by taking away what was there: each message is complete, so that what was forgotten
    is gone even for a viewer that missed a message.
    """
    markers = [Marker(action=Marker.DELETEALL)]
    for memory in memories:
        if memory.pose is not None:
            markers += place(memory, memory.pose)
    for episode in episodes:
        markers += trajectory(episode)
    return MarkerArray(markers=markers)


def place(memory: Memory, pose: Pose) -> list[Marker]:
    """Return the place of a memory and its text."""
    found = outcome(memory)
    name = text(memory.collection)
    spot = _marker(name, memory.id, _SHAPES.get(found, Marker.SPHERE), pose.frame_id)
    spot.pose.position = _point(pose)
    _turn(spot, pose)
    spot.scale = Vector3(x=SIZE, y=SIZE, z=SIZE)
    # In steps, so that what fades day by day is not drawn anew every time.
    spot.color = _colour(found, 0.3 + 0.7 * round(memory.confidence, 1))
    words = _marker(f"{name}/text", memory.id, Marker.TEXT_VIEW_FACING, pose.frame_id)
    words.pose.position = _point(pose)
    words.pose.position.z += SIZE
    words.scale.z = TEXT_SIZE
    words.color = ColorRGBA(r=1.0, g=1.0, b=1.0, a=0.9)
    words.text = _shortened(memory.content)
    return [spot, words]


def trajectory(episode: Episode) -> list[Marker]:
    """Return where the robot went, one line for each stretch in one frame."""
    lines = []
    stretches = itertools.groupby(episode.trajectory, key=lambda pose: pose.frame_id)
    for number, (frame_id, stretch) in enumerate(itertools.islice(stretches, MAX_LINES)):
        poses = _thinned(list(stretch))
        if len(poses) < 2:
            continue
        # Episodes have names and no numbers.
        line_id = zlib.crc32(f"{episode.session_id}/{number}".encode(errors="replace"))
        line = _marker(
            f"{text(episode.collection)}/trajectories", line_id, Marker.LINE_STRIP, frame_id
        )
        line.scale.x = LINE_WIDTH
        line.color = _colour(_outcome_of(episode), 0.8)
        line.points = [_point(pose) for pose in poses]
        lines.append(line)
    return lines


def outcome(memory: Memory) -> Outcome:
    """Return what a memory tells: env.hazard says that it is a hazard, task.success the rest."""
    if _entry(memory.env, "hazard") not in (None, False, "", [], {}):
        return Outcome.HAZARD
    success = _entry(memory.task, "success")
    if success is True:
        return Outcome.SUCCESS
    return Outcome.FAILURE if success is False else Outcome.UNKNOWN


def _outcome_of(episode: Episode) -> Outcome:
    if episode.outcome is None:
        return Outcome.UNKNOWN
    return Outcome.SUCCESS if episode.outcome >= 0.5 else Outcome.FAILURE


def _entry(section: object, name: str) -> object:
    return section.get(name) if isinstance(section, Mapping) else None


def _marker(namespace: str, number: int, kind: int, frame_id: str) -> Marker:
    marker = Marker(ns=namespace, id=number & 0x7FFFFFFF, type=kind, action=Marker.ADD)
    # Without a stamp a viewer takes the newest transform: these places do not move.
    marker.header.frame_id = text(frame_id)
    marker.pose.orientation.w = 1.0
    return marker


def _point(pose: Pose) -> Point:
    x, y, z = map(float, pose.position)
    return Point(x=x, y=y, z=z)


def _turn(marker: Marker, pose: Pose) -> None:
    q = marker.pose.orientation
    q.x, q.y, q.z, q.w = map(float, pose.orientation)


def _colour(found: Outcome, alpha: float) -> ColorRGBA:
    r, g, b = found.value
    return ColorRGBA(r=r, g=g, b=b, a=float(alpha))


def _shortened(content: str) -> str:
    line = text(" ".join(content[: 2 * TEXT_LENGTH].split()))
    return line if len(line) <= TEXT_LENGTH else line[: TEXT_LENGTH - 3] + "..."


def _thinned(poses: Sequence[Pose]) -> Sequence[Pose]:
    step = -(-len(poses) // MAX_POINTS)
    return poses if step < 2 else [*poses[:-1:step], poses[-1]]
