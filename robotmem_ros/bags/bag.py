# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Open a bag, a folder or a single file of either format, and read its messages in time order."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from robotmem_ros.bags.files import (
    SMALL,
    BagError,
    Problems,
    Record,
    StorageFile,
    Topic,
    Wanted,
    zstd,
)
from robotmem_ros.bags.mcap import McapFile
from robotmem_ros.bags.sqlite import SqliteFile
from robotmem_ros.bags.types import Decoder, Types

_READERS: dict[str, Callable[[Path], StorageFile]] = {".db3": SqliteFile, ".mcap": McapFile}
_METADATA = "metadata.yaml"


class Bag:
    """A recording, whole or damaged; close it after use.

    Attributes
    ----------
    name: of its folder or file.
    topics: what it holds, by name; of damaged bags as far as it has been read.
    types: makes message objects of its messages.
    problems: what was found wrong so far.

    Raises
    ------
    BagError: there is nothing that could be a bag.
    """

    def __init__(self, path: Path) -> None:
        self._folder = path.parent if path.name == _METADATA else path
        self.name = self._folder.resolve().name
        self.problems = Problems()
        self.topics: dict[str, Topic] = {}
        self._decoders: dict[Topic, Decoder | None] = {}
        self._metadata: dict[str, Any] = {}
        self._open_files: dict[Path, tuple[StorageFile, tempfile.TemporaryDirectory[str]]] = {}
        if self._folder.is_dir():
            self._metadata = self._read_metadata()
            self._files = self._find_files()
        elif self._folder.exists():
            self._files = [self._folder]
        else:
            raise BagError("there is no such file or folder")
        self._compression = str(self._metadata.get("compression_mode") or "").lower()
        self.types = Types(str(self._metadata.get("ros_distro") or ""), self.topics)
        while self._files and self._open(self._files[0]) is None:
            self._files.pop(0)

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def expected(self) -> int:
        """How many messages it holds, by what it says itself; 0 if it does not."""
        count = self._metadata.get("message_count")
        if isinstance(count, int):
            return count
        return sum(storage.expected for storage, _ in self._open_files.values())

    def records(self, wanted: Wanted) -> Iterator[Record]:
        """Yield the messages in the order of their time, as far as they can be read.

        Parameters
        ----------
        wanted: tells of which topics large messages are to be read, too.
        """
        read = 0
        packed = self._compression == "message"
        for file in self._files:
            storage = self._open(file)
            if storage is None:
                continue
            try:
                for record in storage.records(_all if packed else wanted):
                    self.topics.setdefault(record.topic.name, record.topic)
                    if packed:
                        unpacked = self._unpack(record, wanted)
                        if unpacked is None:
                            continue
                        record = unpacked
                    read += 1
                    yield record
            except OSError as error:
                self.problems.add(f"{file.name}: {error.strerror or error}")
            finally:
                self._close(file)
        counted = self._metadata.get("message_count")
        if not self.problems and not read:
            self.problems.add("holds no messages")
        elif not self.problems and isinstance(counted, int) and read < counted:
            self.problems.add(f"{read} messages were found where {_METADATA} says {counted}")

    def decoded(self, record: Record) -> Any:
        """Return a message as an object; None, with the problem noted, if it cannot be read."""
        topic = record.topic
        if topic not in self._decoders:
            try:
                self._decoders[topic] = self.types.decoder(topic)
            except BagError as error:
                self._decoders[topic] = None
                self.problems.add(str(error))
        decode = self._decoders[topic]
        if decode is None or record.data is None:
            return None
        try:
            return decode(record.data)
        except ValueError as error:
            self.problems.add(f"topic {topic.name}: messages cannot be decoded", error)
            return None

    def close(self) -> None:
        """Close all files; may be called twice."""
        for file in list(self._open_files):
            self._close(file)

    def _open(self, file: Path) -> StorageFile | None:
        """Return a file opened; None, with a problem noted, if nothing in it can be read."""
        if file in self._open_files:
            return self._open_files[file][0]
        folder = tempfile.TemporaryDirectory(prefix="robotmem-")
        try:
            plain = self._unpacked(file, Path(folder.name)) if file.suffix == ".zstd" else file
            reader = _READERS.get(plain.suffix)
            if reader is None:
                raise BagError(f"{file.name}: is no .db3 or .mcap file")
            storage = reader(plain)
        except (BagError, OSError) as error:
            folder.cleanup()
            self.problems.add(str(error))
            return None
        self._open_files[file] = storage, folder
        for topic in storage.topics():
            self.topics.setdefault(topic.name, topic)
        return storage

    def _close(self, file: Path) -> None:
        storage, folder = self._open_files.pop(file)
        self.problems.extend(storage.problems)
        storage.close()
        folder.cleanup()

    def _unpack(self, record: Record, wanted: Wanted) -> Record | None:
        """Return a message of a bag whose messages are compressed one by one."""
        try:
            data = zstd.decompress(record.data or b"")
            keep = len(data) <= SMALL or wanted(record.topic)
            return record._replace(size=len(data), data=data if keep else None)
        except (zstd.ZstdError, ValueError) as error:
            self.problems.add(f"topic {record.topic.name}: messages cannot be unpacked", error)
            return None

    def _unpacked(self, file: Path, folder: Path) -> Path:
        """Unpack a compressed file into a folder, as far as it goes."""
        target = folder / file.stem
        with file.open("rb") as packed, target.open("wb") as plain:
            try:
                with zstd.open(packed, "rb") as source:
                    shutil.copyfileobj(source, plain)
            except (zstd.ZstdError, EOFError, ValueError) as error:
                self.problems.add(f"{file.name}: cannot be unpacked to its end", error)
        return target

    def _read_metadata(self) -> dict[str, Any]:
        """Return what metadata.yaml says; nothing if it is missing or wrong."""
        file = self._folder / _METADATA
        if not file.exists():
            self.problems.add(f"has no {_METADATA} (the recording was not ended properly)")
            return {}
        try:
            text = file.read_text(encoding="utf-8")
            metadata = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            information = metadata["rosbag2_bagfile_information"]
            if not isinstance(information, dict):
                raise ValueError("it describes no bag")
            return information
        except (OSError, ValueError, TypeError, KeyError, yaml.YAMLError) as error:
            reason = " ".join(str(error).split())[:100]
            self.problems.add(f"{_METADATA} cannot be used", f"{type(error).__name__} {reason}")
            return {}

    def _find_files(self) -> list[Path]:
        """Return the bag's files in the order in which they were recorded.

        Raises
        ------
        BagError: there are none.
        """
        beside = sorted(
            (
                file
                for file in self._folder.iterdir()
                if re.search(r"\.(db3|mcap)(\.zstd)?$", file.name) and file.is_file()
            ),
            key=lambda file: [int(n) if n.isdigit() else n for n in re.split(r"(\d+)", file.name)],
        )
        listed = self._metadata.get("relative_file_paths")
        listed = listed if isinstance(listed, list) else []
        files = [self._folder / Path(str(name)).name for name in listed]
        missing = [file.name for file in files if not file.exists()]
        if missing:
            self.problems.add(f"{_METADATA} lists files that are not there", ", ".join(missing))
        files = files if files and not missing else beside
        if not files:
            raise BagError("; ".join([*self.problems.lines(), "holds no .db3 or .mcap file"]))
        return files


def _all(topic: Topic) -> bool:
    return True
