# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`robotmem export`: all memories and episodes as JSON Lines, for any program."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from robotmem_ros.cli import database
from robotmem_ros.core import exchange
from robotmem_ros.core.store import dump, files

DESCRIPTION = """\
Write all memories, and all episodes that have ended with their trajectories, one JSON object a
line, with every field but the vectors, which a model makes again. `robotmem import` reads it,
every memory once. A node may be using the database. What you redirect into a file gets the mode of
your shell; --output makes one for its owner alone."""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "export",
        help="write all memories and episodes as JSON Lines",
        description=DESCRIPTION,
        epilog=database.EXIT_CODES.replace(" 1 {problem},", "")
        + "\n\nexample:\n  robotmem export robot.db > robot.jsonl",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    database.add(parser)
    parser.add_argument(
        "--output", type=database.file, metavar="FILE", help="a new file (default: the output)"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Export a database; return the exit code.

    Raises
    ------
    StoreError: it cannot be read, or the new file cannot be written.
    """
    if chosen.output is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        said = _write(chosen.db, sys.stdout.write)
        sys.stdout.flush()
    else:
        with files.written(chosen.output) as partial, open(partial, "w", encoding="utf-8") as file:
            said = _write(chosen.db, file.write)
    print(f"{chosen.db}: {said}", file=sys.stderr)
    return 0


def _write(path: str, write: Callable[[str], object]) -> str:
    memories = episodes = left = 0
    with dump.dump(path) as source, database.progress(path) as progress:
        total = source.totals()["memories"]
        for memory in source.memories():
            write(exchange.line(memory) + "\n")
            memories += 1
            progress(memories, total)
        for episode in source.episodes():
            if not episode.end:
                left += 1
                continue
            write(exchange.line(episode) + "\n")
            episodes += 1
    said = f"{database.memories(memories)}, {database.counted(episodes, 'episode')} exported"
    return said + (f"; {database.counted(left, 'open episode')} left out" if left else "")
