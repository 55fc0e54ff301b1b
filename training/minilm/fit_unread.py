"""Fits the rule for texts that the encoder has no words for, and writes it to fitted.json.

The rows and the choice of the rule are those of `two_stage/fit_unread.py`. Run after build_package.py:
PYTHONPATH=training python training/minilm/fit_unread.py DATA
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from build_package import HERE, PACKAGE
from decisions import Decision
from scorer import Encoder, probabilities, temperature_of
from similarities import SURE, similarities
from two_stage.fit_unread import BELOW, MEASURED_ROWS, Row, best_rule, rows_of, told
from two_stage.records import read_folder
from two_stage.unread import share_by


def main() -> None:
    """Fits the rule."""
    data = Path(sys.argv[1])
    fitted = json.loads((HERE / "fitted.json").read_text())
    encoder = Encoder(PACKAGE / "model.onnx", (PACKAGE / "tokenizer.json").read_text(encoding="utf-8"))
    share_of_ids = share_by(encoder.tokenizer)

    def share(text: str) -> float:
        return share_of_ids(encoder.tokens(text)[1:-1])

    def decided(rows: Sequence) -> list[Row]:
        """Each row's share of unread tokens, probabilities and label; rows over the package's limits are left out."""
        result = []
        for row in rows:
            for found in similarities(encoder, [Decision(row.input, row.instruction, row.choices, row.label)]):
                logits = found.cosines(fitted["joint_weight"])
                heat = temperature_of(fitted["temperature"], len(logits))
                result.append((share(row.input), probabilities(logits / heat), found.label))
        return result

    texts = [row.input for rows in read_folder(data / "train").values() for row in rows[:MEASURED_ROWS]]
    least = float(np.quantile([share(text) for text in texts], BELOW))
    near, far = map(decided, rows_of(data))
    rule = best_rule(near, far, least)
    print(f"{rule}; English {told(near, rule)}; others {told(far, rule)}")
    for name, rows in (("English", near), ("others", far)):
        beyond = [row for row in rows if row[0] > rule.bound]
        print(f"{name} beyond the bound: {told(beyond, rule) if beyond else 'none'}")
        confidence = [p.max() for _, p, _ in rows]
        sure = sum(c >= SURE for c in confidence)
        print(f"{name}: {sure} of {len(rows)} answers with {SURE} or more; the highest {max(confidence):.3f}")
    fitted["unread"] = {"bound": rule.bound, "pull": rule.pull}
    (HERE / "fitted.json").write_text(json.dumps(fitted, indent=2) + "\n")


if __name__ == "__main__":
    main()
