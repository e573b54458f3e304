# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The one table of parameters: declares them on the node, checks them, and writes their documents.

Each row is a field of the core's Config or of NodeConfig. `python3 -m
robotmem_ros.parameters --yaml` prints config/robotmem.yaml, `--markdown` the table of the README.
"""

from __future__ import annotations

import argparse
import difflib
import json
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.parameter import Parameter

from robotmem_ros.core.config import STRINGS, Config, Setting
from robotmem_ros.node_config import CORE, EDGE, TABLE, NodeConfig

if TYPE_CHECKING:
    from rclpy.node import Node

WIDTH = 96


def declare(node: Node) -> tuple[Config, NodeConfig]:
    """Declare every parameter on the node and return the checked configuration.

    Raises
    ------
    ConfigError: a parameter has a value that is not allowed.
    """
    values = {item.name: declare_one(node, item) for item in TABLE}
    return (
        Config(**{item.name: values[item.name] for item in CORE}),
        NodeConfig(**{item.name: values[item.name] for item in EDGE}),
    )


def declare_one(node: Node, item: Setting) -> Any:
    """Declare one parameter on the node and return its checked value.

    Raises
    ------
    ConfigError: it has a value that is not allowed.
    """
    # Taken as it comes and checked here: what rclpy says of a wrong value is no help to a user.
    loose = ParameterDescriptor(dynamic_typing=True)
    given = node.declare_parameter(item.name, item.default, loose).value
    if given is None and item.type == STRINGS:
        given = ()  # what an empty list in a YAML file becomes
    value = item.check(given)
    kept = Parameter(item.name, value=value)  # 60 becomes 60.0
    if item.type == STRINGS:
        kept = Parameter(item.name, Parameter.Type.STRING_ARRAY, list(value))
    node.set_parameters([kept])
    node.set_descriptor(item.name, descriptor(item))
    return value


def unknown(node: Node) -> list[str]:
    """Return one sentence for each parameter that was given to the node but that it has not."""
    # rclpy keeps what it was given here, in every version so far, and has no public way to ask.
    given: Iterable[str] = getattr(node, "_parameter_overrides", {})
    known = [item.name for item in TABLE]
    sentences = []
    for name in sorted(given):
        if node.has_parameter(name) or name.startswith("qos_overrides."):
            continue
        sentence = f"parameter {name} is not known and has no effect"
        close = difflib.get_close_matches(name, known, n=1)
        sentences.append(f"{sentence}; did you mean {close[0]}?" if close else sentence)
    return sentences


def changes(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return the settings of the core that a request to set parameters changes, checked.

    Raises
    ------
    ConfigError: a value is not allowed.
    """
    rows = {item.name: item for item in TABLE}
    checked = {p.name: rows[p.name].check(p.value) for p in parameters if p.name in rows}
    core = {item.name for item in CORE}
    return {name: value for name, value in checked.items() if name in core}


SOURCE_EXAMPLE = """\
# context_sources: [odom, joints]
# odom.topic: odom
# odom.type: nav_msgs/msg/Odometry
# odom.max_age: 2.0
# odom.fields:
#   - spatial.position = pose.pose.position
#   - spatial.orientation = pose.pose.orientation
#   - robot.speed = twist.twist.linear.x
# joints.topic: joint_states
# joints.type: sensor_msgs/msg/JointState
# joints.fields: ["params.wrist_torque.value = effort[5]", "robot.joints = position"]
# pose_source: odom
"""
"""How sources are written, for the YAML file: their parameters are not in the table."""


def descriptor(item: Setting) -> ParameterDescriptor:
    """Return what `ros2 param describe` shows of a setting."""
    described = ParameterDescriptor(
        name=item.name,
        description=item.description,
        read_only=item.read_only,
        additional_constraints=item.allowed if item.choices else "",
        # So that 2 is taken where 2.0 is meant; the type is checked by the setting.
        dynamic_typing=True,
    )
    if item.type is int and item.low is not None:
        high = 2**63 - 1 if item.high is None else int(item.high)
        described.integer_range = [IntegerRange(from_value=int(item.low), to_value=high, step=1)]
    if item.type is float and item.low is not None and item.high is not None:
        described.floating_point_range = [
            FloatingPointRange(from_value=float(item.low), to_value=float(item.high), step=0.0)
        ]
    return described


def as_yaml() -> str:
    """Return the text of config/robotmem.yaml."""
    lines = [
        "# Parameters of robotmem_node, each with its default. This file is made by",
        "#     python3 -m robotmem_ros.parameters --yaml",
        "# Copy it, change what you need, and give it to the node:",
        "#     ros2 launch robotmem_ros robotmem.launch.py params_file:=/path/to/copy.yaml",
        "/**:",
        "  ros__parameters:",
    ]
    for item in TABLE:
        lines.append("")
        # The choices stand in the description where there are any.
        facts = item.allowed[0].upper() + item.allowed[1:]
        facts += "." if item.read_only else "; can be changed while the node runs."
        for paragraph in (item.description, facts):
            lines += textwrap.wrap(
                paragraph,
                WIDTH,
                initial_indent="    # ",
                subsequent_indent="    # ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        lines.append(f"    {item.name}: {json.dumps(item.default)}")
        if item.name == "context_sources":
            lines += ["    " + line for line in ("# For example:", *SOURCE_EXAMPLE.splitlines())]
    lines += [
        "",
        "    # Take the time from /clock (simulation, a played bag) instead of the system clock.",
        "    # A parameter of every ROS 2 node. True or false.",
        "    use_sim_time: false",
    ]
    return "\n".join(lines) + "\n"


def as_markdown() -> str:
    """Return the table of parameters for the README."""
    lines = ["| parameter | default | allowed | meaning |", "|---|---|---|---|"]
    for item in TABLE:
        note = "" if item.read_only else " Can be changed while the node runs."
        lines.append(
            f"| `{item.name}` | `{json.dumps(item.default)}` | {item.allowed} "
            f"| {item.description}{note} |"
        )
    return "\n".join(lines) + "\n"


def main(args: list[str] | None = None) -> None:
    """Print one of the documents that are made from the table."""
    parser = argparse.ArgumentParser(prog="robotmem_ros.parameters", description=main.__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--yaml", action="store_true", help="config/robotmem.yaml")
    what.add_argument("--markdown", action="store_true", help="the table of the README")
    print(as_yaml() if parser.parse_args(args).yaml else as_markdown(), end="")


if __name__ == "__main__":
    main()
