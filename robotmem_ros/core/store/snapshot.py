# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""One moment of the store, as a search sees it: candidates by engine, and facts about them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np

from robotmem_ros.core import chinese, filters
from robotmem_ros.core.filters import Conditions, Place
from robotmem_ros.core.model import Memory
from robotmem_ros.core.store import keywords, places, rows, schema, vectors
from robotmem_ros.core.store.copies import Copies, Moment, Wanted
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.eligibility import Eligibility
from robotmem_ros.core.store.order import Order

NOTHING = Wanted()


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a store holds."""

    memories: int
    superseded: int
    episodes: int
    collections: int
    pending_embeddings: int


class Snapshot:
    """One moment of the store, as a search sees it. Lasts as long as the block that lent it.

    Asking who is eligible begins a new moment, of which everything after it is.
    """

    def __init__(self, connection: Connection, copies: Copies) -> None:
        self._connection = connection
        self._copies = copies
        self._moment: Moment | None = None

    def close(self) -> None:
        """Give back what was taken of the copies in memory."""
        self._copies.release(self)

    def warm(self) -> None:
        """Read into memory what any recall needs, and the Chinese dictionary if the store does."""
        with contextlib.suppress(apsw.SQLError, apsw.CorruptError):  # a recall will tell
            if keywords.has_words_between(self._connection, chinese.FIRST, chinese.LAST):
                chinese.load()
        self._copies.warm(self._connection)

    def eligible(self, conditions: Conditions, wanted: Wanted = NOTHING) -> Eligibility:
        """Return which memories meet the conditions, at a new moment."""
        eligible = self._take(conditions, wanted).eligible
        eligible.plan()
        return eligible

    def by_keywords(self, k: int, eligible: Eligibility) -> list[tuple[int, float]]:
        """Return the k best eligible memories that hold a wanted word, with BM25, best first.

        Raises
        ------
        EngineFailure: the index is missing or broken.
        """
        ranker = self._ranker()
        return ranker.top(k, eligible) if ranker is not None else []

    def bm25(self, ids: Sequence[int]) -> dict[int, float]:
        """Return BM25 (higher is better) of those memories that hold one of the wanted words."""
        ranker = self._ranker()
        return ranker.scores(ids) if ranker is not None else {}

    def bm25_of_all(self) -> float:
        """Return BM25 of a memory of average length that holds each wanted word once."""
        ranker = self._ranker()
        return ranker.score_of_all if ranker is not None else 0.0

    def by_vector(
        self, query: vectors.Vector, k: int, eligible: Eligibility, exact: bool = False
    ) -> list[tuple[int, float]]:
        """Return the k nearest eligible memories, with cosine similarity, nearest first.

        Raises
        ------
        EngineFailure: the table is missing or broken.
        """
        return vectors.top(self._connection, self._vectors(), query, k, eligible, exact)

    def similarities(self, query: vectors.Vector, ids: Sequence[int]) -> dict[int, float]:
        """Return the cosine similarity of those memories that have a vector."""
        return vectors.similarities(self._connection, query, ids)

    def mean_similarity(self, query: vectors.Vector) -> float:
        """Return the mean cosine similarity of all vectors."""
        return self._vectors().mean_similarity(query)

    def _take(self, conditions: Conditions, wanted: Wanted) -> Moment:
        self._moment = self._copies.take(self._connection, self, conditions, wanted)
        return self._moment

    def _ranker(self) -> keywords.Ranker | None:
        ranker = None if self._moment is None else self._moment.ranker
        if isinstance(ranker, Exception):
            raise ranker
        return ranker

    def _vectors(self) -> vectors.Vectors:
        found = None if self._moment is None else self._moment.vectors
        if isinstance(found, Exception):
            raise found
        if found is None:
            raise ValueError("no vectors were wanted when this moment began")
        return found

    def keep(self, eligible: Eligibility, ids: Sequence[int]) -> list[int]:
        """Return those memories that are eligible, in the same order."""
        return [int(number) for number in eligible.keep(np.array(ids, np.int64))]

    def memories(
        self, ids: Sequence[int], decay_rate: float = 0.0, now: int = 0
    ) -> dict[int, Memory]:
        """Return those memories that exist, by number, with their effective confidence."""
        found = self._connection.execute(
            f"SELECT {rows.COLUMNS} FROM json_each(?) AS j "
            f"CROSS JOIN memories AS m ON m.id = j.value {rows.JOINS}",
            (json.dumps(list(ids)),),
        )
        return {row[0]: rows.memory(row, decay_rate, now) for row in found}

    def ids_of(self, uuid_texts: Sequence[str]) -> dict[str, int]:
        """Return the numbers of those uuids that are stored."""
        found: Any = self._connection.execute(
            "SELECT m.uuid, m.id FROM json_each(?) AS j CROSS JOIN memories AS m "
            "ON m.uuid = j.value",
            (json.dumps(list(uuid_texts)),),
        )
        return dict(found)

    def in_order(self, eligible: Eligibility, n: int, newest_first: bool) -> list[int]:
        """Return the first n eligible memories in the order they happened, or the last n."""
        stamps = eligible.facts.stamp
        numbers = np.arange(len(stamps))
        if newest_first:
            order = Order(numbers[::-1], -stamps[::-1], lambda ids: len(stamps) - 1 - ids, 0.0)
        else:
            order = Order(numbers, stamps, lambda ids: ids, 0.0)
        found = order.first_eligible(n, eligible)
        found = found[np.lexsort((found, stamps[found]))]
        return [int(number) for number in (found[::-1] if newest_first else found)[:n]]

    def nearest(self, eligible: Eligibility, place: Place, n: int) -> list[int]:
        """Return the eligible memories made nearest to a place, n and some more, in any order."""
        poses = None if self._moment is None else self._moment.poses
        if poses is None:
            return []
        distances = poses.distances(place)
        order = Order(np.arange(len(distances)), distances, lambda ids: ids, 0.0)
        # Some more, as the distances are rounded.
        return [int(number) for number in order.first_eligible(2 * n + 50, eligible)]

    def distances(self, place: Place, ids: Sequence[int]) -> dict[int, float]:
        """Return the distance in metres from a place to those memories that have a position."""
        found: dict[int, float] = {}
        for number, frame_id, x, y, z, context in self._connection.execute(
            "SELECT m.id, m.frame_id, m.x, m.y, m.z, "
            "CASE WHEN ? THEN (SELECT context FROM texts WHERE memory_id = m.id) END "
            "FROM json_each(?) AS j CROSS JOIN memories AS m ON m.id = j.value",
            (place.frame_id is None, json.dumps(list(ids))),
        ):
            distance: float | None = None
            if place.frame_id is None:
                distance = filters.distance_to_field(rows.context(context), place)
            elif frame_id == place.frame_id:
                distance = filters.distance((x, y, z), place.target)
            if distance is not None:
                found[number] = distance
        return found

    def all_ids(self, eligible: Eligibility) -> Sequence[int]:
        """Return all eligible memories, however many."""
        return [int(number) for number in eligible.all_ids()]

    def around(self, place: Place) -> list[int]:
        """Return all memories with a pose near a place, and maybe some a little farther."""
        source = places.source(self._connection, place)
        return [row[0] for row in self._connection.execute(*source)] if source else []

    def positions(
        self, conditions: Conditions, ids: Sequence[int]
    ) -> dict[int, tuple[float, float, float]]:
        """Return where those of some memories were made that meet conditions and have a pose."""
        eligible = self._take(conditions, NOTHING).eligible
        found: Any = self._connection.execute(
            "SELECT m.id, m.x, m.y, m.z FROM json_each(?) AS j CROSS JOIN memories AS m "
            "ON m.id = j.value WHERE m.frame_id NOT NULL",
            (json.dumps(self.keep(eligible, ids)),),
        )
        return {row[0]: row[1:] for row in found}

    def placed(self, n: int, alive_at: int) -> list[int]:
        """Return the newest n memories that have a pose, newest first; n may be 0.

        Parameters
        ----------
        alive_at: they have not expired then, ROS time in nanoseconds; 0 means whenever.
        """
        # Among the newest only: where nothing has a pose, a million would be read in vain.
        found = self._connection.execute(
            "SELECT id FROM (SELECT id, stamp, frame_id, superseded_by, expires FROM memories "
            "ORDER BY stamp DESC, id DESC LIMIT 100000) WHERE frame_id IS NOT NULL "
            "AND superseded_by IS NULL AND (expires = 0 OR expires > ?) "
            "ORDER BY stamp DESC, id DESC LIMIT ?",
            (alive_at, n),
        )
        return [row[0] for row in found]

    def changed_since(self, change: int) -> tuple[int, set[int] | None]:
        """Return the number of the last change of all, and which memories changed after another.

        None in place of these stands for all of them, as it does after the change -1.
        """
        if change >= 0:
            return schema.changes_since(self._connection, "document_changes", change)
        return self._connection.execute("SELECT max(seq) FROM document_changes").get or 0, None

    def neighbours(self, ids: Sequence[int], before: bool) -> dict[int, int]:
        """Return for each memory the one just before it, or just after it, in its episode."""
        compare, order = ("<", "DESC") if before else (">", "ASC")
        found = self._connection.execute(
            "SELECT m.id, (SELECT p.id FROM memories AS p WHERE p.session_id = m.session_id "
            f"AND p.superseded_by IS NULL AND (p.stamp, p.id) {compare} (m.stamp, m.id) "
            f"ORDER BY p.stamp {order}, p.id {order} LIMIT 1) "
            "FROM json_each(?) AS j CROSS JOIN memories AS m ON m.id = j.value "
            "WHERE m.session_id IS NOT NULL",
            (json.dumps(list(ids)),),
        )
        return {number: other for number, other in found if other is not None}

    def linked(self, names: Sequence[str], ids: Sequence[int]) -> dict[int, float]:
        """Return for each memory the share of some names that it is linked to, where not 0."""
        if not names:
            return {}
        found = self._connection.execute(
            "SELECT l.memory_id, count(*) FROM json_each(?) AS n "
            "JOIN entities AS e ON e.name = n.value CROSS JOIN json_each(?) AS j "
            "JOIN memory_entities AS l ON l.entity_id = e.id AND l.memory_id = j.value "
            "GROUP BY l.memory_id",
            (json.dumps(list(names)), json.dumps(list(ids))),
        )
        return {number: count / len(names) for number, count in found}

    def unindexed(self) -> int:
        """Return how many memories wait to be indexed."""
        return keywords.unindexed(self._connection)

    def keyword_problem(self) -> str:
        """Return why keyword search cannot work, or ""."""
        return keywords.problem(self._connection)

    def vector_problem(self) -> str:
        """Return why vector search cannot work, or ""."""
        return vectors.problem(self._connection)

    def made_on_real_robot(self, ids: Sequence[int]) -> set[int]:
        """Return those memories whose context says env.sim_or_real == "real"."""
        found = self._connection.execute(
            "SELECT t.memory_id FROM json_each(?) AS j CROSS JOIN texts AS t "
            "ON t.memory_id = j.value "
            "WHERE CASE WHEN json_valid(t.context) "  # it is not on a worn disk
            "THEN json_extract(t.context, '$.env.sim_or_real') = 'real' END",
            (json.dumps(list(ids)),),
        )
        return {row[0] for row in found}

    def model(self) -> str:
        """Return the model that the vectors are of; "" before the first."""
        try:
            return str(self._connection.execute("SELECT model FROM embedder").get or "")
        except apsw.SQLError:
            return ""  # its table is gone, so nothing tells

    def has_collection(self, name: str) -> bool:
        """Return whether a collection holds any memory."""
        sql = "SELECT 1 FROM collections WHERE name = ? AND memories"
        return self._connection.execute(sql, (name,)).get is not None

    def has_session(self, session_id: str) -> bool:
        """Return whether a session is known, by its memories or as an episode."""
        sql = "SELECT 1 FROM sessions WHERE session_id = ?"
        return self._connection.execute(sql, (session_id,)).get is not None

    def counts(self) -> Counts:
        """Return how much the store holds."""
        execute = self._connection.execute
        total, superseded, collections = execute(
            "SELECT total(memories), total(superseded), count(*) FROM collections WHERE memories"
        ).get
        return Counts(
            memories=int(total - superseded),
            superseded=int(superseded),
            episodes=execute("SELECT count(*) FROM sessions WHERE opened").get,
            collections=collections,
            pending_embeddings=execute("SELECT count(*) FROM unembedded").get,
        )
