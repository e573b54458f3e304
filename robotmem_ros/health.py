# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What is known of the node and its store: read once a second, for ~/status and /diagnostics."""

from __future__ import annotations

import functools
import math
import time
from importlib import metadata
from typing import TYPE_CHECKING

from robotmem_ros import conversions
from robotmem_ros.diagnostics import Vitals
from robotmem_ros.worker import NotServedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robotmem_ros.boundary import Boundary
    from robotmem_ros.capture import SourceState
    from robotmem_ros.core.memory import RobotMemory
    from robotmem_ros.core.model import Queue, Status
    from robotmem_ros.msg import Status as StatusMessage
    from robotmem_ros.serving import Server


class Health:
    """The last reading of the store."""

    def __init__(self, server: Server, boundary: Boundary) -> None:
        self._server = server
        self._boundary = boundary
        self._status: Status | None = None
        self._read_at = -math.inf
        self._memory: RobotMemory | None = None

    async def read(self, memory: RobotMemory | None, active: bool) -> StatusMessage:
        """Read the state of the store, None if none is open, and return the message of ~/status.

        Raises
        ------
        NotServedError: the lane for reading is full or closed.
        StoreError: the database cannot be read.
        """
        self._use(memory)
        try:
            status = await self._server.work("read", memory.status) if memory is not None else None
            self._status, self._read_at = status, time.monotonic()
        except NotServedError:
            raise
        except Exception:
            self._status, self._read_at = None, -math.inf
            raise
        return conversions.status_message(
            status,
            ready=active,
            version=_version(),
            last_error=self._boundary.last_error,
            open_session=memory.open_session if memory is not None else "",
        )

    def vitals(
        self,
        memory: RobotMemory | None,
        active: bool,
        failure: Exception | None,
        sources: Sequence[SourceState],
        queues: Mapping[str, Queue],
    ) -> Vitals:
        """Return what /diagnostics is to tell; waits for nothing.

        Parameters
        ----------
        failure: why a transition of the life cycle failed, if it did.
        """
        self._use(memory)
        return Vitals(
            time=time.monotonic(),
            active=active,
            failure="" if failure is None or isinstance(failure, NotServedError) else str(failure),
            status=self._status,
            read_at=self._read_at,
            session=memory.open_session if memory is not None else "",
            last_error=self._boundary.last_error,
            failed_at=self._boundary.failed_at,
            sources=sources,
            queues=queues,
        )

    def _use(self, memory: RobotMemory | None) -> None:
        if memory is not self._memory:  # what was read is of another store
            self._memory, self._status, self._read_at = memory, None, time.monotonic()


@functools.lru_cache(maxsize=1)
def _version() -> str:
    try:
        return metadata.version("robotmem_ros")
    except metadata.PackageNotFoundError:
        return "unknown"  # run from the source tree
