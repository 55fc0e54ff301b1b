"""Both stages over labelled rows: through a package's int8 graphs, since what is shipped is what is fitted, or quickly
with the weights as they are.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from .chunks import MOST_INPUT, packed
from .encoder import Encoder
from .records import Decision
from .reference import Package
from .similarities import similarities
from .stack import BEST, Scored, Words, closeness, leaning
from .stage_a import framed, vectors
from .stage_b import StageB, scores
from .tokens import Reader
from .windows import PREMISE


def labelled(scored: Scored, row: Decision, order: Sequence[int]) -> Scored:
    """With the row's label and set; a row that nothing answers has the label -1."""
    return replace(
        scored, label=list(order).index(row.choices.index(row.label)) if row.label in row.choices else -1, set=row.set
    )


def score(folder: Path, rows: Sequence[Decision]) -> list[Scored]:
    """Scores of rows by the graphs of a package, on every core; inputs are cut to one window (see two_stage.md for the
    engine's windows).
    """
    with get_context("spawn").Pool(len(os.sched_getaffinity(0)), load, (folder,)) as pool:
        return pool.map(score_row, rows, 16)


_package: Package


def load(folder: Path) -> None:
    """Loads the package of this process."""
    global _package
    _package = Package(folder)


def score_row(row: Decision) -> Scored:
    """The scores of a row by the package of this process."""
    room = PREMISE - 3 - len(_package.reader.plain(row.instruction))
    parts = _package.parts(row.input, row.instruction, list(row.choices), max(1, room))
    return labelled(parts.scored[0], row, parts.order)


def score_weights(
    encoder: Encoder, model: StageB, reader: Reader, rows: Sequence[Decision], words: Words
) -> list[Scored]:
    """Scores of rows by weights in training precision; parts are cut to training lengths."""
    cache: dict[str, np.ndarray] = {}
    similar = similarities(encoder, rows, reader, cache)
    orders = [sorted(range(len(row.choices)), key=lambda i: row.choices[i].encode("utf-16-be")) for row in rows]
    bests = [np.sort(np.argsort(-a[order], kind="stable")[:BEST]) for a, order in zip(similar, orders, strict=True)]
    reads = [[row.choices[order[i]] for i in best] for row, order, best in zip(rows, orders, bests, strict=True)]
    packs = [packed(replace(row, choices=tuple(read)), reader) for row, read in zip(rows, reads, strict=True)]
    silent_packs = {
        tuple(p.ids): p
        for row, read in zip(rows, reads, strict=True)
        for p in [packed(replace(row, input="", choices=tuple(read)), reader)]
    }
    b, silent = scores(model, packs), dict(zip(silent_packs, scores(model, list(silent_packs.values())), strict=True))
    asked = vectors(encoder, [framed(reader.plain(row.instruction)) for row in rows])
    texts = vectors(encoder, [framed(reader.plain(row.input), MOST_INPUT + 2) for row in rows])
    result = []
    for row, a, order, best, read, each, question, text in zip(
        rows, similar, orders, bests, reads, b, asked, texts, strict=True
    ):
        options = [reader.choice(choice) for choice in read]
        without = silent[tuple(packed(replace(row, input="", choices=tuple(read)), reader).ids)]
        lean = leaning(without, words.residual(options)) if len(row.choices) <= BEST else np.zeros(len(read))
        near, size = (
            closeness(np.stack([cache[choice] for choice in read])),
            float(np.mean([len(option) for option in options])),
        )
        result.append(
            labelled(
                Scored(a[order], best, each, lean, near, size, float(question @ text), *words.of(options), -1, ""),
                row,
                order,
            )
        )
    return result
