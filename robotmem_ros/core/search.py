# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The way from a query to the memories that matter, one function per stage.

The conditions come first and bind both engines, so that what is cut later is never the only match.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from robotmem_ros.core import checks, entities, filters, ranking
from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import InvalidRequestError, SearchError
from robotmem_ros.core.filters import Conditions, Place
from robotmem_ros.core.model import EVERY_COLLECTION, REPLAY, Fusion, Json, Mode, Query
from robotmem_ros.core.ranking import Evidence, Fused
from robotmem_ros.core.store import EngineFailure, Snapshot, Wanted
from robotmem_ros.core.store.eligibility import Eligibility
from robotmem_ros.core.store.vectors import Vector
from robotmem_ros.core.text import MAX_QUERY_TERMS, query_terms

_LEAST_ADAPTIVE = 60  # candidates per engine


@dataclass(frozen=True, slots=True)
class Request:
    """A query that was checked."""

    text: str
    n: int
    conditions: Conditions
    fusion: Fusion
    explain: bool
    exact: bool
    note: str = ""

    @property
    def is_replay(self) -> bool:
        """Whether memories are wanted in order, unranked."""
        return self.text == REPLAY


@dataclass(slots=True)
class Ranking:
    """The numbers of the memories of an answer, in order, with what is known of each."""

    ids: list[int]
    mode: Mode
    scores: list[float] = field(default_factory=list)
    distances: dict[int, float] = field(default_factory=dict)
    details: dict[int, dict[str, Json]] = field(default_factory=dict)


def check(query: Query, config: Config, ros_time: int, wall_time: int) -> Request:
    """Return the query with its defaults filled in.

    Raises
    ------
    InvalidRequestError: a field has a value that cannot be used.
    """
    checks.instance("query", Query, query)
    text = checks.text("query", query.text).strip()
    if not text:
        raise InvalidRequestError("query", 'is empty; write what to look for, or "*" for a replay')
    if len(text.encode("utf-8", "replace")) > config.max_content_bytes:
        raise InvalidRequestError(
            "query", f"is longer than {config.max_content_bytes} bytes (max_content_bytes)"
        )
    n = checks.integer("n", query.n)
    min_confidence = checks.share("min_confidence", query.min_confidence)
    since, until = checks.time("since", query.since), checks.time("until", query.until)
    if since and until and until < since:
        raise InvalidRequestError("until", "is before since")
    limits = (config.max_context_bytes, config.max_context_depth)
    place = filters.parse_spatial_sort(query.spatial_sort, *limits)
    if query.near is not None:
        if place is not None:
            raise InvalidRequestError("near", "cannot be combined with spatial_sort; choose one")
        place = filters.place_near(query.near)
    collection = checks.clean("collection", query.collection) or config.collection
    conditions = Conditions(
        collection=None if collection == EVERY_COLLECTION else collection,
        session_id=checks.clean("session_id", query.session_id) or None,
        since=since,
        until=until,
        min_confidence=min_confidence,
        decay_rate=config.decay_rate,
        wall_time=wall_time,
        alive_at=None if query.show_expired else ros_time,
        tests=filters.parse_context_filter(query.context_filter, *limits),
        place=place,
    )
    return Request(
        text=text,
        n=min(config.max_results, max(1, n)),
        conditions=conditions,
        fusion=checks.choice("fusion", Fusion, query.fusion or config.fusion),
        explain=query.explain,
        exact=config.exact if query.exact is None else query.exact,
        note=""
        if 1 <= n <= config.max_results
        else f"n: {checks.shown(n)} was held to 1..{config.max_results}",
    )


def note(snapshot: Snapshot, request: Request, found: int) -> str:
    """Return what the caller may not expect of an answer, or ""."""
    notes = [request.note] if request.note else []
    if not request.is_replay and len(query_terms(request.text, MAX_QUERY_TERMS + 1)) > (
        MAX_QUERY_TERMS
    ):
        notes.append(f"query: only its first {MAX_QUERY_TERMS} words were looked up")
    waiting = 0 if request.is_replay else snapshot.unindexed()
    if waiting:
        notes.append(f"the index is being made anew; words do not find {waiting} memories yet")
    collection, session = request.conditions.collection, request.conditions.session_id
    if not found and collection is not None and not snapshot.has_collection(collection):
        notes.append(f"collection: {collection!r} holds no memory")
    elif not found and session is not None and not snapshot.has_session(session):
        notes.append(f"session_id: {session!r} is not known")
    return "; ".join(notes)


