# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Memories made by hand, for rules that need no store."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from robotmem_ros.core.model import Memory, MemoryType

NUMBERS = itertools.count(1)


def made(content: str, context: dict[str, Any] | None = None, **fields: Any) -> Memory:
    number = next(NUMBERS)
    memory = Memory(
        id=number,
        uuid=f"uuid {number}",
        type=MemoryType.FACT,
        perception_type=None,
        content=content,
        context=context or {},
        context_json="",
        collection="default",
        session_id="s",
        confidence=0.9,
        stored_confidence=0.9,
        stamp=number,
        created_at=1,
        updated_at=1,
        expires=0,
        pose=None,
        last_access=1,
        access_count=0,
        return_count=0,
        superseded_by="",
    )
    return dataclasses.replace(memory, **fields)
