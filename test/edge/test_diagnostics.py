# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""/diagnostics: the level of each part follows a stated rule, and the values say why."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

pytest.importorskip("robotmem_ros.msg", reason="needs ROS 2 and the built package")

from diagnostic_msgs.msg import DiagnosticStatus

from robotmem_ros import diagnostics
from robotmem_ros.capture import SourceState
from robotmem_ros.core.model import Queue, Status
from robotmem_ros.diagnostics import RECENT, Vitals

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
NOW = 1000.0

ERROR, STALE = DiagnosticStatus.ERROR, DiagnosticStatus.STALE

HEALTHY = Status(
    **{
        **{f.name: 0 if f.type == "int" else "" for f in dataclasses.fields(Status)},
        "db_path": "/data/robot.db", "db_bytes": 4096, "backend": "onnx", "model": "m",
        "dimension": 384, "embedder_available": True, "memories": 12, "pending_embeddings": 3,
    }
)  # fmt: skip

FRESH = SourceState("odom", "/odom", 1, 0.02, False, "")


def read(**fields: Any) -> dict[str, DiagnosticStatus]:
    status = fields.pop("status", HEALTHY)
    known: dict[str, Any] = {"time": NOW, "read_at": NOW - 1.0, "active": True}
    vitals = Vitals(**{**known, "status": status, **fields})
    found = diagnostics.statuses(vitals, "/arm/robotmem", "robot-7")
    assert {s.hardware_id for s in found} == {"robot-7"}
    return {s.name.removeprefix("arm/robotmem: "): s for s in found}


def values(status: DiagnosticStatus) -> dict[str, str]:
    return {v.key: v.value for v in status.values}


def changed(**fields: Any) -> Status:
    return dataclasses.replace(HEALTHY, **fields)


def test_a_healthy_node_is_ok_in_all_parts() -> None:
    found = read(sources=[FRESH], queues={"recall": Queue(2)}, session="s1")
    assert list(found) == ["store", "embedder", "sources", "requests"]
    assert {s.level for s in found.values()} == {OK}
    store = values(found["store"])
    assert store["size (bytes)"] == "4096"
    assert store["memories"] == "12"
    assert store["open episode"] == "s1"
    assert store["last error"] == ""
    assert values(found["embedder"])["pending vectors"] == "3"
    assert values(found["sources"])["odom"] == "/odom: 0.02 s old"
    assert values(found["requests"]) == {"recall waiting": "2", "recall refused": "0"}


def test_an_inactive_node_is_stale() -> None:
    for status in (HEALTHY, None):
        found = read(active=False, status=status)
        assert {s.level for s in found.values()} == {STALE}
        assert found["store"].message == "the node is not active"


def test_a_store_that_cannot_be_opened_is_an_error() -> None:
    store = read(active=False, status=None, failure="robot.db: no database")["store"]
    assert (store.level, store.message) == (ERROR, "robot.db: no database")


def test_a_store_that_cannot_be_read_is_an_error() -> None:
    store = read(status=None, last_error="status: disk failed", read_at=-math.inf)["store"]
    assert (store.level, store.message) == (ERROR, "status: disk failed")


def test_one_broken_search_is_a_warning_and_two_are_an_error() -> None:
    assert read(status=changed(vector_reason="v"))["store"].level == WARN
    assert read(status=changed(keyword_reason="k"))["store"].level == WARN
    both = read(status=changed(keyword_reason="k", vector_reason="v"))["store"]
    assert (both.level, both.message) == (ERROR, "k; v")


def test_a_fault_is_a_warning_for_a_while_and_a_value_for_ever() -> None:
    new = read(last_error="~/learn: disk is full", failed_at=NOW - RECENT / 2)["store"]
    assert (new.level, new.message) == (WARN, "~/learn: disk is full")
    old = read(last_error="~/learn: disk is full", failed_at=NOW - 2 * RECENT)["store"]
    assert old.level == OK
    assert values(old)["last error"] == "~/learn: disk is full"


def test_an_embedder_that_is_down_is_a_warning_with_its_reason() -> None:
    down = read(status=changed(embedder_available=False, embedder_reason="no server"))["embedder"]
    assert (down.level, down.message) == (WARN, "no server")
    assert values(down)["reason"] == "no server"


def test_no_embedder_at_all_is_as_configured() -> None:
    off = read(status=changed(backend="none", embedder_available=False))["embedder"]
    assert off.level == OK


def test_stale_sources_and_wrong_publishers_are_warnings() -> None:
    silent = SourceState("joints", "/joint_states", 0, None, True, "")
    found = read(sources=[FRESH, silent])["sources"]
    assert (found.level, found.message) == (WARN, "nothing fresh from joints")
    assert values(found)["stale sources"] == "joints"
    assert values(found)["joints"] == "/joint_states: no message yet; stale"
    wrong = SourceState("odom", "/odom", 0, 0.1, False, "published as another type")
    assert read(sources=[wrong])["sources"].level == WARN


def test_refusals_are_a_warning_while_they_are_recent() -> None:
    now = read(queues={"recall": Queue(256, 9, NOW - 1.0), "write": Queue(0)})
    assert now["requests"].level == WARN
    assert "recall" in now["requests"].message
    assert "write" not in now["requests"].message
    later = read(queues={"recall": Queue(0, 9, NOW - 2 * RECENT)})["requests"]
    assert later.level == OK
    assert values(later)["recall refused"] == "9"


def test_what_no_message_can_carry_is_replaced() -> None:
    store = read(status=changed(db_path="/tmp/\ud800\0"))["store"]
    assert values(store)["file"] == "/tmp/\ufffd\ufffd"


def test_a_store_that_was_just_opened_is_not_judged_yet() -> None:
    store = read(status=None)["store"]
    assert (store.level, store.message) == (STALE, "not read yet")


def test_a_store_that_does_not_answer_is_an_error() -> None:
    store = read(read_at=NOW - 20.0)["store"]
    assert (store.level, store.message) == (ERROR, "the store has not answered for 20 s")
    assert read(read_at=NOW - 20.0, active=False)["store"].level == STALE
