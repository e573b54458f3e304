# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A check finds whatever is wrong, finds nothing in what is sound, and changes no byte."""

from __future__ import annotations

import logging
import os
import random
import shutil
import time
from pathlib import Path

import pytest
from making import new, sql
from random_stores import Maker
from test_durability import LEARN_FOR_EVER, line_of, process
from test_repair import PAGE, Make, build, damaged, memories, noise, pages_of, zeros

from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Mode, Query
from robotmem_ros.core.store import Store, check, records, repair, schema

SEEDS = int(os.environ.get("ROBOTMEM_DAMAGES", "6"))

DISAGREEMENTS = {
    "DELETE FROM documents WHERE memory_id = 7": "keyword index disagrees with memory 7",
    "UPDATE documents SET content = content || ' x' WHERE memory_id = 7": "keyword index",
    "INSERT INTO documents VALUES (99999, 'x', '', 1)": "memory 99999",
    "DELETE FROM memory_entities": "entity index",
    "UPDATE entities SET name = 'another ' || name WHERE id = 1": "entity index",
    "DELETE FROM attributes WHERE memory_id IN (SELECT max(memory_id) "
    "FROM attributes)": "attribute",
    "UPDATE attributes SET value = x'05' WHERE memory_id IN (SELECT memory_id FROM attributes "
    "LIMIT 1)": "attribute",
    "INSERT INTO attributes VALUES (7, 9999, x'05')": "attribute",
    "UPDATE memories SET attributed = 0 WHERE id = 7": "attribute index disagrees with memory 7",
    "DELETE FROM places WHERE id = 1": "place index",
    "UPDATE places SET x_min = x_min - 1 WHERE id = 1": "place index",
    "INSERT INTO places (place_min, place_max, memory_id) VALUES (1, 1, 7)": "place index",
    "DELETE FROM keywords_data WHERE id > 10": "fts5",
    "INSERT INTO keywords (keywords, rowid, content, entities) SELECT 'delete', memory_id, "
    "content, entities FROM documents WHERE memory_id = 7": "word index disagrees with memory 7",
    "INSERT INTO keywords (rowid, content) VALUES (7, 'more')": "word index",
    "DELETE FROM places_node WHERE nodeno > 1": "the table places cannot be read",
    "DELETE FROM places_rowid WHERE rowid = 3": "RTree",
    "DROP TABLE attributes": "attributes is missing",
    "DROP TABLE keywords": "keywords is missing",
    "DROP TABLE corpus": "corpus is missing",
    "DROP TABLE vectors": "vectors is missing",
    "UPDATE vectors SET vector = zeroblob(length(vector)) WHERE memory_id = 7": "vector of memory",
    "UPDATE vectors SET vector = x'0000c07f' WHERE memory_id = 7": "vector of memory 7",
    "DELETE FROM vectors WHERE memory_id = 7": "memory 7 has neither a vector",
    "INSERT INTO vectors SELECT 99999, vector FROM vectors LIMIT 1": "99999 has a vector, but is",
}
DAMAGES = {
    "DELETE FROM texts WHERE memory_id = 7": "memory 7 has no text",
    "INSERT INTO texts VALUES (99999, 'x', '{}')": "memory 99999 is nothing but a text",
    "UPDATE texts SET content = 'y' WHERE memory_id = 7": "memory 7 differs from what was learned",
    "UPDATE texts SET context = '{' WHERE memory_id = 7": "memory 7 differs from what was learned",
    "UPDATE memories SET x = 9 WHERE frame_id NOT NULL": "differs from what was learned",
    "UPDATE memories SET type = 'x' WHERE id = 7": "memory 7 differs",
    "DELETE FROM collections WHERE name = 'c2'": "is of a collection that is missing",
    "DELETE FROM sessions WHERE session_id = 's1'": "is of an episode that is missing",
    "UPDATE memories SET superseded_by = 99999 WHERE id = 7": "memory 7 was replaced by one that",
    "UPDATE collections SET memories = memories + 1 WHERE name = 'c2'": "is counted wrong",
    "DROP TABLE texts": "texts is missing",
    "DROP TABLE trajectory": "trajectory is missing",
    "DROP TRIGGER memories_added": "trigger memories_added is missing",
    "DROP INDEX memories_by_stamp": "index memories_by_stamp is missing",
}


@pytest.fixture(scope="module")
def sound(fast_folder: Path) -> str:
    path = str(fast_folder / "checked.db")
    build(path)
    return path


def changed(sound: str, target: Path, *statements: str) -> str:
    shutil.copy(sound, target)
    with sql(str(target)) as connection:
        connection.execute("PRAGMA foreign_keys = off")
        for statement in statements:
            before = connection.total_changes()
            connection.execute(statement)
            is_schema = statement.startswith("DROP")
            assert is_schema or connection.total_changes() > before, statement
    return str(target)


