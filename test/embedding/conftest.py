# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Gives the tests of embedding the fixtures of backends.py."""

from backends import *  # noqa: F403
