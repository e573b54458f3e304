# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Services whose work is done in threads, so that the executor never waits for the core.

A request comes in the executor's thread as a coroutine, which puts the work in a lane and awaits
its result. That leaves the executor free for sensors, timers and parameters, and the lanes keep
slow recalls from holding up changes.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.task import Future

from robotmem_ros import qos
from robotmem_ros.worker import Lane, NotServedError

if TYPE_CHECKING:
    from rclpy.node import Node
    from rclpy.service import Service

    from robotmem_ros.boundary import Boundary
    from robotmem_ros.core.model import Queue

RESEND_PERIOD = 0.2
RESEND_TRIES = 5
"""Seconds between the tries to send an answer whose caller DDS does not know yet, and how many."""

Prepare = Callable[[Any], Callable[[], Any]]
"""Gets a request in the executor's thread, and returns the work that makes its answer."""


class Server:
    """The services of one node and the lanes behind them."""

    def __init__(self, node: Node, boundary: Boundary) -> None:
        self._node = node
        self._boundary = boundary
        self._lanes: dict[str, Lane] = {}
        self._requests = ReentrantCallbackGroup()
        self._open_requests = 0

    @property
    def busy(self) -> bool:
        """Whether a request is not answered yet."""
        return self._open_requests > 0

    def add(self, name: str, kind: Any, lane: str, prepare: Prepare) -> None:
        """Create the service ~/name, whose work is done in a lane."""

        async def callback(request: Any, response: Any) -> Any:
            self._open_requests += 1
            try:
                return await self.work(lane, prepare(request))
            except Exception as error:
                message = self._boundary.explain(error, f"~/{name}")
                return kind.Response(success=False, message=message)
            finally:
                self._open_requests -= 1

        service = self._node.create_service(
            kind, f"~/{name}", callback, qos_profile=qos.SERVICES, callback_group=self._requests
        )
        self.send_again([service])

    def send_again(self, services: Iterable[Service]) -> None:
        """Have these services send an answer again when DDS did not deliver it.

        A caller that is new, on a busy computer, can be heard before it can be answered. rclpy
        gives up after a tenth of a second, and the caller would wait for ever.
        """
        warnings.filterwarnings("error", "failed to send response", RuntimeWarning)
        for service in services:
            service.send_response = self._persistent(service.send_response)

    def _persistent(self, send: Callable[[Any, Any], None]) -> Callable[..., None]:
        def persistent(response: Any, header: Any, tries: int = RESEND_TRIES) -> None:
            try:
                send(response, header)
            # A warning that is made an error comes out of C++ as a SystemError; anything else that
            # DDS has to say comes as rclpy's RCLError, which is a RuntimeError.
            except (SystemError, RuntimeWarning, RuntimeError):
                if tries == 0:
                    raise
                self._later(RESEND_PERIOD, lambda: persistent(response, header, tries - 1))

        return persistent

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        def once() -> None:
            self._node.destroy_timer(timer)
            action()

        clock = Clock(clock_type=ClockType.STEADY_TIME)
        timer = self._node.create_timer(seconds, once, callback_group=self._requests, clock=clock)

    async def work(self, lane: str, work: Callable[[], Any]) -> Any:
        """Do work in a thread of a lane, without holding up the executor.

        Raises
        ------
        NotServedError: the lane is full or closed.
        """
        if lane not in self._lanes:
            raise NotServedError("the node is not active; nothing was done")
        executor = self._node.executor
        outcome = Future(executor=executor)

        def done(result: Any, error: BaseException | None) -> None:
            outcome.set_result((result, error))
            with contextlib.suppress(Exception):  # it may be gone, and with it who waits
                executor.wake()  # a Future that another thread completes does not do it

        self._lanes[lane].submit(work, done)
        result, error = await outcome
        try:
            if error is not None:
                raise error if isinstance(error, Exception) else RuntimeError(repr(error))
            return result
        finally:
            # An error knows this frame, and so would be in a circle with it: the request, however
            # large, would stay until Python looks for circles.
            outcome = result = error = None

    def begin(self, lane: str, work: Callable[[], Any], where: str) -> bool:
        """Have work done in a thread of a lane; nobody waits, so what goes wrong is logged.

        Returns
        -------
        False if the lane is full or closed.
        """

        def done(result: Any, error: BaseException | None) -> None:
            if error is not None:
                fault = error if isinstance(error, Exception) else RuntimeError(repr(error))
                self._boundary.explain(fault, where)

        try:
            if lane not in self._lanes:
                raise NotServedError("the node is not active; nothing was done")
            self._lanes[lane].submit(work, done)
        except NotServedError as error:
            self._boundary.explain(error, where)
            return False
        return True

    @property
    def queues(self) -> dict[str, Queue]:
        """How the queue of each lane does."""
        return {name: lane.queue for name, lane in self._lanes.items()}

    def open(self, lanes: Mapping[str, int], queue_size: int) -> None:
        """Start the lanes, given by their names and numbers of threads."""
        self._lanes = {name: Lane(name, count, queue_size) for name, count in lanes.items()}

    def close(self, timeout: float) -> None:
        """Refuse what is queued, and give what is under way some seconds to end."""
        deadline = time.monotonic() + timeout
        for lane in self._lanes.values():
            lane.close(max(0.0, deadline - time.monotonic()))
