# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`robotmem import`: what becomes of a recording, with which stamps, poses and frames."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from bag_writer import (
    FORMATS,
    SECOND,
    START,
    Sent,
    amcl_pose,
    clock,
    drive,
    grip,
    odometry,
    text,
    write_bag,
)

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Episode, Memory, MemoryType, Near, Query

Run = Callable[..., Any]
Open = Callable[[], RobotMemory]

SIMULATED = 100 * SECOND


def content(db: Path) -> list[tuple[Any, ...]]:
    """All that is stored of memories, and what waits for its vector."""
    database = apsw.Connection(str(db), flags=apsw.SQLITE_OPEN_READONLY)
    memories = (
        "SELECT m.*, t.content, t.context FROM memories m JOIN texts t ON t.memory_id = m.id"
    )
    rows = [row for query in (memories, "SELECT * FROM trajectory") for row in
            database.execute(query)]  # fmt: skip
    database.close()
    return rows


def episodes(memory: RobotMemory) -> list[Episode]:
    """Return all episodes, the first first."""
    return sorted(memory.episodes(1000, "*"), key=lambda episode: episode.start)


@pytest.mark.parametrize("start", [0, SIMULATED], ids=["wall clock", "simulated"])
@pytest.mark.parametrize("storage", FORMATS)
def test_a_bag_becomes_an_episode_with_stamps_poses_and_frames_of_the_recording(
    tmp_path: Path, run: Run, memory: Open, storage: str, start: int
) -> None:
    ran = run(write_bag(tmp_path / "bag", storage, drive(simulated_from=start)))
    assert (ran.code, ran.problems) == (0, [])
    (episode,) = episodes(memory())
    begin = start or START
    assert (episode.start, episode.end) == (begin, begin + 6 * SECOND)
    (last,) = episode.memories
    assert last.type is MemoryType.EPISODE
    assert last.stamp == begin + 6 * SECOND
    assert last.pose is not None
    assert last.pose.frame_id == "map"
    assert last.pose.position == (10.0, 20.0, 0.0)
    assert last.pose.stamp == begin - SECOND
    assert last.context["spatial"] == {"odom": [3.0, 0.0, 0.0], "position": [10.0, 20.0, 0.0]}
    assert last.context["robot"] == {"speed": 0.5, "wrist": 1.2, "joints": [0.1, 0.2, 1.2]}
    assert last.context["params"] == {"grip_force": {"value": 130.0}}
    assert last.context["episode"]["duration"] == 6.0
    assert last.context["ros"]["odom"] == {
        "topic": "/odom",
        "frame": "odom",
        "stamp": (begin + 6 * SECOND) / SECOND,
        "age": 0.0,
        "fields": ["spatial.odom", "robot.speed"],
    }


def test_markers_cut_a_bag_and_become_facts_with_what_was_sensed_then(
    tmp_path: Path, run: Run, memory: Open
) -> None:
    bag = write_bag(tmp_path / "bag", "mcap", drive(simulated_from=SIMULATED))
    assert run(bag, "--marker", "note").code == 0
    before, picked, lost = episodes(memory())
    assert [one.summary for one in (before, picked, lost)] == [
        "", "picked the red cup", "lost the cup",
    ]  # fmt: skip
    assert before.start == SIMULATED
    # The note came 50 ms after the last /clock: its ROS time is what /clock said then.
    assert before.end == picked.start == SIMULATED + 105 * SECOND // 100
    assert picked.end == lost.start == SIMULATED + 405 * SECOND // 100
    fact, last = picked.memories
    assert (fact.type, last.type) == (MemoryType.FACT, MemoryType.EPISODE)
    assert fact.content == last.content == "picked the red cup"
    assert fact.stamp == picked.start
    assert last.stamp == picked.end
    assert fact.pose is not None
    assert fact.pose.frame_id == "map"
    assert fact.context["spatial"]["odom"] == [0.5, 0.0, 0.0]
    assert last.context["spatial"]["odom"] == [2.0, 0.0, 0.0]
    assert fact.context["recording"] == {"bag": "bag", "topic": "/note"}
    assert len(before.memories) == 1


