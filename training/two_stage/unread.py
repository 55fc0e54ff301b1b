"""How much of a text a model with an English vocabulary has no words for, and how much less sure that makes it.

    share = tokens of spelt words / tokens of words;  T = exp(pull * max(0, share - bound));  P(i) ~ P(i)^(1/T)

A word is spelt if it is cut into three pieces or more, has a letter of a script other than Latin, or is unknown as a whole; what has digits or no letter is no word here.
The rule is fitted by log loss on a finished package: on held-out English rows, which it must leave as they are, and on the other languages' part of the everyday
corpus, which a model with this vocabulary is not trained on: `python -m two_stage.unread --data DATA --package PACKAGE ...` writes it into each package's `model.json`.
"""

import argparse
import json
import random
import unicodedata
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from . import everyday
from .held_out import held_out
from .records import Decision, read_folder
from .reference import Package
from .tasks import EVEN
from .tokens import UNK

LETTER, DIGIT, FOREIGN, CONTINUES, UNKNOWN = 1, 2, 4, 8, 16
SPELT = 3
BOUNDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
PULLS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
# What the rule may cost in log loss on English rows.
HARMLESS = 0.002
ENGLISH_ROWS = 60


def kind(token: str) -> int:
    """What is in a token of WordPiece."""
    continues = token.startswith("##") and len(token) > 2
    text = token[2:] if continues else token
    letters = [c for c in text if unicodedata.category(c).startswith("L")]
    foreign = any("LATIN" not in unicodedata.name(c, "") and c not in "ªº" for c in letters)
    digit = any(unicodedata.category(c) == "Nd" for c in text)
    return CONTINUES * continues | LETTER * bool(letters) | DIGIT * digit | FOREIGN * foreign


def share_of(vocabulary: dict[str, int]) -> Callable[[Sequence[int]], float]:
    """The share of unread tokens of a text's ids, by a vocabulary of WordPiece."""
    kinds = np.zeros(max(vocabulary.values()) + 1, np.uint8)
    for token, number in vocabulary.items():
        kinds[number] = UNKNOWN if number == UNK else kind(token)

    def share(ids: Sequence[int]) -> float:
        counted = unread = 0
        words: list[list[int]] = []
        for found in kinds[list(ids)].tolist():
            if found & CONTINUES and words:
                words[-1].append(found)
            else:
                words.append([found])
        for pieces in words:
            whole = int(np.bitwise_or.reduce(pieces))
            if whole & UNKNOWN or (whole & LETTER and not whole & DIGIT):
                counted += len(pieces)
                unread += len(pieces) if len(pieces) >= SPELT or whole & (UNKNOWN | FOREIGN) else 0
        return unread / counted if counted else 0.0

    return share


def tempered(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """P^(1/T), normalised."""
    logs = np.log(np.maximum(probabilities, 1e-300)) / temperature
    powers = np.exp(logs - logs.max())
    return powers / powers.sum()


def loss(rows: Sequence[tuple[float, np.ndarray, int]], bound: float, pull: float) -> float:
    """Mean log loss of rows (share, probabilities, label) under a rule."""
    return float(np.mean([-np.log(max(1e-9, tempered(p, np.exp(pull * max(0.0, share - bound)))[label])) for share, p, label in rows]))


def fit(english: Sequence[tuple], foreign: Sequence[tuple]) -> tuple[float, float]:
    """(bound, pull): the least loss on foreign rows of those rules that do the English ones no harm."""
    plain = loss(english, 1.0, 0.0)
    harmless = [(b, p) for b in BOUNDS for p in PULLS if loss(english, b, p) <= plain + HARMLESS]
    return min(harmless, key=lambda rule: loss(foreign, *rule))


_package: Package


def load(folder: Path) -> None:
    global _package
    _package = Package(folder)


def decide(row: Decision) -> tuple[float, np.ndarray, int]:
    share = share_of(_package.reader.tokenizer.get_vocab())
    return share(_package.reader.plain(row.input)), _package.decide(row.input, row.instruction, list(row.choices)).probabilities, row.choices.index(row.label)


def rows_of(data: Path) -> tuple[list[Decision], list[Decision]]:
    """English rows held out from training, and rows in other languages."""
    rng = random.Random(7)
    _, held = everyday.split(everyday.read_groups())
    public = [row for rows in held_out(read_folder(data / "train"), ENGLISH_ROWS, 5).values() for row in rows]
    of = lambda groups: [g.decision(text, label, rng.choice(g.instructions), rng.choice(g.choices), EVEN) for g in groups for text, label in g.rows if label is not None]
    return [*rng.sample(public, 900), *of(held)], of(everyday.read_groups(everyday.FOLDER / "multi"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--package", type=Path, nargs="+", required=True)
    options = parser.parse_args()
    english, foreign = rows_of(options.data)
    for folder in options.package:
        with get_context("spawn").Pool(2, load, (folder,)) as pool:
            near, far = pool.map(decide, english, 16), pool.map(decide, foreign, 16)
        bound, pull = fit(near, far)
        shares = np.array([share for share, _, _ in far])
        over = shares > bound
        sure = lambda rule, rows: float(np.mean([tempered(p, np.exp(rule[1] * max(0.0, s - rule[0]))).max() for s, p, _ in rows]))
        print(f"{folder}: bound {bound}, pull {pull}; English rows above the bound {np.mean([s > bound for s, _, _ in near]):.3f}, loss {loss(near, 1, 0):.4f} -> {loss(near, bound, pull):.4f}; "
              f"others above it {over.mean():.3f}, right {np.mean([p.argmax() == l for _, p, l in far]):.3f}, loss {loss(far, 1, 0):.4f} -> {loss(far, bound, pull):.4f}, "
              f"mean confidence {sure((1, 0), far):.3f} -> {sure((bound, pull), far):.3f}; those above it right {np.mean([p.argmax() == l for s, p, l in far if s > bound]):.3f}, {sure((1, 0), [r for r in far if r[0] > bound]):.3f} -> {sure((bound, pull), [r for r in far if r[0] > bound]):.3f}", flush=True)
        path = folder / "model.json"
        manifest = json.loads(path.read_text())
        canary = manifest.pop("canary")
        path.write_text(json.dumps({**manifest, "unread": {"bound": bound, "pull": pull}, "canary": canary}, indent=2) + "\n")


if __name__ == "__main__":
    main()
