# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Memories that speak up by themselves when the robot comes near where they were made."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from robotmem_ros.core import filters
from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import ConfigError, InvalidRequestError
from robotmem_ros.core.filters import Conditions, Place
from robotmem_ros.core.model import EVERY_COLLECTION, Json, Memory, Pose
from robotmem_ros.core.store import Snapshot, Store

Position = tuple[float, float, float]

_MARGIN = 0.25  # share of the distance looked around that the robot may go before the next look


@dataclass(slots=True)
class _Area:
    """What is known of the surroundings of the robot in one frame.

    Attributes
    ----------
    change: last change of the store that it holds.
    centre: where the robot was when it was read.
    positions: of the memories around; None for one that is not to be reminded of.
    due: the robot has come near them, and nobody was told yet.
    told: the robot was told of them, and has not left since.
    here: where the robot is.
    """

    change: int = -1
    centre: Position | None = None
    positions: dict[int, Position | None] = field(default_factory=dict)
    due: set[int] = field(default_factory=set)
    told: set[int] = field(default_factory=set)
    here: Position | None = None


class Reminders:
    """Finds what the robot is to be reminded of, pose by pose; safe to use from any thread.

    Parameters
    ----------
    config: returns the settings of the moment.
    radius: metres at which a memory speaks up.
    context_filter: which memories do, as in Query; empty means all.
    collection: empty means the configured one, EVERY_COLLECTION all of them.
    min_confidence: least effective confidence.
    rate: most reminders in a second; those that are too many come later, the nearest first.
    hysteresis: the robot has left a memory when it is farther than this many radii.
    clock: a steady clock in seconds.

    Raises
    ------
    ConfigError: a value is not allowed; the text names the parameter of the node.
    """

    def __init__(
        self,
        store: Store,
        config: Callable[[], Config],
        radius: float,
        context_filter: str | Mapping[str, Json] = "",
        *,
        collection: str = "",
        min_confidence: float = 0.3,
        rate: float = 5.0,
        hysteresis: float = 1.2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        limits = (config().max_context_bytes, config().max_context_depth)
        _check("remind_radius", radius, 0.0 < radius < math.inf, "a number of metres above 0")
        _check("remind_rate", rate, 0.0 < rate < math.inf, "a number above 0")
        _check("hysteresis", hysteresis, 1.0 <= hysteresis < math.inf, "a number of at least 1")
        try:
            self._tests = filters.parse_context_filter(context_filter, *limits)
        except InvalidRequestError as error:
            problem = str(error).removeprefix(f"{error.field}: ")
            raise ConfigError(
                f"parameter remind_filter: {context_filter!r} is not allowed; it {problem}"
            ) from None
        self._store = store
        self._config = config
        self._collection = collection
        self._min_confidence = min_confidence
        self._radius = radius
        self._left = radius * hysteresis
        self._limiter = _Limiter(rate, clock)
        self._lock = threading.Lock()
        self._areas: dict[str, _Area] = {}

    def update(self, pose: Pose, now: int) -> list[tuple[Memory, float]]:
        """Return what the robot is to be reminded of at a pose, nearest first, with the metres.

        A memory comes once when the robot comes within the radius, and again only after it has
        left. A pose that is not finite yields nothing.

        Parameters
        ----------
        now: ROS time in nanoseconds.

        Raises
        ------
        StoreError: the database cannot be read.
        """
        if not all(map(math.isfinite, pose.position)):
            return []
        with self._lock, self._store.snapshot() as snapshot:
            area = self._areas.setdefault(pose.frame_id, _Area())
            area.here = pose.position
            wall_time = time.time_ns()
            conditions = self._conditions(now, wall_time)
            self._look_around(snapshot, area, pose, conditions)
            distances = {
                number: distance
                for number, position in area.positions.items()
                if position is not None
                and (distance := math.dist(position, pose.position)) <= self._left
            }
            area.told.intersection_update(distances)
            area.due.intersection_update(distances)
            area.due.update(
                number
                for number, distance in distances.items()
                if distance <= self._radius and number not in area.told
            )
            chosen = self._choose(snapshot, area, conditions, distances)
            memories = snapshot.memories(chosen, self._config().decay_rate, wall_time)
        return [(memories[number], distances[number]) for number in chosen]

    def made_here(self, memory: Memory) -> None:
        """Take note of a memory that the robot has just made: it need not be reminded of it."""
        with self._lock:
            area = self._areas.get(memory.pose.frame_id) if memory.pose else None
            if area is None or area.here is None or memory.pose is None:
                return
            if math.dist(area.here, memory.pose.position) <= self._left:
                area.told.add(memory.id)

    def reset(self) -> None:
        """Forget where the robot was, because the clock or the map has jumped."""
        with self._lock:
            self._areas.clear()

    def _look_around(
        self, snapshot: Snapshot, area: _Area, pose: Pose, conditions: Conditions
    ) -> None:
        """Bring the positions of an area up to date; what is known already is not read again."""
        area.change, changed = snapshot.changed_since(area.change)
        if changed is None:
            area.positions.clear()
        else:
            for number in changed:
                area.positions.pop(number, None)
        margin = _MARGIN * self._left
        is_near = area.centre is not None and math.dist(area.centre, pose.position) <= margin
        if is_near and changed is not None and not changed:
            return
        area.centre = pose.position
        known = area.positions
        around = snapshot.around(Place(pose.frame_id, (), pose.position, self._left + margin))
        new = [number for number in around if number not in known]
        found = snapshot.positions(conditions, new) if new else {}
        area.positions = {n: known[n] if n in known else found.get(n) for n in around}

    def _choose(
        self,
        snapshot: Snapshot,
        area: _Area,
        conditions: Conditions,
        distances: Mapping[int, float],
    ) -> list[int]:
        """Take the nearest of what is due, as many as may be told now."""
        allowed = self._limiter.allowed() if area.due else 0
        chosen: list[int] = []
        nearest = sorted(area.due, key=lambda n: (distances[n], n)) if allowed else []
        while nearest and len(chosen) < allowed:
            batch, nearest = nearest[: allowed - len(chosen)], nearest[allowed - len(chosen) :]
            # Since the robot came near they may have expired, decayed or been merged.
            valid = snapshot.positions(conditions, batch)
            chosen += [number for number in batch if number in valid]
            area.due.difference_update(batch)
        area.told.update(chosen)
        self._limiter.count(len(chosen))
        return chosen

    def _conditions(self, now: int, wall_time: int) -> Conditions:
        config = self._config()
        collection = self._collection or config.collection
        return Conditions(
            collection=None if collection == EVERY_COLLECTION else collection,
            min_confidence=self._min_confidence,
            decay_rate=config.decay_rate,
            wall_time=wall_time,
            alive_at=now,
            tests=self._tests,
        )


class _Limiter:
    """Allows so many events in any second; or one in several seconds, if the rate is below 1."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self._period = max(1.0, 1.0 / rate)
        self._most = max(1, math.floor(rate))
        self._clock = clock
        self._times: deque[float] = deque()

    def allowed(self) -> int:
        """Return how many events may happen now."""
        now = self._clock()
        while self._times and now - self._times[0] >= self._period:
            self._times.popleft()
        return self._most - len(self._times)

    def count(self, events: int) -> None:
        """Take note of events that happen now."""
        self._times.extend([self._clock()] * events)


def _check(name: str, value: object, is_allowed: bool, allowed: str) -> None:
    if not is_allowed:
        raise ConfigError(f"parameter {name}: {value!r} is not allowed; it must be {allowed}")
