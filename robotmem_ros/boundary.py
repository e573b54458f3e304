# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The error boundary: whatever a callback raises becomes words for the caller and for the log.

An exception that leaves a callback would end the executor and leave the caller waiting for ever.
"""

from __future__ import annotations

import inspect
import logging
import math
import time
import traceback
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from robotmem_ros import conversions
from robotmem_ros.core.errors import InvalidRequestError, NotFoundError, RobotMemoryError
from robotmem_ros.worker import NotServedError

if TYPE_CHECKING:
    from rclpy.impl.rcutils_logger import RcutilsLogger
    from rclpy.service import Service

CALLER_ERRORS = (InvalidRequestError, NotFoundError, NotServedError)
"""What the caller can cure and is told in the answer; no fault of the node."""


class CoreLog(logging.Handler):
    """Passes what the core logs, which knows no ROS, on to the log of a node."""

    def __init__(self, logger: RcutilsLogger) -> None:
        super().__init__(logging.INFO)
        self._logger = logger
        self._source = logging.getLogger("robotmem_ros.core")
        self._source.addHandler(self)
        self._source.setLevel(logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record at its level."""
        # rclpy keeps the level of each place that logs, hence one place for each level.
        if record.levelno >= logging.ERROR:
            self._logger.error(record.getMessage())
        elif record.levelno >= logging.WARNING:
            self._logger.warning(record.getMessage())
        else:
            self._logger.info(record.getMessage())

    def close(self) -> None:
        """Pass on nothing more."""
        self._source.removeHandler(self)
        super().close()


class Boundary:
    """Turns exceptions into one sentence each, and remembers the last fault of the node."""

    def __init__(self, logger: RcutilsLogger) -> None:
        self._logger = logger
        self._seen: set[str] = set()
        self.last_error = ""
        self.failed_at = -math.inf  # of the steady clock, in seconds

    def explain(self, error: Exception, where: str) -> str:
        """Return the sentence that answers the caller, and log what is a fault of the node."""
        message = conversions.refusal(error)
        if isinstance(error, CALLER_ERRORS):
            self._logger.debug(f"{where}: {message}")
        elif isinstance(error, RobotMemoryError):
            self.failed_at = time.monotonic()
            self.last_error = f"{where}: {message}"
            self._logger.error(self.last_error)
        else:
            message = f"internal error: {type(error).__name__}: {message}"
            self.failed_at = time.monotonic()
            self.last_error = f"{where}: {message}"
            self._logger.error(self.last_error + self._trace(error))
        return message

    def guard(self, services: Iterable[Service]) -> None:
        """Put services that rclpy itself made (parameters, life cycle) inside the boundary."""
        for service in services:
            service.callback = self._guarded(service.callback, service.srv_type, service.srv_name)

    def _guarded(self, callback: Callable[..., Any], kind: Any, name: str) -> Callable[..., Any]:
        async def guarded(request: Any, response: Any) -> Any:
            try:
                answer = callback(request, response)
                return await answer if inspect.isawaitable(answer) else answer
            except Exception as error:
                self.explain(error, name)
                return kind.Response()

        return guarded

    def _trace(self, error: Exception) -> str:
        # Once for each place: an error that comes with every request must not fill the disk.
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        place = "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
        if place in self._seen:
            return ""
        self._seen.add(place)
        return "\n" + text
