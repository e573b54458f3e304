# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The ranking rules, against numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from robotmem_ros.core import ranking
from robotmem_ros.core.ranking import Evidence


def test_rrf_sums_the_reciprocal_ranks_of_both_lists() -> None:
    fused = ranking.rrf(Evidence([7, 8], [8, 9]), 60)
    assert fused.scores == pytest.approx({7: 1 / 61, 8: 1 / 62 + 1 / 61, 9: 1 / 62})
    assert fused.terms[8] == pytest.approx({"keyword": 1 / 62, "vector": 1 / 61})
    assert fused.divisor == 1.0


@pytest.mark.parametrize("lists", [([5, 6], None), (None, [5, 6]), ([5, 6], []), ([], [5, 6])])
def test_rrf_of_one_list_uses_the_same_formula(lists: Any) -> None:
    assert ranking.rrf(Evidence(*lists), 10).scores == pytest.approx({5: 1 / 11, 6: 1 / 12})


def test_adaptive_adds_what_is_active_and_divides_by_it() -> None:
    evidence = Evidence(
        [1, 2],
        [1, 3],
        bm25={1: 5.0, 2: 7.0},
        cosine={1: 0.8, 2: 0.5, 3: 0.2},
        terms=3,
        entities={1: 0.5},
    )
    fused = ranking.adaptive(evidence, 0.1)
    at_seven = 1 / (1 + math.exp(-0.7 * 2))
    assert fused.divisor == 2.5
    assert fused.scores == pytest.approx(
        {1: (0.8 + 0.5 + 0.25) / 2.5, 2: (0.5 + at_seven) / 2.5, 3: 0.2 / 2.5}
    )


@pytest.mark.parametrize(
    ("terms", "midpoint", "steepness"),
    [
        *((1, 5.0, 0.7), (3, 5.0, 0.7), (4, 7.0, 0.6), (6, 7.0, 0.6), (7, 9.0, 0.5)),
        *((9, 9.0, 0.5), (10, 10.0, 0.5), (15, 10.0, 0.5), (16, 12.0, 0.5), (64, 12.0, 0.5)),
    ],
)
def test_adaptive_keyword_score_depends_on_the_number_of_terms(
    terms: int, midpoint: float, steepness: float
) -> None:
    fused = ranking.adaptive(Evidence([1], None, bm25={1: 6.0}, terms=terms), 0.1)
    assert fused.divisor == 2.0
    expected = 1 / (1 + math.exp(-steepness * (6.0 - midpoint)))
    assert fused.terms[1]["keyword"] == pytest.approx(expected)


def test_adaptive_drops_what_is_not_alike_before_anything_else() -> None:
    """Neither its words nor its names count, not even for the divisor."""
    evidence = Evidence([1], [2, 1], bm25={1: 30.0}, cosine={1: 0.09, 2: 0.1}, entities={1: 1.0})
    fused = ranking.adaptive(evidence, 0.1)
    assert fused.scores == {2: 0.1}
    assert fused.divisor == 1.0


def test_adaptive_keeps_what_has_no_vector_yet() -> None:
    fused = ranking.adaptive(Evidence([1], [2], bm25={1: 5.0}, cosine={2: 0.9}, terms=1), 0.1)
    assert fused.scores == pytest.approx({1: 0.25, 2: 0.45})


def test_adaptive_without_keywords_is_the_similarity() -> None:
    fused = ranking.adaptive(Evidence([], [1], cosine={1: 0.7}), 0.1)
    assert (fused.scores, fused.divisor) == ({1: 0.7}, 1.0)


def test_adaptive_is_capped_at_one() -> None:
    evidence = Evidence([1], [1], bm25={1: 99.0}, cosine={1: 1.0000002}, terms=1, entities={1: 1})
    assert ranking.adaptive(evidence, 0.1).scores[1] <= 1.0


