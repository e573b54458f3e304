# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Build robotmem_ros: a Python package that generates its own ROS interfaces.

build_py has resource/interfaces.py generate msg/ and srv/ in the build directory and takes
the result into the package: Python modules beside ours, everything else (C and C++
libraries, headers, CMake files, the ament index) as data files. colcon and pip run the same
commands and get the same package.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Distribution, find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

try:  # Its home since setuptools 62.4; Humble has 59.
    from setuptools.command.build import build
except ImportError:
    from distutils.command.build import build

NAME = "robotmem_ros"
HERE = Path(__file__).resolve().parent
CONSOLE_SCRIPTS = [
    "robotmem_node = robotmem_ros.main:main",
    "robotmem = robotmem_ros.cli.main:main",
]
NOT_EDITABLE = f"error: {NAME} cannot be installed as editable: its interfaces are generated"

sys.path.insert(0, str(HERE / "resource"))
bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # not into the source tree
import interfaces  # noqa: E402

sys.dont_write_bytecode = bytecode


def makes_wheel(distribution: Distribution) -> bool:
    """Tell whether pip is at work, building a wheel, and not colcon, installing a tree."""
    return "bdist_wheel" in distribution.commands


def scratch() -> str:
    """Return the build directory of a wheel: outside the source tree, which stays clean.

    ROBOTMEM_BUILD_BASE keeps one between builds, so that unchanged interfaces are not
    generated again.
    """
    if "ROBOTMEM_BUILD_BASE" not in os.environ:
        os.environ["ROBOTMEM_BUILD_BASE"] = folder = tempfile.mkdtemp(prefix=f"{NAME}-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder = os.environ["ROBOTMEM_BUILD_BASE"]
    os.makedirs(folder, exist_ok=True)
    return folder


class PlatformDistribution(Distribution):
    """A distribution whose wheel carries a platform tag, for it holds compiled code."""

    def has_ext_modules(self) -> bool:
        """Be platform specific in a wheel; colcon looks for packages in purelib only."""
        return makes_wheel(self)


class Build(build):
    """Keep the build directory of a wheel out of the source tree."""

    def finalize_options(self) -> None:
        """Move the build directory unless the caller chose one."""
        if self.build_base == "build" and makes_wheel(self.distribution):
            self.build_base = scratch()
        super().finalize_options()


class EggInfo(egg_info):
    """Keep the egg-info directory out of the source tree."""

    def finalize_options(self) -> None:
        """Move the egg-info directory unless the caller chose one."""
        if self.egg_base is None:
            self.egg_base = scratch()
        super().finalize_options()


class BuildInterfaces(build_py):
    """Copy the Python package and put the generated interfaces into it."""

    def initialize_options(self) -> None:
        """Start with nothing generated."""
        super().initialize_options()
        self.generated: list[str] = []

    def run(self) -> None:
        """Build afresh: a module that left the source must leave the package too."""
        if getattr(self, "editable_mode", False):
            sys.exit(NOT_EDITABLE)
        base = Path(self.get_finalized_command("build").build_base).resolve()
        staged = interfaces.generate(base / "interfaces")
        package = Path(self.build_lib, NAME)
        shutil.rmtree(package, ignore_errors=True)
        super().run()
        for source, inside in staged.modules:
            target = package / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            self.generated.append(str(target))
        # In place: install_data may hold this list already.
        self.distribution.data_files.extend(staged.data_files)
        if makes_wheel(self.distribution):
            self.distribution.data_files.append(self._ros2_run(base / "run"))

    def get_outputs(self, include_bytecode: bool = True) -> "list[str]":
        """Name the generated modules too, so that an uninstall finds them."""
        return [*super().get_outputs(include_bytecode), *self.generated]

    def _ros2_run(self, folder: Path) -> "tuple[str, list[str]]":
        """Write what `ros2 run` looks for; pip puts the real programs in bin/ alone."""
        folder.mkdir(parents=True, exist_ok=True)
        programs = [entry.split("=")[0].strip() for entry in CONSOLE_SCRIPTS]
        for program in programs:
            script = folder / program
            script.write_text(f'#!/bin/sh\nexec "$(dirname "$0")/../../bin/{program}" "$@"\n')
            script.chmod(0o755)
        return f"lib/{NAME}", [str(folder / program) for program in programs]


class Develop(Command):
    """Refuse the develop command, whose generated modules would land in the source tree.

    It has no --editable option, so that `colcon build --symlink-install` sees that it cannot
    link this package and installs it in full.
    """

    description = "not supported: use 'pip install .' or 'colcon build'"
    user_options: ClassVar = [("no-deps", "N", "accepted for pip, which passes it")]
    boolean_options: ClassVar = ["no-deps"]

    def initialize_options(self) -> None:
        """Take what pip passes, so that it gets to see the message."""
        self.no_deps = False

    def finalize_options(self) -> None:
        """Have nothing to check."""

    def run(self) -> None:
        """Say what to do instead."""
        sys.exit(NOT_EDITABLE)


def shared(folder: str) -> "tuple[str, list[str]]":
    """Install the files of a source folder into the share directory."""
    files = sorted(p.relative_to(HERE).as_posix() for p in (HERE / folder).glob("*.*"))
    return f"share/{NAME}/{folder}", files


setup(
    name=NAME,
    version="0.1.0",
    description="Persistent experience memory for robots: learn, recall, publish",
    license="Apache-2.0",
    maintainer="robotmem maintainers",
    maintainer_email="maintainers@robotmem.dev",
    distclass=PlatformDistribution,
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *map(shared, ("launch", "config", "msg", "srv")),
    ],
    entry_points={"console_scripts": CONSOLE_SCRIPTS},
    cmdclass={
        "build": Build,
        "build_py": BuildInterfaces,
        "develop": Develop,
        "egg_info": EggInfo,
    },
    python_requires=">=3.10",
    install_requires=[
        "apsw>=3.51",
        'backports.zstd; python_version < "3.14"',
        "fastembed>=0.6",
        "httpx>=0.24",
        "jieba>=0.42",
        "lz4",
        "numpy>=1.21",
        "pyyaml",
        "rosbags>=0.11",
        "snowballstemmer>=2.2",
        "sqlite-vec>=0.1.6",
    ],
    zip_safe=False,
)
