# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What drives a robot through the hall: it feels a slip, learns from it, and heeds reminders."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from geometry_msgs.msg import PointStamped, PoseWithCovarianceStamped, Twist
from hall import ROUTE
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from robotmem_ros.msg import Memory
from robotmem_ros.srv import EndSession, Learn, Recall, StartSession

CRUISE = 0.9
"""Speed in m/s where nothing is known against it."""

TRIES = (CRUISE, 0.5, 0.3)
"""Speeds to try one after the other where the wheels slip."""

SLIP = 0.15
"""m/s by which the wheels must be faster than the robot to count as slipping."""

WINDOW = 0.25
"""Seconds over which speeds are taken."""

PERIOD = 0.05
"""Seconds between two commands."""

PATIENCE = 20.0
"""Seconds to wait for an answer or for the memory to start."""

TASK = {"task": {"name": "cross_the_hall"}, "env": {"sim_or_real": "sim"}}


class Driver(Node):
    """Drives one robot and asks its memory.

    Attributes
    ----------
    reminders: what the memory said by itself and nobody has looked at yet.
    """

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        super().__init__("driver", namespace=name)
        self._say = say
        self._places: deque[tuple[float, float, float]] = deque(maxlen=100)  # time, x, y: map
        self._turned: deque[tuple[float, float, float]] = deque(maxlen=100)  # and by odometry
        self._heading = 0.0
        self._wheel_speed = 0.0
        self.reminders: deque[Memory] = deque()
        self._command = self.create_publisher(Twist, "cmd_vel", 10)
        self.create_subscription(PoseWithCovarianceStamped, "amcl_pose", self._on_pose, 10)
        self.create_subscription(Odometry, "odom", self._on_odometry, qos_profile_sensor_data)
        self.create_subscription(Memory, "robotmem/reminders", self._on_reminder, 10)
        self._verbs = {
            kind: self.create_client(kind, f"robotmem/{name}")
            for kind, name in (
                (Learn, "learn"),
                (Recall, "recall"),
                (StartSession, "start_session"),
                (EndSession, "end_session"),
            )
        }

    @property
    def place(self) -> tuple[float, float]:
        """Where the robot is, in the frame map."""
        return self._places[-1][1:]

    def call(self, kind: Any, **fields: Any) -> Any:
        """Call a service of the memory and return its answer."""
        client = self._verbs[kind]
        if not client.wait_for_service(timeout_sec=PATIENCE):
            raise SystemExit(f"{client.srv_name} is not there")
        done = threading.Event()
        future = client.call_async(kind.Request(**fields))
        future.add_done_callback(lambda _: done.set())
        if not done.wait(PATIENCE) or not future.result().success:
            why = future.result().message if future.done() else "no answer"
            raise SystemExit(f"{client.srv_name}: {why}")
        return future.result()

    def wait_until_ready(self) -> None:
        """Wait for the memory to serve and for the robot to say where it is."""
        self.call(Recall, query="*")
        deadline = time.monotonic() + PATIENCE
        while not self._places:
            if time.monotonic() > deadline:
                raise SystemExit("the simulator says nothing")
            time.sleep(0.05)

    def explore(self, put: Callable[[float, float], None]) -> int:
        """Drive the route, find by trying how fast one can go where it is slippery.

        Parameters
        ----------
        put: sets the robot down somewhere else, as a person would.

        Returns
        -------
        At how many places it slipped.
        """
        self.call(StartSession, context=json.dumps(TASK))
        found = 0
        for x, y in ROUTE:
            while (slipped_at := self._drive(x, y, CRUISE)) is not None:
                found += 1
                self._learn_slip(slipped_at, CRUISE)
                self._find_speed(slipped_at, put)
        self._stop()
        self._end(f"crossed the hall; slipped at {found} places")
        return found

    def cross(self) -> int:
        """Drive the route, heeding reminders; return how many were heeded."""
        self.call(StartSession, context=json.dumps(TASK))
        heeded: list[str] = []
        self._limits: list[tuple[float, float]] = []  # (up to which x, how fast)
        for x, y in ROUTE:
            slipped_at = self._drive(x, y, CRUISE, lambda: self._heed(heeded))
            if slipped_at is not None:
                self._learn_slip(slipped_at, CRUISE)
                self._end("slipped in spite of what was known", outcome=0.0)
                raise SystemExit(f"it slipped at x = {slipped_at[0]:.1f} m")
        self._stop()
        self._end("crossed the hall without a slip")
        return len(heeded)

    def _find_speed(
        self, slipped_at: tuple[float, float], put: Callable[[float, float], None]
    ) -> None:
        """Go back and cross again, ever slower, until it works; learn each result."""
        beyond = slipped_at[0] + 1.3
        for speed in TRIES[1:]:
            self._stop()
            put(slipped_at[0] - 0.6, 0.0)
            time.sleep(2 * WINDOW)
            again = self._drive(beyond, 0.0, speed)
            if again is None:
                self._learn(
                    f"Crossed the slippery floor at {speed} m/s without a slip.",
                    {
                        "task": {"success": True},
                        "params": {"speed": _metres_per_second(speed)},
                        "spatial": {"entered": [*slipped_at, 0.0], "left": [*self.place, 0.0]},
                    },
                )
                return
            self._learn_slip(again, speed)
        raise SystemExit("no speed was slow enough")

    def _heed(self, heeded: list[str]) -> float:
        """Return how fast to go, after looking at what the memory says by itself."""
        while self.reminders:
            reminder = self.reminders.popleft()
            self._say(f'reminded, {reminder.distance:.2f} m ahead: "{reminder.content}"')
            heeded.append(reminder.uuid)
            self._ask_how_to_pass(reminder)
        x = self.place[0]
        return min((speed for limit, speed in self._limits if x < limit), default=CRUISE)

    def _ask_how_to_pass(self, reminder: Memory) -> None:
        near = PointStamped(header=reminder.header, point=reminder.pose.position)
        near.header.stamp.sec = 0
        answer = self.call(
            Recall,
            query="how to cross the slippery floor",
            context_filter=json.dumps({"task.success": True, "params.speed": {"$exists": True}}),
            use_near=True,
            near=near,
            near_radius=1.8,
            n=1,
        )
        if not answer.memories:
            self._say("  and knows no way to pass")
            return
        advice = answer.memories[0]
        context = json.loads(advice.context)
        limit, speed = context["spatial"]["left"][0], context["params"]["speed"]["value"]
        if (limit, speed) not in self._limits:
            self._limits.append((limit, speed))
            self._say(f'  recalls: "{advice.content}" and slows down to {speed} m/s')

    def _drive(
        self, x: float, y: float, speed: float, allowed: Callable[[], float] | None = None
    ) -> tuple[float, float] | None:
        """Drive to a point; return where the wheels slipped, None if they did not."""
        fast_enough_since = time.monotonic() + 2 * WINDOW
        while self.place[0] < x:
            limit = min(speed, allowed()) if allowed else speed
            here = self.place
            bearing = math.atan2(y - here[1], max(x - here[0], 0.3))
            turn = 2.0 * math.remainder(bearing - self._heading, math.tau)
            command = Twist()
            command.linear.x, command.angular.z = limit, max(-1.0, min(1.0, turn))
            self._command.publish(command)
            time.sleep(PERIOD)
            if time.monotonic() > fast_enough_since and self._slips():
                self._stop()
                return here
        return None

    def _stop(self) -> None:
        self._command.publish(Twist())
        deadline = time.monotonic() + 2.0
        while abs(self._wheel_speed) > 0.01 and time.monotonic() < deadline:
            time.sleep(PERIOD)
            self._command.publish(Twist())

    def _slips(self) -> bool:
        return _speed(self._turned) - _speed(self._places) > SLIP

    def _learn_slip(self, place: tuple[float, float], speed: float) -> None:
        self._learn(
            f"Wheels spun on slippery floor at {speed} m/s.",
            {
                "task": {"success": False},
                "env": {"hazard": "slippery floor"},
                "params": {"speed": _metres_per_second(speed)},
                "spatial": {"entered": [*place, 0.0]},
            },
        )

    def _learn(self, insight: str, context: dict[str, Any]) -> None:
        whole = {**context, "task": {**TASK["task"], **context["task"]}}
        whole["env"] = {**TASK["env"], **context.get("env", {})}
        answer = self.call(Learn, insight=insight, context=json.dumps(whole))
        captured = json.loads(answer.context).get("ros", {})
        self._say(f'learns: "{insight}" (captured from {", ".join(captured) or "nothing"})')

    def _end(self, summary: str, outcome: float = 1.0) -> None:
        answer = self.call(EndSession, has_outcome=True, outcome_score=outcome, summary=summary)
        episode = answer.episode
        self._say(
            f"ends the episode: {summary} ({len(episode.memories)} memories, "
            f"{len(episode.trajectory)} poses)"
        )

    def _on_pose(self, message: PoseWithCovarianceStamped) -> None:
        stamp = message.header.stamp.sec + message.header.stamp.nanosec * 1e-9
        pose = message.pose.pose
        self._heading = 2.0 * math.atan2(pose.orientation.z, pose.orientation.w)
        self._places.append((stamp, pose.position.x, pose.position.y))

    def _on_reminder(self, memory: Memory) -> None:
        self.reminders.append(memory)

    def _on_odometry(self, message: Odometry) -> None:
        stamp = message.header.stamp.sec + message.header.stamp.nanosec * 1e-9
        position = message.pose.pose.position
        self._turned.append((stamp, position.x, position.y))
        self._wheel_speed = message.twist.twist.linear.x


def _speed(places: Sequence[tuple[float, float, float]]) -> float:
    """Return the mean speed over the last WINDOW, in m/s."""
    places = list(places)  # another thread adds to it
    newest = places[-1]
    before = next((p for p in reversed(places) if newest[0] - p[0] >= WINDOW), None)
    return math.dist(newest[1:], before[1:]) / (newest[0] - before[0]) if before else 0.0


def _metres_per_second(value: float) -> dict[str, Any]:
    return {"value": value, "unit": "m/s"}
