# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The boundary around callbacks, and answers that DDS does not deliver at once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

serving = pytest.importorskip("robotmem_ros.serving", reason="needs ROS 2 and the built package")

from std_srvs.srv import Trigger  # noqa: E402

from robotmem_ros.boundary import Boundary  # noqa: E402
from robotmem_ros.core.errors import InvalidRequestError, StoreError  # noqa: E402


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __getattr__(self, level: str) -> Callable[[str], None]:
        return lambda line: self.lines.append((level, line))


class FakeNode:
    """Runs timers at once."""

    executor = None

    def create_timer(self, period: float, callback: Callable[[], None], **_: Any) -> Any:
        timer = SimpleNamespace(callback=callback)
        self.timers.append(timer)
        return timer

    def destroy_timer(self, timer: Any) -> None:
        self.timers.remove(timer)

    def __init__(self) -> None:
        self.timers: list[Any] = []


def test_a_fault_of_the_caller_is_answered_and_not_logged() -> None:
    log = Log()
    boundary = Boundary(log)
    assert boundary.explain(InvalidRequestError("n", "is odd"), "~/x") == "n: is odd"
    assert {level for level, _ in log.lines} <= {"debug"}
    assert boundary.last_error == ""


def test_a_fault_of_the_node_is_remembered() -> None:
    log = Log()
    boundary = Boundary(log)
    assert boundary.explain(StoreError("disk full"), "~/learn") == "disk full"
    assert boundary.last_error == "~/learn: disk full"
    assert log.lines == [("error", "~/learn: disk full")]


def test_a_bug_is_logged_with_its_traceback_once() -> None:
    log = Log()
    boundary = Boundary(log)

    def bug() -> None:
        raise KeyError("nothing")

    for _ in range(3):
        try:
            bug()
        except KeyError as error:
            message = boundary.explain(error, "~/learn")
    assert message.startswith("internal error: KeyError")
    assert ["Traceback" in line for _, line in log.lines] == [True, False, False]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_services_of_rclpy_answer_whatever_happens(kind: str) -> None:
    def fails(request: Any, response: Any) -> Any:
        raise RuntimeError("no such transition")

    async def fails_later(request: Any, response: Any) -> Any:
        raise RuntimeError("no such transition")

    service = SimpleNamespace(
        callback=fails if kind == "sync" else fails_later, srv_type=Trigger, srv_name="/x"
    )
    Boundary(Log()).guard([service])
    assert inspect.iscoroutinefunction(service.callback)
    answer = asyncio.run(service.callback(Trigger.Request(), Trigger.Response()))
    assert answer == Trigger.Response()


@pytest.mark.parametrize("error", [SystemError, RuntimeError, RuntimeWarning])
def test_an_answer_is_sent_again(error: type[Exception]) -> None:
    node, sent = FakeNode(), []
    tries = iter([error("timeout"), error("timeout"), None])

    def send(response: Any, header: Any) -> None:
        problem = next(tries)
        if problem is not None:
            raise problem
        sent.append((response, header))

    service = SimpleNamespace(send_response=send)
    serving.Server(node, Boundary(Log())).send_again([service])
    service.send_response("answer", "caller")
    while node.timers:
        node.timers[0].callback()
    assert sent == [("answer", "caller")]


def test_an_answer_that_cannot_be_sent_is_given_up() -> None:
    node = FakeNode()

    def send(response: Any, header: Any) -> None:
        raise RuntimeError("gone")

    service = SimpleNamespace(send_response=send)
    serving.Server(node, Boundary(Log())).send_again([service])
    service.send_response("answer", "caller")
    for _ in range(serving.RESEND_TRIES - 1):
        node.timers[0].callback()
    with pytest.raises(RuntimeError, match="gone"):
        node.timers[0].callback()
    assert not node.timers
