# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""use_sim_time: no time before the first /clock, and the time of /clock from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from builtin_interfaces.msg import Time  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402

from robotmem_ros import msg, qos  # noqa: E402


def test_no_time_is_refused_and_simulated_time_is_kept(
    start_node: Callable[..., Any], caller: Any
) -> None:
    process = start_node(use_sim_time=True)
    robot = harness.Robot(caller, process.name).wait_ready()
    refused = robot.learn(insight="when?")
    assert not refused.success
    assert "stamp" in refused.message
    assert "/clock" in refused.message
    assert not robot.save_perception(description="when?").success
    stamped = robot.learn(insight="at a time of its own", stamp=Time(sec=100, nanosec=7))
    assert stamped.success, stamped.message
    assert robot.recall(query="time of its own").total == 1
    heard = caller.listen(msg.Status, f"{process.name}/status", qos.STATUS)
    status = harness.wait_for(lambda: heard and heard[-1].memories == 1 and heard[-1])
    assert status.ready  # the steady timer does not wait for /clock

    clock = caller.node.create_publisher(Clock, "/clock", 10)

    def learned_with_clock() -> Any:
        clock.publish(Clock(clock=Time(sec=5000, nanosec=250_000_000)))
        answer = robot.learn(insight="in the simulation")
        return answer if answer.success else None

    learned = harness.wait_for(learned_with_clock)
    (memory,) = robot.get(memory_ids=[learned.memory_id]).memories
    assert memory.header.stamp == Time(sec=5000, nanosec=250_000_000)
    assert memory.created_at.sec > 1_000_000_000  # the wall clock
    caller.node.destroy_publisher(clock)
