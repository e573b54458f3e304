# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Generate and compile the package's own interfaces: a part of setup.py.

An ament_python package cannot call rosidl by itself. So msg/ and srv/ are staged as a small
CMake project (interfaces.cmake) below the build directory, where the generators of the ROS 2
underlay build and install it for the Python that runs setup.py. Nothing is written outside
the build directory: not into the source tree, not into the underlay.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

NAME = "robotmem_ros"
RECIPE = Path(__file__).with_name("interfaces.cmake")
SOURCE = RECIPE.parent.parent
FILES = sorted(
    path.relative_to(SOURCE).as_posix()
    for kind in ("msg", "srv")
    for path in SOURCE.glob(f"{kind}/*.{kind}")
)

# What the generators say when something is missing, and what to install.
REMEDIES = (
    (
        r"[\"']?(em|lark|catkin_pkg)['\"]? *(?:could not be found|is not installed)|"
        r"No module named '?(em|lark|catkin_pkg)\b",
        "pip install 'empy<4' lark catkin_pkg",
    ),
    (r"module 'em' has no attribute", "pip install 'empy<4'"),
    (r"Python3_NumPy|NumPy\b.*not|numpy/\w+\.h", "pip install numpy"),
    (r"Development\.Module|Python3_INCLUDE|Python\.h", "apt install python3-dev"),
    (r"No CMAKE_C\w*_COMPILER|C\w* compiler identification is unknown", "apt install g++"),
    (r"CMake \S+ or higher is required", "pip install cmake"),
    (r"provided by\s+\"(\w+)\"|\"Find(\w+)\.cmake\"", "the ROS 2 package {}"),
)


class Staged(NamedTuple):
    """The generated half of the package."""

    modules: list[tuple[Path, str]]
    """Python modules and extensions, each with its path in the Python package."""

    data_files: list[tuple[str, list[str]]]
    """All the rest, by directory below the install prefix."""


def generate(base: Path) -> Staged:
    """Generate below `base`, unless what is there came from the very same inputs."""
    prefix = base / "prefix"
    stamp = base / "stamp"
    key = _key(base)
    if not stamp.exists() or stamp.read_text() != key:
        shutil.rmtree(base, ignore_errors=True)
        _compile(base, prefix)
        stamp.write_text(key)
    return _collect(prefix)


