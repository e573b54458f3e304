# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Every setting of the node itself, and the one table of all settings; needs no ROS."""

from __future__ import annotations

from dataclasses import dataclass

from robotmem_ros.core.config import Config, Setting, setting, settings_of


@dataclass(frozen=True)
class NodeConfig:
    """Settings of the node itself, which the core does not know."""

    autostart: bool = setting(
        True,
        "Configure and activate at the start. With false the node waits for its lifecycle "
        "services (ros2 lifecycle set /robotmem configure, then activate).",
    )
    recall_threads: int = setting(
        4,
        "How many recalls are worked on at the same time; each may wait up to embed_timeout.",
        low=1,
        high=64,
    )
    queue_size: int = setting(
        256,
        "How many requests of one kind (recalls, changes, reads) may wait; any more are answered "
        '"busy" at once.',
        low=1,
        high=10_000,
    )
    import_queue_size: int = setting(
        5000,
        "How many messages heard on import_topics may wait to be stored; any more are dropped, "
        "and counted on /diagnostics.",
        low=1,
        high=1_000_000,
    )
    context_sources: tuple[str, ...] = setting(
        (),
        "Names of the topics whose fields are added to what is learned. Each has parameters of "
        "its own: NAME.topic, NAME.type, NAME.max_age and NAME.fields.",
    )
    pose_source: str = setting(
        "",
        "Where the pose of a memory comes from when its caller gives none: the name of a source "
        "with a pose and a frame (PoseStamped, PoseWithCovarianceStamped, Odometry), tf (needs "
        "tf2_ros) or empty for nowhere.",
    )
    map_frame: str = setting("map", "With pose_source tf: the frame of the poses.")
    base_frame: str = setting("base_link", "With pose_source tf: the frame of the robot.")
    tf_max_age: float = setting(
        2.0,
        "With pose_source tf: seconds a transform may be older than the event. 0 means any age.",
        low=0.0,
        high=1e9,
    )
    capture_history: float = setting(
        10.0,
        "Seconds that an event may lie in the past and still get what was sensed then.",
        low=0.0,
        high=600.0,
    )
    max_captured_elements: int = setting(
        1000,
        "Longest array or text that is captured, in elements or characters; a longer one is left "
        "out and named in the context under ros.too_long.",
        low=1,
        high=1_000_000,
    )
    trajectory_rate: float = setting(
        2.0,
        "Poses of an open episode kept per second, at most. 0 keeps none.",
        low=0.0,
        high=100.0,
    )
    trajectory_min_distance: float = setting(
        0.05, "Metres between two poses that are kept, at least.", low=0.0, high=1000.0
    )
    markers_max: int = setting(
        500,
        "How many memories, the newest that have a pose, are shown on ~/markers. 0 shows none.",
        low=0,
        high=10_000,
    )
    remind_radius: float = setting(
        0.0,
        "Metres within which the robot is reminded, on ~/reminders, of what it learned there; "
        "needs a pose_source. 0 means never.",
        low=0.0,
        high=1e6,
    )
    remind_filter: str = setting(
        "",
        "Which memories remind, as a context_filter in JSON, for example "
        '{"task.success": false}. Empty means every one with a pose.',
    )
    remind_rate: float = setting(
        2.0,
        "Reminders a second, at most; those that are due wait, nearest first.",
        low=0.01,
        high=100.0,
    )
    import_topics: tuple[str, ...] = setting(
        (),
        "Topics of memories and episodes, such as /robot2/robotmem/memories: what is heard there "
        "is stored, each once. They may be topics of other robots or of a played bag.",
    )
    hardware_id: str = setting(
        "", "Names this robot on /diagnostics; empty means this computer's name."
    )


CORE = settings_of(Config)
EDGE = settings_of(NodeConfig)
TABLE: tuple[Setting, ...] = (*CORE, *EDGE)
