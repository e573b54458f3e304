# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What each service does: one call of the core, and ~/memories for what it stored or changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from std_srvs.srv import Trigger

from robotmem_ros import conversions, qos
from robotmem_ros.core.config import Config
from robotmem_ros.core.model import Experience, Learned, LearnStatus, Memory
from robotmem_ros.msg import Memory as MemoryMessage
from robotmem_ros.srv import Forget, Get, Learn, Recall, SavePerception, Update

if TYPE_CHECKING:
    from rclpy.node import Node

    from robotmem_ros.boundary import Boundary
    from robotmem_ros.capture import Capture
    from robotmem_ros.core.memory import RobotMemory


class Requests:
    """Answers requests; every method but publish runs in a thread of a lane.

    They take the open memory, the request and the ROS time at which it came, and return its
    answer.

    Parameters
    ----------
    capture: what the robot senses.
    config: returns the settings of the moment.
    """

    def __init__(
        self, node: Node, boundary: Boundary, capture: Capture, config: Callable[[], Config]
    ) -> None:
        self._boundary = boundary
        self._capture = capture
        self._config = config
        self._memories = node.create_publisher(MemoryMessage, "~/memories", qos.MEMORIES)

    def learn(self, memory: RobotMemory, request: Any, received: int) -> Learn.Response:
        """Answer ~/learn."""
        experience = conversions.experience(request, received)
        if request.capture:
            experience = self._capture.added_to(experience, self._config())
        return conversions.learned_answer(self._store(memory, experience))

    def save_perception(
        self, memory: RobotMemory, request: Any, received: int
    ) -> SavePerception.Response:
        """Answer ~/save_perception."""
        experience = conversions.perception(request, received, self._config())
        experience = self._capture.added_to(experience, self._config())
        stored = self._store(memory, experience).memory
        return SavePerception.Response(success=True, memory_id=stored.id, uuid=stored.uuid)

    def recall(self, memory: RobotMemory, request: Any, received: int) -> Recall.Response:
        """Answer ~/recall."""
        return conversions.recall_answer(memory.recall(conversions.query(request)))

    def get(self, memory: RobotMemory, request: Any, received: int) -> Get.Response:
        """Answer ~/get."""
        found, missing = memory.get(ids=list(request.memory_ids), uuids=list(request.uuids))
        return conversions.get_answer(found, missing)

    def forget(self, memory: RobotMemory, request: Any, received: int) -> Forget.Response:
        """Answer ~/forget."""
        memory.forget(request.memory_id, request.reason)
        return Forget.Response(success=True)

    def update(self, memory: RobotMemory, request: Any, received: int) -> Update.Response:
        """Answer ~/update."""
        old, changed = memory.update(request.memory_id, request.new_content, request.context)
        self.publish(changed)
        return Update.Response(success=True, old_content=conversions.text(old))

    def backfill(self, memory: RobotMemory, request: Any, received: int) -> Trigger.Response:
        """Answer ~/backfill."""
        return Trigger.Response(success=True, message=conversions.text(memory.backfill()))

    def reindex(self, memory: RobotMemory, request: Any, received: int) -> Trigger.Response:
        """Answer ~/reindex."""
        return Trigger.Response(success=True, message=conversions.text(memory.reindex()))

    def backup(self, memory: RobotMemory, request: Any, received: int) -> Trigger.Response:
        """Answer ~/backup."""
        return Trigger.Response(success=True, message=conversions.text(memory.backup()))

    def publish(self, memory: Memory) -> None:
        """Publish a memory on ~/memories."""
        try:
            self._memories.publish(conversions.memory_message(memory))
        except Exception as error:  # the memory is on disk, and the answer must say so
            self._boundary.explain(error, "publishing on ~/memories")

    def _store(self, memory: RobotMemory, experience: Experience) -> Learned:
        learned = memory.learn(experience)
        if learned.status is LearnStatus.CREATED:
            self.publish(learned.memory)
        return learned
