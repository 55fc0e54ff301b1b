"""Measures a package on a folder of data sets through the reference implementation (the shipped int8 graphs).

`python -m two_stage.evaluate --package FOLDER --sets FOLDER [--rows N] [--only a,b]`: a line a set, then the means, as
JSON with `--out`. Beside the package's own accuracy stand those of each stage alone (`a`, `b`: B decides among the 32
choices that A finds best). With `--train FOLDER` (data/train) it also hides texts of held-out sets in filler
(`--hidden-in` tokens) and asks for them. With `--fp32 WORK`, after `golden` has written the fp32 graphs of that work
folder, the same rule over these decides as well: `fp32` is its accuracy, `same` the share of rows answered alike; with
`--fp32` alone it decides over the package's own weights, multiplied in fp32.
"""

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .held_out import held_out
from .metrics import measure
from .needles import HIDDEN_ROWS, HIDDEN_SETS, fillers, hide
from .records import Decision, read_folder
from .reference import Package, in_fp32
from .windows import join

# Of `--fp32`: the package's own weights.
OWN = Path("own")


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
        first, second = (
            ("yes", "no")[int(np.argmax(package.decide(text, q, ["yes", "no"]).probabilities))]
            for q in (question, negation)
        )
        opposite.append(first != second)
        right += [first == answer, second != answer]
    return {"pairs": len(opposite), "opposite": float(np.mean(opposite)), "right": float(np.mean(right))}


def decide(package: Package, row: Decision) -> tuple[np.ndarray, int, int]:
    """P in the order asked, and the choices that either stage alone would take."""
    parts = package.parts(row.input, row.instruction, list(row.choices))
    probabilities = np.empty(len(row.choices))
    probabilities[parts.order] = join(parts.scored, parts.relevance, package.stack, package.kappa)
    a, b = np.max([s.a for s in parts.scored], 0), np.sum([s.b for s in parts.scored], 0)
    return probabilities, parts.order[int(a.argmax())], parts.order[int(parts.scored[0].best[int(b.argmax())])]


def hidden(package: Package, train: Path, tokens: int) -> dict[str, float]:
    """Accuracy of held-out texts alone, and hidden in `tokens` tokens of filler."""
    sets = read_folder(train)
    rows = [row for name in HIDDEN_SETS for row in random.Random(23).sample(held_out(sets, 60, 41)[name], HIDDEN_ROWS)]

    def right(rows: Sequence[Decision]) -> float:
        answers = [package.decide(row.input, row.instruction, list(row.choices)).probabilities for row in rows]
        return float(np.mean([r.choices[int(np.argmax(p))] == r.label for r, p in zip(rows, answers, strict=True)]))

    alone = right(rows)
    found = [right(hide(rows, filler, package.reader, tokens, 29)) for filler in fillers(sets)]
    return {
        "rows": len(rows),
        "tokens": tokens,
        "alone": alone,
        "hidden": found,
        "kept": [accuracy / alone for accuracy in found],
    }


def main() -> None:
    """Measures what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=0, help="at most this many a set (0: all)")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--train", type=Path)
    parser.add_argument("--hidden-in", type=int, default=3900)
    parser.add_argument("--fp32", type=Path, nargs="?", const=OWN, help="the work folder of the package")
    arguments = parser.parse_args()
    package = Package(arguments.package)
    exact = arguments.fp32 and (
        in_fp32(arguments.package)
        if arguments.fp32 == OWN
        else Package(arguments.package, arguments.fp32 / "stage-a.fp32.onnx", arguments.fp32 / "stage-b.fp32.onnx")
    )
    result = {}
    for name, rows in read_folder(arguments.sets, [n for n in arguments.only.split(",") if n] or None).items():
        if arguments.rows and len(rows) > arguments.rows:
            rows = random.Random(3).sample(rows, arguments.rows)
        answers, labels = [decide(package, row) for row in rows], [row.choices.index(row.label) for row in rows]
        alone = {
            stage: float(np.mean([answer[place] == label for answer, label in zip(answers, labels, strict=True)]))
            for place, stage in ((1, "a"), (2, "b"))
        }
        result[name] = measure([p for p, _, _ in answers], labels) | alone | {"rows": len(rows)}
        if exact:
            others = [decide(exact, row)[0] for row in rows]
            result[name] |= {
                "fp32": measure(others, labels)["accuracy"],
                "same": float(
                    np.mean([a.argmax() == o.argmax() for (a, _, _), o in zip(answers, others, strict=True)])
                ),
            }
        print(name, {k: round(v, 3) for k, v in result[name].items()}, flush=True)
    result["mean"] = {
        k: float(np.mean([m[k] for m in result.values()]))
        for k in ("accuracy", "a", "b", "ece", "brier", "wrong_and_sure", *(("fp32", "same") if exact else ()))
    }
    print("mean", result["mean"], flush=True)
    if not arguments.only:
        result["negations"] = negations(package)
        print("negations", result["negations"], flush=True)
    if arguments.train:
        result["hidden"] = hidden(package, arguments.train, arguments.hidden_in)
        print("hidden", result["hidden"])
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
