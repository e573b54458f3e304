# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Recall as the specification words it, slow and obvious: what the real search must equal.

Everything is a plain list of memories that is walked from end to end. Only the cutting of text
into words and names is taken from the product.
"""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robotmem_ros.core import entities
from robotmem_ros.core.config import Config
from robotmem_ros.core.model import Near, Pose, Query
from robotmem_ros.core.text import index_tokens, query_terms

DAY = 86_400 * 10**9
MISSING = object()

Path = tuple[Any, ...]


@dataclass(frozen=True)
class Condition:
    """One condition of a context_filter: operator and operand for the value at a path."""

    path: Path
    operator: str
    operand: Any


@dataclass(frozen=True)
class Sort:
    """A spatial_sort."""

    path: Path
    target: list[float]
    max_distance: float = math.inf


@dataclass
class Entry:
    """One memory."""

    id: int
    content: str
    context: dict[str, Any]
    collection: str = "default"
    session_id: str = ""
    confidence: float = 0.9
    stamp: int = 1
    pose: Pose | None = None
    expires: int = 0
    last_access: int = 0
    superseded: bool = False
    vector: np.ndarray | None = None

    @property
    def words(self) -> list[str]:
        return _words(self.content, tuple(entities.from_context(self.context)))

    @property
    def names(self) -> set[str]:
        return {*entities.from_context(self.context), *entities.from_text(self.content)}

    @property
    def identity(self) -> Any:
        """What two memories must share to be one."""
        text = json.dumps(self.context, sort_keys=True)
        pose = self.pose and (self.pose.frame_id, self.pose.position, self.pose.orientation)
        return self.content, text, self.collection, self.session_id, repr(pose)


@dataclass
class Answer:
    """What a recall must return; scores holds all candidates, not only those returned."""

    ids: list[int]
    mode: str
    scores: dict[int, float]
    highest: float = 1.0
    distances: dict[int, float] = field(default_factory=dict)
    eligible: list[int] = field(default_factory=list)
    reachable: int = 0
    bm25: dict[int, float] = field(default_factory=dict)
    cosine: dict[int, float] = field(default_factory=dict)
    bm25_of_all_terms: float = 0.0
    mean_cosine: float = 0.0
    divisor: float = 1.0

    def score(self, memory: int) -> float:
        """Return the score that a memory must have in the answer."""
        return self.scores[memory] / self.highest if self.highest > 0 else 1.0


class ReferenceMemory:
    """The whole memory in one list."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._last_id = 0

    def learn(self, entry: Entry) -> tuple[int, bool]:
        for known in self.entries:
            alive = known.expires == 0 or known.expires > entry.stamp
            if known.identity == entry.identity and not known.superseded and alive:
                known.last_access = max(known.last_access, entry.last_access)
                known.confidence = max(known.confidence, entry.confidence)
                never = known.expires == 0 or entry.expires == 0
                known.expires = 0 if never else max(known.expires, entry.expires)
                return known.id, False
        self._last_id += 1
        self.entries.append(replace(entry, id=self._last_id))
        return self._last_id, True

    def get(self, number: int) -> Entry:
        return next(entry for entry in self.entries if entry.id == number)

    def update(self, number: int, content: str | None, context: dict[str, Any] | None) -> None:
        entry = self.get(number)
        if content is not None and content != entry.content:
            entry.content, entry.vector = content, None
        if context is not None:
            entry.context = context

    def forget(self, number: int) -> None:
        self.entries.remove(self.get(number))

    def recall(
        self,
        query: Query,
        conditions: list[Condition],
        sort: Sort | None,
        vector: np.ndarray | None,
        config: Config,
        ros_time: int,
        wall_time: int,
        mean_cosine: float | None = None,
    ) -> Answer:
        n = min(100, max(1, query.n))
        distances: dict[int, float] = {}
        eligible = []
        for entry in self.entries:
            distance = _distance(entry, query.near, sort)
            if distance is not None:
                distances[entry.id] = distance
            if self._is_eligible(entry, query, conditions, config, ros_time, wall_time) and (
                (query.near is None and sort is None) or _is_near(distance, query.near, sort)
            ):
                eligible.append(entry)
        spatial = query.near is not None or sort is not None
        if query.text == "*":
            answer = self._replay(query, eligible, distances if spatial else None, n)
        else:
            narrow = bool(query.session_id or query.since or query.until or conditions or spatial)
            answer = self._rank(query, eligible, vector, config, n, narrow, mean_cosine)
            order = sorted(answer.scores, key=lambda number: (-answer.scores[number], number))
            if spatial:
                order.sort(key=lambda number: (distances[number], number))
            answer.ids = order[:n]
            answer.highest = max((answer.scores[number] for number in answer.ids), default=1.0)
        answer.distances = distances if spatial else {}
        answer.eligible = [entry.id for entry in eligible]
        return answer

    def _is_eligible(
        self,
        entry: Entry,
        query: Query,
        conditions: list[Condition],
        config: Config,
        ros_time: int,
        wall_time: int,
    ) -> bool:
        collection = query.collection or config.collection
        effective = effective_confidence(entry, config.decay_rate, wall_time)
        return (
            not entry.superseded
            and collection in ("*", entry.collection)
            and (not query.session_id or query.session_id == entry.session_id)
            and (not query.since or entry.stamp >= query.since)
            and (not query.until or entry.stamp <= query.until)
            and (query.show_expired or not entry.expires or entry.expires > ros_time)
            and effective >= query.min_confidence
            and all(holds(condition, entry.context) for condition in conditions)
        )

    def _replay(
        self, query: Query, eligible: list[Entry], distances: dict[int, float] | None, n: int
    ) -> Answer:
        if distances is not None:
            order = sorted(eligible, key=lambda entry: (distances[entry.id], entry.id))
        elif query.session_id:
            order = sorted(eligible, key=lambda entry: (entry.stamp, entry.id))
        else:
            order = sorted(eligible, key=lambda entry: (-entry.stamp, -entry.id))
        ids = [entry.id for entry in order[:n]]
        return Answer(ids, "replay", dict.fromkeys(ids, 1.0), reachable=len(eligible))

    def _rank(
        self,
        query: Query,
        eligible: list[Entry],
        vector: np.ndarray | None,
        config: Config,
        n: int,
        narrow: bool,
        mean_cosine: float | None,
    ) -> Answer:
        fusion = query.fusion.value if query.fusion else config.fusion
        terms = query_terms(query.text)
        k = (4 if narrow else 2) * n
        if fusion == "adaptive":
            k = max(4 * n, 60)
        all_bm25, weights = self.bm25(terms), self.idf(terms)
        bm25 = {entry.id: all_bm25[entry.id] for entry in eligible if entry.id in all_bm25}
        cosine = {}
        if vector is not None:
            for entry in eligible:
                if entry.vector is not None:
                    cosine[entry.id] = cosine_similarity(entry.vector, vector)
        by_keyword = sorted(bm25, key=lambda number: (-bm25[number], number))[:k]
        by_vector = sorted(cosine, key=lambda number: (-cosine[number], number))[:k]
        if vector is None or (by_keyword and not by_vector):
            mode = "bm25_only"
        elif by_vector and not by_keyword:
            mode = "vec_only"
        else:
            mode = "hybrid"
        found = [*by_keyword, *(number for number in by_vector if number not in by_keyword)]
        answer = Answer([], mode, {}, bm25=bm25, cosine=cosine)
        answer.bm25_of_all_terms = sum(weights.values())
        if vector is not None:
            answer.mean_cosine = self.mean_cosine(vector) if mean_cosine is None else mean_cosine
        answer.reachable = len(set(bm25) | set(cosine))
        if fusion == "rrf":
            for ranks in (by_keyword, by_vector):
                for rank, number in enumerate(ranks):
                    gain = 1.0 / (config.rrf_k + rank + 1)
                    answer.scores[number] = answer.scores.get(number, 0.0) + gain
        elif fusion == "adaptive":
            self._adaptive(query, found, len(terms), answer, config.semantic_threshold)
        else:
            self._weighted(found, eligible, answer, config.weighted_alpha, config.episode_spread)
        for number in answer.scores:
            env = self.get(number).context.get("env")
            if isinstance(env, dict) and env.get("sim_or_real") == "real":
                answer.scores[number] *= config.real_weight
        return answer

    def _adaptive(
        self, query: Query, found: list[int], terms: int, answer: Answer, threshold: float
    ) -> None:
        asked = entities.from_text(query.text)[:8]
        if terms <= 3:
            midpoint, steepness = 5.0, 0.7
        elif terms <= 6:
            midpoint, steepness = 7.0, 0.6
        elif terms <= 9:
            midpoint, steepness = 9.0, 0.5
        elif terms <= 15:
            midpoint, steepness = 10.0, 0.5
        else:
            midpoint, steepness = 12.0, 0.5
        parts = {}
        for number in found:
            semantic = 0.0
            if number in answer.cosine:
                semantic = max(0.0, answer.cosine[number])
                if semantic < threshold:
                    continue
            keyword = 0.0
            if number in answer.bm25:
                keyword = 1 / (1 + math.exp(-steepness * (answer.bm25[number] - midpoint)))
            shared = sum(name in self.get(number).names for name in asked)
            entity = 0.5 * shared / len(asked) if asked else 0.0
            parts[number] = (semantic, keyword, entity)
        if any(keyword > 0 for _, keyword, _ in parts.values()):
            answer.divisor += 1.0
        if any(entity > 0 for _, _, entity in parts.values()):
            answer.divisor += 0.5
        for number, signals in parts.items():
            answer.scores[number] = min(1.0, sum(signals) / answer.divisor)

    def _weighted(
        self,
        found: list[int],
        eligible: list[Entry],
        answer: Answer,
        alpha: float,
        spread: float,
    ) -> None:
        best = max((answer.bm25[number] for number in found if number in answer.bm25), default=0.0)
        best = max(best, 0.5 * answer.bm25_of_all_terms)
        nearest = max(
            (answer.cosine[number] for number in found if number in answer.cosine), default=-1
        )
        mean = answer.mean_cosine

        def own(number: int) -> float:
            keyword = min(1.0, answer.bm25.get(number, 0.0) / best) if best else 0.0
            semantic = 0.0
            if number in answer.cosine:
                cosine = answer.cosine[number]
                if cosine > mean:
                    semantic = 0.05 + 0.95 * (cosine - mean) / (nearest - mean)
                elif mean > -1:
                    semantic = 0.05 * (1 + cosine) / (1 + mean)
            return alpha * semantic + (1 - alpha) * keyword

        allowed = {entry.id for entry in eligible}
        gains: dict[int, float] = {}
        if spread > 0:
            for number in found:
                after = self._next_in_episode(number)
                if after is not None and after in allowed:
                    gains[after] = spread * own(number)
        for number in {*found, *gains}:
            answer.scores[number] = own(number) + gains.get(number, 0.0)

    def _next_in_episode(self, number: int) -> int | None:
        entry = self.get(number)
        if not entry.session_id:
            return None
        later = [
            (other.stamp, other.id)
            for other in self.entries
            if other.session_id == entry.session_id
            and not other.superseded
            and (other.stamp, other.id) > (entry.stamp, entry.id)
        ]
        return min(later)[1] if later else None

    def idf(self, terms: list[str]) -> dict[str, float]:
        """Return the weight of each term by the formula of FTS5."""
        total = len(self.entries)
        weights = {}
        for term in terms:
            holders = sum(term in entry.words for entry in self.entries)
            weight = math.log((total - holders + 0.5) / (holders + 0.5))
            weights[term] = weight if weight > 0 else 1e-6
        return weights

    def bm25(self, terms: list[str]) -> dict[int, float]:
        """Return BM25 of all memories that hold a term, by the formula of FTS5, turned round."""
        documents = {entry.id: entry.words for entry in self.entries}
        mean = sum(map(len, documents.values())) / max(1, len(documents))
        weights = self.idf(terms)
        scores = {}
        for number, words in documents.items():
            counts = Counter(words)
            parts = []
            for term in terms:
                if counts[term]:
                    norm = counts[term] + 1.2 * (1 - 0.75 + 0.75 * len(words) / mean)
                    parts.append(weights[term] * counts[term] * 2.2 / norm)
            if parts:
                scores[number] = math.fsum(parts)
        return scores

    def mean_cosine(self, vector: np.ndarray) -> float:
        """Return the mean cosine similarity of all vectors of the store."""
        every = [
            cosine_similarity(entry.vector, vector)
            for entry in self.entries
            if entry.vector is not None
        ]
        return math.fsum(every) / len(every) if every else 0.0