def test_what_was_imported_is_found_by_words_place_and_time(
    tmp_path: Path, run: Run, memory: Open
) -> None:
    run(write_bag(tmp_path / "bag", "mcap", drive()), "--marker", "/note", "--collection", "lab")
    store = memory()
    near = Near("map", (10.0, 20.5, 0.0), radius=1.0)
    found = store.recall(Query("red cup", collection="lab", near=near, until=START + 2 * SECOND))
    assert [m.memory.content for m in found.memories] == ["picked the red cup"]
    assert store.recall(Query("red cup", collection="default")).memories == ()


@pytest.mark.parametrize("way", [(), ("--marker", "/note"), ("--gap", "1.5")])
def test_twice_also_after_copying_and_in_the_other_format_adds_nothing(
    tmp_path: Path, run: Run, db: Path, way: tuple[str, ...]
) -> None:
    gap = [*drive(2.0), *drive(2.0, begin=5.0)]
    first = write_bag(tmp_path / "first", "sqlite3", gap)
    assert "0 already there" in run(first, *way).out
    once = content(db)
    assert run(first, first, *way).code == 0
    run(shutil.copytree(first, tmp_path / "elsewhere" / "copy"), *way)
    run(write_bag(tmp_path / "other", "mcap", gap), *way)
    packed = write_bag(tmp_path / "packed", "sqlite3", gap, compression="message")
    ran = run(packed, *way)
    assert " 0 memories new, 0 updated" in ran.out
    assert content(db) == once


def test_a_gap_begins_a_new_episode(tmp_path: Path, run: Run, memory: Open) -> None:
    messages = [*drive(2.0, notes=()), *drive(1.0, notes=(), begin=5.0)]
    bag = write_bag(tmp_path / "bag", "mcap", messages)
    run(bag, "--gap", "2.9")
    spans = [(e.start - START, e.end - START) for e in episodes(memory())]
    assert spans == [(0, 2 * SECOND), (5 * SECOND, 6 * SECOND)]


def test_the_trajectory_is_sampled_as_on_the_live_robot(
    tmp_path: Path, run: Run, memory: Open
) -> None:
    bag = write_bag(tmp_path / "bag", "mcap", drive(10.0))
    run(bag, "--set", "pose_source=odom", "--set", "trajectory_rate=2.0")
    (episode,) = episodes(memory())
    assert [pose.frame_id for pose in episode.trajectory] == ["odom"] * 21
    assert [pose.position[0] for pose in episode.trajectory] == pytest.approx(
        [0.25 * n for n in range(21)]
    )
    assert [pose.stamp - START for pose in episode.trajectory] == [
        n * SECOND // 2 for n in range(21)
    ]
    assert episode.memories[-1].context["episode"]["path_length"] == 5.0
    assert episode.memories[-1].content == "A recorded episode of 10.0 s with 5.0 m of travel."


def test_different_runs_that_begin_alike_are_different_episodes(
    tmp_path: Path, run: Run, memory: Open
) -> None:
    """A simulation that is reset starts with the same messages at the same times."""
    for number in range(3):
        notes = [(1.0, f"attempt {number}")]
        run(write_bag(tmp_path / f"bag{number}", "mcap", drive(2.0, notes=notes)))
    assert len(episodes(memory())) == 3


def test_a_clock_that_is_set_back_interrupts_the_episode(
    tmp_path: Path, run: Run, memory: Open
) -> None:
    first = list(drive(2.0, simulated_from=SIMULATED, notes=()))
    again = list(drive(1.0, simulated_from=SIMULATED, notes=(), start=START + 3 * SECOND))
    run(write_bag(tmp_path / "bag", "mcap", first + again))
    spans = [(e.end - e.start, e.interrupted) for e in memory().episodes(10)]
    assert sorted(spans) == [(SECOND, False), (2 * SECOND, True)]


