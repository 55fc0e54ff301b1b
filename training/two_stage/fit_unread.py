"""The rule that makes a model less sure of what it does not read (unread.py), fitted by log loss on a finished package:
on held-out English rows, which it must do no harm, and on rows in other languages of as many kinds, some of which a
model with an English vocabulary reads in part: the everyday corpus, requests, claims, lines of dialogue, emotions. One
for many languages reads those: its others are English rows of which a share of the words is written in letters that it
has no words of (`spelt`).

`python -m two_stage.fit_unread --data DATA --package PACKAGE ...` writes it into each package's `model.json`; the
recipe does so by itself.
"""

import argparse
import json
import random
import string
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from . import everyday
from .held_out import held_out
from .mix import Mix
from .multilingual import Multilingual
from .records import EVEN, Decision, read_folder
from .reference import Package
from .unread import Rule, reads_many, share_by, tempered

# What is tried for the two numbers of the rule.
BOUNDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
PULLS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
# What the rule may cost in log loss on English rows; the share of English texts that are below its bound, and how many
# texts of each training set that is measured on. A lower bound, which the loss alone would choose, makes a model unsure
# of short English texts of rare words and of topics in languages that it half reads, where it is not too sure.
HARMLESS, BELOW, MEASURED_ROWS = 0.002, 0.98, 400
# English rows of each held-out set, and of all together: a package decides them one by one.
ENGLISH_ROWS, MOST_ENGLISH = 60, 900
# Rows in other languages, of each kind.
FOREIGN_ROWS = 600

# Of a package for many languages: English rows, and those of them that are spelt.
MOST_OF_MANY, SPELT_ROWS = 500, 300
# Letters of a script that has no words in a vocabulary of many languages (Khmer), for those of the Latin one.
LETTERS = dict(zip(map(ord, string.ascii_lowercase), map(chr, range(0x1780, 0x179A)), strict=True))

# The share of unread tokens, the probabilities and the label's place.
Row = tuple[float, np.ndarray, int]

_package: Package
_share: Callable[[Sequence[int]], float]


def load(folder: Path) -> None:
    """Loads the package of this process."""
    global _package, _share
    _package = Package(folder, unread=Rule())
    _share = share_by(_package.reader.tokenizer)


def decide(row: Decision) -> Row:
    """A row decided by the package of this process."""
    probabilities = _package.decide(row.input, row.instruction, list(row.choices)).probabilities
    return _share(_package.reader.plain(row.input)), probabilities, row.choices.index(row.label)


def ruled(rows: Sequence[Row], rule: Rule) -> list[Row]:
    """The rows as the rule makes them."""
    return [(share, tempered(p, rule.temperature(share)), label) for share, p, label in rows]


def loss(rows: Sequence[Row]) -> float:
    """Mean log loss."""
    return float(np.mean([-np.log(max(1e-9, p[label])) for _, p, label in rows]))


def least_bound(folder: Path, data: Path) -> float:
    """The share of unread tokens that BELOW of the English training texts stay under, by the package's tokenizer."""
    load(folder)
    texts = [row.input for rows in read_folder(data / "train").values() for row in rows[:MEASURED_ROWS]]
    return float(np.quantile([_share(_package.reader.plain(text)) for text in texts], BELOW))


def best_rule(english: Sequence[Row], foreign: Sequence[Row], least: float) -> Rule:
    """Of the rules with a bound of at least `least` that do the English rows no harm the one with the least loss on the
    others.
    """
    rules = [Rule(bound, pull) for bound in BOUNDS if bound >= least for pull in PULLS]
    most = loss(english) + HARMLESS
    harmless = [rule for rule in rules if loss(ruled(english, rule)) <= most]
    return min(harmless, key=lambda rule: loss(ruled(foreign, rule)))


def rows_of(data: Path) -> tuple[list[Decision], list[Decision]]:
    """English rows held out from training, and rows in other languages."""
    rng = random.Random(7)
    _, held = everyday.split(everyday.read_groups())
    sets = read_folder(data / "train")
    public = [row for rows in held_out(sets, ENGLISH_ROWS, 5).values() for row in rows]

    def of(groups: Sequence[everyday.Group]) -> list[Decision]:
        return [
            g.decision(text, label, rng.choice(g.instructions), rng.choice(g.choices), EVEN)
            for g in groups
            for text, label in g.rows
            if label is not None
        ]

    english = [*rng.sample(public, min(MOST_ENGLISH, len(public))), *of(held)]
    foreign = rng.sample(of(everyday.read_groups(everyday.FOLDER / "multi")), FOREIGN_ROWS)
    others = Multilingual(Mix(sets), data / "multilingual" / "train").held_out(FOREIGN_ROWS, 5)
    return english, [*foreign, *(row for rows in others.values() for row in rows)]


def spelt(row: Decision, rng: random.Random) -> Decision:
    """The row with some of its text's words, or all, in letters that say nothing."""
    share = rng.choice((0.4, 0.6, 0.8, 1.0))
    words = [word.lower().translate(LETTERS) if rng.random() < share else word for word in row.input.split(" ")]
    return replace(row, input=" ".join(words))


def told(rows: Sequence[Row], rule: Rule) -> str:
    """How sure the rows are and what they lose, before and after the rule."""

    def confidence(rows: Sequence[Row]) -> np.floating:
        return np.mean([p.max() for _, p, _ in rows])

    right = np.mean([p.argmax() == label for _, p, label in rows])
    after = ruled(rows, rule)
    return (
        f"{len(rows)} rows, right {right:.3f}, confidence {confidence(rows):.3f} -> {confidence(after):.3f}, "
        f"loss {loss(rows):.4f} -> {loss(after):.4f}"
    )


def fit_unread(folder: Path, data: Path, log: Callable[[str], None], processes: int = 2) -> None:
    """Fits the rule of the package in `folder` and writes it into its model.json."""
    english, foreign = rows_of(data)
    if reads_many(Tokenizer.from_file(str(folder / "tokenizer.json"))):
        rng = random.Random(7)
        english = rng.sample(english, min(MOST_OF_MANY, len(english)))
        foreign = [spelt(row, rng) for row in rng.sample(english, min(SPELT_ROWS, len(english)))]
    with get_context("spawn").Pool(processes, load, (folder,)) as pool:
        near, far = pool.map(decide, english, 16), pool.map(decide, foreign, 16)
    rule = best_rule(near, far, least_bound(folder, data))
    log(f"unread: {rule}; English {told(near, rule)}; others {told(far, rule)}")
    for name, rows in (("English", near), ("others", far)):
        beyond = [row for row in rows if row[0] > rule.bound]
        log(f"unread: {name} beyond the bound: {told(beyond, rule) if beyond else 'none'}")
    path = folder / "model.json"
    manifest = json.loads(path.read_text())
    canary = manifest.pop("canary")
    path.write_text(
        json.dumps({**manifest, "unread": {"bound": rule.bound, "pull": rule.pull}, "canary": canary}, indent=2) + "\n"
    )


def main() -> None:
    """Fits the packages that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--package", type=Path, nargs="+", required=True)
    options = parser.parse_args()
    for folder in options.package:

        def log(line: str, folder: Path = folder) -> None:
            print(f"{folder}: {line}", flush=True)

        fit_unread(folder, options.data, log)


if __name__ == "__main__":
    main()
