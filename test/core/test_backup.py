# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A backup is of one moment, whole, checked, its owner's alone; a restore overwrites nothing."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from making import new, sql
from test_durability import LEARN_FOR_EVER, line_of, process

from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import RobotMemoryError, StoreError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Pose, Query
from robotmem_ros.core.store import Store, backup, files, repair, schema


@pytest.fixture(params=[0o000, 0o022, 0o277], ids="umask {:03o}".format)
def any_umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def start(path: str, **settings: Any) -> RobotMemory:
    return RobotMemory(Config(db_path=path, embed_backend="none", **settings))


def finished(memory: RobotMemory) -> str:
    deadline = time.monotonic() + 30
    while memory.status().task:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return memory.status().task_result


def learn(memory: RobotMemory, number: int) -> None:
    for i in range(number):
        context = {"task": {"name": f"t{i}"}, "spatial": {"p": [i, 1, 2]}}
        memory.learn(Experience(f"grasp cup {i}", context, pose=Pose("map", (float(i), 0.0, 0.0))))


def contents(path: str) -> list[str]:
    with sql(path) as connection:
        return [row[0] for row in connection.execute("SELECT content FROM texts ORDER BY 1")]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.usefixtures("any_umask")
def test_everything_that_is_made_is_the_owners_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b" / "memories.db")
    with start(path, backup_directory=str(tmp_path / "c" / "d")) as memory:
        learn(memory, 3)
        memory.backup()
        assert "checked" in finished(memory)
        backup.backup(path, str(tmp_path / "a" / "one.db"))
        backup.restore(str(tmp_path / "a" / "one.db"), str(tmp_path / "e" / "two.db"), False)
        made = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert len(made) == 6  # the database, its log and shared memory, and three copies
        for name in made:
            assert mode(name) == 0o600, name
        for name in "aecd":
            folder = next(tmp_path.rglob(name))
            assert mode(folder) == 0o700, folder
        assert mode(tmp_path / "a" / "b") == 0o700


def test_a_backup_is_a_store_and_one_file(tmp_path: Path, db_path: str) -> None:
    with start(db_path) as memory:
        learn(memory, 20)
        memory.backup()
        said = finished(memory)
    (copy,) = tmp_path.glob("memories.db.*.backup")
    assert said == (f"backup of 20 memories: {copy} ({copy.stat().st_size / 1e6:.1f} MB, checked)")
    assert sorted(os.listdir(tmp_path)) == ["memories.db", copy.name]
    with sql(str(copy)) as connection:
        assert connection.pragma("journal_mode") == "delete"
    with start(str(copy)) as memory:
        assert memory.status().memories == 20
        assert len(memory.recall(Query("grasp cup", n=100)).memories) == 20
        memory.learn(Experience("it can be used as it is"))


def test_a_backup_is_of_one_moment_while_another_process_learns(
    tmp_path: Path, db_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "_PAGES_AT_ONCE", 1)
    with process(LEARN_FOR_EVER, db_path, "robot") as child:
        answered = [line_of(child) for _ in range(100)]
        for i in range(3):
            made = backup.backup(db_path, str(tmp_path / f"{i}.db"))
            learned = [line_of(child) for _ in range(10)]  # it goes on
            assert made.memories >= len(answered)
            answered += learned
            with sql(made.path) as connection:
                assert connection.execute("PRAGMA integrity_check").get == "ok"
                ids = {row[0] for row in connection.execute("SELECT id FROM memories")}
                counts = connection.execute(
                    "SELECT (SELECT count(*) FROM documents), (SELECT documents FROM corpus)"
                ).get
            # All that was answered before, and nothing but the first ones.
            assert ids == set(range(1, made.memories + 1))
            assert counts == (made.memories, made.memories)


def test_learning_does_not_wait_for_a_backup(tmp_path: Path, db_path: str) -> None:
    with start(db_path) as memory:
        learn(memory, 20)
        seen: list[int] = []

        def progress(done: int, total: int) -> None:
            # In the very thread that copies: it would wait for ever if that held a lock.
            seen.append(memory.learn(Experience(f"learned at step {len(seen)}")).memory.id)

        with sql(db_path) as connection:
            connection.execute("BEGIN")
            made = backup.save(connection, str(tmp_path / "copy.db"), progress)
        assert len(seen) >= 1
        assert made.memories == 20
        assert memory.status().memories == 20 + len(seen)


