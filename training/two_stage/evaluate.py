"""Measures a package on a folder of data sets through the reference implementation (the shipped int8 graphs).

`python -m two_stage.evaluate --package FOLDER --sets FOLDER [--rows N] [--only a,b]`: a line a set, then the means, as JSON with `--out`.
"""

import argparse
import json
import random
from pathlib import Path

import numpy as np

from .metrics import measure
from .records import read_folder
from .reference import Package


def negation_pairs(path: Path) -> list[tuple[str, str, str, str]]:
    """(text, question, its negation, answer to the question) of `lists/negations.txt`."""
    pairs, text = [], ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            text = line[2:]
        elif line and not line.startswith("#"):
            question, negation, answer = line.split(" | ")
            pairs.append((text, question, negation, answer))
    return pairs


def negations(package: Package) -> dict[str, float]:
    """Share of pairs with opposite answers, and share of right answers to all questions."""
    opposite, right = [], []
    for text, question, negation, answer in negation_pairs(Path(__file__).parent / "lists" / "negations.txt"):
        first, second = (("yes", "no")[int(np.argmax(package.decide(text, q, ["yes", "no"]).probabilities))] for q in (question, negation))
        opposite.append(first != second)
        right += [first == answer, second != answer]
    return {"pairs": len(opposite), "opposite": float(np.mean(opposite)), "right": float(np.mean(right))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=0, help="at most this many a set (0: all)")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    package = Package(arguments.package)
    result = {}
    for name, rows in read_folder(arguments.sets, [n for n in arguments.only.split(",") if n] or None).items():
        if arguments.rows and len(rows) > arguments.rows:
            rows = random.Random(3).sample(rows, arguments.rows)
        answers = [package.decide(row.input, row.instruction, list(row.choices)).probabilities for row in rows]
        result[name] = measure(answers, [row.choices.index(row.label) for row in rows]) | {"rows": len(rows)}
        print(name, {k: round(v, 3) for k, v in result[name].items()}, flush=True)
    result["mean"] = {k: float(np.mean([m[k] for m in result.values()])) for k in ("accuracy", "ece", "brier", "wrong_and_sure")}
    result["negations"] = negations(package)
    print("mean", result["mean"], "negations", result["negations"])
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
