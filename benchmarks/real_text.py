# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure on real sentences what one bit a dimension loses against an exact search.

    python3 benchmarks/real_text.py --model-path DIR [--sentences N] [--json FILE]

The sentences are those of the documentation in the Python files of this machine: the standard
library and the installed packages, some tens of thousands. Each is embedded once with a real
model; some are kept back as queries. Vectors alone are searched, as words would hide a loss.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import hashlib
import json
import os
import pathlib
import re
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import synthetic

from robotmem_ros.core.config import Config
from robotmem_ros.core.embedding.factory import make_embedder
from robotmem_ros.core.filters import Conditions
from robotmem_ros.core.store import Store, Wanted, vectors

QUERIES = 200
DEPTHS = (10, 20)
RESCORED = (100, 200, 400, 800)

_SENTENCE = re.compile(r"[A-Z][^`<>{}=|]{28,298}[.!?]")


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model-path", default=os.environ.get("ROBOTMEM_MODEL_PATH", ""))
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--sentences", type=int, default=30_000)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    texts = sentences(options.sentences + QUERIES)
    stored, asked = texts[QUERIES:], texts[:QUERIES]
    print(f"{len(stored)} sentences, {len(asked)} queries, model {options.model}")
    config = Config(onnx_model=options.model, model_path=options.model_path)
    made = asyncio.run(embed(texts, config))
    with tempfile.TemporaryDirectory() as folder:
        store = fill(f"{folder}/real.db", stored, made[QUERIES:])
        results = measure(store, made[:QUERIES])
        store.close()
    print(f"{'rescored':>9}" + "".join(f"{f'recall@{k}':>12}" for k in DEPTHS) + f"{'p50 ms':>9}")
    for row in results:
        figures = "".join(f"{row[f'recall@{k}']:12.4f}" for k in DEPTHS)
        print(f"{row['rescored']:9}{figures}{row['p50_ms']:9.2f}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


def sentences(count: int) -> list[str]:
    """Return different sentences in an order that is the same on every machine that has them."""
    found = set()
    for folder in ("stdlib", "purelib"):
        for path in pathlib.Path(sysconfig.get_paths()[folder]).rglob("*.py"):
            found.update(_sentences_of(path))
    ordered = sorted(found, key=lambda text: hashlib.blake2b(text.encode()).digest())
    return ordered[:count]


def _sentences_of(path: pathlib.Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds):
            for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n\n", ast.get_docstring(node) or ""):
                text = " ".join(part.split())
                if _SENTENCE.fullmatch(text):
                    yield text


async def embed(texts: list[str], config: Config) -> synthetic.Vectors:
    """Return the vectors of texts, (n, dimension), made with a real model."""
    embedder = make_embedder(config)
    assert embedder is not None
    if not await embedder.check_availability():
        sys.exit(embedder.unavailable_reason)
    made: list[Any] = []
    start = time.perf_counter()
    for first in range(0, len(texts), 256):
        made += await embedder.embed_batch(texts[first : first + 256])
        rate = len(made) / (time.perf_counter() - start)
        print(f"\r{len(made)} embedded, {rate:.0f} a second", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    await embedder.close()
    return np.array(made, np.float32)


def fill(path: str, texts: list[str], made: synthetic.Vectors) -> Store:
    """Return a store that holds the texts with their vectors."""
    store = Store(path)
    store.use_model("real", made.shape[1])
    for first in range(0, len(texts), 1000):
        part = texts[first : first + 1000]
        numbers = store.add_many([synthetic.plain(text) for text in part])
        store.put_vectors(
            "real", list(zip(numbers, part, made[first : first + 1000], strict=True))
        )
    return store


def measure(store: Store, queries: synthetic.Vectors) -> list[dict[str, Any]]:
    """Return recall at some depths, and the time, by how many candidates are measured truly."""
    everything = Conditions()
    results = []
    with store.snapshot() as snapshot:
        eligible = snapshot.eligible(everything, Wanted(vectors=True))
        exact = [
            [number for number, _ in snapshot.by_vector(query, max(DEPTHS), eligible, exact=True)]
            for query in queries
        ]
        usual = vectors.RESCORED
        for rescored in RESCORED:
            vectors.RESCORED = rescored
            times, found = [], []
            for query in queries:
                start = time.perf_counter()
                answer = snapshot.by_vector(query, 10, eligible)
                times.append((time.perf_counter() - start) * 1e3)
                found.append([number for number, _ in answer])
            row = {"rescored": rescored, "p50_ms": statistics.median(times)}
            for depth in DEPTHS:
                answers = [
                    {n for n, _ in snapshot.by_vector(query, depth, eligible)} for query in queries
                ]
                row[f"recall@{depth}"] = statistics.mean(
                    len(answer & set(true[:depth])) / depth
                    for answer, true in zip(answers, exact, strict=True)
                )
            results.append(row)
        vectors.RESCORED = usual
    return results


if __name__ == "__main__":
    main()
