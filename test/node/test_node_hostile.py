# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Whatever is sent to the node, it answers, and is as healthy as before."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import soundness
import tally
import wild
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from rclpy.serialization import serialize_message  # noqa: E402

from robotmem_ros import msg, qos  # noqa: E402

LONG = bool(os.environ.get("ROBOTMEM_TROUBLE_MINUTES"))
EXAMPLES = 8000 if LONG else 400

FUZZED = (
    *("learn", "recall", "save_perception", "forget", "update", "get"),
    *("start_session", "end_session", "backfill", "reindex"),
)
IN_JSON = ("context", "context_filter", "spatial_sort", "data", "metadata")
BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


class Target:
    """The node, and how to tell that it is healthy."""

    def __init__(self, process: Any, caller: Any, path: Path) -> None:
        self.process = process
        self.robot = harness.Robot(caller, process.name).wait_ready()
        self.path = path
        self._learned = 0

    def call(self, service: str, fields: dict[str, Any]) -> Any:
        """Call a service; it must answer, with a reason if it refuses."""
        answer = getattr(self.robot, service)(**fields)
        assert answer.success or answer.message
        assert len(answer.message) < 2000
        assert "internal error" not in answer.message, answer.message
        tally.add(inputs_tried=1, calls_answered=1)
        return answer

    def is_healthy(self) -> bool:
        """Return whether a plain learn and a recall work."""
        self._learned += 1
        fields = {"session_id": "health", "insight": f"the cup is healthy {self._learned}"}
        learned = self.robot.learn(**fields)
        found = self.robot.recall(query=fields["insight"], session_id="health", n=100)
        return learned.success and learned.memory_id in {item.id for item in found.memories}

    @property
    def resident(self) -> int:
        """Bytes of memory the node holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def target(caller: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("hostile")
    process = harness.NodeProcess(folder, import_topics="[/wild/memories, /wild/episodes]")
    target = Target(process, caller, folder / "robotmem.db")
    yield target
    process.end()
    assert process.wait() == 0
    assert "Traceback" not in process.stderr
    with soundness.opened(str(target.path)) as connection:
        found = soundness.problems(connection)
    assert [problem for problem in found if "episode memories" not in problem] == []
    tally.add(lost=0, doubled=0)


def values(kind: str, name: str, default: Any) -> st.SearchStrategy[Any]:
    """Return what may be put into a field of a message, mostly what is there by default."""
    if kind.startswith("sequence<") or kind.endswith("]"):
        inner = re.sub(r"sequence<(\w+).*|\[.*", r"\1", kind)
        return st.lists(values(inner, name, None), max_size=4)
    if kind == "boolean":
        return st.booleans()
    if kind == "string":
        odd = wild.texts if name not in IN_JSON else st.one_of(wild.jsons, wild.texts)
        return st.one_of(st.just(default or ""), odd)
    if kind in ("double", "float"):
        return st.one_of(st.just(default or 0.0), wild.numbers.map(float))
    if kind.lstrip("u") in BITS:
        low = 0 if kind.startswith("u") else -(2 ** BITS[kind])
        high = 2 ** (BITS[kind.lstrip("u")] + kind.startswith("u")) - 1
        return st.one_of(st.integers(max(low, 0), 5), st.integers(low, high))
    return messages(type(default))


def messages(kind: Any) -> st.SearchStrategy[Any]:
    """Return messages of a type."""
    default = kind()
    fields = {
        name: values(of, name, getattr(default, name))
        for name, of in kind.get_fields_and_field_types().items()
    }
    return st.builds(kind, **fields)


calls = st.sampled_from(FUZZED).flatmap(
    lambda name: st.tuples(st.just(name), messages(harness.SERVICES[name].Request))
)


@settings(
    max_examples=EXAMPLES,
    derandomize=not LONG,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(call=calls)
def test_any_request_is_answered(target: Target, call: tuple[str, Any]) -> None:
    name, request = call
    fields = {field: getattr(request, field) for field in request.get_fields_and_field_types()}
    target.call(name, fields)
    assert target.is_healthy()


LARGE = "x" * wild.LARGE
BIG: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("learn", {"insight": LARGE}),
    "context": ("learn", {"insight": "x", "context": f'{{"a": "{LARGE}"}}'}),
    "depth": ("learn", {"insight": "x", "context": "[" * wild.LARGE}),
    "query": ("recall", {"query": "word " * (wild.LARGE // 5)}),
    "filter": ("recall", {"query": "*", "context_filter": '{"a": [' + "1," * (wild.LARGE // 2)}),
    "sort": ("recall", {"query": "*", "spatial_sort": "{" * wild.LARGE}),
    "perception": ("save_perception", {"description": "x", "data": LARGE}),
    "update": ("update", {"memory_id": 1, "new_content": LARGE}),
    "reason": ("forget", {"memory_id": 1, "reason": LARGE}),
    "numbers": ("get", {"memory_ids": [1] * (wild.LARGE // 8)}),
    "uuids": ("get", {"uuids": ["x" * 1000] * (wild.LARGE // 1000)}),
    "session": ("start_session", {"context": "[" * wild.LARGE}),
    "summary": ("end_session", {"summary": LARGE}),
    "name": ("recall", {"query": "x", "session_id": LARGE}),
}


@pytest.mark.parametrize("what", BIG)
def test_ten_megabytes_are_refused(target: Target, what: str) -> None:
    service, fields = BIG[what]
    answer = target.call(service, fields)
    assert not answer.success
    assert target.is_healthy()


def test_its_memory_goes_back_to_normal(target: Target) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")

    def trouble() -> None:
        for what in ("text", "context", "filter", "numbers"):
            target.call(*BIG[what])

    for _ in range(12):  # DDS keeps what it needed for the largest of many at once
        trouble()
    before = target.resident
    for _ in range(12):
        trouble()
    assert target.is_healthy()
    assert target.resident - before < 3 * wild.LARGE, "of 480 MB some were kept"


def test_messages_that_are_none_do_no_harm(target: Target, caller: Any) -> None:
    """What comes on imported topics is not even read by rclpy: any bytes may stand there."""
    source = random.Random(tally.seed())
    publishers = {
        kind: caller.node.create_publisher(kind, topic, profile)
        for kind, topic, profile in (
            (msg.Memory, "/wild/memories", qos.MEMORIES),
            (msg.Episode, "/wild/episodes", qos.EPISODES),
        )
    }
    for publisher in publishers.values():
        harness.wait_for(lambda it=publisher: it.get_subscription_count())
    good = msg.Memory(content="a wild cup", uuid="5d2b1c9e-0000-4000-8000-000000000001")
    good.collection, good.context, good.type = "wild", '{"a": [1, 2]}', "fact"
    for _ in range(2000 if LONG else 200):
        kind = source.choice([*publishers])
        message = good if kind is msg.Memory else msg.Episode(memories=[good], session_id="w")
        publishers[kind].publish(_spoiled(bytes(serialize_message(message)), source))
        tally.add(inputs_tried=1)
    assert target.is_healthy()
    good.header.stamp.sec = 1
    publishers[msg.Memory].publish(good)
    harness.wait_for(lambda: target.robot.recall(query="wild cup", collection="*").total)
    for publisher in publishers.values():
        caller.node.destroy_publisher(publisher)


def _spoiled(data: bytes, source: random.Random) -> bytes:
    """Return bytes that differ from a message by something."""
    how: list[Callable[[], bytes]] = [
        lambda: data[: source.randrange(len(data))],
        lambda: source.randbytes(source.randrange(200)),
        lambda: data[:4] + source.randbytes(len(data) - 4),
        lambda: data + b"\xff" * 50,
        lambda: _with(data, source.randrange(4, len(data)), source.randbytes(1)),
        lambda: _with(data, source.randrange(4, len(data) - 4) & ~3, b"\xff\xff\xff\x7f"),
    ]
    return source.choice(how)()


def _with(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]
