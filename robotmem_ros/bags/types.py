# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Turn the bytes of a bag's messages into objects, with no ROS installed.

Where a bag brings the definition of a type, that one is used. Older bags bring none: then it is
the definition of the ROS 2 distribution that recorded them, or that of an interface package of
this machine (a sourced ROS 2 workspace; ours are always found).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rosbags.interfaces import Nodetype
from rosbags.typesys import (
    Stores,
    get_types_from_idl,
    get_types_from_msg,
    get_typestore,
)

from robotmem_ros.bags.files import BagError, Topic
from robotmem_ros.fields import CONSTANT

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

Decoder = Callable[[bytes], Any]
"""Makes a message object of its bytes; raises ValueError if they are no such message."""

_IDL_SEPARATOR = "=" * 80 + "\n"
_ROS_NAMES = {
    "float64": "double",
    "float32": "float",
    "bool": "boolean",
    "byte": "octet",
    "char": "uint8",
}


class Types:
    """The message types of one bag.

    Parameters
    ----------
    distro: the ROS 2 distribution that recorded it, as far as the bag tells.
    topics: the topics of the bag by their names; may still grow.
    """

    def __init__(self, distro: str = "", topics: Mapping[str, Topic] | None = None) -> None:
        self._topics = {} if topics is None else topics
        name = f"ros2_{distro.strip().lower()}"
        known = {store.value: store for store in Stores}
        self._distro = known.get(name, Stores.LATEST)
        self._stores: dict[Topic, Typestore] = {}

    def decoder(self, topic: Topic) -> Decoder:
        """Return what makes message objects of a topic's messages.

        Raises
        ------
        BagError: its type is not known, or its definition cannot be read.
        """
        if topic.encoding != "cdr":
            raise BagError(f"topic {topic.name}: is serialised as {topic.encoding!r}, not as cdr")
        return partial(_decode, self._store(topic), topic.type)

    def describe(self, type_name: str) -> Mapping[str, str]:
        """Return the fields and constants of a message type, as fields.Describe says.

        Raises
        ------
        LookupError: the type is not known.
        """
        parts = type_name.split("/")
        if len(parts) not in (2, 3) or not all(parts):
            raise LookupError("it is not the name of a message type, like nav_msgs/msg/Odometry")
        name = f"{parts[0]}/msg/{parts[-1]}"
        topics = sorted(self._topics.values(), key=lambda topic: topic.type != name)
        for topic in (*topics, Topic("", name)):
            try:
                store = self._store(topic)
            except BagError:
                continue
            if name in store.fielddefs:
                constants, fields = store.fielddefs[name]
                return {
                    **{constant: CONSTANT for constant, _, _ in constants},
                    **{field: _type_text(kind) for field, kind in fields},
                }
        raise LookupError("neither the bag nor ROS 2 defines it; source the workspace that does")

    def _store(self, topic: Topic) -> Typestore:
        if topic not in self._stores:
            self._stores[topic] = self._new_store(topic)
        return self._stores[topic]

    def _new_store(self, topic: Topic) -> Typestore:
        try:
            store = self._find(topic)
            store.get_msgdef(topic.type)  # a nested type that is missing is noticed here
        except BagError:
            raise
        except Exception as error:
            # The parsers raise whatever a strange definition leads them to, and quote all of it.
            reason = (f"{error}".strip().splitlines() or [""])[-1]
            raise BagError(
                f"topic {topic.name}: the definition of its type {topic.type} cannot be used: "
                f"{type(error).__name__} {reason}"
            ) from None
        return store

    def _find(self, topic: Topic) -> Typestore:
        if topic.definition:
            store = get_typestore(Stores.EMPTY)
            store.register(_parse(topic))
            return store
        store = get_typestore(self._distro)
        if topic.type not in store.fielddefs:
            found = dict(_installed(topic.type, set(store.fielddefs)))
            if topic.type not in found:
                raise BagError(
                    f"topic {topic.name}: its type {topic.type} is not known: neither the bag nor "
                    "ROS 2 defines it; source the workspace that does, and try again"
                )
            store.register(found)
        return store


def _type_text(kind: tuple[Nodetype, Any]) -> str:
    """Return a type as ROS writes it: double[36], sequence<std_msgs/Header>."""
    node, detail = kind
    if node == Nodetype.BASE:
        name, bound = detail
        name = _ROS_NAMES.get(name, name)
        return f"{name}<{bound}>" if bound else name
    if node == Nodetype.NAME:
        return str(detail).replace("/msg/", "/")
    inner, size = _type_text(detail[0]), detail[1]
    if node == Nodetype.ARRAY:
        return f"{inner}[{size}]"
    return f"sequence<{inner}, {size}>" if size else f"sequence<{inner}>"


def _parse(topic: Topic) -> dict[str, Any]:
    text = topic.definition
    if topic.definition_format != "ros2idl" and not text.startswith(_IDL_SEPARATOR):
        return dict(get_types_from_msg(text, topic.type))
    found: dict[str, Any] = {}
    for part in text.split(_IDL_SEPARATOR):
        body = part.split("\n", 1)[1] if part.startswith("IDL: ") else part
        if body.strip():
            found.update(get_types_from_idl(body))
    return found


def _decode(store: Typestore, type_name: str, data: bytes) -> Any:
    try:
        return store.deserialize_cdr(data, type_name)
    except Exception as error:
        # Damaged bytes can raise anything from deep inside the generated code.
        raise ValueError(f"{type(error).__name__} {error}") from None


def _installed(type_name: str, known: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield the definitions of a type, and of those in it, from this machine's .msg files."""
    waiting = [type_name]
    while waiting:
        name = waiting.pop()
        text = _definition(name)
        if name in known or text is None:
            continue
        known.add(name)
        yield from get_types_from_msg(text, name).items()
        package = name.split("/")[0]
        for word in re.findall(r"^\s*([A-Za-z][\w/]*)", text, re.MULTILINE):
            if word[0].isupper():
                waiting.append(
                    "std_msgs/msg/Header" if word == "Header" else f"{package}/msg/{word}"
                )
            elif word.count("/") == 1:
                waiting.append(word.replace("/", "/msg/"))


def _definition(type_name: str) -> str | None:
    """Return the text of the .msg file of a type, if this machine has it."""
    package, _, name = type_name.partition("/msg/")
    if not re.fullmatch(r"\w+", package) or not re.fullmatch(r"\w+", name):
        return None
    shares = [Path(folder) for folder in os.environ.get("AMENT_PREFIX_PATH", "").split(":")]
    parents = list(Path(__file__).resolve().parents)
    files = [folder / "share" / package / "msg" / f"{name}.msg" for folder in (*shares, *parents)]
    if package == "robotmem_ros":
        files += [folder / "msg" / f"{name}.msg" for folder in parents[2:3]]  # a checkout
    for file in files:
        try:
            return file.read_text()
        except OSError:
            continue
    return None
