# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Episodes at the edge: their two services, ~/episodes, and the robot's way while one is open.

~/episodes is latched: when the store is opened, the RECENT episodes that ended last are published
anew, the oldest first, so that a late subscriber has them whether or not the node was restarted.
Episodes that were imported are not published: they are for whoever ended them to tell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType, JumpThreshold
from rclpy.duration import Duration

from robotmem_ros import conversions, qos
from robotmem_ros.core.model import EVERY_COLLECTION, Episode, Memory, MemoryType, Pose
from robotmem_ros.msg import Episode as EpisodeMessage
from robotmem_ros.srv import EndSession, StartSession
from robotmem_ros.trajectory import Sampler

if TYPE_CHECKING:
    from rclpy.node import Node

    from robotmem_ros.boundary import Boundary
    from robotmem_ros.core.memory import RobotMemory
    from robotmem_ros.node_config import NodeConfig
    from robotmem_ros.serving import Server

RECENT = qos.EPISODES.depth
"""How many episodes a late subscriber gets."""

JUMP = Duration(nanoseconds=-100_000_000)
"""A clock that is set back by more is another run of the world, and not a correction."""


class Sessions:
    """The episodes of one node.

    Parameters
    ----------
    server: does the work in its lanes.
    pose: returns where the robot is now, None if that is not known.
    publish: publishes a memory on ~/memories.
    """

    def __init__(
        self,
        node: Node,
        boundary: Boundary,
        server: Server,
        settings: NodeConfig,
        pose: Callable[[], Pose | None],
        publish: Callable[[Memory], None],
    ) -> None:
        self._node = node
        self._boundary = boundary
        self._server = server
        self._pose = pose
        self._publish_memory = publish
        self._memory: RobotMemory | None = None
        self._sampler = Sampler(settings.trajectory_rate, settings.trajectory_min_distance)
        self._sampled = ""
        self._jumps: Any = None
        self._timer: Any = None
        # Twice as often as poses are kept: the robot's poses come when they come.
        self._period = min(0.25, max(0.02, 0.5 / max(settings.trajectory_rate, 0.1)))
        self._is_sampling = settings.trajectory_rate > 0.0
        self._episodes = node.create_publisher(EpisodeMessage, "~/episodes", qos.EPISODES)

    def open(self, memory: RobotMemory) -> None:
        """Publish the recent episodes, and sample poses and watch the clock from now on.

        The open episode goes on while the node is inactive; then nothing is to be done.
        """
        if self._memory is memory:
            return
        self._memory = memory
        self._server.begin("read", lambda: self._publish_recent(memory), "~/episodes")
        self._jumps = self._node.get_clock().create_jump_callback(
            JumpThreshold(min_forward=None, min_backward=JUMP, on_clock_change=True),
            post_callback=lambda jump: self._on_jump(memory),
        )
        if self._is_sampling:
            self._timer = self._node.create_timer(
                self._period,
                self._sample,
                callback_group=MutuallyExclusiveCallbackGroup(),
                clock=Clock(clock_type=ClockType.STEADY_TIME),
            )

    def close(self) -> None:
        """Close the open episode as interrupted; needs no ROS, and may be called twice."""
        memory, self._memory = self._memory, None
        timer, self._timer = self._timer, None
        jumps, self._jumps = self._jumps, None
        with contextlib.suppress(Exception):  # ROS may be gone already
            if jumps is not None:
                jumps.unregister()
            if timer is not None:
                self._node.destroy_timer(timer)
        if memory is not None:
            self._interrupt(memory, "the node was shut down")

    def start(self, memory: RobotMemory, request: Any, received: int) -> StartSession.Response:
        """Answer ~/start_session."""
        started = memory.start_session(request.context, request.collection)
        self._publish(started.interrupted)
        return StartSession.Response(success=True, session_id=started.episode.session_id)

    def end(self, memory: RobotMemory, request: Any, received: int) -> EndSession.Response:
        """Answer ~/end_session."""
        outcome = request.outcome_score if request.has_outcome else None
        ended = memory.end_session(request.session_id, outcome, request.summary)
        self._publish([ended.episode])
        return conversions.ended_answer(ended)

    def _publish_recent(self, memory: RobotMemory) -> None:
        recovered = {episode.session_id for episode in memory.recovered}
        recent = list(reversed(memory.episodes(RECENT, EVERY_COLLECTION, own=True)))
        self._publish([e for e in recent if e.session_id not in recovered], anew=True)
        self._publish(memory.recovered)

    def _publish(self, episodes: Iterable[Episode], anew: bool = False) -> None:
        for episode in episodes:
            try:  # it is on disk, and the answer must say so
                self._episodes.publish(conversions.episode_message(episode))
            except Exception as error:
                self._boundary.explain(error, "publishing on ~/episodes")
            for memory in episode.memories:
                if memory.type is MemoryType.EPISODE and not anew:
                    self._publish_memory(memory)

    def _interrupt(self, memory: RobotMemory, reason: str) -> None:
        try:
            episode = memory.interrupt_session(reason)
            if episode is not None:
                self._publish([episode])
        except Exception as error:
            self._boundary.explain(error, "closing the open episode")

    def _on_jump(self, memory: RobotMemory) -> None:
        # Called by the clock in the middle of its change: what takes time is done elsewhere.
        reason = "the clock was set back"
        self._server.begin("write", lambda: self._interrupt(memory, reason), "clock")

    def _sample(self) -> None:
        try:
            memory = self._memory
            session_id = memory.open_session if memory is not None else ""
            if session_id != self._sampled:
                self._sampled = session_id
                self._sampler.restart()
            if memory is None or not session_id:
                return
            pose = self._pose()
            if pose is not None and self._sampler.offer(pose):
                memory.add_trajectory([pose])
        except Exception as error:
            self._boundary.explain(error, "trajectory")
