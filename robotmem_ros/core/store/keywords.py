# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Keyword search: an FTS5 index over the words of the memories, ranked by BM25.

The scores are those of FTS5's own bm25() with the sign turned, computed from the same postings: a
word that most memories hold would cost FTS5 a look at each of them. Where there are more than
MANY documents, words that stand in half of them or more are not looked up as long as rarer ones
find enough, unless few memories are eligible; BM25 gives them a weight of 0.000001. An exact
search looks up all words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from robotmem_ros.core import entities
from robotmem_ros.core.model import Context
from robotmem_ros.core.store import schema
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.eligibility import Eligibility
from robotmem_ros.core.store.order import Ids, Order
from robotmem_ros.core.store.words import Hits, WordCopy
from robotmem_ros.core.text import index_tokens

MANY = 20_000

_K1, _B = 1.2, 0.75  # of BM25, as FTS5 has them
_TABULATED = 10_000  # documents
_LEAST_IDF = 1e-6  # what FTS5 gives a word that stands in half of all documents or more


def add(connection: apsw.Connection, memory_id: int, content: str, context: Context) -> None:
    """Index a memory by its words and by the names in its context."""
    words = index_tokens(content)
    names = index_tokens(" ".join(entities.from_context(context)))
    document = (memory_id, " ".join(words), " ".join(names))
    length = len(words) + len(names)
    connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?)", (*document, length))
    connection.execute(
        "INSERT INTO keywords (rowid, content, entities) VALUES (?, ?, ?)", document
    )
    connection.execute(
        "UPDATE corpus SET documents = documents + 1, tokens = tokens + ?", (length,)
    )
    schema.log_change(connection, "document_changes", memory_id)


def remove(connection: apsw.Connection, memory_id: int) -> None:
    """Take a memory out of the index."""
    document = connection.execute(
        "SELECT memory_id, content, entities, length FROM documents WHERE memory_id = ?",
        (memory_id,),
    ).get
    if document is None:
        return
    connection.execute(
        "INSERT INTO keywords (keywords, rowid, content, entities) VALUES ('delete', ?, ?, ?)",
        document[:3],
    )
    connection.execute("DELETE FROM documents WHERE memory_id = ?", (memory_id,))
    connection.execute(
        "UPDATE corpus SET documents = documents - 1, tokens = tokens - ?", document[3:]
    )
    schema.log_change(connection, "document_changes", memory_id)


def has_words_between(connection: apsw.Connection, first: str, last: str) -> bool:
    """Return whether any memory holds a word in a range of the alphabet."""
    found = connection.execute(
        "SELECT 1 FROM words WHERE term >= ? AND term <= ? LIMIT 1", (first, last)
    ).get
    return found is not None


def unindexed(connection: apsw.Connection) -> int:
    """Return how many memories wait to be indexed."""
    count: Any = connection.execute("SELECT count(*) FROM unindexed").get
    return int(count)


def problem(connection: apsw.Connection) -> str:
    """Return why keyword search cannot work, or "" if it can."""
    try:
        _probe(connection)
    except apsw.SQLError as error:
        return f"the keyword index is broken ({error}); call ~/reindex"
    waiting = unindexed(connection)
    return f"the index is being made anew: {waiting} memories to go" if waiting else ""


