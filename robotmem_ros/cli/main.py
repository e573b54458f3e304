# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The command `robotmem`: what can be done with a memory while no node runs, or beside one."""

from __future__ import annotations

import argparse
import os
import sys

from robotmem_ros.cli import backup, check, export, import_bags, repair, stats
from robotmem_ros.core.errors import RobotMemoryError

COMMANDS = (import_bags, export, backup, check, repair, stats)
"""Modules with a function `add_to`, which adds one or two commands, in the order of the help."""

WRONG_USAGE = 2
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(prog="robotmem", description=__doc__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except RobotMemoryError as error:
        print(f"robotmem: {error}", file=sys.stderr)
        return WRONG_USAGE
    except KeyboardInterrupt:
        print("robotmem: interrupted; what was done so far stays", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # of a pipe like `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main())
