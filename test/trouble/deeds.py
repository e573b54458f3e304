# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A learner that does everything a memory can, and says what it begins and what was answered.

What it stores follows from three things: its tag, a number, and a version. So whoever finds a
memory can tell whether it is whole, and whether it is there once.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Episode, Experience, Memory, MemoryType, Pose, Query

Say = Callable[[str], None]
"""Takes one line of a few words."""

DIMENSION = 16

_TEXT = re.compile(r"(\w+) lifted part PN-(\d+) at (\d+)\.5 N \(try (\d+)\)")


def text(tag: str, number: int, version: int) -> str:
    """Return the content of a memory."""
    return f"{tag} lifted part PN-{number} at {number % 40}.5 N (try {version})"


def meaning(content: str) -> tuple[str, int, int] | None:
    """Return the tag, the number and the version of a content; None if it is none of ours."""
    match = _TEXT.fullmatch(content)
    return (match[1], int(match[2]), int(match[4])) if match else None


def context(tag: str, number: int, version: int) -> dict[str, Any]:
    """Return the context of a memory: a few pages, now and then."""
    made: dict[str, Any] = {
        "robot": {"id": tag},
        "params": {"force": {"value": number / 7, "unit": "N"}, "try": version},
        "spatial": {"object_position": [number % 11 + 0.25, version, -1.5]},
    }
    if number % 17 == 0:
        made["log"] = [f"line {i} of {tag} {number} {version}" for i in range(300)]
    return made


def pose(number: int) -> Pose | None:
    """Return where a memory was made, if anywhere."""
    return Pose("map", (number % 13 + 0.1, number % 7, 0.0), stamp=1) if number % 3 else None


def imported(tag: str, number: int, session_id: str = "") -> Memory:
    """Return a memory of another robot."""
    return Memory(
        **{"id": 1, "uuid": str(uuid.uuid4()), "type": MemoryType.FACT, "perception_type": None},
        **{"content": text(tag, number, 0), "context": context(tag, number, 0)},
        **{"context_json": "", "collection": "other", "session_id": session_id},
        **{"confidence": 0.9, "stored_confidence": 0.9, "stamp": number + 1, "created_at": 1},
        **{"updated_at": 1, "expires": 0, "pose": pose(number), "last_access": 1},
        **{"access_count": 0, "return_count": 0, "superseded_by": ""},
    )


