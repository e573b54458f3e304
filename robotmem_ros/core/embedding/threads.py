# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Threads that never keep the process from ending, and never crash it when it does.

The threads of concurrent.futures are joined at exit, so a hanging download would hold it up; these
are daemons. A daemon that is inside a native library when the interpreter goes down would be torn
out of it, which aborts the process; so the exit waits for native work, which is cut small.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401  it cannot be imported first while the process ends
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

_T = TypeVar("_T")

_EXIT_TIMEOUT = 10.0


async def in_thread(work: Callable[[], _T]) -> _T:
    """Run work in a daemon thread of its own; a cancelled wait leaves it to end by itself."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def set_result(result: Any, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
            loop.call_soon_threadsafe(set_result, result, failure)

    threading.Thread(target=run, name="robotmem-model", daemon=True).start()
    return await future


class Loop(asyncio.SelectorEventLoop):
    """An event loop that looks up host names in daemon threads.

    A name server that does not answer would otherwise hold up the end of the process.
    """

    async def getaddrinfo(self, *args: Any, **options: Any) -> Any:
        """Return what socket.getaddrinfo returns."""
        return await in_thread(lambda: socket.getaddrinfo(*args, **options))


class _NativeWork:
    """Counts the threads inside native libraries; holds back more once the exit began."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._exiting = False
        atexit.register(self._wait)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Wrap a call into a native library that may take more than a moment."""
        with self._changed:
            while self._exiting:
                self._changed.wait()
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _wait(self) -> None:
        with self._changed:
            self._exiting = True
            self._changed.wait_for(lambda: not self._running, _EXIT_TIMEOUT)


native_work = _NativeWork()