class Ranker:
    """BM25 for the words of one query, at one moment of the database.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
    """

    def __init__(
        self, connection: Connection, copy: WordCopy, terms: Sequence[str], exact: bool
    ) -> None:
        _probe(connection)
        self._connection = connection
        self._copy = copy
        self._terms = terms
        self._documents, self._tokens = _corpus(connection)
        self._skips_common = self._documents > MANY and not exact
        self._hits, self._lengths = self._look_up()
        self._all_scores: npt.NDArray[np.float64] | None = None  # of every memory, once needed

    @property
    def score_of_all(self) -> float:
        """BM25 of a memory of average length that holds each word once."""
        return sum(self._weights.values())

    def top(self, k: int, eligible: Eligibility) -> list[tuple[int, float]]:
        """Return the k best eligible memories that hold a word, with their BM25, best first."""
        if eligible.ids is None:
            found = self._top(k, eligible)
            if len(found) == k or not self._skips_common:
                return found
        # Too few hold a rare word: those that hold a common one are needed too. Among few
        # memories that takes no time.
        if self._skips_common:
            self._skips_common = False
            self._hits, _ = self._look_up()  # the lengths may be of a later moment by now
            self._all_scores = None
        return self._top(k, eligible)

    def scores(self, ids: Sequence[int]) -> dict[int, float]:
        """Return BM25 of those memories that hold a word."""
        numbers = np.array(ids, np.int64)
        numbers = numbers[numbers < len(self._lengths)]
        scores = self._scores_of(numbers).tolist()
        return {n: s for n, s in zip(numbers.tolist(), scores, strict=True) if s > 0.0}

    def _top(self, k: int, eligible: Eligibility) -> list[tuple[int, float]]:
        if eligible.ids is None:
            scores = self._scores_of_all()
            held = np.flatnonzero(scores > 0.0)

            def positions(numbers: Ids) -> Ids:
                return np.searchsorted(held, numbers)

            order = Order(held, -scores[held], positions, rounding=0.0)
            numbers = order.first_eligible(k, eligible)
        else:
            numbers = eligible.ids
        numbers = numbers[numbers < len(self._lengths)]
        scores = self._scores_of(numbers)
        best = np.lexsort((numbers, -scores))[:k]
        return [(int(numbers[i]), float(scores[i])) for i in best if scores[i] > 0.0]

    def _look_up(self) -> tuple[dict[str, Hits], npt.NDArray[np.int32]]:
        found = self._copy.look_up(
            self._connection, self._terms, self._documents, self._skips_common
        )
        self._weights = {
            term: _idf(self._documents, hit.frequency) for term, hit in found[0].items()
        }
        return found

    def _scores_of_all(self) -> npt.NDArray[np.float64]:
        """Return BM25 of every memory, by its number."""
        if self._all_scores is not None:
            return self._all_scores
        scores: npt.NDArray[np.float64] = np.zeros(len(self._lengths))
        for term, hit in self._hits.items():
            weight = self._weights[term]
            if hit.dense is None:
                scores[hit.documents] += self._gain(
                    weight, hit.counts, self._lengths[hit.documents]
                )
            else:  # a pass over all is quicker than one from document to document
                size = min(len(hit.dense), len(scores))
                scores[:size] += self._gain(weight, hit.dense[:size], self._lengths[:size])
        self._all_scores = scores
        return scores

    def _scores_of(self, numbers: Ids) -> npt.NDArray[np.float64]:
        """Return BM25 of some memories."""
        if self._all_scores is not None:
            return self._all_scores[numbers]
        scores: npt.NDArray[np.float64] = np.zeros(len(numbers))
        for term, hit in self._hits.items():
            if not len(hit.documents):
                continue
            # Of one type, so that the longer array is not converted.
            places = np.searchsorted(hit.documents, numbers.astype(hit.documents.dtype))
            places[places == len(hit.documents)] = 0
            holds = hit.documents[places] == numbers
            counts, lengths = hit.counts[places[holds]], self._lengths[numbers[holds]]
            scores[holds] += self._gain(self._weights[term], counts, lengths)
        return scores

    def _gain(
        self,
        weight: float,
        counts: npt.NDArray[np.uint16],
        lengths: npt.NDArray[np.int32],
    ) -> npt.NDArray[np.float64]:
        """Return what a word adds to documents that hold it so often and are so long."""
        mean_length = self._tokens / self._documents if self._documents else 1.0

        def formula(counts: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> npt.NDArray[Any]:
            norm = _K1 * (1.0 - _B + _B * lengths / mean_length)
            gain: npt.NDArray[Any] = weight * counts * (_K1 + 1.0) / (counts + norm)
            return gain

        if len(counts) <= _TABULATED:
            return formula(counts, lengths)
        # Many documents, but few counts and lengths: each pair is computed once.
        most, longest = int(counts.max()) + 1, int(lengths.max()) + 1
        if most * longest > len(counts):
            return formula(counts, lengths)
        table = formula(np.arange(most)[:, np.newaxis], np.arange(longest)[np.newaxis])
        return table.ravel().take(counts * np.int32(longest) + lengths)


def _idf(documents: int, count: int) -> float:
    """Return the inverse document frequency of a word that stands in so many documents."""
    idf = math.log((documents - count + 0.5) / (count + 0.5)) if documents > count else 0.0
    return idf if idf > 0 else _LEAST_IDF


def _corpus(connection: apsw.Connection) -> tuple[int, int]:
    """Return the numbers of documents and of words in all."""
    found = connection.execute("SELECT documents, tokens FROM corpus").get
    if found is None or isinstance(found, list) or None in found:
        raise apsw.SQLError("the counts of documents and words are lost")
    return int(found[0]), int(found[1])


def _probe(connection: apsw.Connection) -> None:
    """Raise SQLError if a part of the index is missing, even where nothing is read from it."""
    connection.execute("SELECT 1 FROM keywords, words, documents, corpus LIMIT 0").fetchall()
