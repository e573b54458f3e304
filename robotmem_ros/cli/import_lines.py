# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The part of `robotmem import` that reads JSON Lines, as `robotmem export` writes them."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from robotmem_ros.cli.progress import Progress
from robotmem_ros.core import exchange
from robotmem_ros.core.errors import InvalidRequestError
from robotmem_ros.core.model import Episode, Memory, MemoryType

if TYPE_CHECKING:
    from robotmem_ros.cli.sink import Sink, Tally

_AT_ONCE = 200  # memories in one transaction
_LONGEST_LINE = 500_000_000


def is_lines(path: Path) -> bool:
    """Return whether a file is one of JSON Lines, by its name or by how it begins."""
    if not path.is_file():
        return False
    if path.suffix in (".jsonl", ".ndjson"):
        return True
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def import_lines(path: Path, sink: Sink, tally: Tally) -> None:
    """Import a file as far as it can be read, into a tally.

    Raises
    ------
    StoreError: the database cannot be written.
    """
    start, before = time.perf_counter(), sink.rows()
    try:
        _Reading(path, sink, tally).run()
    except OSError as error:
        tally.problems.append(error.strerror or str(error))
    # Another process may store and forget meanwhile: the number is then a little off.
    tally.new = min(tally.changed, max(0, sink.rows() - before))
    tally.seconds = time.perf_counter() - start


class _Reading:
    """One file on its way into a memory."""

    def __init__(self, path: Path, sink: Sink, tally: Tally) -> None:
        self._path = path
        self._sink = sink
        self._tally = tally
        self._batch: list[tuple[int, Memory]] = []
        self._closing: dict[str, Memory] = {}  # `episode` memories: they tell when one was closed
        self._problems: Counter[str] = Counter()
        self._first: dict[str, int] = {}

    def run(self) -> None:
        """Import every line that can be used."""
        progress = Progress(sys.stderr, self._path.name, os.path.getsize(self._path))
        done = 0
        with self._path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                done += len(raw)
                progress.show(done // 64 * 64)
                if not raw.strip():
                    continue
                self._tally.messages += 1
                try:
                    self._take(number, exchange.read(raw.decode()))
                except UnicodeDecodeError:
                    self._refuse(number, "it is not UTF-8")
                except InvalidRequestError as error:
                    self._refuse(number, str(error))
        self._flush()
        progress.clear()
        for problem, count in self._problems.items():
            more = f" and {count - 1} more" if count > 1 else ""
            self._tally.problems.append(f"line {self._first[problem]}{more}: {problem}")

    def _take(self, number: int, found: Memory | Episode) -> None:
        if isinstance(found, Memory):
            if found.type is MemoryType.EPISODE:
                self._closing[found.session_id] = found
            self._batch.append((number, found))
            if len(self._batch) == _AT_ONCE:
                self._flush()
            return
        self._flush()
        self._tally.episodes += 1
        closing = self._closing.get(found.session_id)
        if closing is not None:
            found = dataclasses.replace(found, memories=(closing,))
        changed, is_new = self._sink.put(found)
        self._tally.changed += changed
        self._tally.new_episodes += is_new

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        try:
            self._tally.changed += self._sink.put_memories([memory for _, memory in batch])
            self._tally.memories += len(batch)
        except InvalidRequestError:
            for number, memory in batch:  # one of them cannot be stored; the others can
                try:
                    self._tally.changed += self._sink.put_memories([memory])
                    self._tally.memories += 1
                except InvalidRequestError as error:
                    self._refuse(number, str(error))

    def _refuse(self, number: int, problem: str) -> None:
        self._problems[problem] += 1
        self._first.setdefault(problem, number)