def finished(memory: RobotMemory) -> None:
    deadline = time.monotonic() + 60
    while memory.status().task:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_sound_store_is_found_sound(tmp_path: Path, fast_folder: Path, seed: int) -> None:
    path = str(fast_folder / f"random{seed}.db")
    store = Store(path)
    ids: list[int] = []
    for kind, *rest in Maker(seed).changes(150):
        if kind == "learn":
            entry = rest[0]
            fields = {
                name: getattr(entry, name)
                for name in ("context", "collection", "session_id", "confidence", "stamp")
            }
            ids.append(store.add(new(entry.content, pose=entry.pose, **fields))[0])
        elif ids and kind in ("update", "forget"):
            number = ids[rest[0] % len(ids)]
            if kind == "update":
                store.update(number, *rest[1:], now=1)
            else:
                store.forget(number, "", 1)
                ids = [other for other in ids if other != number]
        if kind == "learn" and seed % 3 == 0 and len(ids) == 50:
            with store._database.write() as connection:
                schema.renew_indexes(connection)  # and half of it is made anew
            while store.unindexed() > 25:
                with store._database.write() as connection:
                    records.index_some(connection, 5)
    for _ in range(2):
        found = check.check(path)
        assert (found.damages, found.disagreements) == ((), ())
        assert found.memories == len(set(ids))
        store.close()


def test_a_check_changes_nothing_and_leaves_no_trace(sound: str, tmp_path: Path) -> None:
    target = shutil.copy(sound, tmp_path / "a.db")
    before = Path(target).read_bytes()
    check.check(str(target))
    assert os.listdir(tmp_path) == ["a.db"]
    assert Path(target).read_bytes() == before
    os.chmod(tmp_path, 0o500)  # as on a medium that cannot be written
    try:
        assert check.check(str(target)).damages == ()
    finally:
        os.chmod(tmp_path, 0o700)


@pytest.mark.parametrize("statement", DISAGREEMENTS)
def test_an_index_that_disagrees_is_found_and_made_anew(
    sound: str, tmp_path: Path, statement: str
) -> None:
    path = changed(sound, tmp_path / "a.db", statement)
    found = check.check(path)
    assert found.damages == ()
    assert any(DISAGREEMENTS[statement] in said for said in found.disagreements)
    with RobotMemory(Config(db_path=path, embed_backend="none")) as memory:
        finished(memory)
        memory.reindex()
        finished(memory)
    left = check.check(path)
    assert left.damages == ()
    # A vector is the model's to make: those that are none stay until they are.
    assert all("vector of memory 7" in said for said in left.disagreements)


@pytest.mark.parametrize("statement", DAMAGES)
def test_a_damage_is_found_and_repaired(sound: str, tmp_path: Path, statement: str) -> None:
    path = changed(sound, tmp_path / "a.db", statement)
    found = check.check(path)
    assert any(DAMAGES[statement] in said for said in found.damages)
    assert not any("\n" in said for said in found.damages)
    output = str(tmp_path / "b.db")
    if statement != "DROP TABLE texts":
        assert repair.repair(path, output).memories >= 200
        left = check.check(output)
        assert (left.damages, left.disagreements) == ((), ())


@pytest.mark.parametrize("make", [noise, zeros])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_broken_page_that_is_in_use_is_found(
    sound: str, tmp_path: Path, seed: int, make: Make
) -> None:
    source = random.Random(f"check {seed}")
    used = pages_of(sound, "memories", "texts", "sessions", "documents", "attributes", "vectors")
    target = str(tmp_path / "a.db")
    damaged(sound, target, [source.choice(sorted(used))], make)
    try:
        damages = check.check(target).damages
    except StoreError as error:
        damages = (str(error),)
    assert damages


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_found_sound_is_what_was_learned(sound: str, tmp_path: Path, seed: int) -> None:
    source = random.Random(f"flip {seed}")
    content = bytearray(Path(sound).read_bytes())
    used = sorted(pages_of(sound, "memories", "texts"))
    number = source.choice(used)
    content[(number - 1) * PAGE + source.randrange(PAGE)] ^= 1 << source.randrange(8)
    target = str(tmp_path / "a.db")
    Path(target).write_bytes(content)
    try:
        found = check.check(target)
    except StoreError:
        return
    if not found.damages and not found.disagreements:
        was, now = memories(sound), memories(target)
        assert {i: (m.content, m.pose, m.collection) for i, m in was.items()} == {
            i: (m.content, m.pose, m.collection) for i, m in now.items()
        }


