# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Any request gets an answer or a reason that names the field, and harms nothing."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import ConfigError, InvalidRequestError, RobotMemoryError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import (
    EVERY_COLLECTION,
    Experience,
    Fusion,
    MemoryType,
    Mode,
    Near,
    PerceptionType,
    Pose,
    Query,
)

SYNTAX = [
    *("dock-3", "12.5", "grip_force=12.5N", "don't", "@nasa", "AND", "OR", "NOT", "(", ")", "50%"),
    *('"', "'", "**", "^", ":", "-", "--", ";", "\\", "`", "NEAR(a b)", "content:cup", "{a b}: x"),
    *(
        "a AND b",
        '"unclosed',
        "cup*",
        "-cup",
        "cup + door",
        "x' OR '1'='1",
        "'); DROP TABLE memories",
    ),
    *(
        "%s %d {}",
        "\x01\x02",
        "\ufffe",
        "\u202e",
        "e\u0301" * 50,
        "🤖",
        "…",
        "。",
        "的",
        "が",
        "a",
    ),
    " ".join(f"word{i}" for i in range(10_000)),
    "w" * 90_000,
]
SURROGATE = "\ud800"


@pytest.mark.parametrize("text", SYNTAX, ids=lambda text: text[:12])
def test_any_text_is_stored_and_asked_for(memory: RobotMemory, text: str) -> None:
    memory.learn(Experience("a cup on the table"))
    learned = memory.learn(Experience(text, {"robot": {"id": text[:500]}, "x": {text: text}}))
    assert learned.memory.content == text.strip()
    assert learned.memory.context["x"][text] == text
    for fields in (
        {},
        {"explain": True},
        {"fusion": None, "context_filter": {f"x[{json.dumps(text)}]": text}},
        {"session_id": text[:200]},
        {"collection": text[:200]},
    ):
        result = memory.recall(Query(text, **fields))
        assert result.mode is Mode.BM25_ONLY
    by_filter = Query("*", context_filter={f"x[{json.dumps(text)}]": text})
    found = memory.recall(by_filter).memories
    assert [item.memory.id for item in found] == [learned.memory.id]
    assert memory.recall(Query("cup", session_id="")).memories


@pytest.mark.parametrize(
    "text",
    [
        *("dock-3", "12.5", "grip_force=12.5N", "don't", "@nasa", "AND", "50%", "🤖", "дверь"),
        *(
            "ロボットが停止",
            "로봇이 멈췄다",
            "Müller",
            "ＡＢＣ",
            "抓取杯子",
            "cup杯子ロボット로봇дверь",
        ),
    ],
)
def test_a_text_of_any_language_finds_itself_by_keywords(memory: RobotMemory, text: str) -> None:
    memory.learn(Experience("something else"))
    number = memory.learn(Experience(f"before {text} after")).memory.id
    assert [item.memory.id for item in memory.recall(Query(text)).memories] == [number]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"content": ""}, "insight"),
        ({"content": " \n\t"}, "insight"),
        ({"content": "a\x00b"}, "insight"),
        ({"content": SURROGATE}, "insight"),
        ({"content": "x" * 100_001}, "insight"),
        ({"context": "{"}, "context"),
        ({"context": "[1]"}, "context"),
        ({"context": {"a": math.nan}}, "context"),
        ({"context": "[" * 10_000}, "context"),
        ({"context": {"a": SURROGATE}}, "context"),
        ({"context": '{"a": "' + "x" * 1_000_000 + '"}'}, "context"),
        ({"collection": "*"}, "collection"),
        ({"collection": "c" * 257}, "collection"),
        ({"collection": "a\x00"}, "collection"),
        ({"session_id": SURROGATE}, "session_id"),
        ({"session_id": "s" * 257}, "session_id"),
        ({"confidence": 1.1}, "confidence"),
        ({"confidence": -0.1}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"stamp": -1}, "stamp"),
        ({"stamp": 2**63}, "stamp"),
        ({"expires": -1}, "expires"),
        ({"expires": 2**63}, "expires"),
        ({"pose": Pose("", (0.0, 0.0, 0.0))}, "pose"),
        ({"pose": Pose("a\x00", (0.0, 0.0, 0.0))}, "pose"),
        ({"pose": Pose(SURROGATE, (0.0, 0.0, 0.0))}, "pose"),
        ({"pose": Pose("map", (math.nan, 0.0, 0.0))}, "pose"),
        ({"pose": Pose("map", (math.inf, 0.0, 0.0))}, "pose"),
        ({"pose": Pose("map", (0.0, 0.0, 0.0), (0.0, math.nan, 0.0, 1.0))}, "pose"),
        ({"pose": Pose("map", (0.0, 0.0, 0.0), stamp=2**63)}, "pose"),
        ({"type": MemoryType.PERCEPTION}, "perception_type"),
        ({"uuid": SURROGATE}, "uuid"),
        ({"uuid": "a\x00b"}, "uuid"),
        ({"uuid": "u" * 300}, "uuid"),
    ],
)
def test_a_wrong_experience_is_refused(
    memory: RobotMemory, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequestError) as error:
        memory.learn(dataclasses.replace(Experience("text"), **fields))
    assert error.value.field == field
    assert str(error.value).startswith(f"{field}: ")
    assert memory.status().memories == 0
    memory.learn(Experience("the next call is served"))


