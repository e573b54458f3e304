# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`robotmem import`: turn recorded bags into memories, or take exported ones, with no ROS."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robotmem_ros import params_file
from robotmem_ros.cli.import_lines import import_lines, is_lines
from robotmem_ros.cli.progress import Progress
from robotmem_ros.cli.sink import Sink, Tally
from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import ConfigError, InvalidRequestError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Episode
from robotmem_ros.params_file import Parameters

DESCRIPTION = """\
Read ROS 2 bags (sqlite3 and mcap, also damaged ones) and store what they hold: memories and
episodes that were recorded from a node's topics, exactly as they were, and each bag, or each part
of it, as an episode with its trajectory and what the robot sensed, by the same parameters as the
node. Files of JSON Lines, as `robotmem export` writes them, give back what they hold. The same
file imported twice is stored once. No ROS is needed."""

EPILOG = """\
exit code: 0 all is well, 1 a file had problems (the rest was imported), 2 wrong usage or
parameters

examples:
  robotmem import day1/ day2.mcap --params-file robotmem.yaml
  robotmem import trials/ --marker /note --collection trials
  robotmem import patrol.mcap --gap 30 --dry-run
  robotmem import robot.jsonl --db other.db"""

_STORAGE = re.compile(r"(_\d+)?\.(db3|mcap)(\.zstd)?$")

PROBLEMS = 1

OWNER = "robotmem import"
"""As whom the database is opened: the open episode of a node is none of our affair."""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "import",
        help="turn recorded bags into memories, or take exported ones",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "bags",
        nargs="+",
        metavar="BAG",
        type=Path,
        help="folder of a bag, or a .db3, .mcap or .jsonl file",
    )
    parser.add_argument(
        "--params-file", type=Path, metavar="YAML", help="the parameters of the node"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set one parameter, over the file; may be given more than once",
    )
    parser.add_argument("--db", metavar="PATH", help="the database (parameter db_path)")
    parser.add_argument(
        "--collection", metavar="NAME", help="where what is made of bags goes (collection)"
    )
    parser.add_argument(
        "--namespace",
        default="",
        metavar="NS",
        help="the robot's namespace, for topics without a leading slash",
    )
    cut = parser.add_mutually_exclusive_group()
    cut.add_argument(
        "--marker",
        default="",
        metavar="TOPIC",
        help="each message there says what happens now, and begins a new episode",
    )
    cut.add_argument(
        "--gap",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="begin a new episode after so long without any message",
    )
    cut.add_argument(
        "--memories-only",
        action="store_true",
        help="take recorded memories and episodes, make none of other topics",
    )
    parser.add_argument("--dry-run", action="store_true", help="read and report, store nothing")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Import bags; return the exit code.

    Raises
    ------
    ConfigError: a parameter is wrong.
    StoreError: the database cannot be opened or written.
    """
    parameters = params_file.read(chosen.params_file, chosen.set, **_options(chosen))
    for sentence in parameters.unknown():
        print(f"note: {sentence}", file=sys.stderr)
    lines = {path for path in chosen.bags if is_lines(path)}
    cutting = _cutting(chosen) if lines != set(chosen.bags) else None
    total = Tally()
    with _sink(parameters.config, chosen.dry_run) as sink:
        bags = [bag for path in chosen.bags for bag in bags_in(path)]
        for path in bags:
            tally = Tally()
            if path in lines:
                tally.unit = total.unit = "lines"
                import_lines(path, sink, tally)
            else:
                tally = import_bag(path, sink, parameters, cutting, chosen.namespace)
            print(f"{path}: {tally.text(chosen.dry_run)}", flush=True)
            for problem in tally.problems:
                print(f"{path}: problem: {problem}", file=sys.stderr, flush=True)
            total.add(tally)
    what = "files" if lines else "bags"
    print(f"{len(bags)} {what}: {total.text(chosen.dry_run)}; {len(total.problems)} problems")
    return PROBLEMS if total.problems else 0


def bags_in(path: Path) -> list[Path]:
    """Return the bags at a path: itself, or what lies in a folder that is no bag.

    A folder without metadata is a bag if its files are named as those of one recording are.
    """
    if not path.is_dir() or (path / "metadata.yaml").exists():
        return [path]
    files = [file for file in sorted(path.iterdir()) if _STORAGE.search(file.name)]
    if files:
        recordings = {_STORAGE.sub("", file.name) for file in files}
        return [path] if len(recordings) == 1 else files
    folders = [
        folder for folder in sorted(path.iterdir()) if folder.is_dir() and not folder.is_symlink()
    ]
    bags = [bag for folder in folders for bag in bags_in(folder) if bag != folder or _is_bag(bag)]
    return bags or [path]


def _is_bag(folder: Path) -> bool:
    return any(
        file.name == "metadata.yaml" or _STORAGE.search(file.name) for file in folder.iterdir()
    )


def import_bag(
    path: Path, sink: Sink, parameters: Parameters, cutting: Any, namespace: str = ""
) -> Tally:
    """Import one bag as far as it can be read.

    Raises
    ------
    ConfigError: a parameter is wrong.
    StoreError: the database cannot be written.
    """
    from robotmem_ros.bags import Bag, BagError
    from robotmem_ros.bags.recording import Recording

    tally = Tally()
    start = time.perf_counter()
    before = sink.rows()
    try:
        with Bag(path) as bag:
            recording = Recording(bag, parameters, cutting, namespace)
            progress = Progress(sys.stderr, bag.name, bag.expected)
            for found in recording.found(progress.show):
                is_episode = isinstance(found, Episode)
                try:
                    changed, is_new = sink.put(found)
                except InvalidRequestError as error:
                    kind = "an episode" if is_episode else "a memory"
                    bag.problems.add(f"{kind} cannot be stored", error)
                    continue
                tally.memories += len(found.memories) if isinstance(found, Episode) else 1
                tally.episodes += is_episode
                tally.changed += changed
                tally.new_episodes += is_new
            progress.clear()
            tally.messages = recording.read
        tally.problems = bag.problems.lines()
    except (BagError, OSError) as error:
        tally.problems = [str(error)]
    # Another process may store and forget meanwhile: the number is then a little off.
    tally.new = min(tally.changed, max(0, sink.rows() - before))
    tally.seconds = time.perf_counter() - start
    return tally


def _cutting(chosen: argparse.Namespace) -> Any:
    try:
        from robotmem_ros.bags.recording import Cutting
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"bags cannot be read without {error.name}: python3 -m pip install rosbags"
        ) from error
    return Cutting(chosen.marker, chosen.gap, chosen.memories_only)


@contextlib.contextmanager
def _sink(config: Config, dry_run: bool) -> Iterator[Sink]:
    if dry_run:
        yield Sink(None)
        return
    with RobotMemory(config, owner=OWNER) as memory:
        yield Sink(memory)


def _options(chosen: argparse.Namespace) -> dict[str, Any]:
    # Vectors are left to the node: an import must not need its model, nor wait for it.
    options: dict[str, Any] = {"embed_backend": "none"}
    if chosen.db is not None:
        options["db_path"] = chosen.db
    if chosen.collection is not None:
        options["collection"] = chosen.collection
    return options


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.0 < value < 1e9:
        raise argparse.ArgumentTypeError("must be a number of seconds above 0")
    return value
