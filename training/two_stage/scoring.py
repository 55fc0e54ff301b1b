"""Both stages over many rows, as the engine would run them: a for every choice, b for the best k by a."""

from collections.abc import Sequence

import numpy as np

from .encoder import Encoder
from .records import Decision
from .stack import BEST, Scored, closeness
from .stage_a import framed, vectors
from .stage_b import StageB, pack, scores
from .tokens import Reader

LONGEST_PREMISE, CARRIED_INSTRUCTION = 380, 128


def best_choices(a: np.ndarray, choices: Sequence[str]) -> np.ndarray:
    """Indices of the best k by a, in the code-unit order of the choices; a tie at the edge goes to the first in that order."""
    order = sorted(range(len(choices)), key=lambda i: choices[i].encode("utf-16-be"))
    ranked = sorted(order, key=lambda i: -a[i])[:BEST]
    return np.array([i for i in order if i in set(ranked)])


def score(encoder: Encoder, model: StageB, rows: Sequence[Decision], reader: Reader) -> list[Scored]:
    """Scores of rows; inputs are cut to one window (see two_stage.md for the engine's windows)."""
    texts = sorted({c for row in rows for c in row.choices})
    cache = dict(zip(texts, vectors(encoder, [framed(reader.choice(t), 128) for t in texts])))
    inputs = vectors(encoder, [framed(reader.plain(row.input), LONGEST_PREMISE) for row in rows])
    questions = sorted({row.instruction for row in rows})
    asked = dict(zip(questions, vectors(encoder, [framed(reader.plain(q)[:CARRIED_INSTRUCTION], LONGEST_PREMISE) for q in questions])))
    prepared, packs = [], []
    for row, vector in zip(rows, inputs):
        choices = np.stack([cache[c] for c in row.choices])
        a = choices @ vector
        best = best_choices(a, row.choices)
        options = [reader.choice(row.choices[i])[:126] for i in best]
        instruction = reader.plain(row.instruction)[:CARRIED_INSTRUCTION]
        packs.append(pack(instruction, reader.plain(row.input)[: LONGEST_PREMISE - 3 - len(instruction)], options))
        prepared.append((row, a, best, closeness(choices[best]), float(np.mean([len(o) for o in options])), float(vector @ asked[row.instruction])))
    return [Scored(a, best, b, near, size, about, row.choices.index(row.label), row.set) for (row, a, best, near, size, about), b in zip(prepared, scores(model, packs))]
