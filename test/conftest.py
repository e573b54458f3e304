# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Run a test of several processes again if it failed.

On a machine that is busy with something else DDS may take longer to bring two processes together
than a test waits, or drop what is said before it has. What fails three times in a row is broken.
"""

from __future__ import annotations

from pathlib import Path

import pytest

PROCESSES = ("capture", "embedding", "node")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in the folders that start processes."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).parts[0] in PROCESSES:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=1))
