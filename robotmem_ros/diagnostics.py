# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The state of the node as /diagnostics, by stated rules.

There are four: store, embedder, sources and requests. Each is

- OK: it works in full;
- WARN: it works in part, or something went wrong in the last RECENT seconds: texts cannot be
  embedded, one of the two ways to search is broken, a source is silent, requests were refused;
- ERROR: it does not work: the store cannot be opened or read, or not searched in any way;
- STALE: the node is not active and nothing is wrong: what is shown is from before, if anything.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType

from robotmem_ros import qos
from robotmem_ros.conversions import text

if TYPE_CHECKING:
    from rclpy.node import Node

    from robotmem_ros.boundary import Boundary
    from robotmem_ros.capture import SourceState
    from robotmem_ros.core.model import Queue, Status

PERIOD = 1.0
"""Seconds from message to message, of the steady clock."""

RECENT = 30.0
"""Seconds for which something that went wrong is worth a warning."""

SILENCE = 5.0
"""Seconds after which a store that does not answer is an error."""

_OK, _WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
_ERROR, _STALE = DiagnosticStatus.ERROR, DiagnosticStatus.STALE


@dataclass(frozen=True, slots=True)
class Vitals:
    """All that is known about a node at one moment.

    Attributes
    ----------
    time: that moment, in seconds of the steady clock.
    active: whether it serves requests.
    failure: why it could not be configured or activated; empty if it could, or nobody tried.
    status: state of the store; None if it was not read, or could not be.
    read_at: when it was read or the store was opened, in seconds of the steady clock; minus
        infinity if it could not be read.
    session: the open episode.
    last_error: the last fault; empty if there was none.
    failed_at: when that was, in seconds of the steady clock.
    queues: by name.
    """

    time: float
    active: bool
    failure: str = ""
    status: Status | None = None
    read_at: float = -math.inf
    session: str = ""
    last_error: str = ""
    failed_at: float = -math.inf
    sources: Sequence[SourceState] = ()
    queues: Mapping[str, Queue] = field(default_factory=dict)


class DiagnosticsTopic:
    """Publishes the state of a node, in whatever state it is.

    Parameters
    ----------
    read: returns that state, without waiting for anything.
    hardware_id: names the robot; empty means the name of this computer.
    """

    def __init__(
        self, node: Node, boundary: Boundary, read: Callable[[], Vitals], hardware_id: str
    ) -> None:
        self._node = node
        self._boundary = boundary
        self._read = read
        self._hardware_id = hardware_id or socket.gethostname()
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", qos.DIAGNOSTICS)
        node.create_timer(
            PERIOD,
            self._publish,
            callback_group=MutuallyExclusiveCallbackGroup(),
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def _publish(self) -> None:
        try:
            name = self._node.get_fully_qualified_name()
            array = DiagnosticArray(status=statuses(self._read(), name, self._hardware_id))
            array.header.stamp = self._node.get_clock().now().to_msg()
            self._publisher.publish(array)
        except Exception as error:
            self._boundary.explain(error, "/diagnostics")


def statuses(vitals: Vitals, node_name: str, hardware_id: str) -> list[DiagnosticStatus]:
    """Return what /diagnostics says of a node."""
    parts = {
        "store": _store(vitals),
        "embedder": _embedder(vitals),
        "sources": _sources(vitals),
        "requests": _requests(vitals),
    }
    found = []
    for name, (level, message, values) in parts.items():
        if not vitals.active and level != _ERROR:
            level, message = _STALE, "the node is not active"
        status = DiagnosticStatus(level=level, message=text(message))
        status.name = f"{node_name.strip('/')}: {name}"
        status.hardware_id = text(hardware_id)
        status.values = [KeyValue(key=text(k), value=text(str(v))) for k, v in values.items()]
        found.append(status)
    return found


_Part = tuple[bytes, str, dict[str, object]]


def _store(vitals: Vitals) -> _Part:
    status = vitals.status
    silence = vitals.time - vitals.read_at
    values: dict[str, object]
    if status is None:
        values = {"last error": vitals.last_error}
        if not vitals.failure and not (vitals.active and silence > SILENCE):
            return _STALE, "not read yet", values
        return _ERROR, vitals.failure or vitals.last_error or "the store cannot be read", values
    values = {
        "file": status.db_path,
        "size (bytes)": status.db_bytes,
        "schema version": status.schema_version,
        "memories": status.memories,
        "superseded memories": status.superseded,
        "episodes": status.episodes,
        "collections": status.collections,
        "open episode": vitals.session,
        "task": f"{status.task} {status.task_done}/{status.task_total}" if status.task else "",
        "last task": status.task_result,
        "last error": vitals.last_error or status.last_error,
    }
    problems = [reason for reason in (status.keyword_reason, status.vector_reason) if reason]
    if vitals.failure:
        return _ERROR, vitals.failure, values
    if vitals.active and silence > SILENCE:
        return _ERROR, f"the store has not answered for {silence:.0f} s", values
    if len(problems) == 2:
        return _ERROR, "; ".join(problems), values
    if problems:
        return _WARN, problems[0], values
    if _is_recent(vitals, vitals.failed_at):
        return _WARN, vitals.last_error, values
    return _OK, f"{status.memories} memories", values


def _embedder(vitals: Vitals) -> _Part:
    status = vitals.status
    if status is None:
        return _STALE, "no store is open", {}
    values: dict[str, object] = {
        "backend": status.backend,
        "model": status.model,
        "dimension": status.dimension,
        "available": status.embedder_available,
        "reason": status.embedder_reason,
        "pending vectors": status.pending_embeddings,
    }
    if status.backend == "none":
        return _OK, "off: search is by keywords alone", values
    if not status.embedder_available:
        return _WARN, status.embedder_reason or "texts cannot be embedded now", values
    waiting = status.pending_embeddings
    return _OK, f"{waiting} vectors to make" if waiting else "every memory has its vector", values


def _sources(vitals: Vitals) -> _Part:
    values: dict[str, object] = {}
    for source in vitals.sources:
        age = "no message yet" if source.age is None else f"{source.age:.2f} s old"
        note = source.problem or ("stale" if source.stale else "")
        if source.dropped:
            note += f"{'; ' if note else ''}{source.dropped} too many for the history"
        values[source.name] = f"{source.topic}: {age}" + (f"; {note}" if note else "")
    stale = [source.name for source in vitals.sources if source.stale]
    values["stale sources"] = ", ".join(stale)
    problems = [source.problem for source in vitals.sources if source.problem]
    if problems:
        return _WARN, problems[0], values
    if stale:
        return _WARN, f"nothing fresh from {', '.join(stale)}", values
    count = len(vitals.sources)
    return _OK, f"{count} sources are fresh" if count else "no source is configured", values


def _requests(vitals: Vitals) -> _Part:
    values: dict[str, object] = {}
    for name, queue in vitals.queues.items():
        values[f"{name} waiting"] = queue.length
        values[f"{name} refused"] = queue.refused
    full = [name for name, queue in vitals.queues.items() if _is_recent(vitals, queue.refused_at)]
    if full:
        return _WARN, f"refused lately, because the queue was full: {', '.join(full)}", values
    return _OK, "nothing is refused", values


def _is_recent(vitals: Vitals, time: float) -> bool:
    return vitals.time - time < RECENT
