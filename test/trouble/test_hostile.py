# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Whatever the core is given, it answers or gives a reason, and is as healthy as before."""

from __future__ import annotations

import dataclasses
import gc
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import soundness
import tally
import wild
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import InvalidRequestError, RobotMemoryError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Episode, Experience, Memory, Near, Pose, Query

EXAMPLES = 1500
_settings = settings(
    max_examples=EXAMPLES * (20 if os.environ.get("ROBOTMEM_TROUBLE_MINUTES") else 1),
    derandomize=not os.environ.get("ROBOTMEM_TROUBLE_MINUTES"),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("hostile") / "robot.db")


@pytest.fixture(scope="module")
def memory(path: str) -> Iterator[RobotMemory]:
    with RobotMemory(Config(db_path=path, embed_backend="none"), owner="/a") as memory:
        memory.start_session()
        yield memory


def wild_memory() -> Memory:
    """Return a memory of another robot."""
    return Memory(
        **{"id": 1, "uuid": "5d2b1c9e-0000-4000-8000-000000000002", "type": "fact"},
        **{"perception_type": None, "content": "a wild cup", "context": {}, "context_json": "{}"},
        **{"collection": "c", "session_id": "s", "confidence": 0.5, "stored_confidence": 0.5},
        **{"stamp": 5, "created_at": 5, "updated_at": 5, "expires": 0, "last_access": 5},
        **{"pose": Pose("map", (1.0, 2.0, 3.0)), "access_count": 0, "return_count": 0},
        superseded_by="",
    )


def some(usual: Any) -> st.SearchStrategy[Any]:
    """Return mostly what is usual, so that the rest of a call is looked at as well."""
    return st.one_of(st.just(usual), st.just(usual), wild.anything)


triples = st.tuples(wild.numbers, wild.numbers, wild.numbers) | wild.anything
poses = st.builds(Pose, some("map"), triples, some((0.0, 0.0, 0.0, 1.0)), some(1)) | wild.anything
experiences = st.builds(
    Experience,
    content=some("a cup"),
    context=some(""),
    collection=some(""),
    session_id=some(""),
    confidence=some(0.9),
    stamp=some(1),
    pose=st.none() | poses,
    expires=some(0),
    type=some("fact"),
    perception_type=some(None),
    uuid=some(""),
)
queries = st.builds(
    Query,
    text=some("cup") | st.just("*"),
    n=some(5),
    min_confidence=some(0.0),
    session_id=some(""),
    collection=some("*"),
    context_filter=some(""),
    spatial_sort=some(""),
    near=st.none() | st.builds(Near, some("map"), triples, some(0.0)) | wild.anything,
    since=some(0),
    until=some(0),
    fusion=some(None),
    explain=st.booleans(),
)
memories = st.builds(
    lambda **fields: Memory(**{"id": 1, **fields}),
    **{"uuid": some("5d2b1c9e-0000-4000-8000-000000000001"), "type": some("fact")},
    **{"perception_type": some(None), "content": some("a door"), "context": some({})},
    **{"context_json": some("{}"), "collection": some("c"), "session_id": some("s")},
    **{"confidence": some(0.5), "stored_confidence": some(0.5), "stamp": some(5)},
    **{"created_at": some(5), "updated_at": some(5), "expires": some(0)},
    **{"pose": st.none() | poses, "last_access": some(5), "access_count": some(0)},
    **{"return_count": some(0), "superseded_by": some("")},
)
episodes = st.builds(
    Episode,
    **{"session_id": some("s"), "collection": some("c"), "context": some({})},
    **{"context_json": some("{}"), "start": some(1), "end": some(2), "outcome": some(None)},
    **{"summary": some(""), "interrupted": st.booleans()},
    **{"memories": st.lists(memories, max_size=2).map(tuple) | wild.anything},
    **{"trajectory": st.lists(poses, max_size=2).map(tuple) | wild.anything},
)
numbers_of_memories = st.integers(1, 20) | wild.anything
CALLS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "learn": st.fixed_dictionaries({"experience": experiences | wild.anything}),
    "recall": st.fixed_dictionaries({"query": queries | wild.anything}),
    "get": st.fixed_dictionaries(
        {},
        optional={
            "ids": st.lists(wild.anything, max_size=4) | wild.anything,
            "uuids": st.lists(wild.anything, max_size=4) | wild.anything,
        },
    ),
    "forget": st.fixed_dictionaries({"memory_id": numbers_of_memories, "reason": some("")}),
    "update": st.fixed_dictionaries(
        {"memory_id": numbers_of_memories, "content": some("new"), "context": some("")}
    ),
    "start_session": st.fixed_dictionaries({"context": some(""), "collection": some("")}),
    "end_session": st.fixed_dictionaries(
        {"session_id": some(""), "outcome": some(0.5), "summary": some("")}
    ),
    "add_trajectory": st.fixed_dictionaries(
        {"poses": st.lists(poses, max_size=2) | wild.anything}
    ),
    "interrupt_session": st.fixed_dictionaries({"reason": some("x")}),
    "episode": st.fixed_dictionaries({"session_id": wild.anything}),
    "episodes": st.fixed_dictionaries({"limit": some(5), "collection": some("")}),
    "places": st.fixed_dictionaries({"limit": some(5)}),
    "import_memory": st.fixed_dictionaries({"memory": memories | wild.anything}),
    "import_episode": st.fixed_dictionaries({"episode": episodes | wild.anything}),
    "restore": st.fixed_dictionaries({"memory_id": numbers_of_memories}),
}


