# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A bar that shows how far a long task has come, on terminals alone."""

from __future__ import annotations

import shutil
import time
from typing import TextIO

_PERIOD = 0.1  # seconds between two pictures
_BAR = 24
_UNKNOWN = "?"


class Progress:
    """Shows one line on a terminal, and nothing where there is none.

    Parameters
    ----------
    label: what is worked on.
    total: number of items; 0 if it is not known.
    """

    def __init__(self, stream: TextIO, label: str, total: int) -> None:
        self._stream = stream
        self._label = label
        self.total = total
        self._shows = stream.isatty()
        self._start = time.monotonic()
        self._due = self._start

    def show(self, done: int) -> None:
        """Show that so many items are done; cheap when called for each of them."""
        if not self._shows or done % 64:
            return
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + _PERIOD
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r" + self._line(done, now - self._start)[:width].ljust(width))
        self._stream.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._shows:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _line(self, done: int, seconds: float) -> str:
        rate = done / seconds if seconds > 0 else 0.0
        if not self.total:
            return f"{self._label}: {done} messages, {rate:.0f}/s"
        share = min(1.0, done / self.total)
        filled = round(share * _BAR)
        bar = "#" * filled + "." * (_BAR - filled)
        left = f"{(self.total - done) / rate:.0f} s left" if rate else _UNKNOWN
        return f"{self._label}: [{bar}] {share:4.0%} {rate:.0f}/s, {left}"
