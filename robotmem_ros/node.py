# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The managed node: its services and topics in front of one RobotMemory, and nothing else."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from robotmem_ros import parameters
from robotmem_ros.boundary import Boundary, CoreLog
from robotmem_ros.capture import Capture
from robotmem_ros.core.errors import ConfigError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.diagnostics import DiagnosticsTopic, Vitals
from robotmem_ros.health import Health
from robotmem_ros.import_topics import ImportTopics
from robotmem_ros.markers import MarkersTopic
from robotmem_ros.msg import Status as StatusMessage
from robotmem_ros.reminding import RemindersTopic
from robotmem_ros.requests import Requests
from robotmem_ros.serving import Server
from robotmem_ros.sessions import Sessions
from robotmem_ros.srv import (
    EndSession,
    Forget,
    Get,
    Learn,
    Recall,
    SavePerception,
    StartSession,
    Update,
)
from robotmem_ros.status import StatusTopic
from robotmem_ros.worker import NotServedError

CLOSING_TIMEOUT = 0.2
"""Seconds that work under way gets to end before the store is closed under it."""


class RobotmemNode(LifecycleNode):
    """The memory of one robot as a managed ROS 2 node.

    Raises
    ------
    ConfigError: a parameter has a value that is not allowed.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("robotmem", **kwargs)
        self._memory: RobotMemory | None = None
        self._capture: Capture | None = None
        self._sessions: Sessions | None = None
        self._listeners: tuple[RemindersTopic | ImportTopics | MarkersTopic, ...] = ()
        self._active = False
        self._autostarting = False
        self._failure: Exception | None = None
        self._boundary = Boundary(self.get_logger())
        self._core_log = CoreLog(self.get_logger())
        self._server = Server(self, self._boundary)
        try:
            self.config, self.node_config = parameters.declare(self)
            settings = self.node_config
            self._capture = Capture(self, settings, self._boundary.explain)
            self._reminders = RemindersTopic(self, self._boundary, settings, self._capture.pose)
            self._imports = ImportTopics(self, self._boundary, settings)
        except ConfigError:
            self.destroy_node()
            raise
        markers = MarkersTopic(self, self._server, settings)
        self._listeners = (self._reminders, self._imports, markers)
        for sentence in parameters.unknown(self):
            self.get_logger().warning(sentence)
        self.add_on_set_parameters_callback(self._on_set_parameters)
        self._boundary.guard(self.services)
        self._server.send_again(self.services)
        requests = Requests(self, self._boundary, self._capture, lambda: self.config)
        self._sessions = sessions = Sessions(
            self, self._boundary, self._server, settings, self._capture.pose, requests.publish
        )
        self._health = Health(self._server, self._boundary)
        self._status = StatusTopic(self, self._boundary, self._read_status)
        DiagnosticsTopic(self, self._boundary, self._vitals, settings.hardware_id)
        self._serve("learn", Learn, "write", requests.learn)
        self._serve("save_perception", SavePerception, "write", requests.save_perception)
        self._serve("forget", Forget, "write", requests.forget)
        self._serve("update", Update, "write", requests.update)
        self._serve("start_session", StartSession, "write", sessions.start)
        self._serve("end_session", EndSession, "write", sessions.end)
        self._serve("backfill", Trigger, "write", requests.backfill)
        self._serve("reindex", Trigger, "write", requests.reindex)
        self._serve("backup", Trigger, "write", requests.backup)
        self._serve("recall", Recall, "recall", requests.recall)
        self._serve("get", Get, "read", requests.get)

    # Life cycle

    def autostart(self) -> None:
        """Configure and activate, if the parameter says so.

        A store that cannot be opened leaves the node unconfigured: it answers every request with
        the reason, and can be configured again when that is cured.

        Raises
        ------
        ConfigError: the store cannot be opened because a parameter is wrong.
        """
        if not self.node_config.autostart:
            return
        self._autostarting = True
        if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()
        self._autostarting = False
        if isinstance(self._failure, ConfigError):
            raise self._failure

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Open the store."""
        return self._transition("configuring", self._open)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Serve requests from now on."""
        return self._transition("activating", self._set_active, True)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Refuse requests from now on; the store stays open."""
        return self._transition("deactivating", self._set_active, False)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the store."""
        return self._transition("cleaning up", self.close)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the store for good."""
        outcome = self._transition("shutting down", self.close)
        self._failure = self._failure or NotServedError("it was shut down; start it again")
        return outcome

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the store after a transition that went wrong, and be unconfigured."""
        return self._transition("recovering", self.close)

    def stop(self) -> None:
        """Refuse every request that is new or still queued; what is under way goes on."""
        self._active = False
        self._server.close(timeout=0.0)

    @property
    def busy(self) -> bool:
        """Whether a request is not answered yet."""
        return self._server.busy

    def report(self, error: Exception) -> None:
        """Log what went wrong outside of any request, and show it in ~/status."""
        self._boundary.explain(error, "executor")

    def close(self) -> None:
        """Close the store and end the threads; needs no ROS, and may be called twice."""
        self._active = False
        for listener in self._listeners:
            listener.close()
        self._server.close(CLOSING_TIMEOUT)
        if self._sessions is not None:
            self._sessions.close()
        if self._capture is not None:
            self._capture.close()
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

    def destroy_node(self) -> None:
        """Close the store, then destroy the node."""
        try:
            self.close()
        except Exception as error:
            self._boundary.explain(error, "closing the store")
        self._core_log.close()
        super().destroy_node()

    def _open(self) -> None:
        self._memory = RobotMemory(
            self.config, now=self._now, owner=self.get_fully_qualified_name()
        )
        try:
            self._reminders.check(self._memory)
            if self._capture is not None:
                self._capture.open()
            lanes = {"write": 1, "recall": self.node_config.recall_threads, "read": 1}
            self._server.open(lanes, self.node_config.queue_size)
        except Exception:
            self.close()
            raise

    def _set_active(self, active: bool) -> None:
        memory = self._memory
        if active and memory is not None and self._sessions is not None:
            self._sessions.open(memory)
            for listener in self._listeners:
                listener.open(memory)
        else:
            for listener in self._listeners:
                listener.close()
        self._active = active

    def _transition(self, what: str, action: Callable[..., None], *args: Any) -> Any:
        try:
            action(*args)
            self._failure = None
        except Exception as error:
            self._failure = error
            if not (self._autostarting and isinstance(error, ConfigError)):
                self._boundary.explain(error, what)
            return TransitionCallbackReturn.FAILURE
        finally:
            self._status.refresh_soon()
        return TransitionCallbackReturn.SUCCESS

    # Services, topics, parameters and time

    def _serve(self, name: str, kind: Any, lane: str, handler: Callable[..., Any]) -> None:
        def prepare(request: Any) -> Callable[[], Any]:
            return functools.partial(handler, self._serving(), request, self._now())

        self._server.add(name, kind, lane, prepare)

    def _serving(self) -> RobotMemory:
        if self._active and self._memory is not None:
            return self._memory
        if self._failure is not None:
            raise NotServedError(f"the node is not active: {self._failure}")
        name = self.get_fully_qualified_name()
        todo = "activate" if self._memory is not None else "configure (and then activate)"
        raise NotServedError(f"the node is not active; run: ros2 lifecycle set {name} {todo}")

    async def _read_status(self) -> StatusMessage:
        return await self._health.read(self._memory, self._active)

    def _vitals(self) -> Vitals:
        sources = self._capture.states() if self._capture is not None else []
        queues = {**self._server.queues, **self._imports.queues}
        if self._memory is not None:
            queues |= self._memory.queues
        return self._health.vitals(self._memory, self._active, self._failure, sources, queues)

    def _on_set_parameters(self, changed: list[Parameter]) -> SetParametersResult:
        try:
            settings = parameters.changes(changed)
            config = dataclasses.replace(self.config, **settings)
            if settings and self._memory is not None:
                self._memory.reconfigure(**settings)
            self.config = config
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:
            reason = self._boundary.explain(error, "setting parameters")
            return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    def _now(self) -> int:
        return self.get_clock().now().nanoseconds
