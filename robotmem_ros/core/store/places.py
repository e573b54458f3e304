# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Index of the positions in memories: their poses and the coordinate arrays of their contexts.

An R*Tree narrows a search down to a box; it keeps 32-bit floats, rounded outwards, so what it
yields is then measured exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import apsw

from robotmem_ros.core import context as ctx
from robotmem_ros.core.filters import Place
from robotmem_ros.core.model import Context, Pose

Source = tuple[str, tuple[object, ...]]
"""A query for ids of memories, and its values."""

_LIMIT = 3.0e38  # of 32-bit floats; what lies beyond is kept at the edge


def add(connection: apsw.Connection, memory_id: int, pose: Pose | None, context: Context) -> None:
    """Index the pose of a memory and the coordinate arrays in its context.

    A context that is too large for the index of attributes belongs in neither: pass {} for it.
    """
    for name, point in _positions(pose, context):
        x, y, z = (_clamped(value) for value in (*point, 0.0)[:3])
        place = _place_id(connection, name)
        connection.execute(
            "INSERT INTO places (place_min, place_max, x_min, x_max, y_min, y_max, z_min, z_max, "
            "memory_id) VALUES (?1, ?1, ?2, ?2, ?3, ?3, ?4, ?4, ?5)",
            (place, x, y, z, memory_id),
        )


def remove(
    connection: apsw.Connection, memory_id: int, pose: Pose | None, context: Context
) -> None:
    """Take the positions of a memory out of the index."""
    for name, point in _positions(pose, context):
        sql, values = _box(_place_id(connection, name), point, 0.0)
        numbers = [
            row[0]
            for row in connection.execute(
                f"SELECT id FROM places WHERE {sql} AND memory_id = ?", (*values, memory_id)
            )
        ]
        for number in numbers:
            connection.execute("DELETE FROM places WHERE id = ?", (number,))


def source(connection: apsw.Connection, place: Place) -> Source | None:
    """Return a query for the ids of all memories with a position near enough to a place.

    It may yield others too. None where no index serves.
    """
    if place.frame_id is not None:
        name = _frame_name(place.frame_id)
    elif _is_field(place.path) and len(place.target) in (2, 3):
        name = _field_name(place.path, len(place.target))
    else:
        return None
    number = connection.execute("SELECT id FROM place_names WHERE name = ?", (name,)).get
    if number is None:
        return "SELECT 0 AS id WHERE 0", ()
    sql, values = _box(number, place.target, place.max_distance)
    return f"SELECT memory_id AS id FROM places WHERE {sql}", values


def _positions(pose: Pose | None, context: Context) -> Iterator[tuple[str, tuple[float, ...]]]:
    if pose is not None:
        yield _frame_name(pose.frame_id), pose.position
    # What is in an array is no field.
    for path, value in ctx.walk(context.get("spatial"), ("spatial",), elements=0):
        point = ctx.coordinates(value)
        if point is not None and len(point) in (2, 3) and _is_field(path):
            yield _field_name(path, len(point)), point


def _is_field(path: ctx.Path) -> bool:
    """Return whether the index holds what is at a path: a named field of the spatial section."""
    return (
        len(path) >= 2
        and path[0] == "spatial"
        and all(isinstance(key, str) and ctx.array_index(key) is None for key in path)
    )


def _box(place: int, point: tuple[float, ...], distance: float) -> tuple[str, tuple[object, ...]]:
    sql, values = "place_min = ?", [float(place)]
    if math.isfinite(distance):
        for axis, centre in zip("xyz", point, strict=False):
            # One part in a million more: the index has rounded its bounds to 32 bits.
            reach = distance + 1e-6 * (abs(centre) + distance) + 1e-30
            sql += f" AND {axis}_max >= ? AND {axis}_min <= ?"
            values += [_clamped(centre - reach), _clamped(centre + reach)]
    return sql, tuple(values)


def _clamped(value: float) -> float:
    return min(max(value, -_LIMIT), _LIMIT)


def _place_id(connection: apsw.Connection, name: str) -> int:
    found = connection.execute("SELECT id FROM place_names WHERE name = ?", (name,)).get
    if found is None:
        connection.execute("INSERT INTO place_names (name) VALUES (?)", (name,))
        found = connection.last_insert_rowid()
    return int(found)


def _frame_name(frame_id: str) -> str:
    return "frame " + frame_id


def _field_name(path: ctx.Path, dimension: int) -> str:
    return f"field {ctx.write(list(path))} {dimension}"