ODD = [*("", "a", "\x00", b"", b"a", [], {}, (), [1], {"a": 1}, None, False, True, object())]
ODD += [0, 0.0, -1, 1.5, math.nan, math.inf, 2**63, 10**400, wild.SURROGATE]
PLAIN_POSE = Pose("map", (1.0, 2.0, 3.0), stamp=1)
PLAIN: dict[str, Any] = {
    "learn": Experience("a plain cup", pose=PLAIN_POSE),
    "recall": Query("cup", near=Near("map", (1.0, 2.0, 3.0))),
    "import_memory": wild_memory(),
    "import_episode": Episode(
        **{"session_id": "e", "collection": "c", "context": {}, "context_json": "{}"},
        **{"start": 1, "end": 2, "outcome": 0.5, "summary": "done", "interrupted": False},
        **{"memories": (wild_memory(),), "trajectory": (PLAIN_POSE,)},
    ),
}


def each_with_one_odd_field(plain: Any) -> Iterator[Any]:
    """Yield objects with one field, or one of a field's own, of a value that is odd there."""
    for field in dataclasses.fields(plain):
        inner = getattr(plain, field.name)
        odd = [*ODD]
        if isinstance(inner, (Pose, Near)):
            odd += each_with_one_odd_field(inner)
        if isinstance(inner, tuple):
            odd += [(*inner[1:], value) for value in ODD]
        for value in odd:
            yield dataclasses.replace(plain, **{field.name: value})


@pytest.mark.parametrize("name", PLAIN)
def test_one_odd_field_is_answered_or_refused(memory: RobotMemory, name: str) -> None:
    tried = 0
    for odd_one in each_with_one_odd_field(PLAIN[name]):
        try:
            getattr(memory, name)(odd_one)
        except RobotMemoryError as error:
            assert 0 < len(str(error)) < 2000, odd_one  # noqa: PT017
        tried += 1
    tally.add(inputs_tried=tried)


