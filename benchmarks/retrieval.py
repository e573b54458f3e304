# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure how well recall ranks, on questions whose answers are known.

Reads retrieval/memories.jsonl and retrieval/questions.jsonl (see retrieval/README.md), stores the
memories with a real embedding model, asks every question in every way of ranking, and prints
hit@1, hit@5, recall@10 and MRR.

    python3 benchmarks/retrieval.py --model-path DIR [--model NAME] [--json FILE]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from robotmem_ros.core.config import Config
from robotmem_ros.core.memory import RobotMemory
from robotmem_ros.core.model import Experience, Fusion, Query

HERE = pathlib.Path(__file__).parent / "retrieval"
DEPTH = 10

WAYS: Mapping[str, Mapping[str, Any]] = {
    "bm25 alone": {"fusion": Fusion.WEIGHTED, "weighted_alpha": 0.0, "episode_spread": 0.0},
    "vector alone": {"fusion": Fusion.WEIGHTED, "weighted_alpha": 1.0, "episode_spread": 0.0},
    "rrf": {"fusion": Fusion.RRF},
    "adaptive": {"fusion": Fusion.ADAPTIVE},
    "weighted, no spread": {"fusion": Fusion.WEIGHTED, "episode_spread": 0.0},
    "weighted": {"fusion": Fusion.WEIGHTED},
}


@dataclasses.dataclass(slots=True)
class Tally:
    """Sums of the measures over some questions."""

    questions: int = 0
    hit1: float = 0.0
    hit5: float = 0.0
    recall10: float = 0.0
    mrr: float = 0.0

    def add(self, answers: Sequence[str], found: Sequence[str]) -> None:
        """Count one question: what would answer it, and what was returned, best first."""
        ranks = [rank for rank, name in enumerate(found) if name in answers]
        self.questions += 1
        self.hit1 += 0 in ranks
        self.hit5 += any(rank < 5 for rank in ranks)
        self.recall10 += len(ranks) / min(len(answers), DEPTH)
        self.mrr += 1.0 / (ranks[0] + 1) if ranks else 0.0

    def means(self) -> dict[str, float]:
        """Return the mean of each measure."""
        sums = dataclasses.asdict(self)
        count = sums.pop("questions")
        return {name: round(value / count, 3) for name, value in sums.items()}


def read_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def fill(memory: RobotMemory, lines: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Store the memories, one minute apart; return their names by number."""
    names = {}
    for minute, line in enumerate(lines):
        experience = Experience(
            line["text"],
            context=line.get("context", ""),
            session_id=line["episode"],
            stamp=(1_000_000 + 60 * minute) * 10**9,
        )
        names[memory.learn(experience).memory.id] = line["id"]
    while memory.status().pending_embeddings:
        time.sleep(0.1)
    return names


def ask(
    memory: RobotMemory, names: Mapping[int, str], questions: Iterable[Mapping[str, Any]], way: str
) -> dict[str, Tally]:
    """Ask all questions in one way; return the tallies by kind of question, and of all."""
    settings = dict(WAYS[way])
    fusion = settings.pop("fusion")
    memory.reconfigure(**settings)
    tallies = {"all": Tally()}
    for line in questions:
        result = memory.recall(Query(line["query"], n=DEPTH, min_confidence=0.0, fusion=fusion))
        found = [names[item.memory.id] for item in result.memories]
        for kind in ("all", line["kind"]):
            tallies.setdefault(kind, Tally()).add(line["answers"], found)
    return tallies


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model-path", default=os.environ.get("ROBOTMEM_MODEL_PATH", ""))
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    questions = read_lines(HERE / "questions.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        config = Config(
            db_path=f"{folder}/retrieval.db",
            onnx_model=options.model,
            model_path=options.model_path,
            embed_timeout=30.0,
            real_weight=1.0,  # only some of the memories say where they were made
        )
        with RobotMemory(config) as memory:
            names = fill(memory, read_lines(HERE / "memories.jsonl"))
            defaults = {
                name: getattr(config, name) for name in ("weighted_alpha", "episode_spread")
            }
            results = {}
            for way in WAYS:
                memory.reconfigure(**defaults)
                tallies = ask(memory, names, questions, way)
                results[way] = {kind: tally.means() for kind, tally in tallies.items()}
    print(f"{len(names)} memories, {len(questions)} questions, model {options.model}\n")
    print(f"{'way':22}  hit@1  hit@5  recall@10    MRR")
    for way, kinds in results.items():
        row = kinds["all"]
        print(
            f"{way:22}  {row['hit1']:.3f}  {row['hit5']:.3f}      {row['recall10']:.3f}"
            f"  {row['mrr']:.3f}"
        )
    kinds = [kind for kind in next(iter(results.values())) if kind != "all"]
    print(f"\n{'MRR by kind':22}  " + "  ".join(f"{kind:>10}" for kind in kinds))
    for way, row in results.items():
        print(f"{way:22}  " + "  ".join(f"{row[kind]['mrr']:10.3f}" for kind in kinds))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
