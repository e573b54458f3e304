# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The core runs on a machine with no ROS at all."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import robotmem_ros.core

CORE = Path(robotmem_ros.core.__file__).parent
ROS = (
    *("rclpy", "rosidl", "ament", "rpyutils", "builtin_interfaces", "std_msgs", "std_srvs"),
    *("geometry_msgs", "sensor_msgs", "nav_msgs", "visualization_msgs", "diagnostic_msgs"),
    *("tf2", "launch", "rosbag2", "rosbags", "lifecycle_msgs", "rcl_interfaces", "rosgraph"),
    *("robotmem_ros.msg", "robotmem_ros.srv"),
)

USE_WITHOUT_ROS = f"""
import importlib, importlib.abc, pkgutil, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith({ROS!r}):
            raise ImportError(f"the core imported {{name}}")
        return None

sys.meta_path.insert(0, Refuse())
import robotmem_ros.core
for module in pkgutil.walk_packages(robotmem_ros.core.__path__, "robotmem_ros.core."):
    importlib.import_module(module.name)

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Query

with RobotMemory(Config(db_path=sys.argv[1], embed_backend="none")) as memory:
    memory.learn(Experience("grasp the cup"))
    assert memory.recall(Query("cup")).memories
strays = [name for name in sys.modules if name.startswith({ROS!r})]
assert not strays, strays
edge = {{name for name in sys.modules if name.startswith("robotmem_ros.")
        and not name.startswith("robotmem_ros.core")}}
assert not edge, edge
"""


def modules_of(source: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source} imports relatively"
            found.add(node.module or "")
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            (name,) = node.args
            assert isinstance(name, ast.Constant), f"{source} imports what it is told to"
            found.add(name.value)
    return found


def test_the_core_is_imported_and_used_without_ros(db_path: str) -> None:
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("ROS_", "AMENT_", "COLCON_", "RMW_"))
    }
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", USE_WITHOUT_ROS, db_path],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_no_source_of_the_core_names_ros_or_the_edge() -> None:
    sources = list(CORE.rglob("*.py"))
    assert len(sources) > 15
    for source in sources:
        for module in modules_of(source):
            assert not module.startswith(ROS), f"{source} imports {module}"
            if module.startswith("robotmem_ros"):
                assert module.startswith("robotmem_ros.core"), f"{source} imports {module}"


def test_only_the_store_knows_sqlite() -> None:
    for source in CORE.rglob("*.py"):
        if "store" not in source.relative_to(CORE).parts[0]:
            assert not modules_of(source) & {"apsw", "sqlite3", "sqlite_vec"}, source
