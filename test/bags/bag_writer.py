# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of a small robot, written into bags of either format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.enums import CompressionFormat, CompressionMode
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

FORMATS = {"sqlite3": StoragePlugin.SQLITE3, "mcap": StoragePlugin.MCAP}

SECOND = 1_000_000_000
START = 1_760_000_000 * SECOND
"""When the recordings begin, wall time."""

GRIP = "my_robot_msgs/msg/Grip"
MESSAGES_OF_THE_PACKAGE = Path(__file__).resolve().parents[2] / "msg"

TYPES = get_typestore(Stores.ROS2_JAZZY)
TYPES.register(
    {
        **get_types_from_msg(
            "std_msgs/Header header\nfloat64 force\nfloat32[3] pads\nTool tool\n", GRIP
        ),
        **get_types_from_msg("string name\nuint8 wear\n", "my_robot_msgs/msg/Tool"),
    }
)
for _name in ("Memory", "Episode"):
    TYPES.register(
        get_types_from_msg(
            (MESSAGES_OF_THE_PACKAGE / f"{_name}.msg").read_text(), f"robotmem_ros/msg/{_name}"
        )
    )


class Sent(NamedTuple):
    """A message as a recorder receives it."""

    time: int
    topic: str
    message: Any


def make(type_name: str, **fields: Any) -> Any:
    """Make a message; "builtin_interfaces/msg/Time" and so on."""
    return TYPES.types[type_name](**fields)


def stamp(time: int) -> Any:
    return make("builtin_interfaces/msg/Time", sec=time // SECOND, nanosec=time % SECOND)


def header(time: int, frame_id: str) -> Any:
    return make("std_msgs/msg/Header", stamp=stamp(time), frame_id=frame_id)


def pose(x: float, y: float, yaw: float = 0.0) -> Any:
    return make(
        "geometry_msgs/msg/Pose",
        position=make("geometry_msgs/msg/Point", x=x, y=y, z=0.0),
        orientation=make(
            "geometry_msgs/msg/Quaternion",
            x=0.0, y=0.0, z=math.sin(yaw / 2), w=math.cos(yaw / 2),
        ),
    )  # fmt: skip


def vector(x: float) -> Any:
    return make("geometry_msgs/msg/Vector3", x=x, y=0.0, z=0.0)


def odometry(time: int, x: float, y: float = 0.0, speed: float = 0.5) -> Any:
    covariance = np.zeros(36)
    return make(
        "nav_msgs/msg/Odometry",
        header=header(time, "odom"),
        child_frame_id="base_link",
        pose=make("geometry_msgs/msg/PoseWithCovariance", pose=pose(x, y), covariance=covariance),
        twist=make(
            "geometry_msgs/msg/TwistWithCovariance",
            twist=make("geometry_msgs/msg/Twist", linear=vector(speed), angular=vector(0.0)),
            covariance=covariance,
        ),
    )


def amcl_pose(time: int, x: float, y: float) -> Any:
    return make(
        "geometry_msgs/msg/PoseWithCovarianceStamped",
        header=header(time, "map"),
        pose=make(
            "geometry_msgs/msg/PoseWithCovariance", pose=pose(x, y), covariance=np.zeros(36)
        ),
    )


def joints(time: int, *positions: float) -> Any:
    return make(
        "sensor_msgs/msg/JointState",
        header=header(time, ""),
        name=[f"joint{i}" for i in range(len(positions))],
        position=np.array(positions),
        velocity=np.zeros(len(positions)),
        effort=np.zeros(len(positions)),
    )


def grip(time: int, force: float) -> Any:
    return make(
        GRIP,
        header=header(time, "gripper"),
        force=force,
        pads=np.array([force, 0.0, 1.0], np.float32),
        tool=make("my_robot_msgs/msg/Tool", name="soft", wear=3),
    )


def text(words: str) -> Any:
    return make("std_msgs/msg/String", data=words)


def clock(time: int) -> Any:
    return make("rosgraph_msgs/msg/Clock", clock=stamp(time))


def drive(
    seconds: float = 6.0,
    *,
    simulated_from: int = 0,
    notes: Iterable[tuple[float, str]] = ((1.05, "picked the red cup"), (4.05, "lost the cup")),
    start: int = START,
    begin: float = 0.0,
) -> Iterator[Sent]:
    """Yield what a recorder hears of a robot that drives along x at 0.5 m/s.

    20 Hz odometry, 10 Hz joints, 2 Hz grip, one latched amcl_pose that is older than the
    recording, and notes; with simulated_from also a /clock that starts there.
    """
    ticks = round(seconds * 20)
    waiting = sorted(notes)

    def ros(offset: int) -> int:
        return simulated_from + offset if simulated_from else start + offset

    for tick in range(ticks + 1):
        offset = round(begin * SECOND) + tick * SECOND // 20
        received = start + offset
        if simulated_from:
            yield Sent(received, "/clock", clock(ros(offset)))
        if tick == 0:
            yield Sent(received, "/amcl_pose", amcl_pose(ros(offset) - SECOND, 10.0, 20.0))
        while waiting and waiting[0][0] * SECOND <= offset:
            at, words = waiting.pop(0)
            yield Sent(start + round(at * SECOND), "/note", text(words))
        yield Sent(received, "/odom", odometry(ros(offset), 0.5 * offset / SECOND))
        if tick % 2 == 0:
            yield Sent(received, "/joint_states", joints(ros(offset), 0.1, 0.2, tick / 100))
        if tick % 10 == 0:
            yield Sent(received, "/grip", grip(ros(offset), 10.0 + tick))


def write_bag(
    path: Path,
    storage: str,
    messages: Iterable[Sent],
    *,
    chunk_of: int = 0,
    compression: str = "none",
    empty_topics: Iterable[tuple[str, str]] = (),
    latched: Iterable[str] = (),
) -> Path:
    """Write a bag; chunk_of ends a chunk of an mcap after so many messages.

    Of the topics in latched it says that they are, of the others nothing.
    """
    writer = Writer(path, version=9, storage_plugin=FORMATS[storage])
    writer.set_compression(CompressionMode[compression.upper()], CompressionFormat.ZSTD)
    with writer:
        connections: dict[tuple[str, str], Any] = {}
        for topic, name in empty_topics:
            connections[topic, name] = writer.add_connection(topic, name, typestore=TYPES)
        for number, sent in enumerate(messages, 1):
            name = sent.message.__msgtype__
            if (sent.topic, name) not in connections:
                connections[sent.topic, name] = writer.add_connection(
                    sent.topic,
                    name,
                    typestore=TYPES,
                    offered_qos_profiles=[offered(10, latched=True)]
                    if sent.topic in latched
                    else [],
                )
            data = TYPES.serialize_cdr(sent.message, name)
            writer.write(connections[sent.topic, name], sent.time, data)
            if chunk_of and storage == "mcap" and number % chunk_of == 0:
                writer.storage.close_chunk()
    return path


def offered(depth: int, *, latched: bool) -> Qos:
    """Return the quality of service that a recorder notes of a reliable publisher."""
    never = QosTime(sec=2147483647, nsec=4294967295)
    durability = QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE
    return Qos(
        QosHistory.KEEP_LAST,
        depth,
        QosReliability.RELIABLE,
        durability,
        deadline=never,
        lifespan=never,
        liveliness=QosLiveliness.AUTOMATIC,
        liveliness_lease_duration=never,
        avoid_ros_namespace_conventions=False,
    )


def storage_file(bag: Path) -> Path:
    """Return the one file that holds the messages of a bag."""
    (file,) = [file for file in bag.iterdir() if file.name != "metadata.yaml"]
    return file
