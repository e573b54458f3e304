# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where imported memories and episodes go, and the count of what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from robotmem_ros.core.errors import NotFoundError
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Episode, Memory


@dataclass(slots=True)
class Tally:
    """What became of a bag, or of all of them."""

    messages: int = 0
    memories: int = 0
    changed: int = 0
    new: int = 0
    episodes: int = 0
    new_episodes: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    unit: str = "messages"

    def add(self, other: Tally) -> None:
        """Add what became of another bag."""
        for name in ("messages", "memories", "changed", "new", "episodes", "new_episodes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds += other.seconds
        self.problems += other.problems

    def text(self, dry_run: bool) -> str:
        """Return all of it in one line."""
        rate = self.messages / self.seconds if self.seconds > 0 else 0.0
        read = f"{self.messages} {self.unit} read ({rate:.0f}/s)"
        if dry_run:
            return f"{read}; would store {self.memories} memories, {self.episodes} episodes"
        updated, known = self.changed - self.new, self.memories - self.changed
        memories = f"{self.new} memories new, {updated} updated, {known} already there"
        return f"{read}; {memories}; {self.new_episodes} of {self.episodes} episodes new"


class Sink:
    """Where what was found goes: a memory, or nowhere in a dry run."""

    def __init__(self, memory: RobotMemory | None) -> None:
        self._memory = memory

    def rows(self) -> int:
        """Return how many memories there are."""
        if self._memory is None:
            return 0
        status = self._memory.status()
        return status.memories + status.superseded

    def put(self, found: Memory | Episode) -> tuple[int, int]:
        """Store a memory or an episode; return how many memories changed, and if it is an episode.

        Raises
        ------
        InvalidRequestError: it cannot be stored.
        StoreError: the database cannot be written.
        """
        if self._memory is None:
            return 0, 0
        if isinstance(found, Memory):
            return int(self._memory.import_memory(found)), 0
        is_new = not self._has(found.session_id)
        return self._memory.import_episode(found), int(is_new)

    def put_memories(self, found: Sequence[Memory]) -> int:
        """Store memories, all or none; return how many changed.

        Raises
        ------
        InvalidRequestError: one of them cannot be stored.
        StoreError: the database cannot be written.
        """
        return self._memory.import_memories(found) if self._memory is not None else 0

    def _has(self, session_id: str) -> bool:
        assert self._memory is not None
        try:
            self._memory.episode(session_id)
        except NotFoundError:
            return False
        return True
