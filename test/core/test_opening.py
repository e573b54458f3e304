# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A file that cannot be used is refused with the reason, and left as it is."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest
from making import sql

from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import ConfigError, RobotMemoryError, StoreError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Query
from robotmem_ros.core.store import schema


def start(path: str) -> RobotMemory:
    return RobotMemory(Config(db_path=path, embed_backend="none"))


def assert_refused(path: str, error: type[RobotMemoryError], *said: str) -> None:
    """Check the reason, and that not one byte has changed."""
    before = Path(path).read_bytes()
    with pytest.raises(error) as raised:
        start(path)
    assert Path(path).read_bytes() == before
    for part in (path, *said):
        assert part in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_new_file_is_made_with_its_folder_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "new.db"
    with start(str(path)) as memory:
        assert memory.recall(Query("anything")).memories == ()
        assert memory.recall(Query("*")).memories == ()
        assert memory.get(ids=[1]) == ([], [1])
        assert memory.status().memories == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_home_directory_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with start("~/x/memories.db") as memory:
        assert memory.status().db_path == str(tmp_path / "x" / "memories.db")


def test_what_was_stored_is_there_after_opening_again(db_path: str) -> None:
    with start(db_path) as memory:
        memory.learn(Experience("the cup"))
    with start(db_path) as memory:
        assert memory.status().memories == 1
        assert memory.status().schema_version == schema.VERSION


def test_a_newer_schema_is_refused(db_path: str) -> None:
    start(db_path).close()
    with sql(db_path) as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
        connection.execute("PRAGMA journal_mode = delete")
    assert_refused(db_path, StoreError, f"version {schema.VERSION + 1}", "newer robotmem_ros")
    assert not os.path.exists(db_path + "-journal")


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_database_of_another_program_is_refused(db_path: str, mode: str) -> None:
    connection = sqlite3.connect(db_path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE songs (title)")
    connection.commit()
    connection.close()
    assert_refused(db_path, StoreError, "another program")


@pytest.mark.parametrize(
    "content",
    [b"this is a text file, not a database\n" * 100, b"\x00" * 8192, os.urandom(5000), b"short"],
    ids=["text", "zeros", "noise", "short"],
)
def test_a_file_that_is_no_database_is_refused(db_path: str, content: bytes) -> None:
    Path(db_path).write_bytes(content)
    assert_refused(db_path, StoreError)


def test_a_damaged_database_is_refused(db_path: str) -> None:
    with start(db_path) as memory:
        memory.learn(Experience("the cup"))
    with sql(db_path) as connection:
        connection.execute("PRAGMA journal_mode = delete")
    content = bytearray(Path(db_path).read_bytes())
    content[100:4096] = b"\xff" * 3996  # the schema itself
    Path(db_path).write_bytes(content)
    assert_refused(db_path, StoreError, "damaged")


def test_an_empty_file_becomes_a_store(db_path: str) -> None:
    Path(db_path).touch()
    with start(db_path) as memory:
        memory.learn(Experience("the cup"))


def test_a_folder_as_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="parameter db_path: ") as error:
        start(str(tmp_path))
    assert str(tmp_path) in str(error.value)


def test_a_file_as_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="parameter db_path: "):
        start(str(tmp_path / "file" / "memories.db"))


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(ConfigError, match="parameter db_path: ") as error:
            start(str(folder / "memories.db"))
        assert "it must be a file in a folder that can be written" in str(error.value)
    finally:
        folder.chmod(0o700)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc here")
def test_a_folder_that_even_root_cannot_write_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"parameter db_path: '/proc/memories\.db' is"):
        start("/proc/memories.db")


def test_a_read_only_database_says_so_and_still_answers(db_path: str) -> None:
    with start(db_path) as memory:
        memory.learn(Experience("the cup"))
        # What a disk that was remounted read-only looks like to a running store.
        memory._store._database._writer.execute("PRAGMA query_only = 1")
        with pytest.raises(StoreError, match="read-only"):
            memory.learn(Experience("the door"))
        assert len(memory.recall(Query("cup")).memories) == 1
        # The connection that met the fault is gone, and with it the pragma.
        memory.learn(Experience("the door"))


def test_a_full_disk_says_so_and_still_answers(db_path: str) -> None:
    with start(db_path) as memory:
        memory.learn(Experience("the cup"))
        writer = memory._store._database._writer
        pages = writer.pragma("page_count")
        writer.pragma("max_page_count", pages + 2)
        many = (Experience(f"text {i} " + "word " * 500) for i in range(1000))
        with pytest.raises(StoreError, match="no space left"):
            list(map(memory.learn, many))
        stored = memory.status().memories
        assert len(memory.recall(Query("cup")).memories) == 1
        # The connection that met the fault is gone, and with it the limit.
        memory.learn(Experience("there is room again"))
        assert memory.status().memories == stored + 1


def test_a_closed_memory_says_so(db_path: str) -> None:
    memory = start(db_path)
    memory.close()
    memory.close()
    for call in (
        lambda: memory.learn(Experience("the cup")),
        lambda: memory.recall(Query("cup")),
        lambda: memory.status(),
        lambda: memory.get(ids=[1]),
    ):
        with pytest.raises(StoreError, match="closed"):
            call()


def test_an_unfinished_migration_leaves_the_old_schema(
    db_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(db_path) as memory:
        memory.learn(Experience("the cup"))

    def fails(connection: object) -> None:
        connection.execute("CREATE TABLE half (a)")  # type: ignore[attr-defined]
        raise RuntimeError

    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("fails", fails)))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with pytest.raises(RuntimeError):
        start(db_path)
    monkeypatch.undo()
    with start(db_path) as memory:
        assert memory.status().memories == 1
    with sql(db_path) as connection:
        assert not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'half'").get
        names = connection.execute("SELECT name FROM migrations").fetchall()
    assert names == [(name,) for name, _ in schema.MIGRATIONS]
