# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The bar on the terminal."""

from __future__ import annotations

import io

import pytest

from robotmem_ros.cli import progress
from robotmem_ros.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the bar sees, in one element."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_terminal_shows_share_speed_and_time_left(seconds: list[float]) -> None:
    terminal = Terminal()
    bar = Progress(terminal, "day1", 64_000)
    for done in range(32_001):
        seconds[0] = 100.0 + done / 3200
        bar.show(done)
    line = terminal.getvalue().split("\r")[-1].rstrip()
    assert line == "day1: [############............]  50% 3200/s, 10 s left"
    assert terminal.getvalue().count("\r") < 110  # ten pictures a second
    bar.clear()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_an_unknown_total_shows_what_was_done(seconds: list[float]) -> None:
    terminal = Terminal()
    bar = Progress(terminal, "cut.mcap", 0)
    seconds[0] += 2.0
    bar.show(6400)
    assert terminal.getvalue().rstrip() == "\rcut.mcap: 6400 messages, 3200/s"


def test_where_there_is_no_terminal_nothing_is_shown() -> None:
    stream = io.StringIO()
    bar = Progress(stream, "day1", 10)
    bar.show(0)
    bar.clear()
    assert stream.getvalue() == ""
