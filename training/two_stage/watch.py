"""How stage B does on whole held-out sets while it is trained."""

from collections.abc import Sequence

import numpy as np

from .chunks import packed
from .encoder import DEVICE
from .records import Decision
from .stage_b import StageB, scores
from .tokens import Reader

# How much stage A is heard: not at all, and at two ratios of those that the rule is fitted over.
RATIOS = (0, 16, 48)
# A batch that is only scored is larger than one that is learned from.
TOKENS_A_BATCH = 20_480 if DEVICE == "cuda" else 4096


def watch(
    model: StageB, held: dict[str, list[Decision]], similar: dict[str, list[np.ndarray]], reader: Reader
) -> dict[str, list[float]]:
    """Accuracy on held-out sets of ratio * a + b, by RATIOS; the first is b alone."""
    packs = [packed(row, reader) for rows in held.values() for row in rows]
    found = iter(scores(model, packs, TOKENS_A_BATCH))
    result = {}
    for name, rows in held.items():
        b = [next(found) for _ in rows]
        result[name] = [right(rows, [ratio * a + s for a, s in zip(similar[name], b, strict=True)]) for ratio in RATIOS]
    return result


def right(rows: Sequence[Decision], z: Sequence[np.ndarray]) -> float:
    """The share of rows whose highest score is that of the label."""
    return float(np.mean([row.choices[int(np.argmax(s))] == row.label for row, s in zip(rows, z, strict=True)]))
