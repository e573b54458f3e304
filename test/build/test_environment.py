# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The environment builder says in one line what a machine lacks, before it builds."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

BUILDER = Path(__file__).resolve().parents[2] / ".ci" / "environment.py"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, made to build below a temporary folder, with no ROS 2 sourced."""
    spec = importlib.util.spec_from_file_location("environment_under_test", BUILDER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LOCAL", tmp_path)
    monkeypatch.setattr(module, "LOGS", tmp_path / "log")
    monkeypatch.setattr(module, "MODEL", tmp_path / "models" / "model")
    monkeypatch.delenv("ROS_DISTRO", raising=False)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    return module


def refusal(module: ModuleType, capsys: pytest.CaptureFixture[str], *, ros: bool = True) -> str:
    """Return the one line with which the builder gives up."""
    with pytest.raises(SystemExit) as stop:
        module.ready(ros=ros)
    assert stop.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    return output.err


@pytest.mark.parametrize(("variable", "language"), [("CC", "C"), ("CXX", "C++")])
def test_a_compiler_that_does_not_work(
    environment: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    language: str,
) -> None:
    monkeypatch.setenv(variable, "false")
    assert f"a {language} compiler that works: apt install g" in refusal(environment, capsys)


@pytest.mark.parametrize(
    ("lack", "words"),
    [
        ({"ensurepip": False}, "apt install python{}.{}-venv"),
        ({"header": "/nowhere/Python.h"}, "apt install python{}.{}-dev"),
    ],
)
def test_a_part_of_python_that_debian_packages_apart(
    environment: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lack: dict[str, object],
    words: str,
) -> None:
    python = environment._probe(sys.executable, sourced=False)._replace(**lack)
    monkeypatch.setattr(environment, "_probe", lambda path, sourced: python)
    assert words.format(*sys.version_info) in refusal(environment, capsys)


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 15, 0)])
def test_a_python_that_is_too_old_or_too_new(
    environment: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    version: tuple[int, int, int],
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    assert "Python 3.10 to 3.14 (this is 3." in refusal(environment, capsys)


def test_no_ros_for_this_machine(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment.platform, "machine", lambda: "aarch64")
    assert "a ROS 2 for linux on aarch64" in refusal(environment, capsys)


def test_no_package_index(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A port of this machine on which nothing listens.
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(SystemExit) as stop:
        environment.ready(ros=False)
    assert stop.value.code == 2
    assert "missing: a package index" in capsys.readouterr().err


def test_a_domain_is_given_once(environment: ModuleType) -> None:
    domains = [environment.free_domain() for _ in range(3)]
    assert len(set(domains)) == 3
    assert all(1 <= domain <= 101 for domain in domains)