@functools.lru_cache(maxsize=10_000)
def _words(content: str, names: tuple[str, ...]) -> list[str]:
    return index_tokens(content) + index_tokens(" ".join(names))


def effective_confidence(entry: Entry, decay_rate: float, wall_time: int) -> float:
    days = max(0, wall_time - entry.last_access) // DAY
    return entry.confidence * (1 - decay_rate) ** days


def cosine_similarity(one: np.ndarray, other: np.ndarray) -> float:
    one, other = one.astype(float), other.astype(float)
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def value_at(context: Any, path: Path) -> Any:
    """Return the value at a path; a number written as a plain key may be an index too."""
    value = context
    for step in path:
        if isinstance(value, dict):
            if not isinstance(step, str) or step not in value:
                return MISSING
            value = value[step]
        elif isinstance(value, list):
            if isinstance(step, str):
                if not (step.isascii() and step.isdigit() and str(int(step)) == step):
                    return MISSING
                step = int(step)
            if step >= len(value):
                return MISSING
            value = value[step]
        else:
            return MISSING
    return value


def json_type(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), ((int, float), "number"), (str, "string")):
        if isinstance(value, kind):
            return name
    return "array" if isinstance(value, list) else "object"


def equal(one: Any, other: Any) -> bool:
    if json_type(one) != json_type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(equal(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return set(one) == set(other) and all(equal(one[key], other[key]) for key in one)
    return one == other


def holds(condition: Condition, context: Any) -> bool:
    """Decide one condition of a context_filter."""
    value, operand = value_at(context, condition.path), condition.operand
    if condition.operator == "$exists":
        return (value is not MISSING) == operand
    if value is MISSING:
        return False
    if condition.operator == "$in":
        return any(equal(value, item) for item in operand)
    if condition.operator == "$nin":
        if operand and json_type(value) not in map(json_type, operand):
            return False
        return not any(equal(value, item) for item in operand)
    if json_type(value) != json_type(operand):
        return False
    if condition.operator == "$eq":
        return equal(value, operand)
    if condition.operator == "$ne":
        return not equal(value, operand)
    if condition.operator == "$lt":
        return value < operand
    if condition.operator == "$lte":
        return value <= operand
    if condition.operator == "$gt":
        return value > operand
    assert condition.operator == "$gte"
    return value >= operand


def _distance(entry: Entry, near: Near | None, sort: Sort | None) -> float | None:
    if near is not None:
        if entry.pose is None or entry.pose.frame_id != near.frame_id:
            return None
        return math.dist(entry.pose.position, near.point)
    if sort is None:
        return None
    value = value_at(entry.context, sort.path)
    if not isinstance(value, list) or len(value) != len(sort.target):
        return None
    if any(json_type(item) != "number" for item in value):
        return None
    try:
        point = [float(item) for item in value]
    except OverflowError:  # no double is that large
        return None
    return math.dist(point, sort.target)


def _is_near(distance: float | None, near: Near | None, sort: Sort | None) -> bool:
    if distance is None:
        return False
    if near is not None:
        return not near.radius or distance <= near.radius
    return sort is None or distance <= sort.max_distance
