# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The first eligible memories of an order are found whichever way they are looked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotmem_ros.core.store import order
from robotmem_ros.core.store.order import Order


class Chosen:
    """Stands for an Eligibility: knows all ids at once, or only decides one by one."""

    def __init__(self, allowed: set[int], listed: bool, quick: bool) -> None:
        self._allowed = np.array(sorted(allowed), np.int64)
        self.ids = self._allowed if listed else None
        self.flags = None
        self.is_quick = quick

    def keep(self, ids: np.ndarray) -> np.ndarray:
        return ids[np.isin(ids, self._allowed)]

    def find_all(self) -> np.ndarray:
        return np.append(
            np.isin(np.arange(max(self._allowed, default=0) + 1), self._allowed), False
        )


@given(
    keys=st.lists(st.integers(0, 5), min_size=1, max_size=200),
    gone=st.sets(st.integers(1, 200)),
    allowed=st.sets(st.integers(1, 220)),
    n=st.integers(1, 30),
    listed=st.booleans(),
    quick=st.booleans(),
    rounding=st.sampled_from([0.0, 0.5]),
    sampled=st.sampled_from([0, 20, 50_000]),
    few=st.sampled_from([0, 10, 50, 8000]),
)
def test_first_eligible_are_the_best_with_all_ties(
    keys: list[int],
    gone: set[int],
    allowed: set[int],
    n: int,
    listed: bool,
    quick: bool,
    rounding: float,
    sampled: int,
    few: int,
) -> None:
    numbers = range(1, len(keys) + 1)
    ids = np.array([0 if number in gone else number for number in numbers], np.int64)
    of_each = np.array(
        [np.inf if number in gone else key for number, key in zip(numbers, keys, strict=True)]
    )
    ranked = Order(ids, of_each, lambda wanted: wanted - 1, rounding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "CHECKED", few)
        patch.setattr(order, "_SAMPLED", sampled)
        found = ranked.first_eligible(n, Chosen(allowed, listed, quick)).tolist()  # type: ignore[arg-type]
    live = {
        number: key for number, key in zip(numbers, keys, strict=True) if number in allowed - gone
    }
    best = sorted(live.values())[:n]
    assert len(set(found)) == len(found)
    assert set(found) <= set(live)
    assert sorted(live[number] for number in found)[:n] == best
    if rounding and best:
        assert {number for number, key in live.items() if key <= best[-1]} <= set(found)


def test_a_tie_at_the_edge_of_a_batch_loses_nobody() -> None:
    """All alike: the last memory must be as findable as the first."""
    total = 1000
    ranked = Order(np.arange(1, total + 1), np.zeros(total), lambda wanted: wanted - 1, 0.0)
    for number in (1, 500, total):
        for quick in (False, True):
            found = ranked.first_eligible(1, Chosen({number}, False, quick))  # type: ignore[arg-type]
            assert found.tolist() == [number]
