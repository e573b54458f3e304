# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What learners said they did with one store, and whether the store agrees."""

from __future__ import annotations

import apsw
import deeds
import soundness

from robotmem_ros.core.model import Memory, MemoryType
from robotmem_ros.core.store import access, schema

Key = tuple[str, int]


class Ledger:
    """What was answered, and what was begun and may have been done or not.

    Attributes
    ----------
    answered: how many deeds were.
    """

    def __init__(self) -> None:
        self.answered = 0
        self._stored: dict[Key, tuple[int, str]] = {}  # version and uuid
        self._forgetting: set[Key] = set()
        self._forgotten: set[Key] = set()
        self._started: set[str] = set()
        self._ended: set[str] = set()

    def copy(self) -> Ledger:
        """Return the ledger of this moment."""
        made = Ledger()
        made.answered = self.answered
        made._stored = dict(self._stored)
        made._forgetting, made._forgotten = set(self._forgetting), set(self._forgotten)
        made._started, made._ended = set(self._started), set(self._ended)
        return made

    def take(self, line: str) -> None:
        """Take in what a learner said."""
        what, *rest = line.split()
        if what == "forgetting":
            self._forgetting.add((rest[0], int(rest[1])))
            return
        self.answered += 1
        if what == "stored":
            self._stored[rest[0], int(rest[1])] = (int(rest[2]), rest[3])
        elif what == "updated":
            key = (rest[0], int(rest[1]))
            self._stored[key] = (int(rest[2]), self._stored[key][1])
        elif what == "forgot":
            self._forgotten.add((rest[0], int(rest[1])))
        elif what == "started":
            self._started.add(rest[0])
        elif what == "ended":
            self._ended.add(rest[0])
        else:
            raise ValueError(line)

    def check(self, path: str) -> tuple[int, list[str]]:
        """Return how many memories a store holds, and what is wrong with it."""
        had_log = access.has_log(path)
        with soundness.opened(path) as connection:
            if connection.pragma("user_version") < schema.VERSION:  # killed while it was made
                return 0, [f"all {self.answered} answers are lost"] if self.answered else []
            found = soundness.problems(connection)
            if not had_log and schema.needs_log(connection):
                found.append("the file says that it needs a log, and there is none")
            memories = soundness.stored(connection)
            found += self._of_episodes(connection)
        return len(memories), found + self.of_memories(list(memories.values()))

    def of_memories(self, memories: list[Memory]) -> list[str]:
        """Return which memories are lost, doubled or not whole."""
        problems = []
        there: dict[Key, tuple[int, str]] = {}
        for memory in memories:
            if memory.type is MemoryType.EPISODE:
                continue
            known = deeds.meaning(memory.content)
            if known is None:
                problems.append(f"nobody stored {memory.content[:80]!r}")
                continue
            tag, number, version = known
            if memory.context != deeds.context(tag, number, version):
                problems.append(f"memory {memory.id} is half a memory: {memory}"[:500])
            if (memory.pose and memory.pose.position) != (
                (expected := deeds.pose(number)) and expected.position
            ):
                problems.append(f"memory {memory.id} has the pose of another")
            if (tag, number) in there:
                problems.append(f"doubled: {tag} {number}")
            there[tag, number] = (version, memory.uuid)
        for key, (version, uuid) in self._stored.items():
            if key in self._forgotten:
                continue
            if key not in there:
                if key not in self._forgetting:
                    problems.append(f"lost: {key}")
            elif there[key][1] != uuid:
                problems.append(f"{key} has another uuid")
            elif there[key][0] < version:
                problems.append(f"lost: version {version} of {key}")
        problems += [f"remembered: {key}" for key in self._forgotten if key in there]
        return problems

    def _of_episodes(self, connection: apsw.Connection) -> list[str]:
        found = connection.execute("SELECT session_id, ended FROM sessions WHERE opened")
        sessions = dict(found.fetchall())
        problems = [f"lost: episode {name}" for name in self._started if name not in sessions]
        problems += [f"lost: the end of {name}" for name in self._ended if not sessions.get(name)]
        imported = connection.execute(
            "SELECT s.session_id, count(m.id) FROM sessions AS s LEFT JOIN memories AS m "
            "ON m.session_id = s.id WHERE s.opened AND s.owner IS NULL GROUP BY s.id"
        ).fetchall()
        return problems + [f"{name} is half an episode" for name, n in imported if n != 4]
