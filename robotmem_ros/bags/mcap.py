# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Read MCAP files, whole or not: what lies before a cut and between damaged chunks is found.

The format is described at https://mcap.dev/spec. A file is read in blocks: a block is a chunk, or
a run of messages that stand outside of chunks. Only the blocks that overlap in time are in memory
at once. The summary at the end of the file is used where it is whole; else the file is walked
through from the start.
"""

from __future__ import annotations

import heapq
import struct
from binascii import crc32
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import lz4.frame  # type: ignore[import-untyped]

from robotmem_ros.bags.files import SMALL, BagError, Problems, Record, Topic, Wanted, zstd

MAGIC = b"\x89MCAP0\r\n"
_HEADER = 9  # opcode and length of a record
_FOOTER = struct.Struct("<BQQQI8s")
_CHUNK = struct.Struct("<QQQI")
_CHUNK_INDEX = struct.Struct("<QQQQ")
_MESSAGE = struct.Struct("<HIQQ")
_LENGTH = struct.Struct("<BQ")
_RUN_BYTES = 2**20

_FOOTER_OP, _SCHEMA, _CHANNEL, _MESSAGE_OP, _CHUNK_OP, _INDEX_OP = 2, 3, 4, 5, 6, 8
_STATISTICS = 11


class _Block(NamedTuple):
    start: int  # time of its first message
    end: int  # and of its last
    offset: int
    length: int
    is_chunk: bool


class McapFile:
    """One .mcap file.

    Raises
    ------
    BagError: it is not an MCAP file, or cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.problems = Problems()
        self.expected = 0
        self._name = path.name
        self._schemas: dict[int, tuple[str, str, str]] = {}
        self._topics: dict[int, Topic] = {}
        try:
            self._file = path.open("rb")
            self._size = path.stat().st_size
            magic = self._file.read(len(MAGIC))
        except OSError as error:
            raise BagError(f"{path.name}: {error.strerror}") from None
        if magic != MAGIC:
            self._file.close()
            raise BagError(f"{path.name}: is {'no MCAP file' if magic else 'empty'}")
        try:
            blocks = self._summary()
        except (struct.error, ValueError):
            blocks = None
        self._blocks = sorted(self._walk() if blocks is None else blocks)

    def topics(self) -> Iterable[Topic]:
        """Return the topics that are known so far."""
        return self._topics.values()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def records(self, wanted: Wanted) -> Iterator[Record]:
        """Yield the messages in the order of their time, as far as they can be read."""
        wants: dict[int, bool] = {}
        found = 0
        queue: list[tuple[int, int, int, Topic, int, bytes | None]] = []
        for number, block in enumerate(self._blocks):
            while queue and queue[0][0] < block.start:
                time, _, _, topic, size, kept = heapq.heappop(queue)
                yield Record(time, topic, size, kept)
            for channel, time, data in self._messages(block):
                if channel not in self._topics:
                    self.problems.add(f"{self._name}: messages of a channel nobody described")
                    continue
                if not block.start <= time <= block.end:
                    self.problems.add(f"{self._name}: messages with a time that cannot be theirs")
                    continue
                topic = self._topics[channel]
                if channel not in wants:
                    wants[channel] = wanted(topic)
                found += 1
                size = len(data)
                kept = bytes(data) if size <= SMALL or wants[channel] else None
                heapq.heappush(queue, (time, number, found, topic, size, kept))
        while queue:
            time, _, _, topic, size, kept = heapq.heappop(queue)
            yield Record(time, topic, size, kept)
        if found < self.expected and not self.problems:
            self.problems.add(
                f"{self._name}: has {found} of the {self.expected} messages it names"
            )

    def _summary(self) -> list[_Block] | None:
        """Return the chunks that the summary lists; None if there is no summary to trust."""
        if self._size < len(MAGIC) + _FOOTER.size:
            return None
        tail = self._read(self._size - _FOOTER.size, _FOOTER.size)
        opcode, length, start, _, crc, magic = _FOOTER.unpack(tail)
        if (opcode, length, magic) != (_FOOTER_OP, 20, MAGIC) or not start:
            return None
        if not len(MAGIC) <= start <= self._size - _FOOTER.size:
            return None
        data = self._read(start, self._size - _FOOTER.size - start)
        if crc and crc32(data + tail[:25]) != crc:
            return None
        blocks = []
        for opcode, record in _records(data):
            if opcode == _INDEX_OP:
                first, last, offset, length = _CHUNK_INDEX.unpack_from(record)
                blocks.append(_Block(first, last, offset + _HEADER, length - _HEADER, True))
            elif opcode == _STATISTICS:
                (self.expected,) = struct.unpack_from("<Q", record)
            else:
                self._describe(opcode, record)
        # Without chunks the summary says nothing about where the messages are.
        return blocks if blocks and self._topics else None

    def _walk(self) -> list[_Block]:
        """Return the blocks found by going from record to record."""
        blocks: list[_Block] = []
        at = len(MAGIC)
        run: list[int] = []  # start and end time, offset and end of the run under way
        ended = False

        def end_run() -> None:
            if run:
                blocks.append(_Block(run[0], run[1], run[2], run[3] - run[2], False))
                run.clear()

        while at < self._size:
            header = self._read(at, _HEADER)
            if len(header) < _HEADER:
                break
            opcode, length = _LENGTH.unpack(header)
            end = at + _HEADER + length
            if opcode == _FOOTER_OP:
                ended = end <= self._size
                break
            if not 0 < opcode < 128 or (end > self._size and opcode != _CHUNK_OP):
                break
            if opcode == _CHUNK_OP:
                end_run()
                head = self._read(at + _HEADER, min(_CHUNK.size, length))
                if len(head) < _CHUNK.size:
                    break
                available = min(length, self._size - at - _HEADER)
                first, last, _, _ = _CHUNK.unpack(head)
                block = _Block(first, last, at + _HEADER, available, True)
                blocks.append(block)
                for _ in self._messages(block, describe_only=True):
                    pass
            elif opcode == _MESSAGE_OP:
                head = self._read(at + _HEADER, min(_MESSAGE.size, length))
                if len(head) < _MESSAGE.size:
                    break
                time = _MESSAGE.unpack(head)[2]
                if run and run[3] - run[2] > _RUN_BYTES:
                    end_run()
                first, last, start, _ = run or (time, time, at, end)
                run[:] = min(time, first), max(time, last), start, end
            elif opcode in (_SCHEMA, _CHANNEL):
                end_run()
                try:
                    self._describe(opcode, self._read(at + _HEADER, length))
                except (struct.error, ValueError):
                    self.problems.add(f"{self._name}: a topic's description is damaged")
            at = end
        end_run()
        if not ended:
            cut = min(at, self._size)
            self.problems.add(
                f"{self._name}: cut off or damaged at byte {cut} of {self._size}; "
                "what lies before was read"
            )
        return blocks

    def _messages(
        self, block: _Block, describe_only: bool = False
    ) -> Iterator[tuple[int, int, memoryview]]:
        """Yield channel, time and data of a block's messages; take note of described topics."""
        data, is_whole = self._content(block, quiet=describe_only)
        try:
            for opcode, record in _records(data, is_whole):
                if opcode == _MESSAGE_OP:
                    if not describe_only:
                        channel, _, time, _ = _MESSAGE.unpack_from(record)
                        yield channel, time, record[_MESSAGE.size :]
                elif opcode in (_SCHEMA, _CHANNEL):
                    self._describe(opcode, record)
                else:
                    raise ValueError("a record has no place in a chunk")
        except (struct.error, ValueError):
            if not describe_only:
                self.problems.add(
                    f"{self._name}: a block is damaged; a part of its messages is lost",
                    f"byte {block.offset}",
                )

    def _content(self, block: _Block, quiet: bool) -> tuple[memoryview, bool]:
        """Return the records of a block, and whether it is not cut off."""
        data = memoryview(self._read(block.offset, block.length))
        if not block.is_chunk:
            return data, True
        try:
            _, _, size, crc = _CHUNK.unpack_from(data)
            compression, rest = _string(data[_CHUNK.size :])
            (stored,) = struct.unpack_from("<Q", rest)
            packed = rest[8 : 8 + stored]
            is_whole = len(packed) == stored
            content = _unpack(compression, packed)
            if is_whole and (len(content) != size or (crc and crc32(content) != crc)):
                raise ValueError("its checksum is wrong")
            return memoryview(content), is_whole
        except (struct.error, ValueError, zstd.ZstdError, RuntimeError) as error:
            if not quiet:
                self.problems.add(
                    f"{self._name}: a chunk is damaged and was left out",
                    f"byte {block.offset} ({error})",
                )
            return memoryview(b""), True

    def _describe(self, opcode: int, record: memoryview | bytes) -> None:
        """Take note of a schema or a channel."""
        data = memoryview(record)
        if opcode == _SCHEMA:
            (number,) = struct.unpack_from("<H", data)
            name, data = _string(data[2:])
            encoding, data = _string(data)
            self._schemas[number] = name, encoding, _string(data)[0]
        elif opcode == _CHANNEL:
            number, schema = struct.unpack_from("<HH", data)
            topic, data = _string(data[4:])
            encoding, _ = _string(data)
            name, kind, text = self._schemas.get(schema, ("", "", ""))
            self._topics[number] = Topic(topic, name, encoding, text, kind)

    def _read(self, offset: int, length: int) -> bytes:
        if offset >= self._size:  # what a damaged file says may be any number
            return b""
        self._file.seek(offset)
        return self._file.read(min(max(0, length), self._size))


