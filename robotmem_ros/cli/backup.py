# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`robotmem backup` and `robotmem restore`: copy a database, and put a copy in its place."""

from __future__ import annotations

import argparse
import os
from typing import Any

from robotmem_ros.cli import database
from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.store import backup

BACKUP = """\
Copy a database as it is at one moment, while a node may go on learning. The copy is checked before
it gets its name, is one file, and is readable by its owner alone. ~/backup of a node does the
same."""

RESTORE = """\
Put a copy in the place of a database, once it was checked. A file that is there is replaced only
with --force, and kept beside it under another name. Refused while another process has it open:
that is known by the lock that SQLite holds on the file, on file systems that have locks."""


def add_to(commands: Any) -> None:
    """Add the commands to the parser."""
    codes = database.EXIT_CODES.replace(" 1 {problem},", "")
    parser = commands.add_parser(
        "backup",
        help="copy a database while it is in use",
        description=BACKUP,
        epilog=codes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    database.add(parser, optional=False)
    parser.add_argument(
        "target",
        nargs="?",
        type=database.file,
        metavar="TARGET",
        help="the new file, or a folder for it (default: beside the database, named by the time)",
    )
    parser.set_defaults(run=run_backup)
    parser = commands.add_parser(
        "restore",
        help="put a copy in the place of a database",
        description=RESTORE,
        epilog=codes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("backup", type=database.file, metavar="BACKUP", help="the copy")
    database.add(parser, optional=False)
    parser.add_argument(
        "--force", action="store_true", help="replace a file that is there; it is kept beside it"
    )
    parser.set_defaults(run=run_restore)


def run_backup(chosen: argparse.Namespace) -> int:
    """Copy a database; return the exit code.

    Raises
    ------
    StoreError: it is damaged, or the copy cannot be written.
    """
    path = chosen.db
    target = chosen.target or os.path.dirname(os.path.abspath(path))
    if os.path.isdir(target):
        target = backup.name_now(path, target)
    with database.progress(path) as progress:
        made = backup.backup(path, target, progress)
    print(f"{made.path}: {_holds(made)}, checked")
    return 0


def run_restore(chosen: argparse.Namespace) -> int:
    """Put a copy in the place of a database; return the exit code.

    Raises
    ------
    StoreError: the copy is damaged, or the database is there, in use or cannot be written.
    """
    if os.path.isdir(chosen.db):
        raise StoreError(f"{chosen.db} is a folder; name the database file")
    with database.progress(chosen.backup) as progress:
        made, old = backup.restore(chosen.backup, chosen.db, chosen.force, progress)
    kept = f"; what was there is now {old}" if old else ""
    print(f"{made.path}: {_holds(made)} restored{kept}")
    return 0


def _holds(made: backup.Copy) -> str:
    episodes = database.counted(made.episodes, "episode")
    return f"{database.memories(made.memories)}, {episodes}, {database.megabytes(made.size)}"
