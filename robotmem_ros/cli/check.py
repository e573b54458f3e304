# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`robotmem check`: look for all that can be wrong with a database, and say what to do."""

from __future__ import annotations

import argparse
from typing import Any

from robotmem_ros.cli import database
from robotmem_ros.core.store import check

DESCRIPTION = """\
Read a database file from end to end and compare everything in it: its pages, each memory with the
digest it was stored with, each index with the memories. Nothing is changed, and a node may be
using the file."""

PROBLEMS = 1


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "check",
        help="look for damage in a database",
        description=DESCRIPTION,
        epilog=database.EXIT_CODES.format(problem="something is wrong"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    database.add(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Check a database; return the exit code.

    Raises
    ------
    StoreError: it cannot be opened.
    """
    path = chosen.db
    with database.progress(path) as progress:
        found = check.check(path, progress)
    holds = f"{database.memories(found.memories)}, {database.counted(found.episodes, 'episode')}"
    if not found.damages and not found.disagreements:
        print(f"{path}: sound ({holds}, schema version {found.version})")
        return 0
    for damage in found.damages:
        print(f"{path}: damaged: {damage}")
    for disagreement in found.disagreements:
        print(f"{path}: wrong index: {disagreement}")
    if found.damages:
        print(f"next: robotmem repair {path} (the file stays as it is), or restore a backup")
    else:
        print(
            f"next: no memory is affected ({holds}); call ~/reindex of the node that uses the "
            f"file, or robotmem repair {path}"
        )
    return PROBLEMS