def _records(data: memoryview | bytes, is_whole: bool = True) -> Iterator[tuple[int, memoryview]]:
    """Yield opcode and content of the records in some bytes.

    Raises
    ------
    ValueError: one cannot be, or is cut off though the bytes are whole.
    """
    view = memoryview(data)
    at = 0
    while at + _HEADER <= len(view):
        opcode, length = _LENGTH.unpack_from(view, at)
        if not opcode:
            raise ValueError("a record has no kind")
        end = at + _HEADER + length
        if end > len(view):
            break
        yield opcode, view[at + _HEADER : end]
        at = end
    if is_whole and at < len(view):
        raise ValueError("a record is cut off")


def _string(data: memoryview) -> tuple[str, memoryview]:
    (length,) = struct.unpack_from("<I", data)
    if len(data) < 4 + length:
        raise ValueError("a string is cut off")
    return str(data[4 : 4 + length], "utf-8"), data[4 + length :]


def _unpack(compression: str, data: memoryview) -> bytes | memoryview:
    """Return what some bytes were before they were compressed, as far as they go."""
    if compression == "zstd":
        return bytes(zstd.ZstdDecompressor().decompress(data))
    if compression == "lz4":
        return bytes(lz4.frame.LZ4FrameDecompressor().decompress(data))
    if compression:
        raise ValueError(f"its compression {compression!r} is not known")
    return data
