# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure what capturing costs: joint states at 200 Hz and odometry at 100 Hz, over DDS.

    python3 benchmarks/capture.py [--seconds N] [--json FILE]

Each way to listen runs in a process of its own, which holds the whole node; its share of one core
is the processor time of that process, DDS included. Another process publishes. `polled` is what
the node does; the others are what it could do instead, in the same run. Then the time that a
learned memory waits for what is captured, with 10 s of both topics held.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

WAYS = {
    "idle": "no source",
    "objects": "a callback for each message, as an object",
    "raw": "a callback for each message, as bytes",
    "polled": "the node: taken 20 times a second, as bytes",
}
LIMIT = 15.0
"""Percent of one core that both topics may cost."""

WARM_UP = 3.0
HISTORY = 10.0
SOURCES = {
    "context_sources": "[odom, joints]",
    "pose_source": "odom",
    "capture_history": str(HISTORY),
    "odom.topic": "odom",
    "odom.type": "nav_msgs/msg/Odometry",
    "odom.fields": "['spatial.position = pose.pose.position', "
    "'spatial.orientation = pose.pose.orientation', 'robot.speed = twist.twist.linear.x']",
    "joints.topic": "joint_states",
    "joints.type": "sensor_msgs/msg/JointState",
    "joints.fields": "['robot.joints = name', 'robot.positions = position', "
    "'params.wrist_torque.value = effort[6]']",
}


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=12.0, help="time for each way")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "publish":
        publish(options.seconds)
    elif options.part:
        print(json.dumps(listen(options.part, options.seconds)))
    else:
        results = measure(options.seconds)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))


def measure(seconds: float) -> dict[str, Any]:
    """Let each way listen, print a table and return it."""
    results: dict[str, Any] = {}
    print(f"{'way':8} {'of one core':>11} {'messages/s':>10}")
    for way, meaning in WAYS.items():
        publisher = _part("publish", seconds + 10.0)
        answer, _ = _part(way, seconds).communicate()
        publisher.kill()
        publisher.communicate()
        results[way] = found = json.loads(answer)
        print(f"{way:8} {found['cpu']:10.1f}% {found['rate']:10.0f}  {meaning}", flush=True)
    p50, p99 = results["polled"]["p50"], results["polled"]["p99"]
    print(f"\ncapture of both topics and the pose: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    cost = results["polled"]["cpu"] - results["idle"]["cpu"]
    print(f"cost of both topics: {cost:.1f} % of one core (limit {LIMIT:.0f} %)")
    return results


def listen(way: str, seconds: float) -> dict[str, float]:
    """Run the node with one way to listen; return what it cost."""
    import rclpy
    from nav_msgs.msg import Odometry
    from rclpy.executors import SingleThreadedExecutor
    from sensor_msgs.msg import JointState

    from robotmem_ros import qos
    from robotmem_ros.node import RobotmemNode

    with tempfile.TemporaryDirectory() as folder:
        parameters = {"db_path": f"{folder}/robotmem.db", "embed_backend": "none"}
        parameters |= SOURCES if way == "polled" else {}
        arguments = [f"{name}:={value}" for name, value in parameters.items()]
        rclpy.init(args=["--ros-args", *(a for pair in arguments for a in ("-p", pair))])
        node = RobotmemNode()
        node.autostart()
        count = 0

        def received(message: Any) -> None:
            nonlocal count
            count += 1

        if way in ("objects", "raw"):
            profile = qos.sensor(best_effort=True, latched=False)
            for kind, topic in ((Odometry, "odom"), (JointState, "joint_states")):
                node.create_subscription(kind, topic, received, profile, raw=way == "raw")
        executor = SingleThreadedExecutor()
        executor.add_node(node)

        def spin(duration: float) -> None:
            end = time.monotonic() + duration
            while time.monotonic() < end:
                executor.spin_once(0.2)

        spin(WARM_UP)
        before, count = _processor_time(), 0
        start = time.monotonic()
        spin(seconds)
        passed = time.monotonic() - start
        figures = {"cpu": (_processor_time() - before) / passed * 100.0, "rate": count / passed}
        if way == "polled":
            capture = node._capture
            held = [topic.samples for topic in capture._topics]
            figures["rate"] = sum(map(len, held)) / min(HISTORY, passed + WARM_UP)
            figures |= _latency(capture.at, lambda: spin(0.02))
        node.destroy_node()
        rclpy.shutdown()
    return figures


def publish(seconds: float) -> None:
    """Publish odometry, as sensors do, and joint states."""
    import rclpy
    from nav_msgs.msg import Odometry
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import JointState

    rclpy.init(args=[])
    node = rclpy.create_node("robot")
    odom = node.create_publisher(Odometry, "odom", qos_profile_sensor_data)
    joints = node.create_publisher(JointState, "joint_states", 10)
    where = Odometry(child_frame_id="base_link")
    where.header.frame_id = "odom"
    names = [f"joint_{i}" for i in range(7)]
    state = JointState(name=names, position=[0.1] * 7, velocity=[0.0] * 7, effort=[1.0] * 7)
    start = time.monotonic()
    for number in range(int(seconds * 200)):
        stamp = node.get_clock().now().to_msg()
        state.header.stamp = stamp
        joints.publish(state)
        if number % 2 == 0:
            where.header.stamp = stamp
            odom.publish(where)
        time.sleep(max(0.0, start + (number + 1) / 200 - time.monotonic()))


def _latency(capture: Callable[[int], Any], between: Callable[[], None]) -> dict[str, float]:
    times = []
    for _ in range(200):
        between()
        start = time.perf_counter()
        assert capture(0).context
        times.append((time.perf_counter() - start) * 1e3)
    times.sort()
    return {"p50": times[100], "p99": times[198]}


def _part(name: str, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--part", name, "--seconds", str(seconds)]
    # Not in the checkout, whose folder robotmem_ros has no interfaces.
    return subprocess.Popen(command, cwd="/", stdout=subprocess.PIPE, text=True)


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