@pytest.mark.parametrize("share", [0.0001, 0.3, 0.9, 0.9999])
def test_a_cut_file_is_found_and_refused(sound: str, tmp_path: Path, share: float) -> None:
    content = Path(sound).read_bytes()[: int(os.path.getsize(sound) * share)]
    target = tmp_path / "a.db"
    target.write_bytes(content)
    for call in (
        lambda: check.check(str(target)),
        lambda: RobotMemory(Config(db_path=str(target), embed_backend="none")),
    ):
        with pytest.raises(StoreError, match=r"damaged .*robotmem check .*robotmem repair"):
            call()
    assert target.read_bytes() == content


def test_a_file_in_use_is_checked(db_path: str) -> None:
    with process(LEARN_FOR_EVER, db_path, "robot") as child:
        for _ in range(10):
            line_of(child)
            found = check.check(db_path)
            assert (found.damages, found.disagreements) == ((), ())
    assert check.check(db_path).damages == ()  # after kill -9, with its log


def test_a_log_that_is_missing_is_told(
    tmp_path: Path, db_path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that was copied without its log is what it was at an earlier moment."""
    alone = str(tmp_path / "alone.db")
    with RobotMemory(Config(db_path=db_path, embed_backend="none")) as memory:
        memory.learn(Experience("one"))
        with sql(db_path) as connection:
            connection.execute("PRAGMA wal_checkpoint")
        memory.learn(Experience("two"))
        shutil.copy(db_path, alone)
        assert check.check(db_path).damages == ()
        assert memory.status().last_error == ""
    found = check.check(alone)
    assert (found.memories, len(found.damages)) == (1, 1)
    assert "alone.db-wal is missing: put that back" in found.damages[0]
    with RobotMemory(Config(db_path=alone, embed_backend="none")) as memory:
        assert memory.status().memories == 1
        assert "alone.db-wal is missing: put that back" in memory.status().last_error
        assert "alone.db-wal is missing: put that back" in caplog.text
    caplog.clear()
    with RobotMemory(Config(db_path=alone, embed_backend="none")):
        assert "missing" not in caplog.text
    assert check.check(alone).damages == ()


def test_after_a_kill_the_log_is_there(db_path: str) -> None:
    with process(LEARN_FOR_EVER, db_path, "robot") as child:
        for _ in range(100):
            line_of(child)
    assert check.check(db_path).damages == ()
    with RobotMemory(Config(db_path=db_path, embed_backend="none")) as memory:
        assert memory.status().last_error == ""


def test_a_closed_file_stands_alone_and_an_open_one_keeps_its_log(db_path: str) -> None:
    config = Config(db_path=db_path, embed_backend="none")
    first, second = RobotMemory(config), RobotMemory(config)
    first.learn(Experience("one"))
    first.close()
    assert os.path.exists(db_path + "-wal")
    second.learn(Experience("two"))
    second.close()
    assert not any(os.path.exists(db_path + end) for end in ("-wal", "-shm", "-journal"))
    with RobotMemory(config) as memory:
        assert memory.status().memories == 2


# At the start


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM documents WHERE memory_id = (SELECT max(memory_id) FROM documents)",
        "UPDATE corpus SET documents = documents - 1",
        "DELETE FROM attributes",
        "DELETE FROM vectors",
        "DELETE FROM keywords_docsize WHERE id > 200",
        "UPDATE collections SET memories = memories + 1 WHERE name = 'c2'",
    ],
)
def test_the_start_sees_an_index_that_disagrees_and_has_it_made_anew(
    sound: str, tmp_path: Path, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = changed(sound, tmp_path / "a.db", statement)
    caplog.set_level(logging.WARNING, "robotmem_ros")
    with RobotMemory(Config(db_path=path, embed_backend="none")) as memory:
        (said,) = caplog.messages
        assert said.endswith("the indexes are made anew")
        finished(memory)
        assert memory.recall(Query("try", collection="*")).mode is Mode.BM25_ONLY
    found = check.check(path)
    assert (found.damages, found.disagreements) == ((), ())
    caplog.clear()
    with RobotMemory(Config(db_path=path, embed_backend="none")) as memory:
        assert memory.status().task == ""
    assert caplog.messages == []


def test_the_start_sees_lost_texts_and_says_what_to_do(
    sound: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = changed(sound, tmp_path / "a.db", "DELETE FROM texts WHERE memory_id > 100")
    with RobotMemory(Config(db_path=path, embed_backend="none")) as memory:
        (said,) = caplog.messages
        assert said == memory.status().last_error
        assert said.endswith(f"run: robotmem check {path}")
        assert len(memory.recall(Query("*", n=100, collection="*")).memories) > 0
