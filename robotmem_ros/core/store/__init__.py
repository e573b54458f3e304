# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Storage in one SQLite file. Everything outside sees `Store` and `Snapshot` alone, and no SQL."""

from robotmem_ros.core.store.copies import EngineFailure, Wanted
from robotmem_ros.core.store.records import NewMemory
from robotmem_ros.core.store.sessions import Ending
from robotmem_ros.core.store.snapshot import Counts, Snapshot
from robotmem_ros.core.store.store import Store

__all__ = ["Counts", "Ending", "EngineFailure", "NewMemory", "Snapshot", "Store", "Wanted"]
