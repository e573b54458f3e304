# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Cut text of any language into the words by which memories are stored and found.

Stored text and query go through the same folding, cutting and stemming. Where a script is written
without spaces, stored text yields more words than a query does, so that a word is found wherever
it stands inside a longer one:

- Chinese characters are cut by jieba: every dictionary word and every single character of stored
  text, the words of its search mode for a query.
- Kana, Hangul, Thai, Lao, Khmer and Burmese yield single characters and pairs of neighbours when
  stored, pairs in a query (a single character where it stands alone).
- A code such as "dock-3", "PN-40117-B", "grip_force" or "12.5N" yields its parts and the whole,
  and so is found by either.
"""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator

import snowballstemmer

from robotmem_ros.core import chinese

MAX_QUERY_TERMS = 64
"""Distinct words of a query that are looked up; further ones are not."""

_Cutter = Callable[[str], Iterator[str]]

_MAX_TOKEN = 64
_MAX_COMPOUND_PARTS = 6

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f々〆〇"
_HIRAGANA = "\u3041-\u309f"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HANGUL = "\uac00-\ud7af\u1100-\u11ff\u3131-\u318e"
_SPACELESS = "\u0e01-\u0e4e\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_NGRAM = _HIRAGANA + _KATAKANA + _HANGUL + _SPACELESS
_EMOJI = (  # and signs, such as those of currencies and of mathematics
    "\U0001f000-\U0001faff\u2190-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u00a7\u00a9\u00ae\u20a0-\u20cf\u3030\u303d"
)
_UNDECOMPOSED = str.maketrans(
    {"ł": "l", "đ": "d", "ø": "o", "ħ": "h", "ı": "i", "ð": "d", "æ": "ae", "œ": "oe", "þ": "th"}
)
_MARKS = re.compile("(?<=[a-z])[\u0300-\u036f]+")

_PIECE = re.compile(
    rf"(?P<han>[{_HAN}]+)"
    # Hiragana ends where katakana begins: the particle が is no part of the word ロボット.
    rf"|(?P<ngram>[{_HIRAGANA}]+|[{_KATAKANA}]+|[{_HANGUL}]+|[{_SPACELESS}]+)"
    rf"|(?P<emoji>[{_EMOJI}])"
    r"|(?P<number>\d+(?:[.,]\d+)*)"
    rf"|(?P<word>(?:(?![{_HAN}{_NGRAM}])[^\W\d_])+(?:['’](?:(?![{_HAN}{_NGRAM}])[^\W\d_])+)*)"
)
_JOINER = re.compile(r"[-_./+]?\Z")

_FUNCTION_WORDS = """
    a an the this that these those there here it its i me my we us our you your he him his she her
    they them their is am are was were be been being do does did done doing have has had having
    will would shall should can could may might must of to in on at by for from with about into
    onto as and or but if then than so because what which who whom whose when where why how whats
    please tell show any some all
    的 了 吗 呢 吧 啊 呀 嘛 是 在 和 与 及 或 也 都 就 还 又 被 把 给 对 从 向 往 于 而 之 其
    这 那 哪 谁 我 你 您 他 她 它 我们 你们 他们 她们 它们 咱们 什么 怎么 怎样 怎么样 如何 为什么
    为何 哪里 哪儿 哪个 哪些 多少 几 这个 那个 这些 那些 这里 那里 请 请问 一下 会 能 可以 应该 要
    想 有 着 过 地 得 时候
    は が を に で と も の へ か や ね よ です ます する した して から まで
    은 는 이 가 을 를 에 의 도 로 와 과
"""
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())

_stemmer = snowballstemmer.stemmer("english")
_stemmer_lock = threading.Lock()  # the stemmer keeps the word it works on in itself


def fold(text: str) -> str:
    """Return text in the form in which it is compared.

    Compatibility forms (NFKC), case, and accents of Latin letters are folded; kana, Hangul,
    Cyrillic and Greek keep their marks.
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    if text.isascii():
        return text
    folded = []
    for char in unicodedata.normalize("NFKC", text):
        base = unicodedata.normalize("NFD", char)[0]
        folded.append(base if base.isascii() else char)
    return _MARKS.sub("", "".join(folded)).translate(_UNDECOMPOSED)


def index_tokens(text: str) -> list[str]:
    """Return the words under which stored text is found, in order, repetitions included."""
    return list(_tokens(text, _index_han, _index_ngrams))


def query_terms(text: str, most: int = MAX_QUERY_TERMS) -> list[str]:
    """Return the distinct words a query looks for, so many at most, in order.

    Function words ("what", "the", 的, 吗) and single letters are dropped; when nothing else is
    left, the function words stay. Empty when the text holds no word at all.
    """
    terms = [
        token
        for token in dict.fromkeys(_tokens(text, _query_han, _query_ngrams))
        if not (len(token) == 1 and token.isascii() and token.isalpha())
    ]
    content = [term for term in terms if term not in _STOP_STEMS]
    return (content or terms)[:most]


def _tokens(text: str, han: _Cutter, ngrams: _Cutter) -> Iterator[str]:
    folded = fold(text)
    compound: list[str] = []
    end = -1
    for match in _PIECE.finditer(folded):
        piece, kind = match.group(), match.lastgroup
        if kind in ("word", "number"):
            raw = _number(piece) if kind == "number" else re.sub("['’]", "", piece)
            joined = end >= 0 and _JOINER.match(folded, end, match.start()) is not None
            if not joined:
                yield from _compound(compound)
                compound = []
            compound.append(raw)
            end = match.end()
            yield (_stem(raw) if kind == "word" else raw)[:_MAX_TOKEN]
            continue
        yield from _compound(compound)
        compound, end = [], -1
        if kind == "han":
            yield from han(piece)
        elif kind == "ngram":
            yield from ngrams(piece)
        else:
            yield piece
    yield from _compound(compound)


def _compound(parts: list[str]) -> Iterable[str]:
    """Return the one word that stands for all parts of a code, if it has several."""
    if 2 <= len(parts) <= _MAX_COMPOUND_PARTS:
        return ("-".join(parts)[:_MAX_TOKEN],)
    return ()


def _number(digits: str) -> str:
    """Return a number in one spelling: 1,000 is 1000, 12,5 and 12.50 are 12.5."""
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", digits):
        digits = digits.replace(",", "")
    digits = digits.replace(",", ".")
    if digits.count(".") == 1:
        digits = digits.rstrip("0").rstrip(".")
    return digits


@functools.lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    if not word.isascii():
        return word
    with _stemmer_lock:
        return str(_stemmer.stemWord(word))


def _index_han(run: str) -> Iterator[str]:
    yield from run
    for word in chinese.all_words(run):
        if len(word) > 1:
            yield word


def _query_han(run: str) -> Iterator[str]:
    yield from chinese.search_words(run)


def _index_ngrams(run: str) -> Iterator[str]:
    yield from run
    for i in range(len(run) - 1):
        yield run[i : i + 2]


def _query_ngrams(run: str) -> Iterator[str]:
    if len(run) == 1 or run in _STOP_WORDS:
        yield run
    for i in range(len(run) - 1):
        yield run[i : i + 2]


_STOP_STEMS = _STOP_WORDS | {_stem(word) for word in _STOP_WORDS}