def test_a_perception_without_words_names_its_own_field(memory: RobotMemory) -> None:
    wrong = Experience("", type=MemoryType.PERCEPTION, perception_type=PerceptionType.VISUAL)
    with pytest.raises(InvalidRequestError, match="description: "):
        memory.learn(wrong)


def test_a_uuid_that_is_taken_is_no_second_memory(memory: RobotMemory) -> None:
    first = memory.learn(Experience("one", uuid="the-uuid")).memory
    with pytest.raises(InvalidRequestError, match="uuid: "):
        memory.learn(Experience("two", uuid="the-uuid"))
    assert memory.get(uuids=["the-uuid"])[0] == [first]
    assert memory.status().memories == 1


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"text": ""}, "query"),
        ({"text": " \n"}, "query"),
        ({"text": "x" * 100_001}, "query"),
        ({"min_confidence": 1.01}, "min_confidence"),
        ({"min_confidence": -0.01}, "min_confidence"),
        ({"min_confidence": math.nan}, "min_confidence"),
        ({"context_filter": "{"}, "context_filter"),
        ({"context_filter": {"a": {"$near": 1}}}, "context_filter"),
        ({"context_filter": {'a["\\ud800"]': 1}}, "context_filter"),
        ({"spatial_sort": {"field": "a"}}, "spatial_sort"),
        ({"spatial_sort": {"field": "a", "target": [1], "max_distance": 10**400}}, "spatial_sort"),
        ({"near": Near("", (0, 0, 0))}, "near"),
        ({"near": Near(SURROGATE, (0, 0, 0))}, "near"),
        ({"near": Near("map", (0, 0, 0)), "spatial_sort": {"field": "a", "target": [1]}}, "near"),
        ({"since": 10, "until": 9}, "until"),
        ({"since": 2**63}, "since"),
        ({"until": 2**63}, "until"),
        ({"session_id": SURROGATE}, "session_id"),
        ({"collection": SURROGATE}, "collection"),
    ],
)
def test_a_wrong_query_is_refused(memory: RobotMemory, fields: dict[str, Any], field: str) -> None:
    memory.learn(Experience("text"))
    for text in "text", "*":
        with pytest.raises(InvalidRequestError) as error:
            memory.recall(dataclasses.replace(Query(text), **fields))
        assert error.value.field == field
    assert memory.recall(Query("text")).memories


@pytest.mark.parametrize("text", [SURROGATE, f"text {SURROGATE}", "a\x00 text"])
def test_a_query_of_broken_unicode_is_answered_or_refused(memory: RobotMemory, text: str) -> None:
    memory.learn(Experience("text"))
    try:
        memory.recall(Query(text))
    except InvalidRequestError as error:
        assert error.field == "query"  # noqa: PT017


@pytest.mark.parametrize(
    ("n", "found"), [(-5, 1), (0, 1), (1, 1), (3, 3), (100, 100), (10**6, 100)]
)
def test_n_is_held_to_what_is_allowed(memory: RobotMemory, n: int, found: int) -> None:
    for i in range(101):
        memory.learn(Experience(f"cup {i}"))
    assert len(memory.recall(Query("cup", n=n)).memories) == found
    assert len(memory.recall(Query("*", n=n)).memories) == found


