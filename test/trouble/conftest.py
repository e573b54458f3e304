# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of trouble, which need no ROS."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from forking import Learners


@pytest.fixture
def fast_folder() -> Iterator[Path]:
    """A folder in memory where there is one: what its files lose is made by the tests."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def learners() -> Iterator[Learners]:
    """The program that forks processes full of learners."""
    started = Learners()
    yield started
    started.close()
