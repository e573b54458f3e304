# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""BM25 is the one of FTS5, after any change, and however much of it is kept in memory."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import EVERYTHING, by_keywords, new, sql
from random_stores import WORDS

from robotmem_ros.core.store import Store, Wanted, keywords, words
from robotmem_ros.core.text import query_terms


def ours(store: Store, terms: list[str]) -> dict[int, float]:
    return dict(by_keywords(store, terms, 10_000, exact=True))


def of_fts5(path: str, terms: list[str]) -> dict[int, float]:
    expression = " OR ".join(f'"{term}"' for term in terms)
    with sql(path) as connection:
        rows = connection.execute(
            "SELECT rowid, -bm25(keywords) FROM keywords WHERE keywords MATCH ?", (expression,)
        )
        return dict(rows.fetchall())


@given(
    seed=st.integers(0, 2**32),
    changes=st.integers(1, 60),
    frequent=st.sampled_from([0, 2, 500]),
    kept=st.sampled_from([5, 8_000_000]),
    many_changes=st.sampled_from([0, 2_000]),
)
@settings(max_examples=settings().max_examples // 2)
def test_scores_are_those_of_fts5(
    fast_folder: Path, seed: int, changes: int, frequent: int, kept: int, many_changes: int
) -> None:
    source = random.Random(seed)

    def text() -> str:
        return " ".join(source.choices(WORDS, k=source.randint(1, 12)))

    with tempfile.TemporaryDirectory(dir=fast_folder) as folder, pytest.MonkeyPatch.context() as m:
        m.setattr(words, "FREQUENT", frequent)
        m.setattr(words, "MAX_POSTINGS", kept)
        m.setattr(words, "_MANY_CHANGES", many_changes)
        path = str(Path(folder, "memories.db"))
        store = Store(path)
        ids: list[int] = []
        for _ in range(changes):
            kind = source.random()
            if kind < 0.75 or not ids:
                robot = source.choice([{}, {"robot": {"id": source.choice(WORDS)}}])
                number, created = store.add(new(text(), context=robot))
                ids += [number] * created
            elif kind < 0.9:
                store.update(source.choice(ids), text(), None, 1)
            else:
                store.forget(ids.pop(source.randrange(len(ids))), "", 1)
            if source.random() < 0.3:
                terms = query_terms(text())
                if terms:
                    assert ours(store, terms) == pytest.approx(of_fts5(path, terms), abs=1e-12)
        store.close()


def test_a_word_of_every_memory_still_orders_them(db_path: str) -> None:
    store = Store(db_path)
    numbers = store.add_many([new(f"{'robot ' * n} and more words") for n in range(1, 5)])
    scores = ours(store, ["robot"])
    assert sorted(numbers, key=lambda number: -scores[number]) == numbers[::-1]
    store.close()


def test_words_of_most_memories_find_what_rarer_words_do_not(
    db_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a large store they are not looked up at first; who holds nothing else must be found."""
    monkeypatch.setattr(keywords, "MANY", 0)
    store = Store(db_path)
    store.add_many([new("the robot grasped a cup"), new("the robot stood"), new("the robot sat")])
    assert [number for number, _ in by_keywords(store, ["robot", "cup"], 3)] == [1, 2, 3]
    store.close()


def test_scores_of_all_terms(db_path: str) -> None:
    """What a memory of average length with all terms gets is the scale of the others."""
    store = Store(db_path)
    store.add_many([new("red cup"), new("blue door"), new("green wall"), new("old box")])
    with store.snapshot() as snapshot:
        everybody = snapshot.eligible(EVERYTHING, Wanted(["red", "cup"]))
        of_all = snapshot.bm25_of_all()
        found = dict(snapshot.by_keywords(1, everybody))
    assert found[1] == pytest.approx(of_all)
    store.close()


def test_a_common_word_that_became_rare_is_looked_up_again(
    db_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keywords, "MANY", 0)
    store = Store(db_path)
    numbers = store.add_many(
        [new(f"robot at dock {i}" if i % 3 else f"robot {i}") for i in range(60)]
    )
    assert by_keywords(store, ["robot", "dock"], 5)
    for i, number in enumerate(numbers):
        if i != 7:
            store.update(number, f"rover at dock {i}" if i % 3 else f"rover {i}", None, 1)
    assert by_keywords(store, ["robot", "dock"], 5)[0][0] == numbers[7]
    store.close()
