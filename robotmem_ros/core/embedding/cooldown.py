# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""How long a backend that failed is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable

STEPS = (60.0, 120.0, 240.0, 300.0)
"""Seconds after the first, second ... failure in a row; the last holds for all that follow."""


class Cooldown:
    """Counts failures in a row, and the time to wait after the last of them.

    Parameters
    ----------
    clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._end = 0.0

    @property
    def left(self) -> float:
        """Seconds until the backend may be tried again; 0 when it may be now."""
        return max(0.0, self._end - self._clock()) if self._failures else 0.0

    @property
    def active(self) -> bool:
        """Whether nothing may be sent to the backend now."""
        return self.left > 0.0

    def failed(self) -> None:
        """Take note of a failure."""
        seconds = STEPS[min(self._failures, len(STEPS) - 1)]
        self._failures += 1
        self._end = self._clock() + seconds

    def succeeded(self) -> None:
        """Take note of a success: the next failure counts as the first."""
        self._failures = 0
