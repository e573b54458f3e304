# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Damaged bags: whatever is cut off or overwritten, the rest is read and the damage is told."""

from __future__ import annotations

import collections
import contextlib
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from bag_writer import FORMATS, drive, storage_file, write_bag
from hypothesis import given, settings
from hypothesis import strategies as st

from robotmem_ros.bags import Bag, BagError

Read = tuple[int, str, bytes | None]


class Recording(NamedTuple):
    """A place for a damaged copy, the bytes of the whole file, and all its messages."""

    file: Path
    data: bytes
    whole: list[Read]

    def __repr__(self) -> str:  # not megabytes in a failure
        return self.file.name


def read(path: Path) -> tuple[list[Read], list[str]]:
    try:
        bag = Bag(path)
        got = [(r.time, r.topic.name, r.data) for r in bag.records(lambda topic: True)]
        return got, bag.problems.lines()
    except BagError as error:
        return [], [str(error)]


@pytest.fixture(scope="module", params=["sqlite3", "mcap", "mcap zstd", "mcap no chunks"])
def recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Recording:
    storage, _, kind = request.param.partition(" ")
    folder = tmp_path_factory.mktemp("damage")
    path = write_bag(
        folder / "bag",
        storage,
        drive(1.0),
        chunk_of=10,
        compression="storage" if kind == "zstd" else "none",
    )
    file = storage_file(path)
    data = file.read_bytes()
    if kind == "no chunks":
        data = without_chunks(data)
        file.write_bytes(data)
    whole, problems = read(path)
    assert len(whole) > 30
    assert problems == []
    return Recording(folder / f"damaged{file.suffix}", data, whole)


def without_chunks(data: bytes) -> bytes:
    """Return an mcap with its messages outside of chunks and without a summary."""
    parts, at = [data[:8]], 8
    while at < len(data) - 8:
        opcode, length = data[at], int.from_bytes(data[at + 1 : at + 9], "little")
        record = data[at : at + 9 + length]
        if opcode == 1:
            parts.append(record)
        elif opcode == 6:
            skipped = 9 + 28 + 4 + int.from_bytes(record[37:41], "little") + 8
            parts.append(record[skipped:])
        at += 9 + length
    footer = bytes([2]) + (20).to_bytes(8, "little") + bytes(20)
    return b"".join([*parts, footer, data[:8]])


def check(file: Path, data: bytes, whole: list[Read]) -> list[Read]:
    file.write_bytes(data)
    start = time.perf_counter()
    got, problems = read(file)
    assert time.perf_counter() - start < 5.0
    assert all("\n" not in line and len(line) < 400 for line in problems)
    assert [t for t, _, _ in got] == sorted(t for t, _, _ in got)
    if len(got) < len(whole):
        assert problems
    return got


def test_a_cut_leaves_what_was_before_it(recording: Recording) -> None:
    file, data, whole = recording
    positions = {*range(0, len(data), max(1, len(data) // 200)), *range(len(data) - 60, len(data))}
    best = 0
    available = collections.Counter(whole)
    for position in sorted({*range(64), *positions}):
        got = check(file, data[:position], whole)
        assert not collections.Counter(got) - available, f"cut at {position}"
        if file.suffix == ".mcap":  # in the order of recording: nothing behind is needed
            assert got == whole[: len(got)]
            assert len(got) >= best
        best = max(best, len(got))
    assert best >= len(whole) * 0.7  # all but the last page or chunk


@settings(max_examples=40, deadline=None, derandomize=True)
@given(place=st.floats(0.0, 1.0, exclude_max=True), damage=st.binary(min_size=1, max_size=64))
def test_overwritten_bytes_stop_nothing(recording: Recording, place: float, damage: bytes) -> None:
    file, data, whole = recording
    position = int(place * len(data))
    check(file, data[:position] + damage + data[position + len(damage) :], whole)
    decode_all(file)


def decode_all(path: Path) -> None:
    """Decode what can be decoded; nothing but the two errors may be raised."""
    with contextlib.suppress(BagError):
        bag = Bag(path)
        for record in list(bag.records(lambda topic: True)):
            with contextlib.suppress(BagError, ValueError):
                bag.types.decoder(record.topic)(record.data or b"")


def test_a_chunk_with_a_wrong_checksum_is_left_out_and_the_rest_read(tmp_path: Path) -> None:
    path = write_bag(tmp_path / "bag", "mcap", drive(2.0), chunk_of=20, compression="storage")
    whole, _ = read(path)
    file = storage_file(path)
    data = bytearray(file.read_bytes())
    at = chunk_starts(bytes(data))[2]
    data[at + 60 : at + 90] = bytes(30)
    file.write_bytes(data)
    got, problems = read(path)
    assert got == whole[:40] + whole[60:]
    assert len(problems) == 1
    assert "a chunk is damaged and was left out" in problems[0]


def chunk_starts(data: bytes) -> list[int]:
    starts, at = [], 8
    while at < len(data) - 8:
        if data[at] == 6:
            starts.append(at)
        at += 9 + int.from_bytes(data[at + 1 : at + 9], "little")
    return starts


@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "has no metadata.yaml"),
        ("", "metadata.yaml cannot be used"),
        ("rosbag2_bagfile_information: 7", "metadata.yaml cannot be used"),
        ("a: [b", "metadata.yaml cannot be used"),
        ("\x00\x01", "metadata.yaml cannot be used"),
        (
            "rosbag2_bagfile_information: {relative_file_paths: [other.db3]}",
            "metadata.yaml lists files that are not there: other.db3",
        ),
    ],
)
def test_wrong_metadata_is_told_and_the_files_are_read(
    tmp_path: Path, storage: str, text: str | None, problem: str
) -> None:
    path = write_bag(tmp_path / "bag", storage, drive(1.0))
    whole, _ = read(path)
    (path / "metadata.yaml").unlink()
    if text is not None:
        (path / "metadata.yaml").write_text(text)
    got, problems = read(path)
    assert got == whole
    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_fewer_messages_than_the_metadata_says_are_told(tmp_path: Path) -> None:
    path = write_bag(tmp_path / "bag", "mcap", drive(1.0))
    metadata = path / "metadata.yaml"
    count = len(read(path)[0])
    metadata.write_text(
        metadata.read_text().replace(f"message_count: {count}", "message_count: 999")
    )
    assert read(path)[1] == [f"{count} messages were found where metadata.yaml says 999"]


@pytest.mark.parametrize("storage", FORMATS)
def test_nothing_is_found_in_empty_bags_and_that_is_told(tmp_path: Path, storage: str) -> None:
    path = write_bag(
        tmp_path / "bag", storage, [], empty_topics=[("/note", "std_msgs/msg/String")]
    )
    assert read(path) == ([], ["holds no messages"])
    storage_file(path).write_bytes(b"")
    assert read(path)[0] == []
    assert read(path)[1][0].endswith("is empty")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no .db3 or .mcap file" in read(empty)[1][0]
    assert read(tmp_path / "nothing") == ([], ["there is no such file or folder"])
    (tmp_path / "notes.txt").write_text("hello")
    assert read(tmp_path / "notes.txt")[1] == ["notes.txt: is no .db3 or .mcap file"]
    (tmp_path / "other.db3").write_text("hello")
    assert "is no bag, or damaged at its start" in read(tmp_path / "other.db3")[1][0]
