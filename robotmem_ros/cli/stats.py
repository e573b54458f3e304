# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`robotmem stats`: how much a database holds, by collection."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from typing import Any

from robotmem_ros.cli import database
from robotmem_ros.core.store import dump


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "stats",
        help="tell how much a database holds",
        description="Tell how much a database holds. A node may be using it.",
        epilog=database.EXIT_CODES.replace(" 1 {problem},", ""),
    )
    database.add(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print what a database holds; return the exit code.

    Raises
    ------
    StoreError: it cannot be read.
    """
    with dump.dump(chosen.db) as source:
        totals, collections = source.totals(), source.collections()
    print(chosen.db)
    for name, number in totals.items():
        print(f"  {name}: {number}")
    for found in collections:
        replaced = f", {found.superseded} superseded" if found.superseded else ""
        print(
            f"  collection {found.name}: {database.memories(found.memories)}{replaced}, "
            f"{_day(found.since)} to {_day(found.until)}"
        )
    return 0


def _day(stamp: int) -> str:
    try:
        return f"{datetime.fromtimestamp(stamp / 1e9, timezone.utc):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return f"{stamp} ns"
