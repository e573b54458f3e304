# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Run every check of the project: python3 test/run.py [--core] [pytest arguments].

Builds the environment first (see .ci/environment.py), then checks format, style and types,
then runs the tests, in ROS domains of their own that no other machine can hear: those of
processes that mostly wait for each other beside those that compute. With --core the tests of
the core, its embedding backends, bags and commands run, in an environment without ROS.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / ".ci"))

import environment  # noqa: E402

CORE_TESTS = [
    f"test/{name}" for name in ("core", "core_episodes", "trouble", "embedding", "bags", "cli")
]
WAITING_TESTS = [f"test/{name}" for name in ("node", "capture", "build")]
COMPUTING_TESTS = [*CORE_TESTS, "test/edge"]
CHECKS = (
    ("format", ["ruff", "format", "--check", "--quiet", "."]),
    ("style", ["ruff", "check", "--quiet", "."]),
    ("types", ["mypy", "--no-error-summary"]),
)


def main(arguments: list[str]) -> int:
    """Run the checks, then the tests; the first that fails gives the exit code."""
    core = "--core" in arguments
    arguments = [argument for argument in arguments if argument != "--core"]
    inside = environment.ready(ros=not core, tests=True)
    caches = environment.LOCAL / "cache"
    variables = {
        "HYPOTHESIS_STORAGE_DIRECTORY": str(caches / "hypothesis"),
        "MYPY_CACHE_DIR": str(caches / "mypy"),
        "RUFF_CACHE_DIR": str(caches / "ruff"),
    }
    for name, command in CHECKS:
        print(f"{name}: {' '.join(command)}", flush=True)
        failed = inside.run(command, cwd=ROOT, env=variables)
        if failed:
            print(f"the {name} check failed: the tests were not run", file=sys.stderr)
            return failed
    if core:
        # The core as it stands in the checkout: nothing of the package is installed there.
        variables["PYTHONPATH"] = str(ROOT)
        arguments = [*CORE_TESTS, *arguments]
    else:
        variables["ROS_DOMAIN_ID"] = str(environment.free_domain())
    # The program, not `python -m pytest`: that would import the sources of the checkout,
    # which lack the generated interfaces, before the installed package.
    pytest = ["pytest", "-o", f"cache_dir={caches / 'pytest'}"]
    if arguments:
        return inside.run([*pytest, *arguments], cwd=ROOT, env=variables)
    return run_side_by_side(inside, pytest, variables)


def run_side_by_side(
    inside: environment.Environment, pytest: list[str], variables: dict[str, str]
) -> int:
    """Run all tests, as two programs; the second one's report follows that of the first."""
    with tempfile.TemporaryFile() as report, ThreadPoolExecutor(1) as pool:
        computing = pool.submit(
            inside.run,
            [*pytest, *COMPUTING_TESTS],
            cwd=ROOT,
            env=variables | {"ROS_DOMAIN_ID": str(environment.free_domain())},
            stdout=report,
            stderr=subprocess.STDOUT,
        )
        waiting = inside.run([*pytest, *WAITING_TESTS], cwd=ROOT, env=variables)
        computed = computing.result()
        report.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(report.read())
        sys.stdout.flush()
    return waiting or computed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
