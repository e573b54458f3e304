# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The commands on a database file: what they print, their exit codes, and what they leave."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from robotmem_ros.cli.main import COMMANDS, main
from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Memory, MemoryType, PerceptionType, Pose, Query
from robotmem_ros.core.store import dump

CONTEXTS: list[dict[str, Any]] = [
    {},
    {
        "task": {"name": "grasp", "success": True},
        "params": {"force": {"value": 12.5, "unit": "N"}},
    },
    {"spatial": {"p": [1, 2.5, -0.0]}, "x": [None, True, 10**30, 5e-324, "杯子\u2028\n\"'", {}]},
]


@pytest.fixture
def db(tmp_path: Path) -> str:
    path = str(tmp_path / "robot.db")
    fill(path)
    return path


def fill(path: str) -> None:
    config = Config(db_path=path, embed_backend="none")
    with RobotMemory(config, owner="robot") as memory:
        for i in range(30):
            memory.learn(
                Experience(
                    f"text {i}\nwith a second line, 设备",
                    CONTEXTS[i % 3],
                    collection=("", "lab")[i % 2],
                    session_id=("", "by name")[i % 5 == 0],
                    confidence=(0.9, 1 / 3)[i % 2],
                    stamp=10**18 + i // 2,
                    pose=Pose("map", (i / 7, 0.0, -1.0), (0.0, 0.6, 0.0, 0.8), i)
                    if i % 3
                    else None,
                    expires=(0, 4 * 10**18)[i % 4 == 0],
                    type=(MemoryType.FACT, MemoryType.PERCEPTION)[i % 6 == 0],
                    perception_type=PerceptionType.TACTILE if i % 6 == 0 else None,
                )
            )
        for i in range(2):
            memory.start_session({"task": {"name": f"pick {i}"}}, "lab")
            memory.add_trajectory([Pose("map", (j / 10, 0.0, 0.0), stamp=j) for j in range(20)])
            for text in ("the very same", "The very same.", "the very same!", "not the same"):
                memory.learn(Experience(text, {"params": {"n": i}}, stamp=10**18))
            memory.end_session(outcome=(None, 0.25)[i], summary=("", "well")[i])
        memory.recall(Query("text", n=5))
        memory.get(ids=[3, 4])
        memory.update(5, "another text")
        memory.forget(6, "wrong")
        memory.start_session({"left": "open"})
        memory.learn(Experience("in an open episode"))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command; check that it prints no traceback, and return its exit code and words."""
    code = main(list(arguments))
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out, err


def test_a_sound_file(db: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check", db)
    assert code == 0
    assert re.fullmatch(rf"{db}: sound \(\d\d memories, 3 episodes, schema version \d+\)\n", out)


def test_a_wrong_index(db: str, capsys: pytest.CaptureFixture[str]) -> None:
    connection = apsw.Connection(db)
    connection.execute("DELETE FROM documents WHERE memory_id = 7")
    connection.close()
    code, out, _ = run(capsys, "check", db)
    assert code == 1
    lines = out.splitlines()
    assert f"{db}: wrong index: the keyword index disagrees with memory 7" in lines
    assert lines[-1].startswith("next: no memory is affected")
    assert "~/reindex" in lines[-1]


def test_from_damage_to_a_whole_file_by_what_is_printed(
    db: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(Path(db).read_bytes())
    content[:100] = bytes(100)
    Path(db).write_bytes(content)
    with pytest.raises(Exception, match=f"Run: robotmem check {db}"):
        RobotMemory(Config(db_path=db, embed_backend="none"))
    code, out, err = run(capsys, "check", db)
    assert (code, out) == (2, "")
    assert "robotmem repair" in err
    code, out, _ = run(capsys, "repair", db)
    assert code == 0
    first, last = out.splitlines()
    assert re.fullmatch(rf"{db}\.repaired: \d\d memories, 3 episodes, 0 vectors recovered", first)
    assert run(capsys, "check", f"{db}.repaired")[0] == 0
    assert Path(db).read_bytes() == content
    command = re.match(r"next: robotmem (.*) \(", last)
    assert command
    code, out, _ = run(capsys, *command[1].split())
    assert code == 0
    old = out.strip().rpartition("what was there is now ")[2]
    assert Path(old).read_bytes() == content
    code, out, _ = run(capsys, "check", db)
    assert code == 0
    assert stat.S_IMODE(os.stat(db).st_mode) == 0o600


def test_what_a_repair_could_not_save_is_told(
    db: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    connection = apsw.Connection(db)
    connection.execute("UPDATE texts SET content = 'what?' WHERE memory_id = 7")
    connection.execute("DELETE FROM texts WHERE memory_id = 8")
    connection.execute("DELETE FROM memories WHERE id = 9")
    connection.close()
    output = str(tmp_path / "new.db")
    code, out, _ = run(capsys, "repair", db, "--output", output)
    assert code == 1
    assert "1 memory not exactly as learned: 7" in out
    assert "1 memory lost" in out
    assert "of 1 memory only text and context were left; see collection 'recovered'" in out
    code, _, err = run(capsys, "repair", db, "--output", output)
    assert code == 2
    assert "is there already" in err


def test_backup_and_restore(db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "backup", db)
    assert code == 0
    beside = out.partition(": ")[0]
    assert re.fullmatch(rf"{db}\.\d{{8}}T\d{{6}}\.\d{{3}}Z\.backup", beside)
    (tmp_path / "folder").mkdir()
    for target, expected in (("folder", r"folder/robot\.db\..*\.backup"), ("one", "one")):
        code, out, _ = run(capsys, "backup", db, str(tmp_path / target))
        assert code == 0
        assert re.fullmatch(str(tmp_path / expected), out.partition(": ")[0])
    code, _, err = run(capsys, "backup", db, str(tmp_path / "one"))
    assert code == 2
    assert "is there already" in err
    code, out, _ = run(capsys, "restore", str(tmp_path / "one"), str(tmp_path / "new" / "two.db"))
    assert code == 0
    assert out.endswith(" restored\n")
    code, _, err = run(capsys, "restore", str(tmp_path / "one"), db)
    assert code == 2
    assert "--force" in err


def test_stats(db: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "stats", db)
    assert code == 0
    assert "  episodes: 3\n" in out
    assert "  forgotten: 1\n" in out
    assert re.search(r"  collection lab: \d+ memories, \d superseded, .* to 20", out)


@pytest.mark.parametrize("command", ["check", "repair", "backup", "export", "stats"])
@pytest.mark.parametrize("what", ["missing", "a folder", "text", "empty", "newer", "foreign"])
def test_what_cannot_be_used_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, what: str
) -> None:
    path = tmp_path / "x.db"
    if what == "a folder":
        path.mkdir()
    elif what in ("newer", "foreign"):
        fill(str(path))
        connection = apsw.Connection(str(path))
        if what == "newer":
            connection.execute("PRAGMA user_version = 99")
            connection.execute("INSERT INTO migrations VALUES ('later', 1)")
        else:
            connection.execute("PRAGMA application_id = 7; DROP TABLE memories; DROP TABLE texts")
        connection.close()
    elif what != "missing":
        path.write_text({"text": "a text\n" * 5000, "empty": ""}[what])
    before = sorted(os.listdir(tmp_path))
    code, out, err = run(capsys, command, str(path))
    if (command, what) == ("repair", "foreign"):
        return  # episodes are left in it
    assert (code, out) == (2, "")
    assert err.startswith("robotmem: ")
    assert str(path) in err
    assert err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_a_file_name_beginning_with_a_tilde(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(capsys, "check", "~/robot.db")[0] == 0
    folder = tmp_path / ".ros"
    folder.mkdir()
    os.rename(db, folder / "robotmem.db")
    assert run(capsys, "check")[0] == 0  # the default of the node


# Export and import


def exported(capsys: pytest.CaptureFixture[str], db: str) -> list[dict[str, Any]]:
    code, out, _ = run(capsys, "export", db)
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


def everything(path: str) -> tuple[list[Memory], list[Any]]:
    with dump.dump(path) as source:
        memories = [dataclasses.replace(memory, id=0) for memory in source.memories()]
        return memories, [episode for episode in source.episodes() if episode.end]


def test_what_was_exported_comes_back_unchanged_and_once(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "robot.jsonl"
    code, out, err = run(capsys, "export", db, "--output", str(lines))
    assert (code, out) == (0, "")
    assert err == f"{db}: 40 memories, 2 episodes exported; 1 open episode left out\n"
    assert stat.S_IMODE(lines.stat().st_mode) == 0o600
    other = str(tmp_path / "other.db")
    code, out, err = run(capsys, "import", str(lines), "--db", other)
    assert (code, err) == (0, "")
    assert "40 memories new" in out
    assert "2 of 2 episodes new" in out
    assert everything(other) == everything(db)
    with RobotMemory(Config(db_path=other, embed_backend="none")) as memory:
        there = memory.episodes(9, "*")
    with RobotMemory(Config(db_path=db, embed_backend="none")) as memory:
        assert [e.session_id for e in there] == [e.session_id for e in memory.episodes(9, "*")]
    state = everything(other)
    for _ in range(2):
        code, out, _ = run(capsys, "import", str(lines), "--db", other)
        assert code == 0
        assert "0 memories new, 0 updated, 40 already there; 0 of 2 episodes new" in out
    assert everything(other) == state
    assert exported(capsys, other) == exported(capsys, db)
    assert run(capsys, "check", other)[0] == 0


def test_every_line_is_an_object_with_all_fields(
    db: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = exported(capsys, db)
    known = {field.name for field in dataclasses.fields(Memory)}
    computed = {"id", "context_json", "stored_confidence"}
    for line in lines:
        if line["kind"] == "memory":
            assert set(line) == known - computed | {"kind"}
    assert [line["kind"] for line in lines] == ["memory"] * 40 + ["episode"] * 2
    assert len(lines[-1]["trajectory"]) == 20
    assert any(line.get("superseded_by") for line in lines)


def test_lines_that_cannot_be_used_are_told_and_the_others_come_in(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = [json.dumps(line) for line in exported(capsys, db)]
    bad = [
        "not json",
        "[]",
        "7",
        '{"kind": "memory"}',
        '{"kind": "song"}',
        good[0].replace('"stamp": 1', '"stamp": "1'),
        good[0].replace(json.loads(good[0])["uuid"], "no uuid"),
        '{"kind": "memory", "uuid": "x", "content": NaN}',
        "[" * 100_000,
        '{"kind": "episode", "session_id": "s", "collection": "c", "start": 1, "end": 0}',
    ]
    file = tmp_path / "mixed.jsonl"
    text = "\n".join([*good[:5], "", *bad, *good[5:]]) + "\n"
    file.write_bytes(text.encode() + b"\xff\xfe\n")
    other = str(tmp_path / "other.db")
    code, out, err = run(capsys, "import", str(file), "--db", other)
    assert code == 1
    assert "40 memories new" in out
    assert len(err.splitlines()) >= 9
    assert all(": problem: line " in line for line in err.splitlines())
    assert len(everything(other)[0]) == 40
    code, out, _ = run(capsys, "import", str(file), "--dry-run")
    assert "would store 4" in out


def test_what_a_file_is_decides_how_it_is_read(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "export", db, "--output", str(tmp_path / "a"))
    (tmp_path / "b.jsonl").write_text("")
    other = str(tmp_path / "other.db")
    code, out, _ = run(
        capsys, "import", str(tmp_path / "a"), str(tmp_path / "b.jsonl"), "--db", other
    )
    assert code == 0
    assert "2 files: 42 lines read" in out
    assert run(capsys, "import", str(tmp_path / "no.mcap"), "--db", other)[0] == 1


def test_a_pipe_that_is_closed_is_no_error(db: str) -> None:
    import subprocess

    command = shlex.join([sys.executable, "-m", "robotmem_ros.cli.main", "export", db])
    command += " | head -c 10"
    done = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=os.path.dirname(db),
    )
    assert "Traceback" not in done.stderr
    assert len(done.stdout) == 10


def test_the_help_names_every_command_and_its_exit_codes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said(*arguments: str) -> Iterator[str]:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--help"])
        assert ended.value.code == 0
        yield capsys.readouterr().out

    (text,) = said()
    names = ("import", "export", "backup", "restore", "check", "repair", "stats")
    assert len(COMMANDS) == 6
    for name in names:
        assert f"    {name} " in text
        (help_,) = said(name)
        assert "exit code: 0 all is well" in help_
        assert "{problem}" not in help_
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    for name in names:
        assert f"robotmem {name} " in readme
