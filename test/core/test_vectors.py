# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Vector search is the exact cosine search, and follows what other processes store."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from making import EVERYTHING, by_vector, new

from robotmem_ros.core.store import Store, Wanted, codes, eligibility, order, vectors

DIMENSION = 100  # no multiple of 64: codes are padded


@pytest.fixture
def store(db_path: str) -> Iterator[Store]:
    with_vectors = Store(db_path)
    with_vectors.use_model("m", DIMENSION)
    yield with_vectors
    with_vectors.close()


def fill(store: Store, many: np.ndarray) -> list[int]:
    numbers = store.add_many([new(f"text {i}", stamp=i + 1) for i in range(len(many))])
    made = [(n, f"text {i}", v) for i, (n, v) in enumerate(zip(numbers, many, strict=True))]
    store.put_vectors("m", made)
    return numbers


def search(store: Store, query: np.ndarray, k: int, exact: bool) -> list[tuple[int, float]]:
    return by_vector(store, query, k, exact)


def similarities(query: np.ndarray, many: np.ndarray) -> np.ndarray:
    query, many = query.astype(float), many.astype(float)
    return many @ query / np.linalg.norm(many, axis=1) / np.linalg.norm(query)


def assert_nearest(found: list[tuple[int, float]], true: np.ndarray, k: int) -> None:
    """Check that no other vector is nearer, up to the rounding of single precision."""
    assert len(found) == len({number for number, _ in found}) == min(k, len(true))
    assert [similarity for _, similarity in found] == sorted(
        (similarity for _, similarity in found), reverse=True
    )
    for number, similarity in found:
        assert similarity == pytest.approx(true[number - 1], abs=1e-6)
    assert found[-1][1] == pytest.approx(np.sort(true)[-min(k, len(true))], abs=1e-6)


@pytest.mark.parametrize("limit", [20_000, 0], ids=["whole", "bits"])
@pytest.mark.parametrize("few", [8_000, 0], ids=["listed", "checked"])
def test_exact_search_finds_the_nearest(
    store: Store, monkeypatch: pytest.MonkeyPatch, limit: int, few: int
) -> None:
    monkeypatch.setattr(codes, "EXACT_LIMIT", limit)
    monkeypatch.setattr(eligibility, "FEW", few)
    monkeypatch.setattr(order, "CHECKED", few)
    source = np.random.default_rng(1)
    many = (source.normal(size=(600, DIMENSION)) * 3).astype(np.float32)
    fill(store, many)
    for k in (1, 7, 600, 1000):
        query = source.normal(size=DIMENSION).astype(np.float32)
        true = similarities(query, many)
        assert_nearest(search(store, query, k, exact=True), true, k)
        if limit:
            assert_nearest(search(store, query, k, exact=False), true, k)


