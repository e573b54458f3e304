# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The lanes: order, bound, and an end that leaves nobody waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from robotmem_ros.worker import Lane, NotServedError


class Outcomes:
    def __init__(self) -> None:
        self.all: list[tuple[Any, BaseException | None]] = []
        self._changed = threading.Condition()

    def __call__(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            self.all.append((result, error))
            self._changed.notify_all()

    def wait(self, count: int) -> list[tuple[Any, BaseException | None]]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.all) >= count, 10.0)
        return self.all


def _raise(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


def test_one_thread_keeps_the_order() -> None:
    lane, done = Lane("write", 1, 100), Outcomes()
    for i in range(100):
        lane.submit(lambda i=i: i, done)
    assert [result for result, _ in done.wait(100)] == list(range(100))
    assert lane.close(1.0)


def test_several_threads_work_at_the_same_time() -> None:
    lane, done = Lane("recall", 3, 10), Outcomes()
    together = threading.Barrier(3)
    for _ in range(3):
        lane.submit(lambda: together.wait(10.0), done)
    assert all(error is None for _, error in done.wait(3))
    assert lane.close(1.0)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
def test_what_is_raised_is_delivered_and_the_thread_lives_on(error: BaseException) -> None:
    lane, done = Lane("write", 1, 10), Outcomes()
    lane.submit(_raise(error), done)
    lane.submit(lambda: "next", done)
    assert done.wait(2) == [(None, error), ("next", None)]
    assert lane.close(1.0)


def test_a_full_queue_refuses() -> None:
    lane, done, gate = Lane("write", 1, 2), Outcomes(), threading.Event()
    started = threading.Event()
    lane.submit(lambda: (started.set(), gate.wait(10.0)), done)
    assert started.wait(10.0)
    lane.submit(lambda: 1, done)
    lane.submit(lambda: 2, done)
    with pytest.raises(NotServedError, match=r"busy.*queue_size"):
        lane.submit(lambda: 3, done)
    gate.set()
    assert [result for result, _ in done.wait(3)][1:] == [1, 2]
    assert lane.close(1.0)


def test_the_end_answers_what_is_queued_and_waits_for_what_runs() -> None:
    lane, done, gate = Lane("write", 1, 10), Outcomes(), threading.Event()
    started = threading.Event()
    lane.submit(lambda: (started.set(), gate.wait(10.0)), done)
    lane.submit(lambda: "never", done)
    assert started.wait(10.0)
    assert not lane.close(0.0)
    (outcome,) = done.wait(1)
    assert isinstance(outcome[1], NotServedError)
    with pytest.raises(NotServedError):
        lane.submit(lambda: 1, done)
    gate.set()
    assert lane.close(10.0)
    assert len(done.wait(2)) == 2
    assert lane.close(0.0)


def test_threads_end() -> None:
    before = threading.active_count()
    lanes = [Lane("recall", 4, 10) for _ in range(10)]
    time.sleep(0.01)
    assert all(lane.close(5.0) for lane in lanes)
    assert threading.active_count() == before
