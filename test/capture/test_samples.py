# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Recent messages: which is the freshest before an event, and what is dropped."""

from __future__ import annotations

import random
import struct
from types import SimpleNamespace

import pytest

from robotmem_ros.samples import Sample, Samples, stamp_reader

SECOND = 1_000_000_000


def sample(stamp: float, received: float | None = None, size: int = 1) -> Sample:
    when = stamp if received is None else received
    return Sample(int(stamp * SECOND), int(when * SECOND), size, stamp)


def latest(samples: Samples, stamp: float) -> float | None:
    found = samples.latest(int(stamp * SECOND))
    return found.message if found else None


def test_the_freshest_at_or_before_the_event() -> None:
    samples = Samples(10 * SECOND)
    for stamp in (1.0, 2.0, 3.0):
        samples.add(sample(stamp))
    assert [latest(samples, t) for t in (0.5, 1.0, 2.9, 3.0, 9.0)] == [None, 1.0, 2.0, 3.0, 3.0]


def test_of_equal_stamps_the_one_received_last() -> None:
    samples = Samples(10 * SECOND)
    samples.add(Sample(5, 5, 1, "first"))
    samples.add(Sample(5, 6, 1, "second"))
    found = samples.latest(5)
    assert found is not None
    assert found.message == "second"


def test_any_order_of_stamps_gives_what_a_plain_search_gives() -> None:
    numbers = random.Random(3)
    for _ in range(300):
        samples = Samples(50)
        kept = [Sample(numbers.randint(1, 30), i, 1, i) for i in range(numbers.randint(0, 40))]
        for one in kept:
            samples.add(one)
        for stamp in range(32):
            expected = max(
                (one for one in kept if one.stamp <= stamp),
                key=lambda one: (one.stamp, one.received),
                default=None,
            )
            assert samples.latest(stamp) == expected


def test_one_message_from_before_the_history_stays() -> None:
    samples = Samples(10 * SECOND)
    for stamp in (1.0, 2.0, 3.0, 14.0):
        samples.add(sample(stamp))
    assert len(samples) == 2
    assert latest(samples, 4.5) == 3.0
    assert latest(samples, 2.5) is None


def test_a_message_from_the_future_is_not_used_and_goes_with_time() -> None:
    samples = Samples(10 * SECOND)
    samples.add(sample(1_000_000.0, received=1.0))
    samples.add(sample(2.0))
    assert latest(samples, 3.0) == 2.0
    samples.add(sample(20.0))
    samples.add(sample(21.0))
    assert latest(samples, 2_000_000.0) == 21.0


def test_number_and_bytes_are_bounded_but_the_newest_stays() -> None:
    samples = Samples(SECOND, max_count=3, max_bytes=100)
    for i in range(10):
        samples.add(sample(i / 100))
    assert len(samples) == 3
    samples.add(sample(1.0, size=99))
    assert len(samples) == 2
    samples.add(sample(1.01, size=1_000_000))
    assert len(samples) == 1
    assert latest(samples, 2.0) == 1.01
    samples.clear()
    assert samples.newest is None
    samples.add(sample(1.0, size=100))
    assert len(samples) == 1


HEADED = (("header", "std_msgs/Header"), ("data", "uint8"))


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_stamp_is_read_from_the_bytes(order: str) -> None:
    def refuse(data: bytes) -> None:
        raise AssertionError("it need not be decoded")

    read = stamp_reader(HEADED, refuse)
    begin = b"\0\1\0\0" if order == "<" else b"\0\0\0\0"
    assert read(begin + struct.pack(f"{order}iI", 7, 8) + b"rest") == 7 * SECOND + 8


def test_the_stamp_is_decoded_where_it_does_not_come_first() -> None:
    header = SimpleNamespace(stamp=SimpleNamespace(sec=1, nanosec=2))
    message = SimpleNamespace(header=header)
    read = stamp_reader(tuple(reversed(HEADED)), lambda data: message)
    assert read(b"") == SECOND + 2
    assert stamp_reader(HEADED, lambda data: message)(b"\0\7\0\0" + bytes(20)) == SECOND + 2
    assert stamp_reader((("data", "uint8"),), lambda data: message)(b"") == 0


def test_what_does_not_fit_into_the_history_is_counted() -> None:
    samples = Samples(10 * SECOND, max_count=3, max_bytes=100)
    for stamp in (1.0, 2.0, 3.0):
        samples.add(sample(stamp))
    assert samples.dropped == 0
    samples.add(sample(4.0))
    assert samples.dropped == 1
    samples.add(sample(5.0, size=99))
    assert (samples.dropped, len(samples)) == (3, 2)
    samples.add(sample(30.0))  # the others are too old by then, which is no loss
    assert samples.dropped == 3
