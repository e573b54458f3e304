# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Cut Chinese text into words with jieba's dictionary, which is loaded once, by whoever is first.

That takes most of a second and 60 MB: a robot that never meets a Chinese word has neither.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import jieba

FIRST, LAST = "\u3400", "\u9fff"
"""Among the Chinese characters that are words of a store's index, the first and the last."""

jieba.setLogLevel(logging.WARNING)  # it reports its start on stderr otherwise
_tokenizer = jieba.Tokenizer()
_loading = threading.Lock()


def load() -> None:
    """Load the dictionary, if nobody has yet."""
    # Not by jieba's own way: it would take what anybody has left in /tmp/jieba.cache.
    with _loading:
        if not _tokenizer.initialized:
            found = _tokenizer.gen_pfdict(_tokenizer.get_dict_file())
            _tokenizer.FREQ, _tokenizer.total = found
            _tokenizer.initialized = True


# Without the hidden Markov model throughout: it would join unknown characters by their
# surroundings, and the same word would be cut one way when stored, another when asked for.


def words(text: str) -> Iterator[str]:
    """Yield the words that make up a text."""
    load()
    yield from _tokenizer.cut(text, HMM=False)


def all_words(text: str) -> Iterator[str]:
    """Yield every word of the dictionary that stands in a text, also inside another."""
    load()
    yield from _tokenizer.cut(text, cut_all=True)


def search_words(text: str) -> Iterator[str]:
    """Yield the words that make up a text, and before each long one the words inside it."""
    load()
    yield from _tokenizer.cut_for_search(text, HMM=False)
