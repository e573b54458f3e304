# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""~/memories and ~/episodes of a running node, recorded: a full export into any empty store."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")
pytest.importorskip("rosbags", reason="reads and writes the bags")

from bag_over_dds import Player, Recorder  # noqa: E402
from bag_writer import FORMATS  # noqa: E402
from driving import POSES, Driver, pose_at  # noqa: E402
from geometry_msgs.msg import Point, PointStamped  # noqa: E402
from std_msgs.msg import Header  # noqa: E402

from robotmem_ros import msg, qos  # noqa: E402
from robotmem_ros.cli.main import main  # noqa: E402

MODEL = os.environ.get("ROBOTMEM_MODEL_PATH", "")
HYBRID: dict[str, Any] = {
    "embed_backend": "onnx",
    "model_path": MODEL,
    "onnx_model": "sentence-transformers/all-MiniLM-L6-v2",
}
SEARCH = HYBRID if MODEL else {}

TEXTS = ("grasped the red cup", "slippery floor at the sink", "抓取红色杯子", "the door is closed")

QUERIES: tuple[dict[str, Any], ...] = (
    {"query": "slippery floor at the sink", "n": 10},
    {"query": "picking up a mug", "n": 20, "context_filter": '{"task.success": true}'},
    {"query": "抓取 杯子", "n": 10},
    {"query": "what happened in the lab?", "n": 20, "collection": "*"},
    {
        "query": "cup",
        "n": 10,
        "use_near": True,
        "near": PointStamped(header=Header(frame_id="map"), point=Point(x=3.0)),
        "near_radius": 2.0,
    },
    {"query": "*", "n": 100, "collection": "*"},
)


def live_a_little(robot: Any, driver: Driver) -> list[str]:
    """Have a robot learn all kinds of things; return its episodes."""
    for number in range(12):
        answer = robot.learn(
            insight=f"{TEXTS[number % 4]}, attempt {number}",
            context=json.dumps({"task": {"success": number % 3 == 0}, "force": number / 7}),
            confidence=0.5 + number / 30,
            has_pose=number % 2 == 0,
            pose=pose_at(0.5 * number),
            collection="lab" if number % 5 == 0 else "",
        )
        assert answer.success, answer.message
    assert robot.update(memory_id=3, new_content="the floor at the sink is dry again").success
    sessions = []
    for outcome in (0.9, 0.2):
        sessions.append(robot.start_session(context='{"task": {"name": "fetch"}}').session_id)
        driver.along([0.3 * step for step in range(10)], seconds=0.06)
        for text in ("The cup slips.", "the cup  slips", "drove on", f"it went {outcome}"):
            assert robot.learn(insight=text).success
        assert robot.save_perception(description="a squeak", perception_type="auditory").success
        ended = robot.end_session(has_outcome=True, outcome_score=outcome, summary="fetched a cup")
        assert ended.success, ended.message
    assert robot.learn(insight="the last word").success
    return sessions


def answers(caller: Any, process: Any, sessions: list[str]) -> list[tuple[Any, list[float]]]:
    """Return what a node recalls, once all its vectors are made, and with which scores."""
    robot = harness.Robot(caller, process.name)
    statuses = caller.listen(msg.Status, f"{process.name}/status", qos.STATUS)
    harness.wait_for(lambda: statuses and statuses[-1].pending_embeddings == 0)
    replays = ({"query": "*", "n": 50, "session_id": session} for session in sessions)
    found: list[tuple[Any, list[float]]] = []
    for query in (*QUERIES, *replays):
        answer = robot.recall(min_confidence=0.0, **query)
        assert answer.success, answer.message
        assert len(answer.memories) > 2
        found.append((answer.mode, []))
        for memory in answer.memories:
            scores = [memory.score, memory.distance, memory.confidence]
            memory.score = memory.distance = memory.confidence = 0.0
            memory.id = memory.access_count = 0  # each store's own affair
            found.append((memory, scores))
    return found


def check_same(one: list[tuple[Any, list[float]]], other: list[tuple[Any, list[float]]]) -> None:
    """Check that two nodes recall the same, in the same order, with the same scores."""
    assert [what for what, _ in one] == [what for what, _ in other]
    scores = [[score for _, some in rows for score in some] for rows in (one, other)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6, nan_ok=True)


def count(caller: Any, process: Any) -> tuple[int, int, int]:
    statuses = caller.listen(msg.Status, f"{process.name}/status", qos.STATUS)
    harness.wait_for(lambda: statuses)
    time.sleep(1.2)  # it is told once a second
    status = statuses[-1]
    return status.memories, status.superseded, status.episodes


@pytest.mark.parametrize("storage", FORMATS)
def test_what_a_running_node_says_makes_the_same_store_elsewhere_once(
    start_node: Callable[..., Any],
    caller: Any,
    tmp_path: Path,
    storage: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    process = start_node(db_path=str(tmp_path / "robot.db"), **SEARCH, **POSES)
    robot = harness.Robot(caller, process.name).wait_ready()
    memories, episodes = f"{process.name}/memories", f"{process.name}/episodes"
    bag = tmp_path / "bag"
    said = {memories: (msg.Memory, qos.MEMORIES), episodes: (msg.Episode, qos.EPISODES)}
    recorder = Recorder(caller, said)
    first = robot.learn(insight="is anybody listening?").memory_id
    for number in itertools.count():  # what is said before DDS has connected them is not recorded
        time.sleep(0.2)
        if recorder.of(memories):
            break
        assert number < 100, "the node is not heard"
        assert robot.update(memory_id=first, context=f'{{"asked": {number}}}').success
    sessions = live_a_little(robot, Driver(caller, process.name))
    harness.wait_for(lambda: recorder.of(memories)[-1].content == "the last word")
    harness.wait_for(lambda: len(recorder.of(episodes)) == 2)
    recorder.close(bag, storage)
    before, counted = answers(caller, process, sessions), count(caller, process)
    assert before[0][0] == ("hybrid" if MODEL else "bm25_only")
    assert counted[1:] == (2, 2)  # in each episode two memories that say the same became one
    process.end()

    # Played, over topics.
    played = tmp_path / "played.db"
    listener = start_node(db_path=str(played), import_topics=f"[{memories}, {episodes}]", **SEARCH)
    harness.Robot(caller, listener.name).wait_ready()
    with Player(caller, bag) as player:
        player.wait_for_listeners((memories, episodes))
        time.sleep(1.0)  # each has to find the other
        for _ in range(2):
            player.play()
            harness.wait_for(lambda: count(caller, listener) == counted)
            check_same(answers(caller, listener, sessions), before)
    listener.end()

    # Offline; also what was played, which is there already.
    offline = tmp_path / "offline.db"
    for db, new in ((offline, counted[0] + counted[1]), (offline, 0), (played, 0)):
        assert main(["import", str(bag), "--db", str(db)]) == 0
        out = capsys.readouterr().out
        assert f" {new} memories new" in out
        assert f"{2 if new else 0} of 2 episodes new" in out
    other = start_node(db_path=str(offline), **SEARCH)
    harness.Robot(caller, other.name).wait_ready()
    assert count(caller, other) == counted
    check_same(answers(caller, other, sessions), before)
