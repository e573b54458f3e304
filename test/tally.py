# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the store and the node went through, as one table at the end of a test run.

A test adds to the table when it has passed; one that fails says so itself. How long the tests of
trouble go on is set by the environment: ROBOTMEM_TROUBLE_MINUTES is shared among them; without it
each does a number that fits into a run of all tests.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator

ROWS = (
    "kills survived",
    "power cuts survived",
    "faults injected",
    "calls answered",
    "inputs tried",
    "memories checked",
    "lost",
    "doubled",
)
"""Rows of the table that stand in it in this order, before those with other names."""

counts: Counter[str] = Counter()
notes: list[str] = []


def add(**numbers: int) -> None:
    """Add to rows of the table; an underscore in a name stands for a space."""
    for name, number in numbers.items():
        counts[name.replace("_", " ")] += number


def note(sentence: str) -> None:
    """Add a sentence below the table."""
    notes.append(sentence)


def lines() -> list[str]:
    """Return the table."""
    if not counts:
        return []
    names = [*(name for name in ROWS if name in counts), *sorted(counts.keys() - {*ROWS})]
    width = max(map(len, names))
    return [*(f"{name:<{width}}  {counts[name]:>12,}" for name in names), *notes]


def rounds(usual: int, share: float) -> Iterator[int]:
    """Yield 0, 1, 2 ...: a usual number, or as many as begin in a share of the time there is."""
    minutes = float(os.environ.get("ROBOTMEM_TROUBLE_MINUTES", 0))
    end = time.monotonic() + 60.0 * minutes * share
    number = 0
    while number < usual or time.monotonic() < end:
        yield number
        number += 1


def seed() -> int:
    """Return where random choices begin: always the same, but in a run of set length.

    ROBOTMEM_TROUBLE_SEED repeats one.
    """
    given = os.environ.get("ROBOTMEM_TROUBLE_SEED", "")
    if given:
        return int(given)
    return time.time_ns() % 10**9 if os.environ.get("ROBOTMEM_TROUBLE_MINUTES") else 1
