# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What nobody in their right mind would send: texts, JSON, numbers and values of any type."""

from __future__ import annotations

import json
import math

from hypothesis import strategies as st

SURROGATE = "\ud800"
LARGE = 10_000_000

TEXTS = [
    *("", " ", "\n", "\t \u3000", "\x00", "a\x00b", "\x01\x1b[31m", "\ufeff", "\uffff", "\u202e"),
    *("a", "1", "*", "%", "?", "'", '"', "''", '""', "\\", ";", "--", "/*", "(", ")", "[", "{"),
    *("'; DROP TABLE memories; --", "x' OR '1'='1", "1; ATTACH 'x.db' AS y", "?1", ":a", "@a"),
    *("NEAR(a b, 5)", "content:cup", "{content entities}: x", "^a", "a*", "-a", "a AND NOT b"),
    *('"unclosed', "a OR", "AND", "OR OR", "NOT NOT a", "a + b", "a NEAR/2 b", "rank", "fts5()"),
    *("../../etc/passwd", "/etc/passwd", "file:x.db?mode=memory", "~/.ssh/id_rsa", "C:\\x", "|ls"),
    *("$(reboot)", "`reboot`", "%s%n%d", "{0}{x}", "<script>", "&amp;", "\r\nX: y", "__proto__"),
    *("__class__", "constructor", "a.b", "a[0]", "$eq", "$where", "null", "true", "NaN", "-0"),
    *("1e999", "9" * 400, "🤖" * 50, "e\u0301" * 100, "กำ", "机器人" * 20, "ﷺ" * 30, "\u200d" * 9),
]
"""Texts a Python caller may send; all but those with a surrogate or NUL go through DDS too."""

JSONS = [
    *("{}", "[]", "null", "1", '"a"', "{", "[1,", '{"a":}', "{'a': 1}", '{"a": 1,}', '{"a" 1}'),
    *('{"a": NaN}', '{"a": Infinity}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": -1e-999}'),
    *('{"a": 1, "a": 2}', '{"__proto__": {"x": 1}}', '{"a.b": 1, "a": {"b": 2}}', '{"": 1}'),
    *('{"a": "\\ud800"}', '{"\\ud800": 1}', '{"a": "\\u0000"}', '{"a": 18446744073709551616}'),
    '{"a": ' + "9" * 5000 + "}",
    '{"a": ' + "9" * 400 + ".5}",
    "[" * 10_000,
    "[" * 10_000 + "]" * 10_000,
    '{"a":' * 10_000 + "1" + "}" * 10_000,
    '{"a":' * 31 + "1" + "}" * 31,
    '{"a":' * 33 + "1" + "}" * 33,
    '{"a": {"$gt": {"$gt": 1}}}',
    '{"$and": [{"a": 1}]}',
    '{"a": {"$in": 5}}',
    '{"a": {"$exists": "yes"}}',
    '{"a": {"$eq": 1, "b": 2}}',
    '{"a..b": 1}',
    '{"a[": 1}',
    '{"a[99999999999999999999]": 1}',
    '{"robot": 5, "task": [], "spatial": "x", "env": null, "params": true}',
    '{"spatial": {"p": [1e308, -1e308, 1e-320]}}',
    '{"spatial": {"p": [' + "1," * 5000 + "1]}}",
    '{"field": "spatial.p", "target": [1, 2, 3], "max_distance": -1}',
    '{"field": "", "target": []}',
    '{"field": "a", "target": [1e999]}',
    '{"field": 5, "target": "x", "y": 1}',
]

NUMBERS = [
    *(0, -0.0, 1, -1, 0.5, 1.0000001, 1e308, -1e308, 5e-324, 2**31, 2**63 - 1, -(2**63)),
    *(math.nan, math.inf, -math.inf),
]

TOO_LARGE = [2**63, 2**64, -(2**64), 10**400]
"""Integers that no message can carry."""

texts = st.one_of(
    st.sampled_from(TEXTS),
    st.text(max_size=30),
    st.text(st.characters(exclude_categories=("Cs",))),
)
jsons = st.one_of(
    st.sampled_from(JSONS),
    st.sampled_from(TEXTS),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=8,
    ).map(json.dumps),
)
numbers = st.one_of(st.sampled_from(NUMBERS), st.integers(-(2**63), 2**63 - 1), st.floats())
anything = st.one_of(
    texts,
    jsons,
    numbers,
    st.sampled_from([*TOO_LARGE, SURROGATE, None, True, b"bytes", [], {}, (), [1, "a"], object()]),
    st.dictionaries(texts, numbers | texts, max_size=3),
    st.lists(numbers | texts, max_size=4),
)
"""Values of any type, for callers in Python."""
