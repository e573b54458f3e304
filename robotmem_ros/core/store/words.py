# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The postings of words in memory: in which documents each stands, and how often.

FTS5 holds the postings; reading them takes a tenth of a millisecond a word and a third of a
microsecond each, so those of the words last used are kept in memory, at most MAX_POSTINGS of
MAX_WORDS. With them are kept the lengths of all documents. The copy follows the documents by their
log of changes, so it is right after a crash and when another process writes to the file.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from robotmem_ros.core.store import schema
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.order import grown

FREQUENT = 500
"""Words of more documents are kept in memory when some of these change; others are read anew."""

MAX_POSTINGS = 8_000_000
"""Postings kept in memory, of six bytes each."""

MAX_WORDS = 4_096
"""Words whose postings are kept in memory."""

_MANY_CHANGES = 2_000
_NO_POSTINGS = (np.zeros(0, np.int32), np.zeros(0, np.uint16))


@dataclass(slots=True)
class Postings:
    """Documents that hold a word, in ascending order, and how often each holds it."""

    documents: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint16]
    length: int
    _dense: npt.NDArray[np.uint16] | None = None

    def view(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
        """Return the postings as they are now; later changes do not touch what is returned."""
        return self.documents[: self.length], self.counts[: self.length]

    def append(self, document: int, count: int) -> None:
        """Add a document behind all others."""
        self.documents = grown(self.documents, self.length + 1)
        self.counts = grown(self.counts, self.length + 1)
        self.documents[self.length] = document
        self.counts[self.length] = min(count, 65_535)
        self.length += 1
        self._dense = None

    def dense(self) -> npt.NDArray[np.uint16]:
        """Return how often each document holds the word, by its number."""
        if self._dense is None:
            held, counts = self.view()
            self._dense = np.zeros(int(held[-1]) + 1 if len(held) else 0, np.uint16)
            self._dense[held] = counts
        return self._dense

    def without(self, documents: npt.NDArray[np.int32]) -> Postings:
        """Return the postings without some documents."""
        held, counts = self.view()
        keep = ~np.isin(held, documents)
        return self if keep.all() else Postings(held[keep], counts[keep], int(keep.sum()))


@dataclass(frozen=True, slots=True)
class Hits:
    """What is known of one word: in how many documents it stands, and in which, how often.

    Attributes
    ----------
    dense: how often each document holds it, by its number, where most of them do.
    """

    frequency: int
    documents: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint16]
    dense: npt.NDArray[np.uint16] | None = None


class _LastUsed:
    """The postings of the words that were used last."""

    def __init__(self) -> None:
        self._words: OrderedDict[str, Postings] = OrderedDict()  # the last used at the end
        self._total = 0  # postings

    def get(self, word: str) -> Postings | None:
        """Return the postings of a word, which counts as used."""
        postings = self._words.get(word)
        if postings is not None:
            self._words.move_to_end(word)
        return postings

    def put(self, word: str, postings: Postings) -> None:
        """Keep the postings of a word that is not there; those not used for longest may go."""
        self._words[word] = postings
        self._total += postings.length
        while len(self._words) > 1 and (
            self._total > MAX_POSTINGS or len(self._words) > MAX_WORDS
        ):
            self._total -= self._words.popitem(last=False)[1].length

    def add(self, document: int, counts: Mapping[str, int]) -> None:
        """Take in a document that is in none of the postings."""
        for word, count in counts.items():
            postings = self._words.get(word)
            if postings is None:
                continue
            if postings.length and postings.documents[postings.length - 1] > document:
                self._total -= self._words.pop(word).length  # an old memory got this word
            else:
                postings.append(document, count)
                self._total += 1

    def remove(self, documents: npt.NDArray[np.int32]) -> None:
        """Take out documents; words that few hold are given up, which is quicker."""
        self._words = OrderedDict(
            (word, postings.without(documents))
            for word, postings in self._words.items()
            if postings.length > FREQUENT
        )
        self._total = sum(postings.length for postings in self._words.values())