def test_weighted_brings_both_engines_to_one_scale() -> None:
    evidence = Evidence(
        [1, 2],
        [2, 3],
        bm25={1: 8.0, 2: 4.0},
        cosine={1: 0.2, 2: 0.8, 3: 0.5},
        mean_cosine=0.2,
    )
    fused = ranking.weighted(evidence, 0.6, 0.0)
    assert fused.scores == pytest.approx(
        {
            1: 0.6 * 0.05 + 0.4 * 1.0,
            2: 0.6 * 1.0 + 0.4 * 0.5,
            3: 0.6 * (0.05 + 0.95 * 0.5),
        }
    )


def test_weighted_trusts_keywords_less_where_few_words_are_found() -> None:
    fused = ranking.weighted(Evidence([1], None, bm25={1: 3.0}, bm25_of_all_terms=12.0), 0.0, 0.0)
    assert fused.scores == {1: 0.5}


def test_weighted_below_the_mean_shares_the_lowest_twentieth() -> None:
    evidence = Evidence([], [1, 2, 3], cosine={1: 0.5, 2: -0.25, 3: -1.0}, mean_cosine=0.5)
    scores = ranking.weighted(evidence, 1.0, 0.0).scores
    assert scores == pytest.approx({1: 0.05, 2: 0.025, 3: 0.0})


@pytest.mark.parametrize("cosine", [-1.0, 0.0, 1.0])
def test_weighted_survives_vectors_that_are_all_alike(cosine: float) -> None:
    evidence = Evidence([], [1, 2], cosine={1: cosine, 2: cosine}, mean_cosine=cosine)
    scores = ranking.weighted(evidence, 1.0, 0.0).scores
    assert scores[1] == scores[2]
    assert 0.0 <= scores[1] <= 1.0


@pytest.mark.parametrize(("mean", "best", "follower"), [(0.2, 0.2, 0.3), (0.2, 0.1, 0.3)])
def test_weighted_survives_a_follower_that_is_nearer_than_all_found(
    mean: float, best: float, follower: float
) -> None:
    """An approximate search may miss the nearest, and the episode bring it in."""
    evidence = Evidence(
        [],
        [1],
        followers=[2],
        cosine={1: best, 2: follower},
        mean_cosine=mean,
        predecessors={2: 1},
    )
    scores = ranking.weighted(evidence, 1.0, 0.5).scores
    assert scores[2] > scores[1] >= 0.0


def test_weighted_passes_a_share_on_to_what_happened_next() -> None:
    """Only to the very next, only once, and to memories that no engine found."""
    evidence = Evidence(
        [1, 2],
        None,
        followers=[3],
        bm25={1: 4.0, 2: 2.0},
        predecessors={2: 1, 3: 2, 4: 3},
    )
    fused = ranking.weighted(evidence, 0.5, 0.2)
    assert fused.scores == pytest.approx({1: 0.5, 2: 0.25 + 0.2 * 0.5, 3: 0.2 * 0.25})
    assert fused.terms[3]["spread"] == pytest.approx(0.05)


def test_weighted_of_nothing_is_nothing() -> None:
    assert ranking.weighted(Evidence([], []), 0.5, 0.2).scores == {}
    assert ranking.adaptive(Evidence([], []), 0.1).scores == {}
    assert ranking.rrf(Evidence([], None), 60).scores == {}


def test_real_experience_weighs_more() -> None:
    assert ranking.real_weighted({1: 0.4, 2: 0.5}, {1}, 1.5) == pytest.approx({1: 0.6, 2: 0.5})


def test_ties_go_to_the_lower_number() -> None:
    assert ranking.by_score({9: 0.5, 3: 0.5, 7: 0.9}) == [7, 3, 9]
    assert ranking.by_distance([9, 3, 7, 4], {9: 1.0, 3: 1.0, 7: 0.5}) == [7, 3, 9]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.5, 0.25], [1.0, 0.5]),
        ([0.25, 0.5], [0.5, 1.0]),
        ([0.0, 0.0], [1.0, 1.0]),
        ([], []),
        ([1e-300], [1.0]),
    ],
)
def test_the_best_score_becomes_exactly_one(scores: list[float], expected: list[float]) -> None:
    assert ranking.normalised(scores) == expected
