"""Measures the package on all rows of every set in DATA/eval and prints the model card's table.

For each set: rows answered (those over the token limits are refused), accuracy of the int8 graph and of the fp32 one,
how many answers the two have in common, and the int8 answers' calibration. Run: python evaluate.py DATA
"""

import json
import sys
from pathlib import Path

import numpy as np

import base_model
import encoder_graph
from build_package import PACKAGE
from decisions import read_set, set_names
from scorer import Encoder
from similarities import plain_accuracy, score, similarities


def main() -> None:
    """Prints the table."""
    data = Path(sys.argv[1])
    options = json.loads((PACKAGE / "model.json").read_text())["options"]
    weight = options["joint_weight"]
    tokenizer = (PACKAGE / options["tokenizer"]).read_text(encoding="utf-8")
    int8 = Encoder(PACKAGE / options["graph"], tokenizer)
    fp32 = Encoder(encoder_graph.build(base_model.weights(), "fp32"), tokenizer)
    table = []
    print("| set | choices | rows answered | accuracy | fp32 | same answer | ECE | Brier | wrong at 0.9 or more |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in set_names(data, "eval"):
        rows = read_set(data, "eval", name)
        ours, exact = similarities(int8, rows), similarities(fp32, rows)
        scores = score(ours, weight, options["temperature"])
        same = np.mean(
            [a.cosines(weight).argmax() == b.cosines(weight).argmax() for a, b in zip(ours, exact, strict=True)]
        )
        numbers = (
            scores.accuracy,
            plain_accuracy(exact, weight),
            float(same),
            scores.ece,
            scores.brier,
            scores.sure_and_wrong,
        )
        counts = {len(row.choices) for row in rows}
        choices = str(counts.pop()) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
        answered = f"{len(ours)} of {len(rows)}"
        print(f"| {name} | {choices} | {answered} | " + " | ".join(f"{n:.3f}" for n in numbers) + " |", flush=True)
        table.append(numbers)
    print("| mean | | | " + " | ".join(f"{n:.3f}" for n in np.mean(table, axis=0)) + " |")


if __name__ == "__main__":
    main()
