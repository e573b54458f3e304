# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The package build: colcon and pip give the same working package, and nothing else."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "robotmem_ros"
# Generating all interfaces twice takes a minute and a half: these stand for them.
SOME = ("msg/Memory.msg", "srv/Learn.srv")
TYPESUPPORTS = [
    f"lib/lib{PACKAGE}__rosidl_{part}.so"
    for part in (
        *("generator_c", "generator_py"),
        *("typesupport_c", "typesupport_introspection_c", "typesupport_fastrtps_c"),
        *("typesupport_cpp", "typesupport_introspection_cpp", "typesupport_fastrtps_cpp"),
    )
]
USE = """
import robotmem_ros
from robotmem_ros.msg import Memory
from robotmem_ros.srv import Learn
from rclpy.type_support import check_for_type_support
for kind in (Memory, Learn):
    check_for_type_support(kind)
print(Learn.Request().confidence, Memory.TYPE_FACT)
print(robotmem_ros.__file__)
"""

ament = pytest.importorskip("ament_index_python.packages", reason="needs ROS 2")
needs_colcon = pytest.mark.skipif(shutil.which("colcon") is None, reason="needs colcon")


# --- building ---


def copy_source(target: Path) -> Path:
    """Copy the package without its history, with a few of its interfaces."""
    target.mkdir(parents=True)
    for name in ("package.xml", "setup.py", "setup.cfg"):
        shutil.copy(ROOT / name, target)
    for name in ("resource", PACKAGE, "launch", "config"):
        if (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, target / name, ignore=ignore)
    for file in SOME:
        (target / file).parent.mkdir()
        shutil.copy(ROOT / file, target / file)
    return target


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command and return all that it said."""
    env = {**os.environ, "PIP_NO_INDEX": "1", "ROBOTMEM_BUILD_BASE": str(cwd / "scratch")}
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def colcon(workspace: Path, *arguments: str) -> str:
    """Build a workspace and return what colcon said."""
    handlers = ("--event-handlers", "console_direct+")
    done = run("colcon", "--log-base", "log", "build", *handlers, *arguments, cwd=workspace)
    assert done.returncode == 0, done.stdout
    return done.stdout


def pip_wheel(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build a wheel into a folder."""
    options = ("--no-deps", "--no-build-isolation", "--use-pep517", "-w", target / "wheels")
    target.mkdir(exist_ok=True)
    return run(sys.executable, "-m", "pip", "wheel", "-v", *options, source, cwd=target)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_source(tmp_path_factory.mktemp("source") / PACKAGE)


