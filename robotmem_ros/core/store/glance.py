# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Look at a database in a moment, whatever its size, when it is opened; check.py sees more."""

from __future__ import annotations

from typing import Any

import apsw

_GLANCES = 64
_GLANCE = (
    "SELECT m.id, EXISTS (SELECT 1 FROM texts WHERE memory_id = m.id), "
    "EXISTS (SELECT 1 FROM unindexed WHERE memory_id = m.id) OR ("
    "EXISTS (SELECT 1 FROM documents WHERE memory_id = m.id) AND (NOT m.attributed "
    "OR EXISTS (SELECT 1 FROM attributes WHERE memory_id = m.id) "
    "OR EXISTS (SELECT 1 FROM texts WHERE memory_id = m.id AND context = '{}'))), "
    "EXISTS (SELECT 1 FROM unembedded WHERE memory_id = m.id) "
    "OR EXISTS (SELECT 1 FROM vectors WHERE memory_id = m.id) "
    "FROM memories AS m WHERE m.id >= ? ORDER BY m.id LIMIT 1"
)
"""One memory, and whether the other tables know it."""


def glance(connection: apsw.Connection) -> tuple[str, str]:
    """Look in a moment, at any size, at what an interrupted or foreign change leaves behind.

    Returns
    -------
    What is wrong with the memories, and what with the indexes alone; each "" if nothing was seen.
    """
    try:
        waiting = "(SELECT memory_id FROM unindexed)"
        total, indexed, last, last_text, last_indexed, last_document, last_words = _one(
            connection,
            "SELECT (SELECT total(memories) FROM collections), "
            "(SELECT documents FROM corpus) + (SELECT count(*) FROM unindexed), "
            "(SELECT max(id) FROM memories), (SELECT max(memory_id) FROM texts), "
            f"(SELECT max(id) FROM memories WHERE id NOT IN {waiting}), "
            "(SELECT max(memory_id) FROM documents), (SELECT max(id) FROM keywords_docsize)",
        )
        if last != last_text:
            return "the newest memories and their texts differ", ""
        if total != indexed:
            return "", f"the keyword index knows {indexed} of {total:.0f} memories"
        if not last_indexed == last_document == last_words:
            return "", "the keyword index does not know the newest memories"
        for number in range(1, last or 0, max(1, (last or 0) // _GLANCES)):
            memory_id, has_text, is_indexed, has_vector = _one(connection, _GLANCE, number)
            if not has_text:
                return f"memory {memory_id} has no text", ""
            if not is_indexed:
                return "", f"an index does not know memory {memory_id}"
            if not has_vector:
                return "", f"memory {memory_id} has neither a vector nor waits for one"
    except apsw.SQLError:
        return "", ""  # a table is missing: whoever needs it finds out, and has it made anew
    except (apsw.CorruptError, UnicodeDecodeError) as error:
        return f"not all of it can be read ({' '.join(str(error).split())[:200]})", ""
    return "", ""


def _one(connection: apsw.Connection, query: str, *values: Any) -> Any:
    return connection.execute(query, values).get