def replay(snapshot: Snapshot, request: Request) -> Ranking:
    """Return memories in the order they happened, the newest, or the nearest, unranked."""
    conditions = request.conditions
    if conditions.place is not None:
        ids, distances = _nearest(snapshot, conditions, conditions.place, request.n)
    else:
        eligible = snapshot.eligible(conditions)
        newest_first = conditions.session_id is None
        ids, distances = snapshot.in_order(eligible, request.n, newest_first), {}
    return Ranking(ids, Mode.REPLAY, [1.0] * len(ids), distances)


def rank(
    snapshot: Snapshot, request: Request, query_vector: Vector | None, config: Config
) -> Ranking:
    """Return the memories that match a query best.

    Parameters
    ----------
    query_vector: of the query's text, from the model of the store; None if there is none.

    Raises
    ------
    SearchError: neither engine works.
    """
    conditions = request.conditions
    terms = query_terms(request.text)
    wanted = Wanted(terms, query_vector is not None, request.exact)
    eligible = snapshot.eligible(conditions, wanted)
    evidence, mode = _find(snapshot, request, query_vector, eligible, len(terms))
    evidence = _complete(snapshot, request, query_vector, eligible, evidence, config)
    fused = _fuse(request.fusion, evidence, config)
    candidates = list(fused.scores)
    real = snapshot.made_on_real_robot(candidates)
    scores = ranking.real_weighted(fused.scores, real, config.real_weight)
    order = ranking.by_score(scores)
    distances: dict[int, float] = {}
    if conditions.place is not None:
        distances = snapshot.distances(conditions.place, candidates)
        order = ranking.by_distance(order, distances)
    order = order[: request.n]
    final = ranking.normalised([scores[memory] for memory in order])
    result = Ranking(order, mode, final, distances)
    if request.explain:
        result.details = _explain(request, evidence, fused, real, scores, order, config)
    return result


def _find(
    snapshot: Snapshot,
    request: Request,
    query_vector: Vector | None,
    eligible: Eligibility,
    terms: int,
) -> tuple[Evidence, Mode]:
    """Let both engines look for candidates; each may fail alone."""
    k = (4 if request.conditions.narrow else 2) * request.n
    if request.fusion is Fusion.ADAPTIVE:
        k = max(4 * request.n, _LEAST_ADAPTIVE)
    by_keyword: list[tuple[int, float]] | None = None
    by_vector: list[tuple[int, float]] | None = None
    try:
        by_keyword = snapshot.by_keywords(k, eligible)
    except EngineFailure as error:
        if query_vector is None:
            raise SearchError(f"no engine can search: {error}; call ~/reindex") from error
    if query_vector is not None:
        try:
            by_vector = snapshot.by_vector(query_vector, k, eligible, request.exact)
        except EngineFailure as error:
            if by_keyword is None:
                raise SearchError(f"no engine can search: {error}; call ~/reindex") from error
    evidence = Evidence(
        keyword_ranks=None if by_keyword is None else [memory for memory, _ in by_keyword],
        vector_ranks=None if by_vector is None else [memory for memory, _ in by_vector],
        bm25=dict(by_keyword or ()),
        cosine=dict(by_vector or ()),
        terms=terms,
    )
    if by_vector is None or (by_keyword and not by_vector):
        mode = Mode.BM25_ONLY
    elif by_keyword is None or (by_vector and not by_keyword):
        mode = Mode.VEC_ONLY
    else:
        mode = Mode.HYBRID
    return evidence, mode