@pytest.fixture(scope="module")
def workspace(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which colcon has built the package."""
    workspace = tmp_path_factory.mktemp("workspace")
    shutil.copytree(source, workspace / "src" / PACKAGE)
    before = digests(workspace / "src")
    assert "generating 2 interfaces" in colcon(workspace)
    assert digests(workspace / "src") == before
    return workspace


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that pip has built of the package."""
    before = digests(source)
    target = tmp_path_factory.mktemp("pip")
    done = pip_wheel(source, target)
    assert done.returncode == 0, done.stdout
    assert digests(source) == before
    return next((target / "wheels").glob("*.whl"))


@pytest.fixture(scope="module")
def prefix(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, laid out as pip would under an install prefix."""
    scratch, prefix = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("prefix")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(scratch)
    shutil.copytree(next(scratch.glob("*.data")) / "data", prefix, dirs_exist_ok=True)
    python = prefix / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    shutil.copytree(scratch / PACKAGE, python / PACKAGE)
    return prefix


# --- the package that the tests run with ---


def test_the_installed_package_is_complete() -> None:
    prefix = Path(ament.get_package_prefix(PACKAGE))
    share = Path(ament.get_package_share_directory(PACKAGE))
    interfaces = [*ROOT.glob("msg/*.msg"), *ROOT.glob("srv/*.srv")]
    assert interfaces
    for interface in interfaces:
        installed = share / interface.relative_to(ROOT)
        assert installed.read_bytes() == interface.read_bytes()
        assert installed.with_suffix(".idl").is_file()
    for library in TYPESUPPORTS:
        assert (prefix / library).is_file()
    for folder in ("launch", "config"):
        for file in (ROOT / folder).glob("*.*"):
            assert (share / folder / file.name).is_file()
    assert (share / "package.xml").read_bytes() == (ROOT / "package.xml").read_bytes()
    assert (share / "cmake" / f"{PACKAGE}Config.cmake").is_file()
    assert os.access(prefix / "lib" / PACKAGE / "robotmem_node", os.X_OK)


def test_the_ament_index_names_every_interface() -> None:
    from ament_index_python import get_resource

    names, _ = get_resource("rosidl_interfaces", PACKAGE)
    for interface in [*ROOT.glob("msg/*.msg"), *ROOT.glob("srv/*.srv")]:
        assert interface.relative_to(ROOT).as_posix() in names.split()


def test_the_manifest_and_setup_agree() -> None:
    from xml.etree import ElementTree

    manifest = ElementTree.parse(ROOT / "package.xml").getroot()
    installed = importlib.metadata.metadata(PACKAGE)
    assert manifest.findtext("version") == installed["Version"]
    assert manifest.findtext("license") == installed["License"]
    assert manifest.findtext("member_of_group") == "rosidl_interface_packages"


# --- the two builds ---


def test_a_wheel_carries_the_tag_of_its_platform(wheel: Path) -> None:
    python, abi, platform = wheel.stem.split("-")[-3:]
    assert python == abi == "cp{}{}".format(*sys.version_info)
    assert platform != "any"


@needs_colcon
def test_colcon_and_pip_install_the_same_package(workspace: Path, prefix: Path) -> None:
    ours = digests(workspace / "install" / PACKAGE)
    theirs = digests(prefix)
    colcons = ("/hook/", "share/colcon-core/", ".egg-info/", f"share/{PACKAGE}/package.")
    programs = f"lib/{PACKAGE}/"

    def content(files: dict[str, str]) -> dict[str, str]:
        """Leave out what colcon adds, and the content of what names where it was built."""
        shared = {k: v for k, v in files.items() if not any(part in k for part in colcons)}
        placed = (".so", "local_setup.sh")
        return {
            k: "" if k.startswith(programs) or k.endswith(placed) else v for k, v in shared.items()
        }

    assert content(ours) == content(theirs)
    for library in TYPESUPPORTS:
        assert library in ours
    for file in ("package.xml", "msg/Memory.idl", "srv/Learn.idl", "srv/Learn.srv"):
        assert f"share/{PACKAGE}/{file}" in ours
    for folder in ("packages", "rosidl_interfaces", "package_run_dependencies"):
        assert f"share/ament_index/resource_index/{folder}/{PACKAGE}" in ours
    assert f"{programs}robotmem_node" in ours


@needs_colcon
@pytest.mark.skipif(" " in sys.executable, reason="the setup.bash of colcon stops at a space")
def test_the_colcon_workspace_works_in_a_fresh_process(workspace: Path) -> None:
    script = f". install/setup.bash && exec '{sys.executable}' -c '{USE}'"
    done = run("bash", "-c", script, cwd=workspace)
    confidence, kind, where = done.stdout.split()
    assert (confidence, kind) == ("0.9", "fact")
    assert (workspace / "install") in Path(where).parents


def test_nothing_of_the_build_is_in_the_shared_files(wheel: Path, prefix: Path) -> None:
    for file in (prefix / "share").rglob("*"):
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            assert str(wheel.parents[1]) not in text
            assert file.suffix != ".cmake" or sys.base_prefix not in text


def test_a_cpp_program_builds_with_the_interfaces(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(
        f"#include <{PACKAGE}/srv/learn.hpp>\n"
        f"int main() {{ return {PACKAGE}::srv::Learn::Request().confidence == 0.9 ? 0 : 1; }}\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user CXX)\n"
        f"find_package({PACKAGE} REQUIRED)\nadd_executable(user main.cpp)\n"
        f"target_link_libraries(user {PACKAGE}::{PACKAGE}__rosidl_typesupport_cpp)\n"
    )
    path = f"{prefix};{os.environ['AMENT_PREFIX_PATH'].replace(os.pathsep, ';')}"
    for command in (
        ("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={path}", "-Wno-dev"),
        ("cmake", "--build", "build"),
        ("build/user",),
    ):
        done = run(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stdout


@needs_colcon
def test_building_twice_changes_nothing(workspace: Path) -> None:
    before = digests(workspace / "install")
    said = colcon(workspace)
    assert "generating" not in said
    assert digests(workspace / "install") == before
    # It cannot link generated files into the source tree, and installs them in full.
    colcon(workspace, "--symlink-install")
    assert digests(workspace / "install") == before


def test_a_module_that_left_the_source_leaves_the_wheel(source: Path, tmp_path: Path) -> None:
    copy = tmp_path / PACKAGE
    shutil.copytree(source, copy)
    for file in SOME:
        (copy / file).unlink()
    (copy / "msg" / "Small.msg").write_text("bool small\n")
    (copy / PACKAGE / "passing.py").touch()
    names = []
    for _ in range(2):
        done = pip_wheel(copy, tmp_path / "pip")
        assert done.returncode == 0, done.stdout
        with zipfile.ZipFile(next((tmp_path / "pip" / "wheels").glob("*.whl"))) as archive:
            names.append(archive.namelist())
        (copy / PACKAGE / "passing.py").unlink(missing_ok=True)
    assert f"{PACKAGE}/passing.py" in names[0]
    assert f"{PACKAGE}/passing.py" not in names[1]


# --- what cannot be built ---


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("float65 wrong\n", "float65"),
        ("unknown_msgs/Thing thing\n", "unknown_msgs"),
    ],
)
def test_a_broken_interface_stops_with_the_words_of_the_generator(
    source: Path, tmp_path: Path, content: str, words: str
) -> None:
    copy = tmp_path / PACKAGE
    shutil.copytree(source, copy)
    (copy / "msg" / "Broken.msg").write_text(content)
    done = pip_wheel(copy, tmp_path / "pip")
    assert done.returncode != 0
    assert words in done.stdout
    assert "error: the interfaces were not generated." in done.stdout


def test_an_editable_install_is_refused_in_one_line(source: Path, tmp_path: Path) -> None:
    options = ("install", "--no-deps", "--no-build-isolation", "-e")
    done = run(sys.executable, "-m", "pip", *options, source, cwd=tmp_path)
    assert done.returncode != 0
    assert f"error: {PACKAGE} cannot be installed as editable" in done.stdout
