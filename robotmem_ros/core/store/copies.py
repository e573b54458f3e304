# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What is kept in memory of one database for the speed of its searches, seen at one moment.

The copies follow the file by its logs of changes, under one lock. A search begins its transaction
under that lock and takes what it needs of all of them, so that everything it sees is of one
moment; what it has taken is not changed while it lasts.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import apsw

from robotmem_ros.core.filters import Conditions
from robotmem_ros.core.store import eligibility, keywords
from robotmem_ros.core.store.attribute_columns import AttributeColumns
from robotmem_ros.core.store.database import Connection
from robotmem_ros.core.store.eligibility import Eligibility
from robotmem_ros.core.store.facts import FactCopy
from robotmem_ros.core.store.poses import PoseCopy, Poses
from robotmem_ros.core.store.vectors import VectorCopy, Vectors
from robotmem_ros.core.store.words import WordCopy

# An index that disagrees with its table leads out of the arrays in memory.
EngineFailure = (apsw.SQLError, apsw.CorruptError, IndexError)
"""What a search raises when the tables of its engine are missing or broken."""


@dataclass(slots=True)
class Moment:
    """What a search has taken of the copies. An engine that fails leaves its failure instead."""

    eligible: Eligibility
    poses: Poses | None = None
    ranker: keywords.Ranker | Exception | None = None
    vectors: Vectors | Exception | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search needs besides the eligible memories.

    Attributes
    ----------
    terms: words to rank by.
    vectors: whether it ranks by a vector.
    exact: whether the words that most memories hold count as well.
    """

    terms: Sequence[str] = ()
    vectors: bool = False
    exact: bool = False


@dataclass(slots=True)
class Copies:
    """All copies of one database; safe to use from any thread."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    _facts: FactCopy = field(default_factory=FactCopy)
    _attributes: AttributeColumns = field(default_factory=AttributeColumns)
    _poses: PoseCopy = field(default_factory=PoseCopy)
    _vectors: VectorCopy = field(default_factory=VectorCopy)
    _words: WordCopy = field(init=False)
    _holders: set[object] = field(default_factory=set)
    _length: int = 0  # of the longest columns that were taken

    def __post_init__(self) -> None:
        self._words = WordCopy(self.lock)

    def take(
        self, connection: Connection, holder: object, conditions: Conditions, wanted: Wanted
    ) -> Moment:
        """Begin the transaction of a search anew, and take what it needs of this moment.

        Parameters
        ----------
        holder: who takes it, until it calls release; what it had taken before may change.

        Raises
        ------
        apsw.SQLError: the index of attributes is missing or broken.
        """
        with self.lock:
            self._holders.discard(holder)
            # Nobody sees a later moment than this transaction while the lock is held.
            connection.execute("COMMIT; BEGIN")
            shared = self._shared
            facts = self._facts.view(connection, shared)
            decided = self._attributes.decide(connection, conditions.tests, shared)
            poses = None
            if conditions.place is not None and conditions.place.frame_id is not None:
                poses = self._poses.view(connection, len(facts.live))
            eligible = eligibility.gather(connection, conditions, facts, poses, decided)
            moment = Moment(eligible, poses)
            if wanted.terms:
                try:
                    moment.ranker = keywords.Ranker(
                        connection, self._words, wanted.terms, wanted.exact
                    )
                except EngineFailure as error:
                    moment.ranker = error
            if wanted.vectors:
                try:
                    moment.vectors = self._vectors.view(connection, bool(self._holders))
                except EngineFailure as error:
                    moment.vectors = error
            self._length = max(self._length, len(facts.live))
            self._holders.add(holder)
            return moment

    @property
    def _shared(self) -> int:
        """Memories below this number may be read by others at this time."""
        return self._length if self._holders else 0

    def release(self, holder: object) -> None:
        """Give back what was taken."""
        with self.lock:
            self._holders.discard(holder)

    def warm(self, connection: Connection) -> None:
        """Read what any search needs."""
        with self.lock:
            connection.execute("COMMIT; BEGIN")
            self._facts.view(connection, self._shared)
            self._words.follow(connection)
            self._vectors.view(connection, bool(self._holders))
