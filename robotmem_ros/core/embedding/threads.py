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
import concurrent.futures.thread  # it cannot be imported for the first time at the exit
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

_T = TypeVar("_T")

_LOG = logging.getLogger(__name__)

_EXIT_TIMEOUT = 10.0
_END_SECONDS = 0.3


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


class LoopThread:
    """An event loop in a daemon thread.

    Parameters
    ----------
    at_end: awaited when the loop stops, for a moment at most.
    """

    def __init__(self, name: str, at_end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._at_end = at_end
        self._loop = _Loop()
        self._stop = asyncio.Event()
        self._stopping = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Start work in the loop; when that has stopped, the future is cancelled."""
        task = self._task(work)
        try:
            return asyncio.run_coroutine_threadsafe(task, self._loop)
        except RuntimeError:
            task.close()
            work.close()
            cancelled: concurrent.futures.Future[_T] = concurrent.futures.Future()
            cancelled.cancel()
            return cancelled

    def stop(self) -> None:
        """Cancel all work and end the loop; does not wait for it."""
        self._stopping = True
        with contextlib.suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._stop.set)

    def join(self, timeout: float) -> None:
        """Wait for the end of the loop, some seconds at most."""
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._until_stop())
        finally:
            self._loop.close()

    async def _until_stop(self) -> None:
        await self._stop.wait()
        await asyncio.sleep(0)  # what was handed over just now starts, and ends by itself
        for task in self._tasks:  # these alone: they cancel what they have started
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await asyncio.wait_for(self._at_end(), _END_SECONDS)
        except Exception as error:
            _LOG.debug("the embedding backend did not close: %s", error)

    async def _task(self, work: Coroutine[Any, Any, _T]) -> _T:
        task = asyncio.current_task()
        if self._stopping or task is None:
            work.close()
            raise asyncio.CancelledError
        self._tasks.add(task)
        try:
            return await work
        finally:
            self._tasks.discard(task)


class _Loop(asyncio.SelectorEventLoop):
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
