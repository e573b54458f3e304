# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The real search equals the slow reference on random stores, however it has to go about it."""

from __future__ import annotations

import math
import shutil
import tempfile
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from random_stores import QUERY_VECTORS, ROS_TIME, VECTORS, WALL_TIME, Asked, Change, Maker
from reference import Answer, Entry, ReferenceMemory, effective_confidence

from robotmem_ros.core import search
from robotmem_ros.core.config import Config
from robotmem_ros.core.model import MemoryType
from robotmem_ros.core.store import (
    NewMemory,
    Store,
    attribute_columns,
    codes,
    eligibility,
    facts,
    keywords,
    order,
    vectors,
    words,
)

TOLERANCE = 1e-6
MODEL = "a model"

WAYS: dict[str, dict[tuple[Any, str], int]] = {
    "as small stores are searched": {},
    "by checking what ranks best": {
        (order, "CHECKED"): 0,
        (eligibility, "FEW"): 0,
        (keywords, "_TABULATED"): 0,
    },
    "by checking or listing": {(order, "CHECKED"): 4, (eligibility, "FEW"): 4},
    "by one bit a dimension": {
        (codes, "EXACT_LIMIT"): 0,
        (vectors, "RESCORED"): 3,
        (vectors, "BY_BITS"): 5,
    },
    "without the commonest words": {(keywords, "MANY"): 0, (words, "FREQUENT"): 3},
    "as large stores are searched": {
        (order, "CHECKED"): 3,
        (order, "_SAMPLED"): 3,
        (eligibility, "FEW"): 3,
        (eligibility, "LISTED"): 3,
        (attribute_columns, "MAX_CELLS"): 40,
        (keywords, "_TABULATED"): 0,
        (vectors, "_AS_QUICK"): 1,
        (codes, "_LOOKED_AT"): 3,
        (codes, "_AT_ONCE"): 2,
        (codes, "EXACT_LIMIT"): 5,
        (vectors, "RESCORED"): 3,
        (vectors, "BY_BITS"): 5,
        (keywords, "MANY"): 5,
        (words, "FREQUENT"): 2,
        (words, "MAX_POSTINGS"): 6,
        (words, "MAX_WORDS"): 3,
    },
    "as the largest are": {
        (order, "CHECKED"): 0,
        (order, "_SAMPLED"): 0,
        (eligibility, "FEW"): 0,
        (eligibility, "LISTED"): 0,
        (attribute_columns, "MAX_CELLS"): 0,
        (attribute_columns, "_MANY_CHANGES"): 0,
        (facts, "_MANY_CHANGES"): 0,
        (keywords, "_TABULATED"): 2,
        (codes, "_LOOKED_AT"): 1,
        (codes, "_SAMPLE"): 2,
        (codes, "EXACT_LIMIT"): 0,
        (vectors, "RESCORED"): 1,
        (vectors, "BY_BITS"): 1,
        (keywords, "MANY"): 0,
        (words, "FREQUENT"): 0,
    },
}
"""Limits up to which a store takes the ways of a small one: to test those of a large one."""


