# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`robotmem repair`: recover what can be read of a damaged database into a new file."""

from __future__ import annotations

import argparse
from typing import Any

from robotmem_ros.cli import database
from robotmem_ros.core.store import repair

DESCRIPTION = """\
Recover every memory, episode, trajectory and vector that can be read of a database into a new
file, and make its indexes anew. The damaged file and its log are only read, page by page, so that
also a file without its first page gives back what is left. A node that uses it must be stopped."""

INCOMPLETE = 1
_SHOWN = 20


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "repair",
        help="recover the memories of a damaged database into a new file",
        description=DESCRIPTION,
        epilog=database.EXIT_CODES.format(problem="not everything came back"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    database.add(parser)
    parser.add_argument(
        "--output", type=database.file, metavar="NEW", help="the new file (default: DB.repaired)"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Repair a database; return the exit code.

    Raises
    ------
    StoreError: nothing can be recovered, or the new file cannot be written.
    """
    path, output = chosen.db, chosen.output or f"{chosen.db}.repaired"
    with database.progress(path) as progress:
        made = repair.repair(path, output, progress)
    recovered = [database.memories(made.memories), database.counted(made.episodes, "episode")]
    recovered.append(database.counted(made.vectors, "vector"))
    print(f"{output}: {', '.join(recovered)} recovered")
    if made.lost:
        print(f"{path}: {database.memories(made.lost)} lost")
    if made.bare:
        print(
            f"{output}: of {database.memories(made.bare)} only text and context were left; see "
            f"collection {repair.RECOVERED!r}"
        )
    if made.altered:
        shown = ", ".join(map(str, made.altered[:_SHOWN]))
        more = ", ..." if len(made.altered) > _SHOWN else ""
        print(
            f"{output}: {database.memories(len(made.altered))} not exactly as learned: "
            f"{shown}{more}"
        )
    print(f"next: robotmem restore {output} {path} --force (it keeps the old file beside it)")
    return INCOMPLETE if made.lost or made.bare or made.altered else 0