def test_old_backups_go_but_nothing_else_does(tmp_path: Path, db_path: str) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    strangers = {
        "memories.db.backup": b"1",
        "memories.db.schema-1.backup": b"2",
        "other.db.20200101T000000.000Z.backup": b"3",
        "memories.db.20200101T000000.000Z.backup.old": b"4",
        "xmemories.db.20200101T000000.000Z.backup": b"5",
    }
    for name, content in strangers.items():
        (folder / name).write_bytes(content)
    oldest = folder / "memories.db.20200101T000000.000Z.backup"
    oldest.write_bytes(b"6")
    with start(db_path, backup_directory=str(folder), backup_keep=2) as memory:
        names = []
        for i in range(4):
            memory.learn(Experience(f"text {i}"))
            memory.backup()
            names.append(finished(memory).split(": ")[1].split(" (")[0])
            assert oldest.exists() == (i == 0)
    kept = {str(path) for path in folder.iterdir()} - {str(folder / name) for name in strangers}
    assert kept == set(names[2:])
    assert strangers.items() <= bytes_of(folder).items()


def test_what_a_killed_backup_left_goes_with_the_next(tmp_path: Path, db_path: str) -> None:
    left = tmp_path / ".memories.db.20200101T000000.000Z.backup.0123abcd.partial"
    fresh = tmp_path / ".memories.db.20300101T000000.000Z.backup.0123abcd.partial"
    other = tmp_path / ".other.db.20200101T000000.000Z.backup.0123abcd.partial"
    for path in (left, fresh, other):
        path.write_bytes(b"half")
    for path in (left, other):
        os.utime(path, (1.0, 1.0))
    with start(db_path) as memory:
        memory.backup()
        assert "checked" in finished(memory)
    assert (left.exists(), fresh.exists(), other.exists()) == (False, True, True)


SMALL_DISK = """
import resource, sys
from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.store import backup, repair
import test_backup
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), -1))  # writing beyond fails
try:
    getattr(test_backup, sys.argv[1])(sys.argv[2])
except StoreError as error:
    print(str(error))
"""


def small_backup(path: str) -> None:
    backup.backup(path, path + ".copy")


def small_repair(path: str) -> None:
    repair.repair(path, path + ".copy")


def small_restore(path: str) -> None:
    backup.restore(path, path + ".x/y.db", False)
    backup.restore(path, path + ".old", True)


def small_migration(path: str) -> None:
    schema.MIGRATIONS = (*schema.MIGRATIONS, ("more", adds_a_table))
    schema.VERSION += 1
    start(path)


@pytest.mark.parametrize("size", [0, 5000, 100_000])
@pytest.mark.parametrize(
    "what", ["small_backup", "small_repair", "small_restore", "small_migration"]
)
def test_a_disk_that_gets_full_leaves_all_as_it_was(
    tmp_path: Path, db_path: str, what: str, size: int
) -> None:
    with start(db_path) as memory:
        learn(memory, 60)
    assert os.path.getsize(db_path) > 150_000
    shutil.copy(db_path, db_path + ".old")
    before = bytes_of(tmp_path)
    with process(SMALL_DISK, what, db_path, str(size)) as child:
        said = " ".join(line_of(child))
        assert child.wait() == 0
    assert db_path in said
    after = {name: content for name, content in bytes_of(tmp_path).items() if content}
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) <= {"memories.db-shm"}  # of a start that was given up


def test_keep_0_keeps_all(tmp_path: Path, db_path: str) -> None:
    with start(db_path, backup_keep=0) as memory:
        for _ in range(10):
            memory.backup()
            finished(memory)
    assert len(list(tmp_path.glob("*.backup"))) == 10


@pytest.mark.parametrize("why", ["no space", "folder is a file", "damaged", "write fails"])
def test_a_backup_that_fails_says_so_and_leaves_all_as_it_was(
    tmp_path: Path, db_path: str, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    folder = tmp_path / "copies"
    with start(db_path, backup_directory=str(folder), backup_keep=1) as memory:
        learn(memory, 20)
        memory.backup()
        assert finished(memory).startswith("backup of")
        before = bytes_of(folder)
        if why == "no space":
            monkeypatch.setattr(
                shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 9)
            )
        elif why == "folder is a file":
            shutil.move(folder, tmp_path / "moved")
            folder.write_text("mine")
        elif why == "damaged":
            with sql(db_path) as connection:
                connection.execute("DELETE FROM places_rowid")
        else:

            def fails(path: str) -> None:
                raise OSError(errno.ENOSPC, "No space left")

            monkeypatch.setattr(files, "_sync", fails)
        memory.backup()
        said = finished(memory)
        assert said.startswith("backup failed: ")
        for part in {
            "no space": ["no space for", "are free"],
            "folder is a file": [str(folder)],
            "damaged": [db_path, "is damaged", "robotmem check"],
            "write fails": ["No space left"],
        }[why]:
            assert part in said
        assert "\n" not in said
        if why == "folder is a file":
            assert folder.read_text() == "mine"
        else:
            assert bytes_of(folder) == before
        learn(memory, 1)


