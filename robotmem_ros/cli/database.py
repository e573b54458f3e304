# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the commands on a database file share: how it is named, and how far a long one has come."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from robotmem_ros.cli.progress import Progress
from robotmem_ros.core.config import Config

EXIT_CODES = "exit code: 0 all is well, 1 {problem}, 2 it could not be done (the reason is said)"


def add(parser: argparse.ArgumentParser, name: str = "db", *, optional: bool = True) -> None:
    """Add the argument that names a database."""
    default = Config.db_path
    parser.add_argument(
        name,
        nargs="?" if optional else None,
        type=file,
        default=file(default) if optional else None,
        metavar=name.upper(),
        help=f"the database file (default: {default})" if optional else "the database file",
    )


def file(text: str) -> str:
    """Return the path of a file that was named."""
    return os.path.expanduser(text)


@contextlib.contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Lend what shows on a terminal how much is done, and how much there is."""
    bar = Progress(sys.stderr, label, 0)

    def show(done: int, total: int) -> None:
        nonlocal bar
        if not total:
            return  # it goes on, but nobody knows how far
        if total != bar.total:
            bar.clear()
            bar = Progress(sys.stderr, label, total)
        bar.show(done // 64 * 64)

    try:
        yield show
    finally:
        bar.clear()


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with what it counts."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def memories(number: int) -> str:
    """Return how many memories."""
    return counted(number, "memory", "memories")


def megabytes(size: int) -> str:
    """Return a size of a file."""
    return f"{size / 1e6:.1f} MB"
