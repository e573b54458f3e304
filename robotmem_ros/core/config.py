# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Every setting of the core: its type, default, meaning and what is allowed, in one place.

A setting is a field of `Config`. The same declaration feeds the check made here, the parameters
of the node, the comments of its YAML file and the table in the README.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from dataclasses import dataclass
from typing import Any, cast

from robotmem_ros.core.checks import MAX_NAME
from robotmem_ros.core.errors import ConfigError
from robotmem_ros.core.model import Fusion

STRINGS = tuple[str, ...]
"""Type of a setting that is a list of texts."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known about one setting.

    Attributes
    ----------
    name: as it is written in YAML and on the command line.
    type: bool, int, float, str or STRINGS.
    default: its value when nobody sets it.
    description: one or two sentences, with the unit.
    low, high: least and greatest value allowed, for numbers.
    choices: all values allowed, for text.
    read_only: whether it can change only by a restart.
    """

    name: str
    type: Any
    default: bool | int | float | str | tuple[str, ...]
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = True

    @property
    def allowed(self) -> str:
        """What values are allowed, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        kind = {
            bool: "true or false",
            int: "an integer",
            float: "a number",
            str: "text",
            STRINGS: "a list of texts",
        }[self.type]
        if self.low is not None and self.high is not None:
            return f"{kind} from {self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"{kind} of at least {self.low:g}"
        return kind

    def check(self, value: object) -> Any:
        """Return the value in the setting's own type.

        Raises
        ------
        ConfigError: the value is of another type or not allowed.
        """
        if self.type == STRINGS:
            if isinstance(value, (list, tuple)) and all(type(text) is str for text in value):
                return tuple(value)
            raise ConfigError(self.refusal(value))
        if self.type is float and type(value) is int:
            value = float(value)
        if type(value) is not self.type:
            raise ConfigError(self.refusal(value))
        if isinstance(value, (int, float)) and self.type is not bool:
            too_low = self.low is not None and value < self.low
            too_high = self.high is not None and value > self.high
            if math.isnan(value) or too_low or too_high:
                raise ConfigError(self.refusal(value))
        if self.choices and value not in self.choices:
            raise ConfigError(self.refusal(value))
        return value

    def refusal(self, value: object) -> str:
        """Return the one line that names the setting, the value and what is allowed."""
        return f"parameter {self.name}: {value!r} is not allowed; it must be {self.allowed}"


def setting(
    default: Any,
    description: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    read_only: bool = True,
) -> Any:
    """Declare a field of a settings class."""
    return dataclasses.field(
        default=default,
        metadata={
            "description": description,
            "low": low,
            "high": high,
            "choices": choices,
            "read_only": read_only,
        },
    )


def settings_of(cls: type) -> tuple[Setting, ...]:
    """Return the settings that a settings class declares, in its order."""
    types = typing.get_type_hints(cls)
    return tuple(
        Setting(f.name, types[f.name], cast(Any, f.default), **f.metadata)
        for f in dataclasses.fields(cls)
    )


@dataclass(frozen=True)
class Config:
    """Settings of a memory store and of its search.

    Raises
    ------
    ConfigError: a value is of the wrong type or not allowed.
    """

    db_path: str = setting(
        "~/.ros/robotmem.db",
        "The SQLite file that holds the memories; made, with its folder, if it is not there.",
    )
    backup_directory: str = setting(
        "",
        "Folder where ~/backup puts its copies of the database; made if it is not there. Empty "
        "means the folder of the database. No two databases of one name may share it.",
    )
    backup_keep: int = setting(
        7,
        "How many copies ~/backup keeps there: when there are more, the oldest go. 0 keeps all.",
        low=0,
        high=100_000,
    )
    durability: str = setting(
        "full",
        "When a change counts as stored: full waits until the disk has it, so that what was "
        "answered survives a loss of power; normal leaves that to the system, so that a learn "
        "takes less time and the disk wears less, and a loss of power takes the answers of the "
        "last seconds or minutes, never more than that. Neither loses anything when the process "
        "is killed.",
        choices=("full", "normal"),
    )
    collection: str = setting(
        "default", "Collection used where a request names none. Must not be empty."
    )
    embed_backend: str = setting(
        "onnx",
        "Where vectors come from: onnx (on this computer's CPU), ollama (a server, see embed_api) "
        "or none (search by keywords alone).",
        choices=("onnx", "ollama", "none"),
    )
    onnx_model: str = setting(
        "BAAI/bge-small-en-v1.5",
        "Model of the onnx backend, by its fastembed name. With model_path it need be set only "
        "where the files do not tell which model they are.",
    )
    onnx_dim: int = setting(384, "Length of that model's vectors.", low=1, high=8192)
    onnx_threads: int = setting(
        2,
        "CPU threads the onnx backend may use; a memory must not take the robot's cores.",
        low=1,
        high=64,
    )
    model_path: str = setting(
        "",
        "Local directory with the model's files (model.onnx, tokenizer.json, config.json ...), "
        "or the .onnx file in it, loaded without any network. Empty takes the model from the hub.",
    )
    fastembed_cache_dir: str = setting(
        "",
        "Where downloaded models are kept; empty means fastembed's own cache, which is in /tmp "
        "unless the environment variable FASTEMBED_CACHE_PATH is set.",
    )
    embed_api: str = setting(
        "ollama",
        "API of the server of backend ollama: ollama (/api/embed) or openai_compat "
        "(/v1/embeddings, which many servers offer).",
        choices=("ollama", "openai_compat"),
    )
    ollama_url: str = setting(
        "http://localhost:11434",
        "Address of that server, http or https, without user and password.",
    )
    ollama_model: str = setting("nomic-embed-text", "Model of that server, by its name there.")
    ollama_dim: int = setting(768, "Length of that model's vectors.", low=1, high=8192)
    embed_api_key_env: str = setting(
        "",
        "Name of the environment variable, in capital letters, that holds the API key for that "
        "server; empty sends no key. The key itself never stands in a parameter.",
    )
    embed_query_prefix: str = setting(
        "auto",
        "What the model wants before a query; auto takes what is known about it (e5, bge, nomic "
        "and others), empty puts nothing there.",
    )
    embed_passage_prefix: str = setting(
        "auto",
        "What the model wants before a stored text, like embed_query_prefix. A change embeds "
        "everything anew.",
    )
    embed_timeout: float = setting(
        2.0,
        "Seconds a recall waits for the vector of its query before it answers by keywords alone.",
        low=0.0,
        high=60.0,
    )
    fusion: str = setting(
        Fusion.WEIGHTED.value,
        "How keyword and vector ranks become one score: rrf (the classic), adaptive or weighted.",
        choices=tuple(f.value for f in Fusion),
        read_only=False,
    )
    rrf_k: int = setting(
        60, "Constant k of reciprocal rank fusion.", low=1, high=100000, read_only=False
    )
    semantic_threshold: float = setting(
        0.1,
        "Fusion adaptive: candidates of a lower cosine similarity are dropped.",
        low=0.0,
        high=1.0,
        read_only=False,
    )
    weighted_alpha: float = setting(
        0.55,
        "Fusion weighted: share of the vector score; the rest is the keyword score.",
        low=0.0,
        high=1.0,
        read_only=False,
    )
    episode_spread: float = setting(
        0.3,
        "Fusion weighted: share of its score that a memory passes on to the next one of the same "
        "episode; what happened next is part of the answer.",
        low=0.0,
        high=1.0,
        read_only=False,
    )
    real_weight: float = setting(
        1.5,
        'Factor on the score of memories whose context says env.sim_or_real == "real".',
        low=0.0,
        high=100.0,
        read_only=False,
    )
    exact: bool = setting(
        False,
        "Rank by all vectors and all words in stores of more than 20,000 memories too, which "
        "takes a second at a million. False finds nearly all the same.",
        read_only=False,
    )
    decay_rate: float = setting(
        0.01,
        "Share of its confidence that a memory loses per day in which nobody recalls it.",
        low=0.0,
        high=0.999,
        read_only=False,
    )
    max_content_bytes: int = setting(
        100_000, "Longest text of a memory or query, in bytes of UTF-8.", low=100, high=10_000_000
    )
    max_context_bytes: int = setting(
        1_000_000,
        "Longest context or filter of a request, in bytes of UTF-8.",
        low=100,
        high=100_000_000,
    )
    max_results: int = setting(
        100, "Most memories one recall returns; a greater n is held to it.", low=1, high=10_000
    )
    max_get: int = setting(
        1000, "Most memories that can be asked for by number or uuid at once.", low=1, high=100_000
    )
    max_context_depth: int = setting(
        32, "Deepest nesting of objects and arrays in a context or filter.", low=1, high=200
    )

    def __post_init__(self) -> None:
        for item in settings_of(Config):
            object.__setattr__(self, item.name, item.check(getattr(self, item.name)))
        if (
            not self.collection.strip()
            or self.collection == "*"
            or len(self.collection.encode("utf-8", "replace")) > MAX_NAME
        ):
            raise ConfigError(
                f"parameter collection: {self.collection!r} is not allowed; it must be a name "
                f"that is not empty and not *, of at most {MAX_NAME} bytes"
            )
        if not self.db_path.strip():
            raise ConfigError(
                f"parameter db_path: {self.db_path!r} is not allowed; it must be a file's path"
            )
