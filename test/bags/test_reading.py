# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Whole bags: both formats, every way to compress, folders and single files."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest
from bag_writer import FORMATS, GRIP, START, Sent, drive, odometry, storage_file, text, write_bag
from rosbags.rosbag2 import Reader

from robotmem_ros.bags import Bag, BagError, Record

Read = tuple[int, str, bytes | None]


def read(path: Path) -> tuple[list[Read], Bag]:
    bag = Bag(path)
    return [(r.time, r.topic.name, r.data) for r in bag.records(lambda topic: True)], bag


def reference(path: Path) -> list[Read]:
    """What the rosbags library reads of a whole bag."""
    with Reader(path) as reader:
        return [(time, c.topic, bytes(data)) for c, time, data in reader.messages()]


@pytest.mark.parametrize(
    ("storage", "compression"),
    [
        *[(storage, mode) for storage in FORMATS for mode in ("none", "file", "message")],
        ("mcap", "storage"),
    ],
)
def test_every_kind_of_bag_is_read_as_rosbags_reads_it(
    tmp_path: Path, storage: str, compression: str
) -> None:
    path = write_bag(tmp_path / "bag", storage, drive(), compression=compression, chunk_of=40)
    got, bag = read(path)
    assert got == reference(path)
    assert len(got) == bag.expected > 150
    assert bag.problems.lines() == []


@pytest.mark.parametrize("storage", FORMATS)
def test_a_single_file_and_the_metadata_file_name_the_bag(tmp_path: Path, storage: str) -> None:
    path = write_bag(tmp_path / "bag", storage, drive())
    whole, _ = read(path)
    assert read(path / "metadata.yaml")[0] == whole
    alone, bag = read(Path(shutil.copy(storage_file(path), tmp_path)))
    assert alone == whole
    assert bag.problems.lines() == []


@pytest.mark.parametrize("storage", FORMATS)
def test_messages_come_in_the_order_of_time(tmp_path: Path, storage: str) -> None:
    messages = [Sent(START + n * 7919 % 1000, "/note", text(str(n))) for n in range(500)]
    path = write_bag(tmp_path / "bag", storage, messages, chunk_of=20)
    got, _ = read(path)
    assert [time for time, _, _ in got] == sorted(sent.time for sent in messages)


@pytest.mark.parametrize("compression", ["none", "message"])
@pytest.mark.parametrize("storage", FORMATS)
def test_large_messages_are_read_only_where_they_are_wanted(
    tmp_path: Path, storage: str, compression: str
) -> None:
    messages = [
        Sent(START + n, topic, text(topic * size))
        for n in range(3)
        for topic, size in (("/small", 9), ("/large", 900), ("/other", 900))
    ]
    bag = Bag(write_bag(tmp_path / "bag", storage, messages, compression=compression))
    records = list(bag.records(lambda topic: topic.name == "/large"))
    assert len(records) == bag.expected
    for record in records:
        assert (record.data is None) == (record.topic.name == "/other")
        assert record.data is None or record.size == len(record.data)
        assert (record.size > 4096) == (record.topic.name != "/small")


@pytest.mark.parametrize("storage", FORMATS)
def test_a_type_of_the_users_own_is_decoded_by_the_definition_in_the_bag(
    tmp_path: Path, storage: str
) -> None:
    bag = Bag(write_bag(tmp_path / "bag", storage, drive()))
    records: list[Record] = [r for r in bag.records(lambda t: True) if r.topic.type == GRIP]
    grips = [bag.types.decoder(r.topic)(r.data) for r in records if r.data is not None]
    assert [g.force for g in grips][:2] == [10.0, 20.0]
    assert grips[0].tool.name == "soft"
    assert list(grips[0].pads) == [10.0, 0.0, 1.0]


def test_without_definitions_the_types_of_ros_and_ours_are_known_others_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bag of Humble holds none."""
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    path = write_bag(
        tmp_path / "bag", "sqlite3", drive(), empty_topics=[("/m", "robotmem_ros/msg/Memory")]
    )
    database = apsw.Connection(str(storage_file(path)))
    database.execute("DELETE FROM message_definitions")
    database.execute("INSERT INTO messages (topic_id, timestamp, data) VALUES (1, 5, x'')")
    database.close()
    bag = Bag(path)
    topics = {r.topic.name: r.topic for r in bag.records(lambda t: True)}
    assert topics["/odom"].definition == ""
    bag.types.decoder(topics["/odom"])
    bag.types.decoder(topics["/m"])
    with pytest.raises(BagError, match=r"/grip.*my_robot_msgs/msg/Grip is not known"):
        bag.types.decoder(topics["/grip"])
    messages = tmp_path / "ws" / "share" / "my_robot_msgs" / "msg"
    messages.mkdir(parents=True)
    (messages / "Grip.msg").write_text(
        "std_msgs/Header header\nfloat64 force # N\nfloat32[3] pads\nTool tool\n"
    )
    (messages / "Tool.msg").write_text("string name\nuint8 wear\n")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "ws"))
    bag.types.decoder(topics["/grip"])


def test_a_bag_of_several_files_is_read_in_their_order(tmp_path: Path) -> None:
    folder = tmp_path / "bag"
    folder.mkdir()
    for part in range(12):
        sent = Sent(START + part, "/odom", odometry(START + part, float(part)))
        path = write_bag(tmp_path / f"part{part}", "mcap", [sent])
        shutil.copy(storage_file(path), folder / f"bag_{part}.mcap")
    got, bag = read(folder)
    assert [time - START for time, _, _ in got] == list(range(12))
    assert bag.problems.lines() == ["has no metadata.yaml (the recording was not ended properly)"]


def test_messages_in_the_log_of_a_killed_recorder_are_read(tmp_path: Path) -> None:
    path = write_bag(tmp_path / "bag", "sqlite3", drive(1.0))
    whole = reference(path)
    file = storage_file(path)
    database = apsw.Connection(str(file))
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("INSERT INTO messages (topic_id, timestamp, data) VALUES (1, 7, x'00')")
    killed = tmp_path / "killed"
    killed.mkdir()
    for part in path.iterdir():
        if not part.name.endswith("-shm"):
            shutil.copy(part, killed)
    database.close()
    got, _ = read(killed)
    assert len(got) == len(whole) + 1
