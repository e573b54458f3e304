# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Reading ROS 2 bags of both formats with no ROS: whole, cut off or damaged."""

from robotmem_ros.bags.bag import Bag
from robotmem_ros.bags.files import BagError, Record, Topic

__all__ = ["Bag", "BagError", "Record", "Topic"]
