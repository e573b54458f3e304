# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Message types of the packages installed here, found by their names when they are asked for."""

from __future__ import annotations

import difflib
import functools
import importlib
import re
from collections.abc import Mapping
from typing import Any

from robotmem_ros.fields import CONSTANT

_NAME = re.compile(r"([A-Za-z]\w*)/(?:msg/)?([A-Za-z]\w*)", re.ASCII)


@functools.cache
def message_class(name: str) -> Any:
    """Return the class of a message type, named pkg/msg/Type or pkg/Type.

    Raises
    ------
    LookupError: there is no such type here; the text says why.
    """
    match = _NAME.fullmatch(name)
    if not match:
        raise LookupError("it is not the name of a message type, like nav_msgs/msg/Odometry")
    package, kind = match.groups()
    try:
        module = importlib.import_module(f"{package}.msg")
    except ModuleNotFoundError as error:
        if error.name not in (package, f"{package}.msg"):
            raise LookupError(f"the package {package} cannot be loaded: {error}") from error
        raise LookupError(
            f"there is no package {package} with messages here; install it and source its setup"
        ) from None
    except Exception as error:  # a library it needs is missing or of another version
        raise LookupError(f"the package {package} cannot be loaded: {error}") from error
    found = getattr(module, kind, None)
    if not hasattr(found, "get_fields_and_field_types"):
        types = [name for name in dir(module) if name[0].isupper()]
        close = difflib.get_close_matches(kind, types, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise LookupError(f"the package {package} has no message {kind}{hint}")
    return found


def describe(name: str) -> Mapping[str, str]:
    """Return the fields and constants of a message type, as fields.Describe says.

    Raises
    ------
    LookupError: as message_class.
    """
    kind = message_class(name)
    constants = {
        name: CONSTANT
        for name in dir(kind)
        if name.isupper()
        and not name.startswith("_")
        and isinstance(getattr(kind, name), (bool, int, float, str, bytes))
    }
    return {**constants, **kind.get_fields_and_field_types()}
