# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""One running node for those tests of a module that need none of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness import Caller, Robot


@pytest.fixture(scope="module")
def robot(caller: Caller, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Robot]:
    """Return the services of a running node that the tests of one module share."""
    from harness import NodeProcess, Robot

    process = NodeProcess(tmp_path_factory.mktemp("robot"))
    yield Robot(caller, process.name).wait_ready()
    process.end()