def _complete(
    snapshot: Snapshot,
    request: Request,
    query_vector: Vector | None,
    eligible: Eligibility,
    evidence: Evidence,
    config: Config,
) -> Evidence:
    """Give each candidate of one engine its score in the other, and what else the fusion needs."""
    if request.fusion is Fusion.RRF:
        return evidence
    found = evidence.found
    followers: Sequence[int] = ()
    predecessors: dict[int, int] = {}
    linked: dict[int, float] = {}
    if request.fusion is Fusion.ADAPTIVE:
        names = entities.from_text(request.text)[: entities.MAX_QUERY_ENTITIES]
        linked = snapshot.linked(names, found)
    elif config.episode_spread > 0:
        after = snapshot.neighbours(found, before=False)
        followers = snapshot.keep(eligible, sorted(set(after.values()) - set(found)))
        predecessors = {later: earlier for earlier, later in after.items()}
    candidates = [*found, *followers]
    bm25, cosine = dict(evidence.bm25), dict(evidence.cosine)
    bm25_of_all = mean_cosine = 0.0
    if evidence.keyword_ranks is not None:
        bm25 |= snapshot.bm25([memory for memory in candidates if memory not in bm25])
        bm25_of_all = snapshot.bm25_of_all()
    if evidence.vector_ranks is not None and query_vector is not None:
        missing = [memory for memory in candidates if memory not in cosine]
        cosine |= snapshot.similarities(query_vector, missing)
        mean_cosine = snapshot.mean_similarity(query_vector)
    return dataclasses.replace(
        evidence,
        bm25=bm25,
        cosine=cosine,
        bm25_of_all_terms=bm25_of_all,
        mean_cosine=mean_cosine,
        followers=followers,
        predecessors=predecessors,
        entities=linked,
    )


def _fuse(fusion: Fusion, evidence: Evidence, config: Config) -> Fused:
    if fusion is Fusion.RRF:
        return ranking.rrf(evidence, config.rrf_k)
    if fusion is Fusion.ADAPTIVE:
        return ranking.adaptive(evidence, config.semantic_threshold)
    return ranking.weighted(evidence, config.weighted_alpha, config.episode_spread)


def _explain(
    request: Request,
    evidence: Evidence,
    fused: Fused,
    real: set[int],
    scores: dict[int, float],
    order: list[int],
    config: Config,
) -> dict[int, dict[str, Json]]:
    """Return, for each memory of the answer, all that its score was computed from."""
    best = max((scores[memory] for memory in order), default=0.0)

    def engine(
        ranks: Sequence[int] | None, name: str, values: ranking.Scores, memory: int
    ) -> Json:
        if ranks is None:
            return None
        return {
            "rank": ranks.index(memory) if memory in ranks else None,
            name: values.get(memory),
        }

    return {
        memory: {
            "fusion": request.fusion.value,
            "keyword": engine(evidence.keyword_ranks, "bm25", evidence.bm25, memory),
            "vector": engine(evidence.vector_ranks, "cosine", evidence.cosine, memory),
            "bm25_of_all_terms": evidence.bm25_of_all_terms,
            "mean_cosine": evidence.mean_cosine,
            "terms": fused.terms[memory],
            "divisor": fused.divisor,
            "fused": fused.scores[memory],
            "weight": config.real_weight if memory in real else 1.0,
            "weighted": scores[memory],
            "best": best,
        }
        for memory in order
    }


def _nearest(
    snapshot: Snapshot, conditions: Conditions, place: Place, n: int
) -> tuple[list[int], dict[int, float]]:
    """Return the n nearest memories; to a field, looks near first, then farther for enough."""
    if place.frame_id is not None:
        near = snapshot.nearest(snapshot.eligible(conditions), place, n)
        distances = snapshot.distances(place, near)
        return ranking.by_distance(distances.keys(), distances)[:n], distances
    radius = min(0.5, place.max_distance)
    while True:
        around = dataclasses.replace(place, max_distance=radius)
        eligible = snapshot.eligible(dataclasses.replace(conditions, place=around))
        distances = snapshot.distances(place, snapshot.all_ids(eligible))
        if len(distances) >= n or radius >= place.max_distance:
            return ranking.by_distance(distances.keys(), distances)[:n], distances
        radius = min(radius * 4 if radius < 1e7 else math.inf, place.max_distance)
