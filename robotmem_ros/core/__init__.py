# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The memory itself: storage, search and embedding. Nothing below this line imports ROS."""
