# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Every service of the node, called from another process: what it does and what it refuses."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from builtin_interfaces.msg import Time  # noqa: E402
from geometry_msgs.msg import Point, PointStamped, PoseStamped  # noqa: E402
from std_msgs.msg import Header  # noqa: E402


def test_what_is_learned_is_recalled(robot: Any) -> None:
    context = {"params": {"grip_force": {"value": 12.5, "unit": "N"}}, "task": {"success": True}}
    learned = robot.learn(insight="Mug slips below 12 N", context=json.dumps(context))
    assert learned.success, learned.message
    assert (learned.message, learned.status) == ("", "created")
    assert json.loads(learned.context) == context

    found = robot.recall(query="mug slips", context_filter='{"task.success": true}')
    assert found.success, found.message
    assert (found.total, found.mode) == (1, "bm25_only")
    assert found.query_ms > 0.0
    (memory,) = found.memories
    assert (memory.id, memory.uuid) == (learned.memory_id, learned.uuid)
    assert memory.content == "Mug slips below 12 N"
    assert json.loads(memory.context) == context
    assert (memory.type, memory.perception_type, memory.collection) == ("fact", "", "default")
    assert memory.score == 1.0
    assert math.isnan(memory.distance)
    assert memory.confidence == pytest.approx(0.9, abs=1e-6)
    assert memory.created_at == memory.updated_at
    assert abs(memory.header.stamp.sec - time.time()) < 60
    assert (memory.expires, memory.superseded_by, memory.score_details) == (Time(), "", "")


def test_the_very_same_memory_is_a_duplicate(robot: Any) -> None:
    first = robot.learn(insight="door 7 opens inwards")
    second = robot.learn(insight="door 7 opens inwards")
    assert (first.status, second.status) == ("created", "duplicate")
    assert second.memory_id == first.memory_id


def test_a_pose_is_stored_and_found_by_distance(robot: Any) -> None:
    pose = PoseStamped(header=Header(frame_id="map"))
    pose.pose.position.x = 3.0
    pose.pose.orientation.z = pose.pose.orientation.w = 2.0
    learned = robot.learn(insight="floor is wet here", has_pose=True, pose=pose)
    assert learned.success, learned.message
    near = PointStamped(header=Header(frame_id="map"), point=Point(x=3.0, y=4.0))
    found = robot.recall(query="wet floor", use_near=True, near=near)
    assert [m.id for m in found.memories] == [learned.memory_id]
    assert found.memories[0].distance == pytest.approx(4.0)
    assert found.memories[0].header.frame_id == "map"
    assert found.memories[0].pose.orientation.w == pytest.approx(math.sqrt(0.5))
    near.header.frame_id = "odom"
    assert robot.recall(query="wet floor", use_near=True, near=near).total == 0


def test_explain_fills_the_details(robot: Any) -> None:
    robot.learn(insight="the charger is behind the blue shelf")
    found = robot.recall(query="charger", explain=True)
    assert json.loads(found.memories[0].score_details)


def test_zero_means_zero(robot: Any) -> None:
    learned = robot.learn(insight="a rumour about the lift", confidence=0.0)
    assert robot.recall(query="rumour lift").total == 0
    (memory,) = robot.recall(query="rumour lift", min_confidence=0.0).memories
    assert (memory.id, memory.confidence) == (learned.memory_id, 0.0)


def test_get_by_number_and_by_uuid(robot: Any) -> None:
    a, b = robot.learn(insight="bin A is full"), robot.learn(insight="bin B is empty")
    answer = robot.get(memory_ids=[b.memory_id, a.memory_id])
    assert answer.success, answer.message
    assert [m.content for m in answer.memories] == ["bin B is empty", "bin A is full"]
    assert robot.get(uuids=[a.uuid]).memories[0].id == a.memory_id

    partly = robot.get(memory_ids=[a.memory_id, 999_999_999])
    assert not partly.success
    assert "999999999" in partly.message
    assert [m.id for m in partly.memories] == [a.memory_id]


def test_forget(robot: Any) -> None:
    learned = robot.learn(insight="obsolete route over the yard")
    assert robot.forget(memory_id=learned.memory_id, reason="the yard is closed").success
    assert robot.recall(query="obsolete route yard").total == 0
    again = robot.forget(memory_id=learned.memory_id)
    assert not again.success
    assert str(learned.memory_id) in again.message


def test_update(robot: Any) -> None:
    learned = robot.learn(insight="gripper needs oil", context='{"robot": {"id": "arm1"}}')
    answer = robot.update(memory_id=learned.memory_id, new_content="gripper was oiled")
    assert answer.success, answer.message
    assert answer.old_content == "gripper needs oil"
    (memory,) = robot.get(memory_ids=[learned.memory_id]).memories
    assert memory.content == "gripper was oiled"
    assert json.loads(memory.context) == {"robot": {"id": "arm1"}}
    missing = robot.update(memory_id=999_999_999, new_content="x")
    assert not missing.success
    assert "999999999" in missing.message


def test_save_perception(robot: Any) -> None:
    answer = robot.save_perception(
        description="a red cup on the table",
        data="[1, 2.5, null]",
        metadata='{"sensor": "cam0", "spatial": {"object_position": [1, 2, 3]}}',
    )
    assert answer.success, answer.message
    (memory,) = robot.get(uuids=[answer.uuid]).memories
    assert (memory.id, memory.type, memory.perception_type) == (
        answer.memory_id,
        "perception",
        "visual",
    )
    context = json.loads(memory.context)
    assert context["data"] == [1, 2.5, None]
    assert context["metadata"]["sensor"] == "cam0"
    assert context["spatial"] == {"object_position": [1, 2, 3]}


