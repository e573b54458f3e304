# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Every answer is of one moment, whatever others change meanwhile."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from making import new

from robotmem_ros.core import search
from robotmem_ros.core.config import Config
from robotmem_ros.core.model import EVERY_COLLECTION, Near, Pose, Query
from robotmem_ros.core.store import Store, codes, eligibility, order

STEADY = range(1, 31)
OTHERS = range(31, 121)
RECALLS = 150
CONFIG = Config(embed_backend="none")
DIMENSION = 70
LARGE = {(codes, "EXACT_LIMIT"): 20, (eligibility, "FEW"): 5, (order, "CHECKED"): 5}


def vector(number: int) -> np.ndarray:
    return np.random.default_rng(number).normal(size=DIMENSION).astype(np.float32)


def fill(store: Store) -> None:
    store.use_model("m", DIMENSION)
    many = [
        new(
            f"cup {'steady' if number in STEADY else 'other'} {number}",
            context={"task": {"steady": number in STEADY, "success": True, "n": number}},
            pose=Pose("map", (1.0 if number in STEADY else 50.0, 0.0, 0.0)),
        )
        for number in (*STEADY, *OTHERS)
    ]
    numbers = store.add_many(many)
    made = [(n, m.content, vector(n)) for n, m in zip(numbers, many, strict=True)]
    store.put_vectors("m", made)


def update(store: Store, source: random.Random) -> None:
    """Change a memory; those that are small and those that are too large to be indexed."""
    number = source.choice(OTHERS)
    task: dict[str, Any] = {"steady": False, "success": source.random() < 0.5, "n": number}
    if source.random() < 0.2:
        task |= {f"k{i}": i for i in range(300)}
    text = f"cup other {number} {source.random()}" if source.random() < 0.5 else None
    store.update(number, text, {"task": task}, 1)
    if text is not None:
        store.put_vectors("m", [(number, text, vector(source.randrange(9)))])


def touch(store: Store, source: random.Random) -> None:
    store.touch({number: (1, 1, source.randrange(10**18)) for number in (*STEADY, *OTHERS)})


def learn_and_forget(store: Store, source: random.Random) -> None:
    text = f"cup passing {source.random()}"
    number, _ = store.add(new(text, context={"task": {"steady": False}}))
    store.put_vectors("m", [(number, text, vector(number))])
    store.forget(number, "", 1)


def reindex(store: Store, source: random.Random) -> None:
    store.reindex(lambda done, total: None)


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("change", [update, touch, learn_and_forget, reindex])
def test_who_meets_the_filter_is_found_and_nobody_else_while_others_change(
    db_path: str,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Store, random.Random], None],
    large: bool,
) -> None:
    if large:
        for (module, name), value in LARGE.items():
            monkeypatch.setattr(module, name, value)
    stores = Store(db_path), Store(db_path)
    fill(stores[0])
    done, problems = threading.Event(), list[object]()

    def write(store: Store, seed: int) -> None:
        source = random.Random(seed)
        while not done.is_set():
            change(store, source)

    def read(store: Store, seed: int) -> None:
        try:
            for number in range(RECALLS):
                problems.extend(wrong(store, number, check_words=change is not reindex))
        except Exception as error:
            problems.append(error)

    writers = [
        threading.Thread(target=write, args=(store, seed)) for seed, store in enumerate(stores)
    ]
    readers = [
        threading.Thread(target=read, args=(store, seed))
        for seed, store in enumerate((stores[0], stores[0], stores[1]))
    ]
    for thread in (*writers, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    done.set()
    for thread in writers:
        thread.join()
    for store in stores:
        store.close()
    assert problems == []


def wrong(store: Store, number: int, check_words: bool) -> list[object]:
    """Return what is wrong with the answers to one of some queries."""
    filters = itertools.cycle(
        (
            {"context_filter": {"task.steady": True}},
            {"context_filter": {"task.success": True}},
            {"near": Near("map", (0.0, 0.0, 0.0), 5.0)},
            {"context_filter": {"task.n": {"$in": [3, 7]}}},
        )
    )
    fields: Any = next(itertools.islice(filters, number % 4, None))
    text = ("*", "cup")[number // 4 % 2]
    query = Query(text, n=100, collection=EVERY_COLLECTION, exact=number % 3 == 0, **fields)
    request = search.check(query, CONFIG, 10, 10)
    with store.snapshot() as snapshot:
        if request.is_replay:
            found = search.replay(snapshot, request).ids
        else:
            found = search.rank(snapshot, request, vector(number), CONFIG).ids
        memories = snapshot.memories(found)
    if len(memories) != len(found) or len(set(found)) != len(found):
        return [(fields, "not stored or twice", found)]
    if "near" in fields or "task.steady" in fields["context_filter"]:
        expected = set(STEADY)
    elif "task.n" in fields["context_filter"]:
        expected = {3, 7}
    else:
        unlike = [m.context for m in memories.values() if not m.context["task"]["success"]]
        missing = set(STEADY) - set(found) if len(found) < 100 else set()
        return [(fields, text, unlike, missing)] if unlike or missing else []
    return [] if set(found) == expected else [(fields, text, sorted(found))]
