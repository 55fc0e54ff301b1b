"""Reads the labelled decisions that models are fitted and measured on.

A data folder holds `train/<set>.jsonl.gz` and `eval/<set>.jsonl.gz`. The first line of a file is
{"meta": {"labels": [...] | null, ...}}, each other line {"input", "instruction", "choices", "label"}, where
`choices: null` stands for the set's own labels.
"""

import gzip
import json
import random
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Decision:
    """One labelled decision; `label` is one of `choices`."""

    input: str
    instruction: str
    choices: tuple[str, ...]
    label: str


def set_names(data: Path, role: str) -> list[str]:
    """The sets of one role, `train` or `eval`, in order of name."""
    return sorted(path.name.removesuffix(".jsonl.gz") for path in (data / role).glob("*.jsonl.gz"))


def read_set(data: Path, role: str, name: str, rows: int | None = None) -> list[Decision]:
    """A set's decisions; with `rows`, a sample of at most so many that depends on the set's name alone."""
    with gzip.open(data / role / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        labels = json.loads(next(lines))["meta"]["labels"]
        records = [json.loads(line) for line in lines]
    if rows is not None and rows < len(records):
        records = random.Random(name).sample(records, rows)
    return [Decision(r["input"], r["instruction"], tuple(r["choices"] or labels), r["label"]) for r in records]
