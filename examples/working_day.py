# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A robot's working day: learn it through the services of a real node, then ask about it.

    python3 examples/working_day.py [--keep FILE]

Builds what it needs on the first run (see .ci/environment.py), starts robotmem_node with a real
embedding model and a new database, has it learn the experiences of working_day.jsonl, and asks
questions as a planner or an operator would. Nothing leaves this computer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / ".ci"))

import environment  # noqa: E402

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
SINK = {"frame": "map", "point": (6.1, 10.3, 0.0), "radius": 1.0}

# (what it shows, query, further fields of the request)
QUESTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("the same thing in other words", "picking up a mug by its handle", {}),
    ("an exact code", "how do I clear E-217?", {}),
    ("a part number", "where is PN-40117-B?", {}),
    ("a number with its unit", "tighten the screw to 4.2 N·m", {}),
    ("no word in common", "the robot will not take current from its charging station", {}),
    ("what happened next", "what happened after the first M6 screw was cross-threaded?", {}),
    ("Chinese", "如何抓取杯子", {}),
    ("Chinese", "水槽前地面湿滑怎么办", {}),
    (
        "only what worked, with 10 N or more",
        "firm grasp that worked",
        {"context_filter": {"task.success": True, "params.grip_force.value": {"$gte": 10}}},
    ),
    (
        "hazards within 1 m of the sink, nearest first",
        "what can go wrong here?",
        {"near": SINK, "context_filter": {"env.hazard": {"$exists": True}}},
    ),
    (
        "where the cup stood, nearest first",
        "grasp the cup",
        {
            "spatial_sort": {
                "field": "spatial.object_position",
                "target": [3.86, 11.34, 0.95],
                "max_distance": 0.1,
            }
        },
    ),
    ("an episode from its beginning", "*", {"session_id": "dock-and-charge", "n": 9}),
)


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--keep", type=Path, help="keep the database in this file")
    options = parser.parse_args()
    inside = environment.enter()

    import rclpy

    os.environ["ROS_DOMAIN_ID"] = str(environment.free_domain())
    with tempfile.TemporaryDirectory() as folder:
        database = options.keep.resolve() if options.keep else Path(folder) / "day.db"
        if database.exists():
            sys.exit(f"{database} is there already: name another file, or remove it")
        with running_node(database, inside.model):
            rclpy.init()
            try:
                demonstrate(Robot())
            finally:
                rclpy.try_shutdown()
    if options.keep:
        print(f"\nThe day is kept in {database}.")


@contextlib.contextmanager
def running_node(database: Path, model: Path) -> Iterator[None]:
    """Run robotmem_node in a process of its own for as long as the block lasts."""
    parameters = {"db_path": database, "model_path": model, "onnx_model": MODEL}
    command = [str(Path(sys.prefix) / "lib" / "robotmem_ros" / "robotmem_node"), "--ros-args"]
    for name, value in parameters.items():
        command += ["-p", f"{name}:={value}"]
    node = subprocess.Popen([*command, "--log-level", "warn"])
    try:
        yield
    finally:
        node.terminate()
        node.wait()


class Robot:
    """A client of the memory: what a robot's own node would have."""

    def __init__(self) -> None:
        from rclpy.node import Node
        from robotmem_ros.srv import Learn, Recall, SavePerception

        self._node = Node("working_day")
        self._clients = {
            kind: self._node.create_client(kind, f"/robotmem/{name}")
            for kind, name in (
                (Learn, "learn"),
                (Recall, "recall"),
                (SavePerception, "save_perception"),
            )
        }
        for client in self._clients.values():
            if not client.wait_for_service(timeout_sec=30.0):
                sys.exit("the node did not start")

    def call(self, request_type: Any, **fields: Any) -> Any:
        """Call a service and return its answer."""
        import rclpy

        future = self._clients[request_type].call_async(request_type.Request(**fields))
        rclpy.spin_until_future_complete(self._node, future, timeout_sec=30.0)
        answer = future.result()
        if answer is None or not answer.success:
            sys.exit(f"{request_type.__name__}: {answer.message if answer else 'no answer'}")
        return answer

    def wait_until_embedded(self) -> Any:
        """Wait until every memory has its vector; return the status."""
        import rclpy
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from robotmem_ros.msg import Status

        received: list[Any] = []
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        subscription = self._node.create_subscription(
            Status, "/robotmem/status", received.append, latched
        )
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            rclpy.spin_once(self._node, timeout_sec=0.5)
            if received and received[-1].memories and not received[-1].pending_embeddings:
                break
        self._node.destroy_subscription(subscription)
        return received[-1]


def demonstrate(robot: Robot) -> None:
    """Learn the day, then ask about it."""
    with (HERE / "working_day.jsonl").open(encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    print(f"Learning a day of {len(lines)} experiences ...", flush=True)
    start = time.perf_counter()
    for line in lines:
        learn(robot, line)
    seconds = time.perf_counter() - start
    status = robot.wait_until_embedded()
    print(
        f"  done: {seconds / len(lines) * 1e3:.1f} ms each, on disk; {status.memories} memories, "
        f"{status.db_bytes / 1024:.0f} KiB, model {status.model}\n"
    )
    for title, text, fields in QUESTIONS:
        ask(robot, title, text, dict(fields))


def learn(robot: Robot, line: dict[str, Any]) -> None:
    """Have the node learn one line of the file."""
    from geometry_msgs.msg import PoseStamped
    from robotmem_ros.srv import Learn, SavePerception

    if line["kind"] == "perception":
        robot.call(
            SavePerception,
            description=line["text"],
            perception_type=line["perception_type"],
            data=json.dumps(line["data"]),
            metadata=json.dumps(line["metadata"]),
            session_id=line["episode"],
        )
        return
    pose = PoseStamped()
    pose.header.frame_id = line["pose"]["frame_id"]
    pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = map(
        float, line["pose"]["position"]
    )
    pose.pose.orientation.z = math.sin(line["pose"]["yaw"] / 2)
    pose.pose.orientation.w = math.cos(line["pose"]["yaw"] / 2)
    robot.call(
        Learn,
        insight=line["text"],
        context=json.dumps(line["context"]),
        session_id=line["episode"],
        confidence=line["confidence"],
        has_pose=True,
        pose=pose,
    )


def ask(robot: Robot, title: str, text: str, fields: dict[str, Any]) -> None:
    """Ask one question and print what the robot remembers."""
    from geometry_msgs.msg import PointStamped
    from robotmem_ros.srv import Recall

    conditions = "".join(f"  {name}={json.dumps(value)}" for name, value in fields.items())
    near = fields.pop("near", None)
    for name in ("context_filter", "spatial_sort"):
        if name in fields:
            fields[name] = json.dumps(fields[name])
    if near:
        point = PointStamped()
        point.header.frame_id = near["frame"]
        point.point.x, point.point.y, point.point.z = near["point"]
        fields |= {"use_near": True, "near": point, "near_radius": near["radius"]}
    fields.setdefault("n", 3)
    answer = robot.call(Recall, query=text, **fields)
    print(f"[{title}]  {text}{conditions}")
    for memory in answer.memories:
        print(f"  {_place(memory)}  {memory.content}")
    print(f"  ({answer.mode}, {answer.query_ms:.1f} ms)\n", flush=True)


def _place(memory: Any) -> str:
    if math.isnan(memory.distance):
        return f"{memory.score:5.2f}"
    return f"{memory.score:5.2f}  {memory.distance:5.2f} m"


if __name__ == "__main__":
    main()