def _compile(base: Path, prefix: Path) -> None:
    """Configure, build and install the staged project."""
    project = base / "project"
    for file in ("package.xml", *FILES):
        target = project / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SOURCE / file, target)
    shutil.copyfile(RECIPE, project / "CMakeLists.txt")
    environment = _environment()
    cmake = shutil.which("cmake", path=environment["PATH"])
    if cmake is None:
        sys.exit("error: CMake is missing. Install it: apt install cmake, or pip install cmake")
    print(f"generating {len(FILES)} interfaces", flush=True)
    configure = [
        *("-S", project, "-B", base / "cmake", "--no-warn-unused-cli", "-Wno-dev"),
        *(["-G", "Ninja"] if shutil.which("ninja", path=environment["PATH"]) else []),
        f"-DINTERFACES={';'.join(FILES)}",
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        "-DCMAKE_BUILD_TYPE=Release",
        # Copying fields gains nothing from more, and a third of the time is saved.
        *(f"-DCMAKE_{language}_FLAGS_RELEASE=-O1 -DNDEBUG" for language in ("C", "CXX")),
        "-DBUILD_TESTING=OFF",
        "-DCMAKE_POLICY_VERSION_MINIMUM=3.5",  # CMake 4 over an older ROS 2
        f"-DPython3_EXECUTABLE={sys.executable}",
        f"-DPYTHON_EXECUTABLE={sys.executable}",
    ]
    build = ["--build", base / "cmake", "--parallel", os.cpu_count() or 1]
    install = ["--install", base / "cmake", "--strip"]
    for step in (configure, build, install):
        done = subprocess.run(
            [cmake, *map(str, step)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            words = re.sub(r"^(-- |\[\d+/\d+\] (?!.*FAILED)).*\n", "", done.stdout, flags=re.M)
            print(words.strip(), file=sys.stderr)
            sys.exit(f"error: the interfaces were not generated. {_remedy(words)}")
    # The prefix that it falls back to is where the package will be, not where it was staged.
    script = prefix / "share" / NAME / "local_setup.sh"
    script.write_text(script.read_text().replace(str(prefix), sys.prefix))


def _collect(prefix: Path) -> Staged:
    """Sort what was installed below `prefix` into Python modules and data files."""
    package = next(prefix.glob(f"**/{NAME}/msg/__init__.py")).parent.parent
    modules = [
        (path, path.relative_to(package).as_posix())
        for path in sorted(package.rglob("*"))
        if path.suffix in (".so", ".pyd") or (path.suffix == ".py" and path.parent != package)
    ]
    # setup() itself installs the marker, the manifest and the sources. The parent prefixes
    # would carry a path of this machine into a wheel, and only generated setup files read them.
    share = prefix / "share" / NAME
    index = prefix / "share/ament_index/resource_index"
    left_out = {share / file for file in ("package.xml", *FILES)}
    left_out |= {index / kind / NAME for kind in ("packages", "parent_prefix_path")}
    folders: dict[str, list[str]] = {}
    for path in sorted(prefix.rglob("*")):
        if path.is_file() and package.parent not in path.parents and path not in left_out:
            folder = path.parent.relative_to(prefix).as_posix()
            folders.setdefault(folder, []).append(str(path))
    return Staged(modules, list(folders.items()))


def _underlay() -> list[Path]:
    """Find the ROS 2 to build on: what is sourced, then the prefix of this Python."""
    named = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    # Not sys.prefix: colcon points that at its install folder.
    own = str(Path(sys.executable).parent.parent)
    prefixes = [Path(p) for p in dict.fromkeys([*named, own]) if p]
    return [p for p in prefixes if (p / "share/ament_index/resource_index/packages").is_dir()]


def _environment() -> dict[str, str]:
    """Return the environment in which CMake and the generators run.

    colcon and pip put a sitecustomize on PYTHONPATH that moves sys.prefix or hides the
    site-packages; the generators must see the Python as it is.
    """
    env = dict(os.environ)

    def joined(first: list[str], name: str) -> str:
        return os.pathsep.join(dict.fromkeys([*first, *filter(None, paths(name))]))

    def paths(name: str) -> list[str]:
        return env.get(name, "").split(os.pathsep)

    underlay = [str(p) for p in _underlay()]
    seen = [p for p in paths("PYTHONPATH") if p and not Path(p, "sitecustomize.py").exists()]
    env["PYTHONPATH"] = os.pathsep.join(seen)
    env["PATH"] = joined([str(Path(sys.executable).parent)], "PATH")
    env["CMAKE_PREFIX_PATH"] = joined(underlay, "CMAKE_PREFIX_PATH")
    env["AMENT_PREFIX_PATH"] = os.pathsep.join(underlay)
    env["PYTHONHASHSEED"] = "0"  # the generators write sets: the same text every time
    return env


def _key(base: Path) -> str:
    """Digest everything that the result depends on."""
    digest = hashlib.sha256()
    for fact in (base, sys.executable, sysconfig.get_config_var("SOABI"), os.environ.get("CXX")):
        digest.update(f"{fact}\n".encode())
    manifests = [m for p in _underlay() for m in sorted(p.glob("share/*/package.xml"))]
    others = [m for m in manifests if m.parent.name != NAME]  # not what we installed before
    for path in [Path(__file__), RECIPE, *(SOURCE / f for f in ("package.xml", *FILES)), *others]:
        digest.update(f"{path}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _remedy(words: str) -> str:
    """Say in one line what would cure the failure described by `words`."""
    for pattern, cure in REMEDIES:
        found = re.search(pattern, words)
        if found:
            package = next(filter(None, found.groups()), "")
            return "Missing; install it: " + cure.format(package)
    return "The generator's message is above."