def test_background_tasks_answer_at_once(robot: Any) -> None:
    for service in (robot.backfill, robot.reindex):
        answer = service()
        assert answer.success, answer.message
        assert answer.message


BAD_REQUESTS: list[tuple[str, dict[str, Any], str]] = [
    ("learn", {"insight": ""}, "insight"),
    ("learn", {"insight": " \n\t"}, "insight"),
    ("learn", {"insight": "\0"}, "insight"),  # rclpy cuts a text at its first NUL
    ("learn", {"insight": "x" * 1_000_000}, "insight"),
    ("learn", {"insight": "x", "context": "{"}, "context"),
    ("learn", {"insight": "x", "context": "[1]"}, "context"),
    ("learn", {"insight": "x", "context": '{"a": NaN}'}, "context"),
    ("learn", {"insight": "x", "context": "[" * 10_000}, "context"),
    ("learn", {"insight": "x", "context": '{"a": "\\ud800"}'}, "context"),
    ("learn", {"insight": "x", "context": '{"a": "' + "y" * 10_000_000 + '"}'}, "context"),
    ("learn", {"insight": "x", "confidence": 1.5}, "confidence"),
    ("learn", {"insight": "x", "confidence": math.nan}, "confidence"),
    ("learn", {"insight": "x", "stamp": Time(sec=-1)}, "stamp"),
    ("learn", {"insight": "x", "has_pose": True}, "pose.header.frame_id"),
    ("recall", {"query": ""}, "query"),
    ("recall", {"query": "x" * 1_000_000}, "query"),
    ("recall", {"query": "x", "context_filter": "[]"}, "context_filter"),
    ("recall", {"query": "x", "context_filter": '{"a": {"$no": 1}}'}, "context_filter"),
    ("recall", {"query": "x", "spatial_sort": '{"field": 1}'}, "spatial_sort"),
    ("recall", {"query": "x", "min_confidence": math.nan}, "min_confidence"),
    ("recall", {"query": "x", "fusion": "magic"}, "rrf, adaptive, weighted"),
    ("recall", {"query": "x", "use_near": True}, "near.header.frame_id"),
    ("recall", {"query": "x", "since": Time(sec=9), "until": Time(sec=8)}, "until"),
    ("get", {}, "memory_ids"),
    ("get", {"memory_ids": [1], "uuids": ["a"]}, "memory_ids"),
    ("get", {"memory_ids": [1] * 1001}, "memory_ids"),
    ("get", {"uuids": ["no-uuid"]}, "no-uuid"),
    ("forget", {"memory_id": 0}, "0"),
    ("forget", {"memory_id": -(2**63)}, str(-(2**63))),
    ("update", {"memory_id": 999_999_999, "new_content": "x"}, "999999999"),
    ("update", {"memory_id": 1}, "new_content"),
    ("save_perception", {"description": ""}, "description"),
    ("save_perception", {"description": "x", "perception_type": "smell"}, "perception_type"),
    ("save_perception", {"description": "x", "data": "{"}, "data"),
    ("save_perception", {"description": "x", "metadata": "3"}, "metadata"),
]


@pytest.mark.parametrize(("service", "fields", "named"), BAD_REQUESTS)
def test_a_bad_request_is_answered_with_what_is_wrong(
    robot: Any, service: str, fields: dict[str, Any], named: str
) -> None:
    answer = getattr(robot, service)(**fields)
    assert not answer.success
    assert named in answer.message
    assert "internal error" not in answer.message
    assert len(answer.message) <= 1000
    assert robot.recall(query="anything").success  # the next call is served


@pytest.mark.parametrize(
    "text",
    [
        "AND OR NOT NEAR",
        '"',
        "dock-3",
        "grip_force=12.5N",
        "a*b^c:(d)",
        "'; DROP TABLE memories",
        "50%",
    ],
)
def test_search_syntax_is_plain_text(robot: Any, text: str) -> None:
    assert robot.learn(insight=f"note {text} end").success
    assert robot.recall(query=text).success


def test_n_is_held_to_its_range(robot: Any) -> None:
    for i in range(3):
        robot.learn(insight=f"bounded {i}")
    assert robot.recall(query="bounded", n=0).total == 1
    assert robot.recall(query="bounded", n=-5).total == 1
    most = robot.recall(query="bounded", n=10**6)
    assert most.total == 3
    assert most.message == "n: 1000000 was held to 1..100"


def test_an_unknown_collection_is_empty(robot: Any) -> None:
    answer = robot.recall(query="mug", collection="nobody-knows-it")
    assert answer.success
    assert answer.total == 0
    assert answer.message == "collection: 'nobody-knows-it' holds no memory"


def test_text_that_looks_odd_comes_back_as_it_was(robot: Any) -> None:
    text = "杯子 с ручкой ☕ \u200b\u0007 zwei"
    learned = robot.learn(insight=text, context='{"note": "a\\u0000b"}')
    assert learned.success, learned.message
    (memory,) = robot.get(memory_ids=[learned.memory_id]).memories
    assert memory.content == text
    assert json.loads(memory.context)["note"] == "a\0b"