def test_closing_stops_a_backup_and_leaves_nothing_of_it(
    tmp_path: Path, db_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = start(db_path)
    learn(memory, 20)
    entered = threading.Event()
    real = backup._counts

    def slow(connection: apsw.Connection) -> tuple[int, int]:
        entered.set()
        time.sleep(0.1)
        return real(connection)

    monkeypatch.setattr(backup, "_counts", slow)
    memory.backup()
    assert entered.wait(10)
    with pytest.raises(RobotMemoryError, match="a backup is under way"):
        memory.reindex()
    memory.close()
    assert os.listdir(tmp_path) == ["memories.db"]
    assert [t for t in threading.enumerate() if t.name == "robotmem-backup"] == []
    with pytest.raises(RobotMemoryError):
        memory.backup()


@pytest.mark.parametrize("where", ["copying", "checking"])
def test_a_backup_can_be_stopped_anywhere(
    tmp_path: Path, db_path: str, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(backup, "_STEPS_OF_SQLITE", 10)
    with start(db_path) as memory:
        learn(memory, 20)

    def progress(done: int, total: int) -> None:
        if (where == "checking") == (total == 0):
            raise StoreError("enough")

    with pytest.raises(StoreError, match="enough"):
        backup.backup(db_path, str(tmp_path / "copy.db"), progress)
    assert os.listdir(tmp_path) == ["memories.db"]


def test_a_backup_overwrites_nothing(tmp_path: Path, db_path: str) -> None:
    with start(db_path) as memory:
        learn(memory, 1)
    for target in (tmp_path / "file", tmp_path / "folder", tmp_path / "link"):
        (tmp_path / "file").write_text("mine")
        (tmp_path / "folder").mkdir(exist_ok=True)
        if not os.path.lexists(tmp_path / "link"):
            (tmp_path / "link").symlink_to(tmp_path / "nothing")
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(StoreError, match="is there already"):
            backup.backup(db_path, str(target))
        assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "file").read_text() == "mine"


# Restore


def test_a_restore_gives_the_memories_back(tmp_path: Path, db_path: str) -> None:
    with start(db_path) as memory:
        learn(memory, 5)
    copy = backup.backup(db_path, str(tmp_path / "copy")).path
    before = Path(copy).read_bytes()
    made, old = backup.restore(copy, str(tmp_path / "x" / "new.db"), False)
    assert (made.memories, old) == (5, "")
    with start(made.path) as memory:
        assert memory.status().memories == 5
    assert Path(copy).read_bytes() == before


def test_a_restore_overwrites_nothing(tmp_path: Path, db_path: str) -> None:
    with start(db_path) as memory:
        learn(memory, 5)
        copy = backup.backup(db_path, str(tmp_path / "copy")).path
        learn(memory, 9)
    with sql(db_path) as connection, sql(db_path):  # a log with content stays as after a crash
        connection.execute("UPDATE memories SET access_count = 7")
        wal = Path(db_path + "-wal").read_bytes()
        main = Path(db_path).read_bytes()
    Path(db_path).write_bytes(main)
    Path(db_path + "-wal").write_bytes(wal)
    state = bytes_of(tmp_path)
    with pytest.raises(StoreError, match="--force"):
        backup.restore(copy, db_path, False)
    assert bytes_of(tmp_path) == state
    made, old = backup.restore(copy, db_path, True)
    assert (made.path, made.memories) == (db_path, 5)
    # What was there is kept with its log.
    assert Path(old).read_bytes() == main
    assert Path(old + "-wal").read_bytes() == wal
    assert not os.path.exists(db_path + "-wal")
    with start(db_path) as memory:
        assert memory.status().memories == 5
    with start(old) as memory:
        assert memory.status().memories == 9
        assert max(item.access_count for item in memory.get(ids=[1, 2, 3])[0]) == 7


def test_a_log_of_a_file_that_is_gone_is_not_taken_for_that_of_the_restored(
    tmp_path: Path, db_path: str
) -> None:
    with start(db_path) as memory:
        learn(memory, 5)
    copy = backup.backup(db_path, str(tmp_path / "copy")).path
    os.unlink(db_path)
    Path(db_path + "-wal").write_bytes(b"left over")
    with pytest.raises(StoreError, match="-wal is there already"):
        backup.restore(copy, db_path, False)


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "missing", "foreign", "newer"])
def test_a_bad_backup_is_not_restored(tmp_path: Path, db_path: str, damage: str) -> None:
    with start(db_path) as memory:
        learn(memory, 50)
        copy = Path(backup.backup(db_path, str(tmp_path / "copy")).path)
    content = copy.read_bytes()
    if damage == "cut":
        copy.write_bytes(content[: len(content) // 2])
    elif damage == "noise":
        half = len(content) // 2 // 4096 * 4096
        copy.write_bytes(content[:half] + os.urandom(4096) + content[half + 4096 :])
    elif damage == "empty":
        copy.write_bytes(b"")
    elif damage == "missing":
        copy.unlink()
    else:
        with sql(str(copy)) as connection:
            name = "application_id" if damage == "foreign" else "user_version"
            connection.execute(f"PRAGMA {name} = {schema.VERSION + 1}")
    state = bytes_of(tmp_path)
    for target in (db_path, str(tmp_path / "new.db")):
        with pytest.raises(StoreError) as error:
            backup.restore(str(copy), target, True)
        assert "\n" not in str(error.value)
    assert bytes_of(tmp_path) == state


def test_a_restore_waits_for_no_node_but_refuses(tmp_path: Path, db_path: str) -> None:
    with process(LEARN_FOR_EVER, db_path, "robot") as child:
        line_of(child)
        copy = backup.backup(db_path, str(tmp_path / "copy")).path
        with pytest.raises(StoreError, match="open in another process; stop the node"):
            backup.restore(copy, db_path, True)
        line_of(child)
    assert backup.restore(copy, db_path, True)[1]
    assert len(contents(db_path)) >= 1


def test_a_second_memory_of_one_process_does_not_let_go_of_the_locks_of_the_first(
    db_path: str,
) -> None:
    code = "import sys; from robotmem_ros.core.store.files import held; "
    code += "held(sys.argv[1]).__enter__()"
    with start(db_path), start(db_path), process(code, db_path) as child:
        assert child.wait() == 1
    with process(code, db_path) as child:
        assert child.wait() == 0


# The copy before a migration


def older(db_path: str, monkeypatch: pytest.MonkeyPatch, step: Callable[[Any], None]) -> None:
    """Make a store, then let the software have one more migration."""
    store = Store(db_path)
    for i in range(20):
        store.add(new(f"text {i}"))
    store.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("more", step)))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)