@_settings
@given(
    name_and_fields=st.sampled_from([*CALLS]).flatmap(
        lambda name: st.tuples(st.just(name), CALLS[name])
    )
)
def test_any_call_is_answered_or_refused(
    memory: RobotMemory, name_and_fields: tuple[str, dict[str, Any]]
) -> None:
    name, fields = name_and_fields
    try:
        getattr(memory, name)(**fields)
    except RobotMemoryError as error:
        assert 0 < len(str(error)) < 2000  # noqa: PT017
    number = memory.learn(Experience("the cup is healthy", session_id="health")).memory.id
    assert number in {
        item.memory.id for item in memory.recall(Query("healthy", session_id="health")).memories
    }
    tally.add(inputs_tried=1)


def test_nothing_was_left_by_half(memory: RobotMemory, path: str) -> None:
    assert memory.status().last_error == ""
    with soundness.opened(path) as connection:
        found = soundness.problems(connection)
    # Some calls forgot an `episode` memory.
    assert [problem for problem in found if "episode memories" not in problem] == []
    tally.add(memories_checked=memory.status().memories, lost=0, doubled=0)


LARGE: dict[str, Callable[[RobotMemory], object]] = {
    "text": lambda memory: memory.learn(Experience("x" * wild.LARGE)),
    "words": lambda memory: memory.recall(Query("word " * (wild.LARGE // 5))),
    "context": lambda memory: memory.learn(Experience("x", '{"a": "' + "y" * wild.LARGE + '"}')),
    "depth": lambda memory: memory.learn(Experience("x", "[" * wild.LARGE)),
    "filter": lambda memory: memory.recall(Query("x", context_filter="{" * wild.LARGE)),
    "sort": lambda memory: memory.recall(Query("*", spatial_sort='{"field":"' + "a" * wild.LARGE)),
    "summary": lambda memory: memory.end_session(summary="z" * wild.LARGE),
    "reason": lambda memory: memory.forget(1, "z" * wild.LARGE),
    "update": lambda memory: memory.update(1, "z" * wild.LARGE),
    "uuids": lambda memory: memory.get(uuids=["z" * 1000] * 10_000),
    "name": lambda memory: memory.recall(Query("x", session_id="s" * wild.LARGE)),
}


@pytest.mark.parametrize("what", LARGE)
def test_ten_megabytes_are_refused(memory: RobotMemory, what: str) -> None:
    with pytest.raises(InvalidRequestError) as error:
        LARGE[what](memory)
    assert len(str(error.value)) < 1000
    tally.add(inputs_tried=1)


BULKY: dict[str, Any] = {
    "numbers": {"a": {str(i): i for i in range(60_000)}},
    "nested": {"a": [[i, [i, {"b": i}]] for i in range(28_000)]},
    "empty arrays": {"a": [[] for _ in range(240_000)]},
    "positions": {"spatial": {f"k{i}": [i, 1, 2] for i in range(35_000)}},
    "deep": {"a": [[[[[[[[1] * 20] * 10] * 8] * 5]]] for _ in range(10)]},
}


@pytest.mark.parametrize("what", BULKY)
def test_a_context_as_large_as_allowed_is_stored_changed_and_forgotten(
    memory: RobotMemory, what: str
) -> None:
    learned = memory.learn(Experience(f"bulky {what}", BULKY[what]))
    assert learned.memory.context == BULKY[what]
    memory.update(learned.memory.id, f"bulky and changed {what}")
    found = memory.recall(Query(f"bulky changed {what}", collection="*")).memories
    assert learned.memory.id in {item.memory.id for item in found}
    memory.forget(learned.memory.id)
    tally.add(inputs_tried=1)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_goes_back_to_normal(memory: RobotMemory) -> None:
    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def trouble() -> None:
        for what in LARGE:
            with pytest.raises(RobotMemoryError):
                LARGE[what](memory)
        number = memory.learn(Experience("bulky", BULKY["nested"])).memory.id
        memory.recall(Query("bulky", context_filter={"a[5]": {"$exists": True}}))
        memory.forget(number)

    for _ in range(3):
        trouble()
    before = resident()
    for _ in range(12):
        trouble()
    # What one round takes in is far more; a leak of any of it would be.
    assert resident() - before < 2 * wild.LARGE