class WordCopy:
    """Postings of words at one moment of the database; safe to use from any thread.

    What it has lent is not changed any more.

    Parameters
    ----------
    lock: that of copies.py.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._seq = -1
        self._words = _LastUsed()
        self._common: dict[str, tuple[int, int]] = {}  # word: (its documents, changes until then)
        self._changes = 0  # of documents, that were taken in
        self._lengths = np.zeros(64, np.int32)

    def follow(self, connection: Connection) -> None:
        """Take in what has changed since the last time."""
        with self._lock:
            self._follow(connection)

    def look_up(
        self, connection: Connection, terms: Sequence[str], documents: int, skip_common: bool
    ) -> tuple[dict[str, Hits], npt.NDArray[np.int32]]:
        """Return what is known of words, and the length of each document by its number.

        Parameters
        ----------
        documents: number of all documents.
        skip_common: of words that stand in half of them or more, count the documents alone, unless
            there are no other words.
        """
        with self._lock:
            is_current = self._follow(connection)
            words = self._words if is_current else _LastUsed()
            common: dict[str, int] = {}
            if skip_common:
                counts = {
                    term: self._frequency(connection, term, words, documents) for term in terms
                }
                common = {term: n for term, n in counts.items() if 2 * n >= documents}
                if common and all(term in common or not n for term, n in counts.items()):
                    common = {}
            found = {}
            for term in terms:
                if term in common:
                    found[term] = Hits(common[term], *_NO_POSTINGS)
                else:
                    postings = self._postings(connection, term, words)
                    is_common = 2 * postings.length >= documents
                    dense = postings.dense() if is_common else None
                    found[term] = Hits(postings.length, *postings.view(), dense)
            return found, self._lengths

    def _frequency(
        self,
        connection: Connection,
        term: str,
        words: _LastUsed,
        documents: int,
    ) -> int:
        """Return in how many documents a word stands; for a common one as it was not long ago."""
        postings = words.get(term)
        if postings is not None:
            return postings.length
        count, then = self._common.get(term, (0, 0))
        if count and (self._changes - then) * 50 <= documents:
            return count
        self._common.pop(term, None)
        count = int(
            connection.execute(
                "SELECT count(*) FROM keywords WHERE keywords MATCH ?", (f'"{term}"',)
            ).get
        )
        if 2 * count >= documents:
            self._common[term] = (count, self._changes)
        return count

    def _postings(self, connection: Connection, term: str, words: _LastUsed) -> Postings:
        postings = words.get(term)
        if postings is not None:
            return postings
        each = connection.integers("SELECT group_concat(doc, ' ') FROM words WHERE term = ?", term)
        documents, counts = np.unique(each.astype(np.int32), return_counts=True)
        few = np.minimum(counts, 65_535).astype(np.uint16)
        postings = Postings(documents, few, len(documents))
        words.put(term, postings)
        return postings

    def _follow(self, connection: Connection) -> bool:
        """Take in what has changed in the documents since the last time.

        Returns
        -------
        Whether the copy is of the moment that the connection sees; else it is of a later one.
        """
        latest, changed = schema.changes_since(connection, "document_changes", self._seq)
        if latest < self._seq:
            return False
        if changed is None or self._seq < 0 or len(changed) > _MANY_CHANGES:
            self._words = _LastUsed()
            self._common.clear()
            self._load_lengths(connection)
        elif changed:
            self._changes += len(changed)
            self._take_in(connection, sorted(changed))
        self._seq = latest
        return True

    def _load_lengths(self, connection: Connection) -> None:
        documents, lengths = connection.integer_columns(
            "SELECT group_concat(memory_id, ' '), group_concat(length, ' ') FROM documents"
        )
        self._lengths = np.zeros(int(documents.max(initial=63)) + 1, np.int32)
        self._lengths[documents] = lengths

    def _take_in(self, connection: Connection, changed: list[int]) -> None:
        self._lengths = grown(self._lengths, changed[-1] + 1)
        old = [document for document in changed if self._lengths[document]]
        if old:
            gone = np.array(old, np.int32)
            self._words.remove(gone)
            self._lengths = self._lengths.copy()  # searches under way hold the other
            self._lengths[gone] = 0
        for document in changed:
            row: Any = connection.execute(
                "SELECT content, entities, length FROM documents WHERE memory_id = ?", (document,)
            ).get
            if row is None:
                continue
            self._lengths[document] = row[2]
            self._words.add(document, Counter(f"{row[0]} {row[1]}".split()))