def test_bits_find_nearly_all_of_the_nearest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors of texts come in groups; within them one bit a dimension still tells."""
    monkeypatch.setattr(codes, "EXACT_LIMIT", 0)
    source = np.random.default_rng(2)
    groups = source.normal(size=(50, DIMENSION))
    many = groups[source.integers(50, size=5000)] + 0.7 * source.normal(size=(5000, DIMENSION))
    fill(store, many.astype(np.float32))
    hits = 0
    for i in range(20):
        query = (many[i] + 0.3 * source.normal(size=DIMENSION)).astype(np.float32)
        nearest = np.argsort(-similarities(query, many))[:10] + 1
        found = {number for number, _ in search(store, query, 10, exact=False)}
        hits += len(found & set(nearest.tolist()))
    assert hits / 200 >= 0.98


@given(st.integers(0, 2**32), st.sampled_from([1, 7, 64, 70, 200]), st.integers(1, 40))
@settings(deadline=None)
def test_the_likeliest_have_the_greatest_sums_where_their_code_is_one(
    seed: int, dimension: int, count: int
) -> None:
    source = np.random.default_rng(seed)
    many = source.normal(size=(30, dimension)).astype(np.float32)
    query, centre = source.normal(size=(2, dimension)).astype(np.float32)
    ids = source.permutation(100)[:30].astype(np.int64) + 1
    rows = np.full(101, -1, np.int64)
    rows[ids] = np.arange(30)
    view = vectors.Vectors(ids, rows, np.asfortranarray(codes.of(many, centre)), False, centre)
    asked = source.permutation(ids)[:20]
    sums = {
        int(number): sum(
            float(q) for q, v, c in zip(query, many[rows[number]], centre, strict=True) if v > c
        )
        for number in asked
    }
    found = view.likeliest(count, query, asked)
    assert len(found) == min(count, 20)
    least = min(sums[int(number)] for number in found)
    assert all(sums[int(n)] <= least + 1e-4 for n in asked if n not in found)


def test_equal_vectors_come_in_the_order_they_were_stored(store: Store) -> None:
    fill(store, np.ones((300, DIMENSION), np.float32))
    query = np.ones(DIMENSION, np.float32)
    assert [number for number, _ in search(store, query, 9, exact=False)] == list(range(1, 10))


@pytest.mark.parametrize("limit", [20_000, 40, 0])
def test_a_second_store_on_the_file_follows_every_change(
    store: Store, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Also across the limit at which vectors are no longer kept whole."""
    monkeypatch.setattr(codes, "EXACT_LIMIT", limit)
    other = Store(store.path)
    source = np.random.default_rng(3)
    known: dict[int, np.ndarray] = {}
    query = source.normal(size=DIMENSION).astype(np.float32)
    assert search(other, query, 5, exact=True) == []
    for step in range(60):
        vector = source.normal(size=DIMENSION).astype(np.float32)
        (number,) = store.add_many([new(f"step {step}")])
        store.put_vectors("m", [(number, f"step {step}", vector)])
        known[number] = vector
        if step % 3 == 1:
            gone = int(source.choice(list(known)))
            (store if step % 2 else other).forget(gone, "", 1)
            del known[gone]
        if step % 7 == 0 and known:
            changed = int(source.choice(list(known)))
            (other if step % 2 else store).update(changed, f"changed {step}", None, 1)
            known[changed] = -vector
            store.put_vectors("m", [(changed, f"changed {step}", -vector)])
        for each in (store, other):
            found = search(each, query, 100, exact=True)
            numbers = sorted(known)
            true = similarities(query, np.array([known[n] for n in numbers]))
            expected = sorted(zip(-true, numbers, strict=True))
            assert [number for number, _ in found] == [number for _, number in expected]
    other.close()


def test_the_mean_similarity_is_of_all_vectors(store: Store) -> None:
    source = np.random.default_rng(4)
    many = source.normal(size=(50, DIMENSION)).astype(np.float32)
    numbers = fill(store, many)
    query = many[0]
    for gone in (0, 10):
        for number in numbers[:gone]:
            store.forget(number, "", 1)
        with store.snapshot() as snapshot:
            snapshot.eligible(EVERYTHING, Wanted(vectors=True))
            mean = snapshot.mean_similarity(query)
        assert mean == pytest.approx(similarities(query, many[gone:]).mean(), abs=1e-6)


def test_a_store_without_vectors_answers(store: Store) -> None:
    query = np.ones(DIMENSION, np.float32)
    assert search(store, query, 5, exact=False) == []
    assert search(store, query, 5, exact=True) == []
    with store.snapshot() as snapshot:
        snapshot.eligible(EVERYTHING, Wanted(vectors=True))
        assert snapshot.mean_similarity(query) == 0.0
        assert snapshot.similarities(query, [1, 2]) == {}


def test_vectors_of_another_model_are_never_mixed_with_new_ones(store: Store) -> None:
    fill(store, np.ones((3, DIMENSION), np.float32))
    assert store.use_model("m", DIMENSION) is False
    assert store.use_model("other", 8) is True
    assert search(store, np.ones(8, np.float32), 5, exact=False) == []
    assert {number for number, _ in store.unembedded(10)} == {1, 2, 3}
    late = [(1, "text 0", np.ones(DIMENSION, np.float32)), (2, "text 1", np.ones(8, np.float32))]
    store.put_vectors("m", late)
    assert search(store, np.ones(8, np.float32), 5, exact=False) == []
    store.put_vectors("other", late)
    assert [number for number, _ in search(store, np.ones(8, np.float32), 5, False)] == [2]


def test_a_vector_of_a_text_that_changed_meanwhile_is_dropped(store: Store) -> None:
    store.add(new("before"))
    store.update(1, "after", None, 1)
    vector = np.ones(DIMENSION, np.float32)
    store.put_vectors("m", [(1, "before", vector), (2, "never stored", vector)])
    assert search(store, vector, 5, exact=False) == []
    assert store.unembedded(10) == [(1, "after")]
