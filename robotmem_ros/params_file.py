# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Read the node's parameters from its YAML file with no ROS: the same names, the same checks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from robotmem_ros.captured import source_settings
from robotmem_ros.core.config import STRINGS, Config, Setting
from robotmem_ros.core.errors import ConfigError
from robotmem_ros.node_config import CORE, EDGE, TABLE, NodeConfig

NODES = ("/**", "/*", "robotmem", "/robotmem", "/**/robotmem")
"""Names under which a YAML file holds parameters of our node, in the order of their weight."""

_FOREIGN = ("use_sim_time", "qos_overrides.")


@dataclass(frozen=True, slots=True)
class Parameters:
    """Checked parameters.

    Attributes
    ----------
    config: settings of the core.
    node: settings of the node.
    given: every parameter that was given, by name.
    """

    config: Config
    node: NodeConfig
    given: Mapping[str, Any]

    def value_of(self, item: Setting) -> Any:
        """Return the checked value of a setting, its default if it was not given.

        Raises
        ------
        ConfigError: the value is not allowed.
        """
        return _value(self.given, item)

    def unknown(self) -> list[str]:
        """Return one sentence for each parameter that was given but that the node has not."""
        sources = (source_settings(name) for name in self.node.context_sources)
        known = {item.name for item in TABLE} | {item.name for one in sources for item in one}
        sentences = []
        for name in sorted(set(self.given) - known):
            if name.startswith(_FOREIGN):
                continue
            sentence = f"parameter {name} is not known and has no effect"
            close = difflib.get_close_matches(name, known, n=1)
            sentences.append(f"{sentence}; did you mean {close[0]}?" if close else sentence)
        return sentences


def read(file: Path | None, assignments: Iterable[str], **defaults: Any) -> Parameters:
    """Return the parameters of a YAML file, changed by assignments like name=value.

    Parameters
    ----------
    defaults: values that hold unless an assignment says otherwise.

    Raises
    ------
    ConfigError: the file cannot be read, or a value is not allowed.
    """
    given = _read_file(file) if file else {}
    given.update(defaults)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"{assignment!r} sets nothing; write name=value")
        try:
            given[name.strip()] = yaml.safe_load(text)
        except yaml.YAMLError:
            given[name.strip()] = text
    config = Config(**{item.name: _value(given, item) for item in CORE})
    node = NodeConfig(**{item.name: _value(given, item) for item in EDGE})
    return Parameters(config, node, given)


def _value(given: Mapping[str, Any], item: Setting) -> Any:
    value = given.get(item.name, item.default)
    if value is None and item.type == STRINGS:
        value = ()
    return item.check(value)


def _read_file(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{file}: is not valid YAML: {reason}") from None
    found: dict[str, Any] = {}
    sections = content if isinstance(content, dict) else {}
    for node in NODES:
        section = sections.get(node)
        parameters = section.get("ros__parameters") if isinstance(section, dict) else None
        if isinstance(parameters, dict):
            found.update(_flat(parameters))
    if not found:
        raise ConfigError(f"{file}: holds no ros__parameters under {NODES[0]} or robotmem")
    return found


def _flat(parameters: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield parameters by their names; nested ones are joined by dots, as ROS does."""
    for key, value in parameters.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
