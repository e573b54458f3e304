# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Run the node as a process: signals, start, spin, shutdown and the exit code.

SIGINT and SIGTERM are blocked and awaited by a thread of their own. So they interrupt nothing, a
second one changes nothing, and ROS stays alive until the store is closed and the last answers are
sent, which the handlers of rclpy would not allow: they end its context at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from rclpy.executors import Executor

    from robotmem_ros.node import RobotmemNode

SIGNALS = {signal.SIGINT, signal.SIGTERM}

ANSWERING_TIMEOUT = 0.3
"""Seconds after a signal in which requests under way may still be answered."""

EXIT_TIMEOUT = 0.9
"""Seconds after a signal at which the process ends, whatever still hangs. Nothing is lost: what
was answered is on disk."""

SWITCH_INTERVAL = 0.001
"""Seconds a computing thread keeps the interpreter while others wait: a fifth of Python's own, so
that sensors and timers flow beside a search."""


class Stop:
    """The wish to end, which may come at any time from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._executor: Executor | None = None

    def __bool__(self) -> bool:
        return self._event.is_set()

    def watch(self, executor: Executor) -> None:
        """Tell this executor when the wish comes."""
        self._executor = executor

    def request(self) -> None:
        """End soon; may be called more than once."""
        self._event.set()
        if self._executor is not None:
            self._executor.create_task(lambda: None)  # makes spin_once return; wake() does not


def main(args: list[str] | None = None) -> NoReturn:
    """Run the node until SIGINT or SIGTERM and end the process with its exit code."""
    # Before anything that takes time or starts a thread, which inherits the mask.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    stop = Stop()
    threading.Thread(target=_await_signals, args=(stop,), daemon=True).start()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        code = run(stop, args)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Everything is closed. What an ordinary exit does beyond that can only fail: it waits for
    # threads that still compute in a model, and unloads the libraries of DDS under their own
    # threads, which ends one process in a hundred with a segmentation fault.
    os._exit(code)


def run(stop: Stop, args: list[str] | None = None) -> int:
    """Run the node until stop is requested and return the exit code."""
    # Imported here because it takes a while, in which a signal may come already.
    try:
        import rclpy
        from rclpy.exceptions import ParameterException
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.signals import SignalHandlerOptions

        from robotmem_ros.core.errors import ConfigError
        from robotmem_ros.node import RobotmemNode
    except ModuleNotFoundError as error:
        return _refuse(f"{error}; install what the README lists")

    context = rclpy.Context()
    try:
        rclpy.init(args=args, context=context, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # a parameter file that cannot be read, an argument ROS knows not
        return _refuse(error)
    executor = SingleThreadedExecutor(context=context)
    node = None
    try:
        node = RobotmemNode(context=context)
        executor.add_node(node)
        stop.watch(executor)
        if not stop:
            node.autostart()
        while not stop and context.ok():
            _spin_once(executor, node, None)
        return 0
    except (ConfigError, ParameterException) as error:
        return _refuse(error)
    finally:
        if node is not None:
            _end(executor, node)
        executor.shutdown()
        rclpy.try_shutdown(context=context)


def _spin_once(executor: Executor, node: RobotmemNode, timeout: float | None) -> None:
    try:
        executor.spin_once(timeout)
    except Exception as error:
        # What slipped past the boundaries of the callbacks, such as an answer that cannot be sent
        # because the caller is gone. The others must still be served.
        node.report(error)
        time.sleep(0.01)


def _end(executor: Executor, node: RobotmemNode) -> None:
    """Answer what can still be answered, close the store, then leave ROS."""
    try:
        node.stop()
        deadline = time.monotonic() + ANSWERING_TIMEOUT
        while node.busy and time.monotonic() < deadline:
            _spin_once(executor, node, 0.05)
        node.close()
    except Exception as error:
        node.report(error)
    with contextlib.suppress(Exception):  # it may be shut down already
        node.trigger_shutdown()  # for those who watch the life cycle
    node.destroy_node()


def _refuse(error: Exception | str) -> int:
    """Say in one line why the node does not start and return the exit code for that."""
    print("robotmem_node:", " ".join(str(error).split()), file=sys.stderr)
    return 2


def _await_signals(stop: Stop) -> None:
    signal.sigwait(SIGNALS)
    stop.request()
    time.sleep(EXIT_TIMEOUT)
    print("robotmem_node: left in the middle of work that does not end", file=sys.stderr)
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
