# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the process: wrong ones stop the start, right ones can be seen and changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402

from robotmem_ros import parameters  # noqa: E402

WRONG = [
    # parameter, value, what the line says besides
    ("queue_size", "many", "an integer from 1 to"),
    ("queue_size", 0, "an integer from 1 to"),
    ("queue_size", 2.5, "an integer from 1 to"),
    ("recall_threads", 65, "an integer from 1 to 64"),
    ("onnx_threads", True, "an integer from 1 to 64"),
    ("decay_rate", 1.5, "a number from 0 to 0.999"),
    ("decay_rate", ".nan", "a number from 0 to 0.999"),
    ("real_weight", "heavy", "a number from 0 to 100"),
    ("embed_backend", "magic", "one of onnx, ollama, none"),
    ("fusion", "cold", "one of rrf, adaptive, weighted"),
    ("collection", 5, "text"),
    ("collection", "[a, b]", "text"),
    ("collection", "", "not empty"),
    ("autostart", "perhaps", "true or false"),
    ("use_sim_time", 3, "BOOL"),
]


@pytest.mark.parametrize(("name", "value", "allowed"), WRONG)
def test_a_wrong_parameter_stops_the_start_with_one_line(
    start_node: Callable[..., Any], name: str, value: Any, allowed: str
) -> None:
    process = start_node(**{name: value})
    assert process.wait() == 2
    (line,) = process.stderr.splitlines()
    assert name in line
    assert str(value).strip("[].").split(",")[0] in line
    assert allowed in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_stops_the_start(
    start_node: Callable[..., Any], tmp_path: Path
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    process = start_node(db_path=str(locked / "robotmem.db"))
    assert process.wait() == 2
    (line,) = process.stderr.splitlines()
    assert "db_path" in line
    assert "locked/robotmem.db" in line


@pytest.mark.parametrize("path", ["/proc/robotmem.db", "/dev/null/robotmem.db", "/"])
def test_a_path_that_cannot_be_written_stops_the_start(
    start_node: Callable[..., Any], path: str
) -> None:
    process = start_node(db_path=path)
    assert process.wait() == 2
    (line,) = process.stderr.splitlines()
    assert "parameter db_path" in line
    assert path in line


def test_a_parameter_file_that_cannot_be_read_stops_the_start(
    start_node: Callable[..., Any], tmp_path: Path
) -> None:
    missing = tmp_path / "missing.yaml"
    process = start_node(arguments=("--params-file", str(missing)))
    assert process.wait() == 2
    assert "missing.yaml" in process.stderr
    assert "Traceback" not in process.stderr


def test_a_misspelt_parameter_is_named(start_node: Callable[..., Any], caller: Any) -> None:
    process = start_node(collectin="x", zzz=1)
    harness.Robot(caller, process.name).wait_ready()
    assert "collectin is not known and has no effect; did you mean collection?" in process.stderr
    assert "zzz is not known and has no effect" in process.stderr


def test_the_file_of_the_package_is_accepted_in_a_namespace(
    start_node: Callable[..., Any], caller: Any
) -> None:
    file = Path(__file__).parents[2] / "config" / "robotmem.yaml"
    process = start_node(
        arguments=("--params-file", str(file)), namespace="/file", embed_timeout=3
    )
    robot = harness.Robot(caller, process.name).wait_ready()
    assert "not known" not in process.stderr
    values = robot.caller.call(
        GetParameters, f"{process.name}/get_parameters", names=["embed_timeout", "collection"]
    ).values
    assert (values[0].double_value, values[1].string_value) == (3.0, "default")


def test_every_parameter_is_declared_and_described(robot: Any) -> None:
    names = robot.caller.call(ListParameters, f"{robot.name}/list_parameters").result.names
    table = {item.name: item for item in parameters.TABLE}
    assert set(table) <= set(names)
    described = robot.caller.call(
        DescribeParameters, f"{robot.name}/describe_parameters", names=list(table)
    ).descriptors
    for descriptor in described:
        item = table[descriptor.name]
        assert descriptor.description == item.description
        assert descriptor.read_only == item.read_only
        if item.type is int:
            assert descriptor.integer_range
        if item.choices:
            assert all(choice in descriptor.additional_constraints for choice in item.choices)


def _set(robot: Any, name: str, value: Any) -> Any:
    message = Parameter(name, value=value).to_parameter_msg()
    (result,) = robot.set_parameters(parameters=[message]).results
    return result


def test_parameters_change_while_the_node_runs(robot: Any) -> None:
    robot.learn(insight="fused by rank", context='{"env": {"sim_or_real": "real"}}')
    assert _set(robot, "fusion", "rrf").successful
    assert _set(robot, "real_weight", 2).successful
    assert robot.recall(query="fused rank").success


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("fusion", "cold", "rrf, adaptive, weighted"),
        ("fusion", 3, "rrf, adaptive, weighted"),
        ("decay_rate", -1.0, "decay_rate"),
        ("decay_rate", "low", "decay_rate"),
        ("rrf_k", 0, "rrf_k"),
        ("db_path", "/tmp/other.db", "read-only"),
        ("autostart", False, "read-only"),
    ],
)
def test_a_change_that_is_not_allowed_is_refused(
    robot: Any, name: str, value: Any, reason: str
) -> None:
    result = _set(robot, name, value)
    assert not result.successful
    assert reason in result.reason
    assert robot.recall(query="anything").success