def test_messages_before_the_first_clock_happened_at_its_time(
    tmp_path: Path, run: Run, memory: Open
) -> None:
    messages = [
        Sent(START, "/note", text("early")),
        Sent(START + SECOND, "/clock", clock(0)),
        Sent(START + SECOND, "/clock", clock(SIMULATED)),
        Sent(START + 2 * SECOND, "/note", text("later")),
    ]
    bag = write_bag(tmp_path / "bag", "mcap", messages)
    run(bag, "--marker", "/note", parameters=None)
    assert [e.start for e in episodes(memory())] == [SIMULATED, SIMULATED]


def test_markers_of_any_type_tell_by_their_first_text_and_their_own_stamp(
    tmp_path: Path, run: Run, memory: Open
) -> None:
    messages = [
        Sent(START, "/odom", odometry(START, 0.0)),
        Sent(START + 2 * SECOND, "/odom", odometry(START + 2 * SECOND, 1.0)),
        Sent(START + 2 * SECOND, "/grip", grip(START + SECOND, 30.0)),
        Sent(START + 3 * SECOND, "/amcl_pose", amcl_pose(START + 3 * SECOND, 1.0, 2.0)),
    ]
    bag = write_bag(tmp_path / "bag", "sqlite3", messages)
    run(bag, "--marker", "/grip")
    first, second = episodes(memory())
    assert second.summary == "soft"  # the tool's name; the frame in the header does not count
    assert (first.end, second.start) == (START + 2 * SECOND, START + SECOND)
    assert second.memories[0].context["spatial"]["odom"] == [0.0, 0.0, 0.0]


def test_a_dry_run_reports_and_leaves_no_file(tmp_path: Path, run: Run, db: Path) -> None:
    bag = write_bag(tmp_path / "bag", "mcap", drive())
    before = sorted(tmp_path.rglob("*"))
    ran = run(bag, "--dry-run", "--marker", "/note")
    assert ran.code == 0
    assert "would store 5 memories, 3 episodes" in ran.out
    assert sorted(tmp_path.rglob("*")) == before


def test_what_was_imported_waits_for_its_vectors(tmp_path: Path, run: Run, db: Path) -> None:
    run(write_bag(tmp_path / "bag", "mcap", drive()), "--marker", "/note")
    database = apsw.Connection(str(db))
    assert database.execute("SELECT count(*) FROM unembedded").get == 5
    database.close()


def test_problems_are_told_by_name_and_the_rest_is_imported(
    tmp_path: Path, run: Run, memory: Open
) -> None:
    whole = write_bag(tmp_path / "whole", "mcap", drive())
    cut = Path(shutil.copytree(whole, tmp_path / "cut")) / "whole.mcap"
    cut.write_bytes(cut.read_bytes()[:50_000])
    no_joints = [sent for sent in drive() if sent.topic != "/joint_states"]
    lacking = write_bag(tmp_path / "lacking", "sqlite3", no_joints)
    wrong = [Sent(s.time, s.topic.replace("/grip", "/odom"), s.message) for s in no_joints]
    mixed = write_bag(tmp_path / "mixed", "mcap", wrong)
    ran = run(tmp_path / "nothing", cut, lacking, mixed, whole)
    assert ran.code == 1
    said = "\n".join(ran.problems)
    assert f"{tmp_path / 'nothing'}: problem: there is no such file or folder" in said
    assert f"{cut}: problem: whole.mcap: cut off or damaged at byte" in said
    assert f"{lacking}: problem: source joints: topic /joint_states is not in the bag" in said
    assert "source odom: topic /odom is of type my_robot_msgs/msg/Grip" in said
    assert f"{whole}: problem" not in said
    assert len(episodes(memory())) == 4


