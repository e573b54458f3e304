# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Turn what the engines found into one order: pure functions of lists and numbers.

Memories are named by their numbers. Wherever two scores are equal, the memory with the lower
number, the one stored first, comes first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from robotmem_ros.core.model import Json

Scores = Mapping[int, float]
"""Score by memory number."""

_SIGMOIDS = ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5), (math.inf, 12.0, 0.5))
"""(most query terms, midpoint, steepness) of the keyword score of adaptive fusion."""

_ENTITY_BOOST = 0.5
_BELOW_MEAN = 0.05


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the engines know of the candidates of one query.

    Attributes
    ----------
    keyword_ranks, vector_ranks: what each engine found, best first; None where it did not run.
    followers: memories that just follow one of these in its episode.
    bm25: score of each candidate that holds a word of the query; higher is better.
    cosine: cosine similarity in [-1, 1] of each candidate that has a vector.
    bm25_of_all_terms: what a memory of average length that holds each word once would get.
    mean_cosine: mean cosine similarity of all vectors of the store.
    terms: number of words of the query.
    entities: share of the query's names that each candidate is linked to, in (0, 1].
    predecessors: for each candidate that has one, the memory just before it in its episode.
    """

    keyword_ranks: Sequence[int] | None
    vector_ranks: Sequence[int] | None
    followers: Sequence[int] = ()
    bm25: Scores = field(default_factory=dict)
    cosine: Scores = field(default_factory=dict)
    bm25_of_all_terms: float = 0.0
    mean_cosine: float = 0.0
    terms: int = 0
    entities: Scores = field(default_factory=dict)
    predecessors: Mapping[int, int] = field(default_factory=dict)

    @property
    def found(self) -> list[int]:
        """All memories that some engine found, each once."""
        return list(dict.fromkeys([*(self.keyword_ranks or ()), *(self.vector_ranks or ())]))


@dataclass(slots=True)
class Fused:
    """Scores of the candidates, and of each the terms that its score is made of."""

    scores: dict[int, float]
    terms: dict[int, dict[str, Json]]
    divisor: float = 1.0


def rrf(evidence: Evidence, k: int) -> Fused:
    """Reciprocal rank fusion: the sum over the lists of 1 / (k + rank + 1), rank from 0.

    Cormack, Clarke and Buettcher, SIGIR 2009.
    """
    fused = Fused({}, {})
    for name, ranks in (("keyword", evidence.keyword_ranks), ("vector", evidence.vector_ranks)):
        for rank, memory in enumerate(ranks or ()):
            term = 1.0 / (k + rank + 1)
            fused.scores[memory] = fused.scores.get(memory, 0.0) + term
            fused.terms.setdefault(memory, {})[name] = term
    return fused


def adaptive(evidence: Evidence, semantic_threshold: float) -> Fused:
    """Add meaning, keywords and named entities, and divide by what was active in the query.

    Candidates with a vector whose cosine similarity is below the threshold are dropped first.
    """
    midpoint, steepness = next((m, s) for most, m, s in _SIGMOIDS if evidence.terms <= most)
    rows: dict[int, tuple[float, float, float]] = {}
    for memory in evidence.found:
        semantic = 0.0
        if evidence.vector_ranks is not None and memory in evidence.cosine:
            semantic = min(1.0, max(0.0, evidence.cosine[memory]))
            if semantic < semantic_threshold:
                continue
        keyword = 0.0
        if memory in evidence.bm25:
            keyword = 1.0 / (1.0 + math.exp(-steepness * (evidence.bm25[memory] - midpoint)))
        rows[memory] = (semantic, keyword, _ENTITY_BOOST * evidence.entities.get(memory, 0.0))
    divisor = 1.0
    divisor += 1.0 if any(keyword for _, keyword, _ in rows.values()) else 0.0
    divisor += _ENTITY_BOOST if any(boost for _, _, boost in rows.values()) else 0.0
    fused = Fused({}, {}, divisor)
    for memory, (semantic, keyword, boost) in rows.items():
        fused.scores[memory] = min(1.0, (semantic + keyword + boost) / divisor)
        fused.terms[memory] = {"semantic": semantic, "keyword": keyword, "entity": boost}
    return fused


def weighted(evidence: Evidence, alpha: float, episode_spread: float) -> Fused:
    """Add alpha * semantic and (1 - alpha) * keyword, and a share of what led up to a memory.

    keyword is BM25 divided by the best of the query, or by half of what a memory that holds every
    word would get where even the best has less: a query whose words are hardly found is decided by
    meaning. semantic is cosine similarity, brought from the mean of the whole store and the best
    of the query to [0, 1]; what is below the mean shares the lowest twentieth. A memory then gains
    episode_spread times the score of the one just before it in its episode, if an engine found
    that.
    """
    found = evidence.found
    best_bm25 = max((evidence.bm25.get(memory, 0.0) for memory in found), default=0.0)
    best_bm25 = max(best_bm25, 0.5 * evidence.bm25_of_all_terms)
    best_cosine = max(evidence.cosine.values(), default=-1.0)
    fused = Fused({}, {})
    for memory in dict.fromkeys([*found, *evidence.followers]):
        keyword = semantic = 0.0
        if best_bm25 > 0:
            keyword = min(1.0, evidence.bm25.get(memory, 0.0) / best_bm25)
        if memory in evidence.cosine:
            semantic = _semantic(evidence.cosine[memory], evidence.mean_cosine, best_cosine)
        fused.scores[memory] = alpha * semantic + (1.0 - alpha) * keyword
        fused.terms[memory] = {"semantic": semantic, "keyword": keyword, "alpha": alpha}
    own, leaders = dict(fused.scores), set(found)
    for memory in fused.scores:
        before = evidence.predecessors.get(memory)
        gain = episode_spread * own[before] if before in leaders else 0.0
        fused.scores[memory] += gain
        fused.terms[memory]["spread"] = gain
    return fused


def _semantic(cosine: float, mean: float, best: float) -> float:
    """Return cosine similarity brought to [0, 1], with the mean of the store at _BELOW_MEAN."""
    if cosine <= mean:
        return _BELOW_MEAN * max(0.0, 1.0 + cosine) / (1.0 + mean) if mean > -1.0 else 0.0
    return _BELOW_MEAN + (1.0 - _BELOW_MEAN) * min(1.0, (cosine - mean) / (best - mean))


def real_weighted(scores: Scores, real: Collection[int], weight: float) -> dict[int, float]:
    """Multiply the scores of memories that were made on a real robot."""
    return {
        memory: score * (weight if memory in real else 1.0) for memory, score in scores.items()
    }


def by_score(scores: Scores) -> list[int]:
    """Return the memories, best score first."""
    return sorted(scores, key=lambda memory: (-scores[memory], memory))


def by_distance(memories: Collection[int], distances: Scores) -> list[int]:
    """Return the memories that have a distance, nearest first."""
    return sorted(
        (memory for memory in memories if memory in distances),
        key=lambda memory: (distances[memory], memory),
    )


def normalised(scores: Sequence[float]) -> list[float]:
    """Scale scores so that the highest is exactly 1; scores that are all 0 all become 1."""
    highest = max(scores, default=0.0)
    if highest <= 0.0:
        return [1.0] * len(scores)
    return [score / highest for score in scores]