def adds_a_table(connection: apsw.Connection) -> None:
    connection.execute("CREATE TABLE more (a)")


def test_an_older_schema_is_kept_beside_the_new_one(
    tmp_path: Path, db_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = schema.VERSION
    older(db_path, monkeypatch, adds_a_table)
    for _ in range(2):
        with start(db_path) as memory:
            assert memory.status().schema_version == old + 1
            assert memory.status().memories == 20
        copy = f"{db_path}.schema-{old}.backup"
        assert sorted(os.listdir(tmp_path)) == sorted(["memories.db", os.path.basename(copy)])
    assert mode(copy) == 0o600
    monkeypatch.undo()
    with start(copy) as memory:
        assert memory.status().memories == 20
    with pytest.raises(StoreError, match="newer robotmem_ros"):
        start(db_path)


def test_a_new_database_needs_no_such_copy(tmp_path: Path, db_path: str) -> None:
    start(db_path).close()
    Path(tmp_path / "empty.db").touch()
    start(str(tmp_path / "empty.db")).close()
    assert sorted(os.listdir(tmp_path)) == ["empty.db", "memories.db"]


def test_without_space_for_the_copy_the_old_file_stays_as_it_is(
    tmp_path: Path, db_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older(db_path, monkeypatch, adds_a_table)
    before = Path(db_path).read_bytes()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 9))
    with pytest.raises(StoreError, match="no space for"):
        start(db_path)
    assert Path(db_path).read_bytes() == before
    assert os.listdir(tmp_path) == ["memories.db"]


def test_an_older_file_with_a_broken_index_is_kept_and_served(
    db_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = schema.VERSION
    older(db_path, monkeypatch, adds_a_table)
    with sql(db_path) as connection:
        connection.execute("DELETE FROM keywords_data WHERE id > 10")
    with start(db_path) as memory:
        assert len(memory.recall(Query("*", n=100, min_confidence=0.0)).memories) == 20
    assert len(contents(f"{db_path}.schema-{old}.backup")) == 20


def test_a_migration_that_fails_twice_makes_one_copy_and_a_changed_file_another(
    tmp_path: Path, db_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(connection: apsw.Connection) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        older(db_path, patch, fails)
        for _ in range(2):
            with pytest.raises(RuntimeError):
                start(db_path)
    assert len(list(tmp_path.glob("*.backup"))) == 1
    with start(db_path) as memory:
        memory.learn(Experience("learned with the old software"))
    older_version = schema.VERSION
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("more", adds_a_table)))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    start(db_path).close()
    names = {path.name for path in tmp_path.glob("*.backup")}
    assert names == {
        f"memories.db.schema-{older_version}.backup",
        f"memories.db.schema-{older_version}.2.backup",
    }