def test_a_source_of_an_unknown_type_is_named_and_left_out(
    tmp_path: Path, run: Run, memory: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    messages = [sent for sent in drive() if sent.topic != "/grip"]
    ran = run(write_bag(tmp_path / "bag", "mcap", messages))
    assert ran.code == 1
    assert ran.problems == [
        f"{tmp_path / 'bag'}: problem: source grip: type my_robot_msgs/msg/Grip is not known: "
        "neither the bag nor ROS 2 defines it; source the workspace that does"
    ]
    (episode,) = episodes(memory())
    assert episode.memories[-1].context["robot"]["speed"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "odom.fields=['spatial.p = pose.pose.positio']"], "positio"),
        (["--set", "odom.fields=['spatial = pose.pose.position']"], "spatial"),
        (["--set", "pose_source=joints"], "pose_source"),
        (["--set", "rrf_k=0"], "parameter rrf_k: 0 is not allowed"),
        (["--set", "collection"], "sets nothing; write name=value"),
        (["--collection", "*"], "parameter collection: '*' is not allowed"),
        (["--params-file", "/nowhere.yaml"], "/nowhere.yaml: No such file or directory"),
        (["--gap", "0"], "must be a number of seconds above 0"),
        (["--gap", "x"], "invalid _seconds value"),
        (["--gap", "1", "--marker", "/note"], "not allowed with argument"),
        (["--marker"], "expected one argument"),
    ],
)
def test_wrong_usage_and_parameters_stop_before_anything_is_stored(
    tmp_path: Path, run: Run, arguments: list[str], words: str
) -> None:
    parameters = {"parameters": None} if "--params-file" in arguments else {}
    ran = run(write_bag(tmp_path / "bag", "mcap", drive(1.0)), *arguments, **parameters)
    assert ran.code == 2
    assert words in "\n".join(ran.problems)


def test_a_parameter_that_nobody_knows_is_mentioned(tmp_path: Path, run: Run) -> None:
    bag = write_bag(tmp_path / "bag", "mcap", drive(1.0))
    ran = run(bag, "--set", "contxt_sources=[]")
    assert ran.code == 0
    assert ran.problems == [
        "note: parameter contxt_sources is not known and has no effect; "
        "did you mean context_sources?"
    ]


def test_the_command_loads_nothing_of_ros(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", "mcap", drive(1.0))
    script = (
        "import sys\n"
        "for name in ('rclpy', 'std_msgs', 'rcl_interfaces', 'robotmem_ros.msg'):\n"
        "    sys.modules[name] = None\n"
        "from robotmem_ros.cli.main import main\n"
        f"sys.exit(main(['import', {str(bag)!r}, '--dry-run']))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_long_memories_and_many_facts_keep_their_order(
    tmp_path: Path, run: Run, memory: Open
) -> None:
    notes = [(0.5 + n / 10, f"step {n}") for n in range(20)]
    run(write_bag(tmp_path / "bag", "mcap", drive(4.0, notes=notes)), "--marker", "/note")
    facts: list[Memory] = [
        one for e in episodes(memory()) for one in e.memories if one.type is MemoryType.FACT
    ]
    assert [fact.content for fact in facts] == [f"step {n}" for n in range(20)]


def test_a_folder_of_bags_stands_for_its_bags(tmp_path: Path, run: Run, memory: Open) -> None:
    for number in range(3):
        notes = [(0.5, f"trial {number}")]
        write_bag(tmp_path / "trials" / f"t{number}", "mcap", drive(1.0, notes=notes))
    shutil.copytree(tmp_path / "trials" / "t0", tmp_path / "trials" / "deeper" / "copy")
    loose = tmp_path / "trials" / "loose"
    loose.mkdir()
    for number in (3, 4):
        notes = [(0.5, f"trial {number}")]
        bag = write_bag(tmp_path / f"t{number}", "mcap", drive(1.0, notes=notes))
        shutil.copy(bag / f"t{number}.mcap", loose / f"run{'ab'[number - 3]}.mcap")
    ran = run(tmp_path / "trials")
    assert (ran.code, ran.problems) == (0, [])
    assert ran.out.splitlines()[-1].startswith("6 bags: ")
    assert len(episodes(memory())) == 5


def test_the_open_episode_of_a_node_stays_open(tmp_path: Path, run: Run, db: Path) -> None:
    config = Config(db_path=str(db), embed_backend="none")
    with RobotMemory(config, owner="/robotmem") as node:
        started = node.start_session()
        run(write_bag(tmp_path / "bag", "mcap", drive()))
        assert node.open_session == started.episode.session_id
        assert node.end_session().episode.interrupted is False
