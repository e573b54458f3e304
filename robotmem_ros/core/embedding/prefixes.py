# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a model wants to stand before a query and before a text to be found, as it was trained."""

from __future__ import annotations

import re
from typing import NamedTuple

AUTO = "auto"
"""As a setting: take what is known about the model."""


class Prefixes(NamedTuple):
    """Texts put in front of a query and of a stored text; may be empty."""

    query: str
    passage: str


_NONE = Prefixes("", "")
_SEARCH_EN = "Represent this sentence for searching relevant passages: "
_SEARCH_ZH = "为这个句子生成表示以用于检索相关文章："
_INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
)

# From the model cards; the first pattern found in the name counts.
_KNOWN: tuple[tuple[str, Prefixes], ...] = (
    (r"e5-.*instruct", Prefixes(_INSTRUCT + "Query: ", "")),
    (r"\be5-|-e5-", Prefixes("query: ", "passage: ")),
    (r"bge-m3|bge-.*reranker", _NONE),
    (r"bge-(small|base|large)-zh", Prefixes(_SEARCH_ZH, "")),
    (r"bge-(small|base|large)", Prefixes(_SEARCH_EN, "")),
    (r"nomic-embed-text", Prefixes("search_query: ", "search_document: ")),
    (r"mxbai-embed", Prefixes(_SEARCH_EN, "")),
    (r"snowflake-arctic-embed.*v2|snowflake-arctic-embed2", Prefixes("query: ", "")),
    (r"snowflake-arctic-embed", Prefixes(_SEARCH_EN, "")),
    (r"embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    (r"qwen3-embedding", Prefixes(_INSTRUCT + "Query:", "")),
)


def known(model: str) -> Prefixes:
    """Return the prefixes of a model by its name; none for one that is not known."""
    for pattern, prefixes in _KNOWN:
        if re.search(pattern, model.lower()):
            return prefixes
    return _NONE


def chosen(model: str, query: str, passage: str) -> Prefixes:
    """Return the prefixes that two settings ask for, each AUTO or the text itself."""
    default = known(model)
    return Prefixes(
        default.query if query == AUTO else query,
        default.passage if passage == AUTO else passage,
    )
