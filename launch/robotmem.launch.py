# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Start the memory node: ros2 launch robotmem_ros robotmem.launch.py [name:=value ...]."""

from __future__ import annotations

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext, LaunchDescription

OVERRIDES = ("use_sim_time", "autostart", "db_path")
"""Arguments that set the parameter of the same name, unless they are empty."""


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the node."""
    default_parameters = PathJoinSubstitution(
        [FindPackageShare("robotmem_ros"), "config", "robotmem.yaml"]
    )
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "namespace", default_value="", description="Namespace of the node, one per robot."
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=default_parameters,
                description="YAML file with the parameters of the node.",
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="",
                description="true takes the time from /clock; empty: as params_file says.",
            ),
            DeclareLaunchArgument(
                "autostart",
                default_value="",
                description="false leaves configuring and activating to somebody else; "
                "empty: as params_file says.",
            ),
            DeclareLaunchArgument(
                "db_path",
                default_value="",
                description="File that holds the memories; empty: as params_file says.",
            ),
            DeclareLaunchArgument(
                "log_level",
                default_value="info",
                description="Least level that is logged: debug, info, warn, error or fatal.",
            ),
            OpaqueFunction(function=_start_node),
        ]
    )


def _start_node(context: LaunchContext) -> list[Node]:
    given = {name: LaunchConfiguration(name).perform(context) for name in OVERRIDES}
    parameters = {name: _typed(name, value) for name, value in given.items() if value}
    return [
        Node(
            package="robotmem_ros",
            executable="robotmem_node",
            name="robotmem",
            namespace=LaunchConfiguration("namespace"),
            parameters=[LaunchConfiguration("params_file"), parameters],
            arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
            output="screen",
        )
    ]


def _typed(name: str, value: str) -> bool | str:
    if name == "db_path":
        return value
    if value.lower() not in ("true", "false"):
        raise ValueError(f"{name}:={value} is not allowed; it must be true or false")
    return value.lower() == "true"
