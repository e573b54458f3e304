# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Vectors for texts: the backends that make them, and the worker that keeps the store supplied."""
