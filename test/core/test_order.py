# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The first eligible memories of an order are found whichever way they are looked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotmem_ros.core.store import order
from robotmem_ros.core.store.order import Order


class Chosen:
    """Stands for an Eligibility: knows all ids at once, or only decides one by one."""

    def __init__(self, allowed: set[int], listed: bool) -> None:
        self._allowed = allowed
        self.ids = sorted(allowed) if listed else None

    def keep(self, _: Any, ids: list[int]) -> list[int]:
        return [number for number in ids if number in self._allowed]

    def all_ids(self, _: Any) -> list[int]:
        return sorted(self._allowed)


@given(
    keys=st.lists(st.integers(0, 5), min_size=1, max_size=200),
    gone=st.sets(st.integers(1, 200)),
    allowed=st.sets(st.integers(1, 220)),
    n=st.integers(1, 30),
    listed=st.booleans(),
    few=st.sampled_from([0, 10, 50, 8000]),
)
def test_first_eligible_are_the_best_with_all_ties(
    keys: list[int], gone: set[int], allowed: set[int], n: int, listed: bool, few: int
) -> None:
    numbers = range(1, len(keys) + 1)
    ids = np.array([0 if number in gone else number for number in numbers], np.int64)
    of_each = np.array(
        [np.inf if number in gone else key for number, key in zip(numbers, keys, strict=True)]
    )
    ranked = Order(ids, of_each, lambda wanted: wanted - 1, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "CHECKED", few)
        found = ranked.first_eligible(None, n, Chosen(allowed, listed))  # type: ignore[arg-type]
    live = {
        number: key for number, key in zip(numbers, keys, strict=True) if number in allowed - gone
    }
    best = sorted(live.values())[:n]
    needed = {number for number, key in live.items() if key <= best[-1]} if best else set()
    assert len(set(found)) == len(found)
    assert needed <= set(found) <= set(live)


def test_a_tie_at_the_edge_of_a_batch_loses_nobody() -> None:
    """All alike: the last memory must be as findable as the first."""
    total = 1000
    ranked = Order(np.arange(1, total + 1), np.zeros(total), lambda wanted: wanted - 1, 0.0)
    for number in (1, 500, total):
        found = ranked.first_eligible(None, 1, Chosen({number}, listed=False))  # type: ignore[arg-type]
        assert found == [number]