class Learner:
    """Does one thing after another with a memory.

    Parameters
    ----------
    tag: what it is called in all it stores.
    say: told before and after each deed: "forgetting a 7", "forgot a 7".
    sessions: whether it starts and ends episodes.
    """

    def __init__(
        self, memory: RobotMemory, tag: str, seed: int, say: Say, sessions: bool = False
    ) -> None:
        self._memory = memory
        self._tag = tag
        self._random = random.Random(f"{tag} {seed}")
        self._say = say
        self._number = 0
        self._known: dict[int, tuple[int, int]] = {}  # id and version by number
        deeds = [self.learn] * 6 + [self.update] * 3 + [self.forget] * 2
        deeds += [self.again, self.import_one, self.import_episode, self.recall]
        self._deeds = deeds + ([self.turn_session] * 2 if sessions else [])
        self._session = ""

    def act(self) -> None:
        """Do one thing."""
        self._random.choice(self._deeds)()

    def learn(self) -> None:
        """Store a new memory, in the open episode or in a session of its own."""
        number = self._next()
        session_id = f"s-{self._tag}" if self._random.random() < 0.4 else ""
        learned = self._memory.learn(self._experience(number, session_id)).memory
        self._say(f"stored {self._tag} {number} 0 {learned.uuid}")
        self._known[number] = (learned.id, 0)
        self._memory.add_trajectory([Pose("map", (float(number), 0.0, 0.0), stamp=learned.stamp)])

    def again(self) -> None:
        """Store one twice at once: the second must be found to be the first."""
        number = self._next()
        experience = self._experience(number, f"s-{self._tag}")
        learned = [self._memory.learn(experience).memory for _ in range(2)]
        assert learned[0].id == learned[1].id
        self._say(f"stored {self._tag} {number} 0 {learned[0].uuid}")
        self._known[number] = (learned[0].id, 0)

    def update(self) -> None:
        """Change the content and the context of a memory."""
        if self._known:
            number, (memory_id, version) = self._random.choice([*self._known.items()])
            version += 1
            self._memory.update(
                memory_id,
                text(self._tag, number, version),
                context(self._tag, number, version),
            )
            self._known[number] = (memory_id, version)
            self._say(f"updated {self._tag} {number} {version}")

    def forget(self) -> None:
        """Forget a memory."""
        if self._known:
            number, (memory_id, _) = self._random.choice([*self._known.items()])
            self._say(f"forgetting {self._tag} {number}")
            self._memory.forget(memory_id, "it was wrong")
            del self._known[number]
            self._say(f"forgot {self._tag} {number}")

    def recall(self) -> None:
        """Find what is known, and read it."""
        found = self._memory.recall(Query(f"{self._tag} lifted part", n=5)).memories
        self._memory.get(ids=[item.memory.id for item in found] or [1])

    def import_one(self) -> None:
        """Store a memory of another robot, twice."""
        number = self._next()
        memory = imported(self._tag, number)
        assert self._memory.import_memory(memory)
        assert not self._memory.import_memory(memory)
        self._say(f"stored {self._tag} {number} 0 {memory.uuid}")

    def import_episode(self) -> None:
        """Store an episode of another robot."""
        name = f"e-{self._tag}-{self._number}"
        numbers = [self._next() for _ in range(3)]
        memories = [imported(self._tag, number, name) for number in numbers]
        self._memory.import_episode(
            Episode(
                **{"session_id": name, "collection": "other", "context": {}, "start": 1},
                **{"context_json": "{}", "end": 9, "outcome": 0.5, "summary": "done"},
                **{"interrupted": True, "memories": (*memories, self._closing(name))},
                trajectory=tuple(filter(None, map(pose, numbers))),
            )
        )
        for number, memory in zip(numbers, memories, strict=True):
            self._say(f"stored {self._tag} {number} 0 {memory.uuid}")
        self._say(f"ended {name}")

    def turn_session(self) -> None:
        """End the open episode, or start one."""
        if not self._session:
            started = self._memory.start_session(context(self._tag, 1, 0))
            self._session = started.episode.session_id
            self._say(f"started {self._session}")
            return
        session_id, self._session = self._session, ""
        self._memory.end_session(session_id, 0.75)
        self._say(f"ended {session_id}")

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _experience(self, number: int, session_id: str) -> Experience:
        content, of_it = text(self._tag, number, 0), context(self._tag, number, 0)
        return Experience(content, of_it, session_id=session_id, pose=pose(number))

    def _closing(self, name: str) -> Memory:
        made = imported(self._tag, 0, name)
        fields = {field: getattr(made, field) for field in made.__dataclass_fields__}
        return Memory(**{**fields, "type": MemoryType.EPISODE, "content": f"the end of {name}"})


class Embedder:
    """Makes vectors of a text's bytes, at once: it takes the place of a model."""

    available, unavailable_reason, cooldown = True, "", 0.0
    model = identity = "bytes"
    dim = DIMENSION
    batches_at_once = 1

    async def embed_one(self, content: str) -> Any:
        """Return the vector of a text."""
        return np.random.default_rng([*content.encode()]).normal(size=DIMENSION).astype("f4")

    async def embed_batch(self, texts: Any, batch_size: int = 32) -> list[Any]:
        """Return the vectors of texts."""
        return [await self.embed_one(content) for content in texts]

    async def check_availability(self) -> bool:
        """Return True."""
        return True

    async def close(self) -> None:
        """Do nothing."""
