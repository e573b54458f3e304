# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Quality of service of every topic and service of the node, by name."""

from collections.abc import Iterable

from rclpy.qos import QoSDurabilityPolicy, QoSHistoryPolicy, QoSProfile, QoSReliabilityPolicy

SERVICES = QoSProfile(
    history=QoSHistoryPolicy.KEEP_LAST,
    depth=1000,
    reliability=QoSReliabilityPolicy.RELIABLE,
    durability=QoSDurabilityPolicy.VOLATILE,
)
"""All services. With the usual depth of 10, the eleventh of many requests that come at once would
push out the first one, whose caller then waits for ever."""

MEMORIES = QoSProfile(
    history=QoSHistoryPolicy.KEEP_LAST,
    depth=1000,
    reliability=QoSReliabilityPolicy.RELIABLE,
    durability=QoSDurabilityPolicy.VOLATILE,
)
"""~/memories: deep enough for the bursts of a whole fleet's import."""

STATUS = QoSProfile(
    history=QoSHistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=QoSReliabilityPolicy.RELIABLE,
    durability=QoSDurabilityPolicy.TRANSIENT_LOCAL,
)
"""~/status: latched, so that whoever subscribes later gets the present state at once."""

EPISODES = QoSProfile(
    history=QoSHistoryPolicy.KEEP_LAST,
    depth=10,
    reliability=QoSReliabilityPolicy.RELIABLE,
    durability=QoSDurabilityPolicy.TRANSIENT_LOCAL,
)
"""~/episodes: latched, so that whoever subscribes later gets the ten that ended last."""

MARKERS = QoSProfile(
    history=QoSHistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=QoSReliabilityPolicy.RELIABLE,
    durability=QoSDurabilityPolicy.TRANSIENT_LOCAL,
)
"""~/markers: latched; each message is all there is to be seen."""

REMINDERS = QoSProfile(
    history=QoSHistoryPolicy.KEEP_LAST,
    depth=100,
    reliability=QoSReliabilityPolicy.RELIABLE,
    durability=QoSDurabilityPolicy.VOLATILE,
)
"""~/reminders: not latched, because what was near before is not near now."""

DIAGNOSTICS = QoSProfile(
    history=QoSHistoryPolicy.KEEP_LAST,
    depth=10,
    reliability=QoSReliabilityPolicy.RELIABLE,
    durability=QoSDurabilityPolicy.VOLATILE,
)
"""/diagnostics: as every other node publishes it."""

SENSOR_DEPTH = 50
"""Messages of a captured topic that wait to be taken, 20 times a second: enough at 1000 Hz."""


IMPORT_DEPTH = 10_000
"""Messages of an imported topic that wait to be taken, as in a burst of a bag that is played fast.
What is beyond it DDS drops without a word, so it is more than may wait to be stored."""


def sensor(*, best_effort: bool, latched: bool) -> QoSProfile:
    """Return the quality of service to listen to a captured topic with."""
    return _listening(SENSOR_DEPTH, best_effort, latched)


def importing(*, best_effort: bool, latched: bool) -> QoSProfile:
    """Return the quality of service to listen to an imported topic with."""
    return _listening(IMPORT_DEPTH, best_effort, latched)


def served_by(publishers: Iterable[QoSProfile]) -> dict[str, bool]:
    """Return the best that every one of some publishers can serve, for the functions above."""
    profiles = list(publishers)
    reliable, latched = QoSReliabilityPolicy.RELIABLE, QoSDurabilityPolicy.TRANSIENT_LOCAL
    return {
        "best_effort": any(p.reliability != reliable for p in profiles),
        "latched": all(p.durability == latched for p in profiles),
    }


def _listening(depth: int, best_effort: bool, latched: bool) -> QoSProfile:
    reliability, durability = QoSReliabilityPolicy, QoSDurabilityPolicy
    return QoSProfile(
        history=QoSHistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=reliability.BEST_EFFORT if best_effort else reliability.RELIABLE,
        durability=durability.TRANSIENT_LOCAL if latched else durability.VOLATILE,
    )
