# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Repair brings back every memory whose pages are whole, exactly as it was, and nothing forgotten.

The damage is random and comes from a seed. What must come back is known from the pages on which
each memory stands in the sound file.
"""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from making import new, sql
from random_stores import Maker
from test_durability import LEARN_FOR_EVER, line_of, process

from robotmem_ros.core.config import Config
from robotmem_ros.core.errors import RobotMemoryError, StoreError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Memory, Pose, Query
from robotmem_ros.core.store import Store, check, repair, schema
from robotmem_ros.core.store.pages import Pages

PAGE = 4096
DIMENSION = 16
SEEDS = int(os.environ.get("ROBOTMEM_DAMAGES", "6"))
TRUTH = ("memories", "texts", "collections", "sessions", "embedder", "vectors", "trajectory")


def build(path: str, *, log: bool = False) -> None:
    """Make a store in which everything is: long texts, vectors, episodes, what was forgotten."""
    source = random.Random(1)
    settings = {"db_path": path, "embed_backend": "none", "max_content_bytes": 100_000}
    with RobotMemory(Config(**settings), owner="robot") as memory:
        for entry in [change[1] for change in Maker(5).changes(300) if change[0] == "learn"]:
            content = entry.content
            if source.random() < 0.05:
                content += " long" * source.randint(500, 4000)
            memory.learn(
                Experience(
                    content=content,
                    context=entry.context,
                    collection=entry.collection,
                    session_id=entry.session_id,
                    stamp=entry.stamp,
                    pose=entry.pose,
                )
            )
        for i in range(4):
            memory.start_session({"task": {"name": f"pick {i}"}})
            memory.add_trajectory([Pose("map", (j / 10, 0.0, 0.0), stamp=j) for j in range(90)])
            for j in range(20):
                memory.learn(Experience(f"try {j}", {"params": {"force": j}}))
            memory.end_session(outcome=i / 4, summary=f"day {i}")
        numbers = [item.memory.id for item in memory.recall(Query("try", n=60)).memories]
        for number in numbers[:20]:
            memory.update(number, f"changed {number}")
        for number in numbers[20:40]:
            memory.update(number, f"to be forgotten {number}")
            memory.forget(number, "it was wrong")
    store = Store(path)
    store.use_model("m", DIMENSION)
    vectors = np.random.default_rng(1)
    while waiting := store.unembedded(200):
        made = [
            (i, text, vectors.normal(size=DIMENSION).astype(np.float32)) for i, text in waiting
        ]
        store.put_vectors("m", made)
    for i in range(20):
        store.add(new(f"without a vector {i}"))
    store.close()


@pytest.fixture(scope="module")
def sound(fast_folder: Path) -> str:
    path = str(fast_folder / "sound.db")
    build(path)
    return path


def memories(path: str) -> dict[int, Memory]:
    store = Store(path)
    with sql(path) as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM memories")]
    with store.snapshot() as snapshot:
        found = snapshot.memories(ids)
    store.close()
    return found


def standing(path: str) -> dict[int, set[int]]:
    """Return the pages on which each memory stands, with those that its text overflows to."""
    pages = Pages(path)
    found: dict[int, set[int]] = {}
    roots = pages.roots({"memories"})
    read = pages.page
    for table in ("memories", "texts"):
        for number in pages.tree(roots[table]):
            if not pages.is_table_leaf(number):
                continue
            touched: set[int] = set()
            pages.page = lambda n, touched=touched: touched.add(n) or read(n)  # type: ignore
            for row_id, _ in pages.rows(number):
                # The first page is that of the leaf; what was read since is of this row.
                found.setdefault(row_id, set()).update({number, *touched})
                touched.clear()
            pages.page = read  # type: ignore
    pages.close()
    return found


def pages_of(path: str, *tables: str) -> set[int]:
    pages = Pages(path)
    roots = pages.roots(set())
    found = {number for table in tables for number in pages.tree(roots[table])}
    pages.close()
    return found


Make = Callable[[random.Random, bytes, int], bytes]
"""Makes what a damaged page holds, from the whole file and its number."""


def noise(source: random.Random, content: bytes, number: int) -> bytes:
    return source.randbytes(PAGE)


def zeros(source: random.Random, content: bytes, number: int) -> bytes:
    return bytes(PAGE)


def flipped(source: random.Random, content: bytes, number: int) -> bytes:
    page = bytearray(content[(number - 1) * PAGE : number * PAGE])
    for _ in range(source.choice((1, 10, 100))):
        page[source.randrange(PAGE)] ^= 1 << source.randrange(8)
    return bytes(page)


def misplaced(source: random.Random, content: bytes, number: int) -> bytes:
    other = source.randrange(len(content) // PAGE)
    return content[other * PAGE : (other + 1) * PAGE]


MAKES = [noise, zeros, flipped, misplaced]


def damaged(path: str, target: str, numbers: list[int], make: Make) -> None:
    content = Path(path).read_bytes()
    hurt = bytearray(content)
    source = random.Random(f"{numbers}")
    for number in numbers:
        hurt[(number - 1) * PAGE : number * PAGE] = make(source, content, number)
    Path(target).write_bytes(hurt)


def assert_recovered(sound: str, target: str, hurt: set[int], output: str) -> repair.Repaired:
    """Check all that a repair promises, given the pages that are damaged."""
    before = Path(target).read_bytes()
    made = repair.repair(target, output)
    assert Path(target).read_bytes() == before
    was, now = memories(sound), memories(output)
    assert made.memories == len(now)
    names_known = not hurt & (pages_of(sound, "collections", "sessions") - {1})
    with sql(sound) as connection:
        forgotten = {row[0] for row in connection.execute("SELECT uuid FROM forgotten")}
    for number, where in standing(sound).items():
        if hurt & where:
            continue
        assert number in now, f"memory {number} of whole pages {where} was lost"
        if names_known and number not in made.altered:
            assert same(was[number]) == same(now[number])
    for number, memory in now.items():
        assert memory.uuid not in forgotten
        assert not memory.content.startswith("to be forgotten")
        if number in was and number not in made.altered and memory.collection != "recovered":
            # Not as text: another digit at the end of a long number can be the same number.
            assert (memory.content, memory.context) == (was[number].content, was[number].context)
    assert_sound(output)
    return made


def same(memory: Memory) -> Memory:
    # What replaced it may be lost, and then it counts again.
    return dataclasses.replace(memory, superseded_by="", context_json="")


def assert_sound(path: str) -> None:
    """Check that a file is a whole store for its owner alone, and that all is indexed."""
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with sql(path) as connection:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute("INSERT INTO keywords (keywords, rank) VALUES ('integrity-check', 1)")
        total = connection.execute("SELECT count(*) FROM memories").get
        assert connection.execute("SELECT count(*) FROM documents").get == total
        counted = connection.execute("SELECT coalesce(sum(memories), 0) FROM collections").get
        assert counted == total
        assert (found := check.check(path)).damages + found.disagreements == ()
        waiting = "SELECT (SELECT count(*) FROM vectors) + (SELECT count(*) FROM unembedded)"
        assert connection.execute(waiting).get == total
    copy = shutil.copy(path, path + ".copy")
    with RobotMemory(Config(db_path=copy, embed_backend="none")) as memory:
        found = memory.recall(Query("*", n=100, collection="*", min_confidence=0.0)).memories
        assert len(found) == min(100, memory.status().memories)
        memory.learn(Experience("life goes on"))
        for episode in memory.episodes(100, "*"):
            assert memory.episode(episode.session_id).session_id == episode.session_id


def test_a_sound_file_comes_back_whole(sound: str, tmp_path: Path) -> None:
    target, output = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    shutil.copy(sound, target)
    made = assert_recovered(sound, target, set(), output)
    assert (made.lost, made.altered, made.bare) == (0, [], 0)
    tables = ("memories", "texts", "collections", "sessions", "trajectory", "forgotten")
    with sql(sound) as one, sql(output) as two:
        for table in (*tables, "vectors", "embedder", "unembedded", "awaited"):
            expected = sorted(one.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
            assert sorted(two.execute(f"SELECT * FROM {table}").fetchall(), key=repr) == expected
        last = "SELECT seq FROM sqlite_sequence WHERE name = 'memories'"
        assert one.execute(last).get == two.execute(last).get


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_memory_of_whole_pages_comes_back(
    sound: str, tmp_path: Path, seed: int, make: Make
) -> None:
    source = random.Random(seed)
    count = os.path.getsize(sound) // PAGE
    hurt = source.sample(range(1, count + 1), source.choice((1, 2, 5, 20, count // 3)))
    target = str(tmp_path / "a.db")
    damaged(sound, target, hurt, make)
    assert_recovered(sound, target, set(hurt), str(tmp_path / "b.db"))


@pytest.mark.parametrize("table", TRUTH)
def test_a_broken_root_loses_no_leaf(sound: str, tmp_path: Path, table: str) -> None:
    pages = Pages(sound)
    root = pages.roots({table})[table]
    pages.close()
    target = str(tmp_path / "a.db")
    damaged(sound, target, [root], noise)
    assert_recovered(sound, target, {root}, str(tmp_path / "b.db"))


@pytest.mark.parametrize("make", [noise, zeros])
def test_without_the_first_page_all_comes_back_but_nothing_forgotten(
    sound: str, tmp_path: Path, make: Make
) -> None:
    target = str(tmp_path / "a.db")
    damaged(sound, target, [1], make)
    made = assert_recovered(sound, target, {1}, str(tmp_path / "b.db"))
    assert made.memories == len(memories(sound))
    assert (made.lost, made.altered, made.bare) == (0, [], 0)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_flipped_bits_never_pass_for_what_was_learned(
    sound: str, tmp_path: Path, seed: int
) -> None:
    source = random.Random(f"bits {seed}")
    content = bytearray(Path(sound).read_bytes())
    hurt = set()
    for _ in range(source.choice((1, 10, 100, 1000))):
        at = source.randrange(len(content))
        content[at] ^= 1 << source.randrange(8)
        hurt.add(at // PAGE + 1)
    target = str(tmp_path / "a.db")
    Path(target).write_bytes(content)
    assert_recovered(sound, target, hurt, str(tmp_path / "b.db"))


@pytest.mark.parametrize("share", [0.99, 0.5, 0.2])
def test_what_is_left_of_a_cut_file_comes_back(sound: str, tmp_path: Path, share: float) -> None:
    content = Path(sound).read_bytes()
    left = int(len(content) * share)
    target = str(tmp_path / "a.db")
    Path(target).write_bytes(content[:left])
    hurt = set(range(left // PAGE + 1, len(content) // PAGE + 1))
    assert_recovered(sound, target, hurt, str(tmp_path / "b.db"))


@pytest.mark.parametrize("content", [b"", b"text " * 5000, bytes(8192), os.urandom(20_000)])
def test_where_there_is_nothing_it_says_so_and_makes_nothing(
    tmp_path: Path, content: bytes
) -> None:
    target = tmp_path / "a.db"
    target.write_bytes(content)
    with pytest.raises(StoreError, match="holds no memory that can be read"):
        repair.repair(str(target), str(tmp_path / "b.db"))
    assert os.listdir(tmp_path) == ["a.db"]
    assert target.read_bytes() == content
    with pytest.raises(StoreError, match="No such file"):
        repair.repair(str(tmp_path / "c.db"), str(tmp_path / "b.db"))


def test_it_overwrites_nothing_and_reads_no_newer_schema(sound: str, tmp_path: Path) -> None:
    target, output = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    shutil.copy(sound, target)
    Path(output).write_text("mine")
    with pytest.raises(StoreError, match="there already"):
        repair.repair(target, output)
    assert Path(output).read_text() == "mine"
    with sql(target) as connection:
        connection.execute("INSERT INTO migrations VALUES ('of_the_future', 1)")
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with pytest.raises(StoreError, match="newer robotmem_ros"):
        repair.repair(target, str(tmp_path / "c.db"))


def test_the_log_counts_and_is_not_touched(tmp_path: Path, db_path: str) -> None:
    with RobotMemory(Config(db_path=db_path, embed_backend="none")) as memory:
        memory.learn(Experience("in the file"))
        with sql(db_path) as connection:
            connection.execute("PRAGMA wal_checkpoint (TRUNCATE)")
        memory.learn(Experience("in the log"))
        memory.update(1, "changed in the log")
        for end in ("", "-wal"):
            shutil.copy(db_path + end, str(tmp_path / "copy.db") + end)
    target = str(tmp_path / "copy.db")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("copy.db*")}
    repair.repair(target, str(tmp_path / "b.db"))
    assert {path.name: path.read_bytes() for path in tmp_path.glob("copy.db*")} == before
    found = sorted(memory.content for memory in memories(str(tmp_path / "b.db")).values())
    assert found == ["changed in the log", "in the log"]
    log = bytearray(before["copy.db-wal"])
    log[-100] ^= 1  # the last transaction does not count when one bit of it is wrong
    Path(target + "-wal").write_bytes(log)
    repair.repair(target, str(tmp_path / "c.db"))
    found = sorted(memory.content for memory in memories(str(tmp_path / "c.db")).values())
    assert found == ["in the file", "in the log"]


def test_a_file_that_is_open_is_not_repaired(tmp_path: Path, db_path: str) -> None:
    with process(LEARN_FOR_EVER, db_path, "robot") as child:
        line_of(child)
        with pytest.raises(StoreError, match="open in another process"):
            repair.repair(db_path, str(tmp_path / "b.db"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_damaged_file_is_refused_or_served_but_never_falls_over(
    sound: str, tmp_path: Path, seed: int
) -> None:
    """Whatever is broken, a caller hears a RobotMemoryError of one line or gets an answer."""
    source = random.Random(f"serve {seed}")
    count = os.path.getsize(sound) // PAGE
    target = str(tmp_path / "a.db")
    hurt = source.sample(range(1, count + 1), source.choice((1, 3, 20)))
    # A page that is whole but another one's is not always noticed before it is used.
    damaged(sound, target, hurt, source.choice((noise, zeros, flipped)))
    said: list[str] = []

    def attempt(call: Callable[[], Any]) -> None:
        try:
            call()
        except RobotMemoryError as error:
            said.append(str(error))

    def serve() -> None:
        with RobotMemory(Config(db_path=target, embed_backend="none"), owner="robot") as memory:
            for query in ("try", "*", "grasp cup red door"):
                attempt(lambda q=query: memory.recall(Query(q, n=100, collection="*")))
                attempt(
                    lambda q=query: memory.recall(
                        Query(q, collection="*", context_filter={"task.success": True})
                    )
                )
            attempt(lambda: memory.get(ids=list(range(1, 400))))
            attempt(lambda: memory.learn(Experience("the robot goes on")))
            attempt(lambda: memory.update(7, "changed"))
            attempt(lambda: memory.forget(8))
            attempt(memory.status)
            attempt(lambda: memory.episodes(9, "*"))
            attempt(lambda: memory.start_session())
            attempt(lambda: memory.end_session())

    attempt(serve)
    for sentence in said:
        assert "\n" not in sentence