class Pair:
    """A real store and the reference, changed in step."""

    def __init__(self, path: str) -> None:
        self.real = Store(path)
        self.real.use_model(MODEL, len(VECTORS[0]))
        self.expected = ReferenceMemory()

    def apply(self, change: Change) -> None:
        kind, *values = change
        if kind == "learn":
            self._learn(*values)
            return
        if not self.expected.entries:
            return
        number = self.expected.entries[values[0] % len(self.expected.entries)].id
        if kind == "update":
            self.real.update(number, values[1], values[2], WALL_TIME)
            self.expected.update(number, values[1], values[2])
        elif kind == "forget":
            self.real.forget(number, "", WALL_TIME)
            self.expected.forget(number)
        else:
            # Only the end of an episode does this, by itself.
            connection = apsw.Connection(self.real.path)
            connection.execute("UPDATE memories SET superseded_by = -1 WHERE id = ?", (number,))
            connection.close()
            self.expected.get(number).superseded = True

    def _learn(self, entry: Entry, vector: int | None) -> None:
        new = NewMemory(
            uuid="",
            type=MemoryType.FACT,
            perception_type=None,
            content=entry.content,
            context=entry.context,
            collection=entry.collection,
            session_id=entry.session_id,
            confidence=entry.confidence,
            stamp=entry.stamp,
            pose=entry.pose,
            expires=entry.expires,
            now=entry.last_access,
        )
        number, created = self.real.add(new)
        assert (number, created) == self.expected.learn(entry)
        if vector is not None:
            self.real.put_vectors(MODEL, [(number, entry.content, VECTORS[vector])])
            self.expected.get(number).vector = VECTORS[vector]

    def recall(self, asked: Asked, config: Config) -> tuple[search.Ranking, Answer]:
        vector = None if asked.vector is None else QUERY_VECTORS[asked.vector]
        mean = None
        request = search.check(asked.query, config, ROS_TIME, WALL_TIME)
        with self.real.snapshot() as snapshot:
            if request.is_replay:
                found = search.replay(snapshot, request)
            else:
                found = search.rank(snapshot, request, vector, config)
                # Of a large store, the mean is kept up approximately when vectors go.
                if vector is not None and codes.EXACT_LIMIT < 1000:
                    mean = snapshot.mean_similarity(vector)
        expected = self.expected.recall(
            asked.query, asked.conditions, asked.sort, vector, config, ROS_TIME, WALL_TIME, mean
        )
        return found, expected


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty store to copy: quicker than making its tables each time."""
    path = str(tmp_path_factory.mktemp("template") / "empty.db")
    Store(path).close()
    return path


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@given(seed=st.integers(0, 2**32), changes=st.integers(1, 60), queries=st.integers(1, 40))
@settings(max_examples=settings().max_examples * 6 // 10)
def test_recall_equals_reference(
    template: str,
    fast_folder: Path,
    way: dict[tuple[Any, str], int],
    seed: int,
    changes: int,
    queries: int,
) -> None:
    """Who is found, in which order, with which score, and why: thousands of queries."""
    maker = Maker(seed)
    config = Config(
        episode_spread=(0.3, 0.0, 1.0)[seed % 3],
        real_weight=(1.5, 1.5, 1.0, 0.0)[seed % 4],
        semantic_threshold=(0.1, 0.5)[seed % 2],
    )
    always_exact = (codes, "EXACT_LIMIT") not in way and (keywords, "MANY") not in way
    with tempfile.TemporaryDirectory(dir=fast_folder) as folder, pytest.MonkeyPatch.context() as m:
        for (module, name), limit in way.items():
            m.setattr(module, name, limit)
        shutil.copy(template, folder)
        pair = Pair(str(Path(folder, Path(template).name)))
        try:
            history = maker.changes(changes)
            last = len(history) // 4
            for change in history[last:]:
                pair.apply(change)
            for i, asked in enumerate(maker.queries(queries)):
                if i == queries // 2:
                    for change in history[:last]:
                        pair.apply(change)
                found, expected = pair.recall(asked, config)
                try:
                    if always_exact or asked.query.exact or asked.query.text == "*":
                        assert_equal(found, expected, asked)
                    assert_nothing_left_out(found, expected, asked, config)
                    assert_details(found, expected, asked)
                except AssertionError:
                    note(f"query {i}: {asked}\nfound {found}\nexpected {expected}")
                    raise
        finally:
            pair.real.close()


def assert_equal(found: search.Ranking, expected: Answer, asked: Asked) -> None:
    assert found.mode.value == expected.mode
    assert len(found.ids) == len(set(found.ids)) == len(expected.ids)
    spatial = asked.sort is not None or asked.query.near is not None
    if spatial or asked.query.text == "*":
        assert found.ids == expected.ids
    for number, wanted, score in zip(found.ids, expected.ids, found.scores, strict=True):
        assert number in expected.scores
        assert score == pytest.approx(expected.score(number), abs=TOLERANCE)
        assert score == pytest.approx(expected.score(wanted), abs=TOLERANCE)
    if spatial:
        for number in found.ids:
            assert found.distances[number] == expected.distances[number]


def assert_nothing_left_out(
    found: search.Ranking, expected: Answer, asked: Asked, config: Config
) -> None:
    """Check what holds for any answer, exact or not."""
    n = asked.query.n
    assert len(found.ids) == len(set(found.ids)) <= n
    assert set(found.ids) <= set(expected.eligible)
    fusion = asked.query.fusion.value if asked.query.fusion else config.fusion
    if fusion != "adaptive" or asked.query.text == "*":  # it drops what is not alike
        assert len(found.ids) >= min(n, expected.reachable)
    if found.ids:
        assert max(found.scores) == 1.0
        assert all(0.0 <= score <= 1.0 for score in found.scores)
    if asked.sort is None and asked.query.near is None and asked.query.text != "*":
        scores = dict(zip(found.ids, found.scores, strict=True))
        assert found.ids == sorted(found.ids, key=lambda number: (-scores[number], number))


def assert_details(found: search.Ranking, expected: Answer, asked: Asked) -> None:
    """Check what explain says against the reference."""
    if not asked.query.explain or asked.query.text == "*":
        assert not found.details
        return
    for number, score in zip(found.ids, found.scores, strict=True):
        details = found.details[number]
        for engine, name, true in (
            ("keyword", "bm25", expected.bm25),
            ("vector", "cosine", expected.cosine),
        ):
            said = details[engine] and details[engine][name]
            if said is not None:  # each of the commonest words, if left out, weighs 0.000001
                assert said == pytest.approx(true[number], abs=10 * TOLERANCE)
        assert details["fused"] * details["weight"] == pytest.approx(details["weighted"])
        best = details["best"]
        assert math.isclose(score, details["weighted"] / best if best > 0 else 1.0, abs_tol=1e-12)


def test_effective_confidence_of_the_reference_is_the_one_of_the_specification() -> None:
    entry = Entry(1, "x", {}, confidence=0.8, last_access=0)
    assert effective_confidence(entry, 0.01, 30 * 86_400 * 10**9) == pytest.approx(
        0.5918, abs=1e-4
    )
