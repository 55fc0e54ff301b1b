"""Measures the stages of a work folder on a folder of data sets, before a package is made of them.

`python -m two_stage.checkpoint --work WORK --sets FOLDER`: the accuracy of ratio · a + b (`watch.RATIOS`; the first is
stage B alone) by kind of question, each set weighing the same. English readers only: the tokenizer is MiniLM's. Choices
beyond the 32 that stage A finds best are not shortlisted.
"""

import argparse
from pathlib import Path

import numpy as np

from .records import read_folder
from .similarities import similarities
from .tokens import Reader, bare_tokenizer
from .watch import RATIOS, Watched, watch
from .workshop import kept_stage_b, load_encoder, minilm_folder


def main() -> None:
    """Measures what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sets", type=Path, required=True)
    arguments = parser.parse_args()
    reader = Reader(bare_tokenizer(minilm_folder() / "tokenizer.json")[0])
    stage_a, stage_b = load_encoder(arguments.work / "stage_a.pt"), kept_stage_b(arguments.work)
    sets = read_folder(arguments.sets)
    held = {n: Watched.of(rows, similarities(stage_a, rows, reader, {}), reader) for n, rows in sets.items()}
    found = watch(stage_b, held)
    kinds = {name: rows[0].task for name, rows in sets.items()}
    print("ratios", RATIOS)
    for kind in sorted(set(kinds.values())):
        of_kind = [found[name] for name in sets if kinds[name] == kind]
        print(f"{kind} ({len(of_kind)})", np.mean(of_kind, 0).round(3))
    print(f"all ({len(found)})", np.mean(list(found.values()), 0).round(3))


if __name__ == "__main__":
    main()
