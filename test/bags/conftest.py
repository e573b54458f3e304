# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of bags, which need no ROS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from bag_writer import GRIP

from robotmem_ros.cli.main import main
from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory

PARAMETERS = f"""
/**:
  ros__parameters:
    use_sim_time: false
    context_sources: [odom, amcl, joints, grip]
    pose_source: amcl
    odom.topic: odom
    odom.type: nav_msgs/msg/Odometry
    odom.fields: ["spatial.odom = pose.pose.position", "robot.speed = twist.twist.linear.x"]
    amcl:
      topic: amcl_pose
      type: geometry_msgs/msg/PoseWithCovarianceStamped
      max_age: 0.0
      fields: ["spatial.position = pose.pose.position"]
    joints.topic: /joint_states
    joints.type: sensor_msgs/msg/JointState
    joints.fields: ["robot.wrist = position[2]", "robot.joints = position"]
    grip.topic: grip
    grip.type: {GRIP}
    grip.fields: ["params.grip_force.value = force"]
"""


class Ran(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    problems: list[str]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "memories.db"


@pytest.fixture
def run(db: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `robotmem import` with the parameters above on the database of the test."""
    file = tmp_path / "robotmem.yaml"
    file.write_text(PARAMETERS)

    def command(*arguments: object, parameters: Path | None = file) -> Ran:
        line = ["import", "--db", str(db), *map(str, arguments)]
        if parameters is not None:
            line += ["--params-file", str(parameters)]
        try:
            code = main(line)
        except SystemExit as exit_:  # argparse
            code = int(exit_.code or 0)
        out, err = capsys.readouterr()
        return Ran(code, out, err.splitlines())

    return command


@pytest.fixture
def memory(db: Path) -> Iterator[Callable[[], RobotMemory]]:
    """Open the database of the test; it is closed at the end."""
    opened: list[RobotMemory] = []

    def start() -> RobotMemory:
        opened.append(RobotMemory(Config(db_path=str(db), embed_backend="none")))
        return opened[-1]

    yield start
    for one in opened:
        one.close()
