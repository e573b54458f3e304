# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The SROS 2 policy of the examples allows what the node does, and callers what is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

harness = pytest.importorskip("harness", reason="needs ROS 2 and the built package")

POLICY = Path(__file__).parents[2] / "examples" / "sros2" / "robotmem.policy.xml"
CHANGES = {"forget", "update", "backfill", "reindex", "backup", "change_state", "set_parameters"}


def rules(enclave: str) -> dict[tuple[str, str], set[str]]:
    """Return what an enclave of the policy allows, by kind and right, names in full."""
    root = ElementTree.parse(POLICY).getroot()
    assert root.tag == "policy"
    assert root.get("version") == "0.2.0"
    (found,) = [one for one in root.find("enclaves") or () if one.get("path") == enclave]
    allowed: dict[tuple[str, str], set[str]] = {}
    for profile in found.iter("profile"):
        own = f"{profile.attrib['ns'].rstrip('/')}/{profile.attrib['node']}"
        for group in profile:
            for right, value in group.attrib.items():
                assert value == "ALLOW"
                names = {item.text or "" for item in group}
                full = {own + n[1:] if n.startswith("~") else "/" + n.lstrip("/") for n in names}
                allowed.setdefault((group.tag, right), set()).update(full)
    return allowed


def test_the_node_may_do_all_it_does(start_node: Callable[..., Any], caller: Any) -> None:
    process = start_node(
        namespace="/policy",
        remind_radius=1.0,
        pose_source="odom",
        context_sources="[odom]",
        **{"odom.topic": "odom", "odom.type": "nav_msgs/msg/Odometry"},
    )
    harness.Robot(caller, process.name).wait_ready()
    node = caller.node

    def of_the_policy(found: list[tuple[str, list[str]]]) -> set[str]:
        return {name.replace("/policy/", "/") for name, _ in found}

    services = of_the_policy(node.get_service_names_and_types_by_node("robotmem", "/policy"))
    topics = of_the_policy(node.get_publisher_names_and_types_by_node("robotmem", "/policy"))
    heard = of_the_policy(node.get_subscriber_names_and_types_by_node("robotmem", "/policy"))
    allowed = rules("/robotmem")
    assert "/robotmem/learn" in services
    assert services <= allowed["services", "reply"]
    assert topics <= allowed["topics", "publish"]
    assert heard <= allowed["topics", "subscribe"]


def test_callers_may_call_what_there_is() -> None:
    replies = rules("/robotmem")["services", "reply"]
    for enclave in ("teacher", "reader", "keeper"):
        allowed = rules(f"/robotmem/{enclave}")
        assert allowed["services", "request"] <= replies
        assert ("services", "reply") not in allowed
    for enclave, forbidden in (("teacher", CHANGES), ("reader", CHANGES | {"learn"})):
        names = {
            n.rpartition("/")[2] for n in rules(f"/robotmem/{enclave}")["services", "request"]
        }
        assert not names & forbidden