def test_collections_are_apart_unless_all_are_asked_for(memory: RobotMemory) -> None:
    for name in "a", "b", "":
        memory.learn(Experience("cup", collection=name))

    def found(collection: str) -> set[str]:
        result = memory.recall(Query("cup", collection=collection))
        return {item.memory.collection for item in result.memories}

    assert found("a") == {"a"}
    assert found("") == found("default") == {"default"}
    assert found("unknown") == set()
    assert found(EVERY_COLLECTION) == {"a", "b", "default"}
    assert memory.status().collections == 3


def test_get_keeps_the_order_and_names_what_is_missing(memory: RobotMemory) -> None:
    one, two = (memory.learn(Experience(text)).memory for text in ("one", "two"))
    assert memory.get(ids=[two.id, 99, one.id, two.id]) == ([two, one], [99])
    assert memory.get(uuids=[two.uuid, "nobody", one.uuid]) == ([two, one], ["nobody"])
    for wrong in ({}, {"ids": [1], "uuids": ["x"]}, {"ids": [1] * (Config().max_get + 1)}):
        with pytest.raises(InvalidRequestError):
            memory.get(**wrong)  # type: ignore[arg-type]
    assert memory.get(uuids=[SURROGATE])[0] == []


def test_settings_change_while_running(memory: RobotMemory) -> None:
    memory.learn(Experience("cup", {"env": {"sim_or_real": "real"}}))
    memory.learn(Experience("cup"))
    memory.reconfigure(real_weight=0.5, fusion="rrf")
    assert [item.memory.id for item in memory.recall(Query("cup")).memories] == [2, 1]
    for wrong in ({"db_path": "x"}, {"nothing": 1}, {"real_weight": -1.0}, {"fusion": "best"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            memory.reconfigure(**wrong)
    assert memory.recall(Query("cup")).memories[0].memory.id == 2


def test_explain_is_enough_to_work_a_score_out_by_hand(memory: RobotMemory) -> None:
    for i in range(6):
        context = {"env": {"sim_or_real": "real"}} if i % 2 else {}
        memory.learn(Experience(f"red cup {'cup ' * i}", context, session_id="s", stamp=i + 1))
    memory.learn(Experience("another thing"))
    memory.learn(Experience("one more thing"))
    config = Config()
    for fusion in "rrf", "weighted", "adaptive":
        memory.reconfigure(fusion=fusion)
        result = memory.recall(Query("red cup", explain=True, n=10))
        assert len(result.memories) >= 6
        by_hand = []
        for item in result.memories:
            details = item.details
            terms = details["terms"]
            if fusion == "rrf":
                fused = 1 / (config.rrf_k + details["keyword"]["rank"] + 1)
                assert terms == {"keyword": fused}
            elif fusion == "weighted":
                semantic, keyword = terms["semantic"], terms["keyword"]
                fused = config.weighted_alpha * semantic + (1 - config.weighted_alpha) * keyword
                fused += terms["spread"]
            else:
                fused = terms["semantic"] + terms["keyword"] + terms["entity"]
                fused /= details["divisor"]
            assert details["fused"] == pytest.approx(fused)
            assert details["weight"] == (1.5 if item.memory.env else 1.0)
            assert details["fusion"] == fusion
            assert details["confidence"] == item.memory.confidence == 0.9
            assert details["distance"] is None
            assert details["vector"] is None
            by_hand.append(fused * details["weight"])
            json.dumps(details, allow_nan=False)
        scores = [item.score for item in result.memories]
        assert scores == pytest.approx([score / max(by_hand) for score in by_hand])
        assert scores[0] == 1.0


def test_after_a_spatial_sort_the_best_score_is_one(memory: RobotMemory) -> None:
    for i in range(8):
        text = "red cup " * (i + 1) + "thing " * (8 - i)
        memory.learn(Experience(text, {"spatial": {"p": [i, 0, 0]}}))
    memory.learn(Experience("nothing"))
    place = {"field": "spatial.p", "target": [0, 0, 0]}
    result = memory.recall(Query("red cup", spatial_sort=place, n=4))
    assert [item.distance for item in result.memories] == [0.0, 1.0, 2.0, 3.0]
    scores = [item.score for item in result.memories]
    assert max(scores) == 1.0
    assert scores[0] < 1.0
    assert min(scores) >= 0.0


def test_one_badly_shaped_context_never_breaks_a_recall_of_others(memory: RobotMemory) -> None:
    good = memory.learn(Experience("cup", {"spatial": {"p": [1, 2, 3]}})).memory.id
    for wrong in (
        *("x", 3, None, True, [], {}, [1, 2], [1, 2, "3"], [1, 2, None], [1, [2], 3]),
        *([10**400, 0, 0], [1, 2, 3, 4], [True, 2, 3], {"0": 1, "1": 2, "2": 3}),
    ):
        memory.learn(Experience("cup", {"spatial": {"p": wrong}}))
        memory.learn(Experience("cup", {"spatial": wrong, "env": wrong, "task": wrong}))
    place = {"field": "spatial.p", "target": [1, 2, 3]}
    for text in "cup", "*":
        found = memory.recall(Query(text, spatial_sort=place, n=100)).memories
        assert [item.memory.id for item in found] == [good]
    near = memory.recall(Query("cup", context_filter={"spatial.p[2]": {"$gte": 3}})).memories
    assert good in {item.memory.id for item in near}
    assert len(memory.recall(Query("cup", n=100)).memories) > 20


def test_large_requests_are_answered_within_a_second(memory: RobotMemory) -> None:
    requests: list[Callable[[], object]] = [
        lambda: memory.learn(Experience("x" * 10_000_000)),
        lambda: memory.learn(Experience("text", "[" * 10_000_000)),
        lambda: memory.learn(Experience("text", '{"a": "' + "y" * 10_000_000 + '"}')),
        lambda: memory.learn(Experience("word " * 19_999)),
        lambda: memory.learn(Experience("抓取杯子" * 8_000)),
        lambda: memory.learn(Experience("text", {"a": {str(i): i for i in range(40_000)}})),
        lambda: memory.recall(Query("word " * 19_999)),
        lambda: memory.recall(Query("抓取杯子" * 8_000)),
        lambda: memory.recall(Query("x", context_filter={"a": {"$in": list(range(100_000))}})),
        lambda: memory.recall(Query("x", context_filter="{" * 10_000)),
        lambda: memory.recall(Query("x", context_filter={"a" * 100_000: 1})),
        lambda: memory.recall(Query("x", context_filter={".".join("0" * 1000): 1})),
    ]
    memory.learn(Experience("抓取"))  # the dictionary is loaded by the first Chinese word
    for i, request in enumerate(requests):
        said = ""
        start = time.thread_time()  # what it takes on a computer that has nothing else to do
        try:
            request()
        except RobotMemoryError as error:
            said = str(error)
        assert time.thread_time() - start < 1.0, i
        assert len(said) < 1000, i
    assert memory.status().last_error == ""


anything = st.one_of(
    st.text(),
    st.text(st.characters(exclude_categories=()), max_size=5),
    st.sampled_from([*SYNTAX[:40], SURROGATE, "\x00"]),
)
numbers = st.one_of(st.integers(), st.floats())
loose_json = st.recursive(
    st.none() | st.booleans() | numbers | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=5,
)
as_object = anything | st.dictionaries(anything, loose_json, max_size=3)


def mostly(usual: Any, others: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(usual), st.just(usual), st.just(usual), others)


triples = st.tuples(st.floats(), st.floats(), st.floats())


@given(data=st.data())
@settings(max_examples=settings().max_examples * 2)
def test_no_request_ends_in_anything_but_an_answer_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    memory = _shared(tmp_path_factory)
    places = st.fixed_dictionaries(
        {"field": anything, "target": st.lists(numbers, max_size=4)},
        optional={"max_distance": numbers},
    )
    experience = st.builds(
        Experience,
        content=anything,
        context=mostly("", as_object),
        collection=mostly("", anything),
        session_id=mostly("", anything),
        confidence=mostly(0.9, st.floats()),
        stamp=mostly(1, st.integers()),
        pose=mostly(None, st.builds(Pose, anything, triples, stamp=st.integers())),
        expires=mostly(0, st.integers()),
        uuid=mostly("", anything),
    )
    query = st.builds(
        Query,
        text=mostly("*", anything),
        n=st.integers(),
        min_confidence=mostly(0.0, st.floats()),
        session_id=mostly("", anything),
        collection=mostly("*", anything),
        context_filter=mostly("", as_object),
        spatial_sort=mostly("", places | as_object),
        near=mostly(None, st.builds(Near, anything, triples, st.floats())),
        since=mostly(0, st.integers()),
        until=mostly(0, st.integers()),
        explain=st.booleans(),
    )
    try:
        memory.learn(data.draw(experience))
    except RobotMemoryError as error:
        assert str(error)  # noqa: PT017
    try:
        result = memory.recall(data.draw(query))
        assert all(0.0 <= item.score <= 1.0 for item in result.memories)
    except RobotMemoryError as error:
        assert str(error)  # noqa: PT017


_memories: list[RobotMemory] = []


def _shared(tmp_path_factory: pytest.TempPathFactory) -> RobotMemory:
    if not _memories:
        path = str(tmp_path_factory.mktemp("fuzz") / "memories.db")
        _memories.append(RobotMemory(Config(db_path=path, embed_backend="none")))
    return _memories[0]


@pytest.mark.parametrize(
    ("n", "note"), [(0, "n: 0"), (-5, "n: -5"), (10**6, "n: 1000000"), (5, "")]
)
def test_what_was_held_to_its_range_is_said(memory: RobotMemory, n: int, note: str) -> None:
    memory.learn(Experience("the cup is hot"))
    result = memory.recall(Query("cup", n=n))
    assert len(result.memories) == 1
    assert result.note.startswith(note) if note else not result.note


def test_a_collection_that_holds_nothing_is_named(memory: RobotMemory) -> None:
    memory.learn(Experience("the cup is hot"))
    assert "'elsewhere'" in memory.recall(Query("cup", collection="elsewhere")).note
    assert not memory.recall(Query("quokka")).note


def test_words_that_were_not_looked_up_are_said(memory: RobotMemory) -> None:
    memory.learn(Experience("the cup is hot"))
    words = " ".join(f"w{i}" for i in range(70))
    assert "first 64 words" in memory.recall(Query(words)).note
    assert not memory.recall(Query("cup " + " ".join(f"w{i}" for i in range(20)))).note


def test_a_session_that_is_not_known_is_named(memory: RobotMemory) -> None:
    memory.learn(Experience("the cup is hot", session_id="s1"))
    assert "'s2'" in memory.recall(Query("cup", session_id="s2")).note


@pytest.mark.parametrize(
    "unit", ["1.", "a-", "1a", "A", "Aa ", "a_", '"a', "1 ", "中", "'a", "9", "N·", "A1_", "-."]
)
def test_no_text_takes_longer_than_its_length(memory: RobotMemory, unit: str) -> None:
    """Quadratic work would run for minutes here."""
    text = unit * (99_000 // len(unit.encode()))
    memory.learn(Experience(text))
    memory.recall(Query(text[:50_000], fusion=Fusion.ADAPTIVE))


@pytest.mark.parametrize(
    "text", ["⏰", "∑", "€", "§", "√", "∞", "⌚", "Łódź", "đường", "İstanbul"]
)
def test_signs_and_special_letters_are_found(memory: RobotMemory, text: str) -> None:
    memory.learn(Experience(f"marker {text} end"))
    assert memory.recall(Query(text)).memories
    plain = {"Łódź": "lodz", "đường": "duong", "İstanbul": "istanbul"}.get(text, text)
    assert memory.recall(Query(plain)).memories


def test_distances_beyond_all_numbers_do_no_harm(memory: RobotMemory) -> None:
    memory.learn(Experience("far", pose=Pose("map", (1e308, 0, 0))))
    result = memory.recall(Query("far", near=Near("map", (-1e308, 0, 0)), explain=True))
    assert len(result.memories) == 1
    json.dumps(result.memories[0].details, allow_nan=False)


def test_many_paths_times_many_values_is_a_legal_filter(memory: RobotMemory) -> None:
    for i in range(8):
        value: Any = 7
        for bit in range(3):
            value = [value] if i >> bit & 1 else {"0": value}
        memory.learn(Experience(f"nested {i}", context={"a": value}))
    result = memory.recall(
        Query("nested", n=20, context_filter={"a.0.0.0": {"$in": list(range(64))}})
    )
    assert len(result.memories) == 8
