"""How stage B does on whole held-out sets while it is trained."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .chunks import packed
from .encoder import DEVICE
from .records import Decision
from .stage_b import Pack, StageB, scores
from .tokens import Reader

# How much stage A is heard: not at all, and at two ratios of those that the rule is fitted over.
RATIOS = (0, 16, 48)
# A batch that is only scored is larger than one that is learned from.
TOKENS_A_BATCH = 20_480 if DEVICE == "cuda" else 4096


@dataclass(frozen=True)
class Watched:
    """A held-out set: its packs, what stage A says of their options, and the places of the right ones."""

    packs: list[Pack]
    similar: list[np.ndarray]
    labels: list[int]

    @staticmethod
    def of(rows: Sequence[Decision], similar: list[np.ndarray], reader: Reader) -> "Watched":
        """Rows, and what stage A says of them."""
        return Watched([packed(row, reader) for row in rows], similar, [row.choices.index(row.label) for row in rows])

    def first(self, count: int) -> "Watched":
        """The first rows."""
        return Watched(self.packs[:count], self.similar[:count], self.labels[:count])


def watch(model: StageB, held: dict[str, Watched]) -> dict[str, list[float]]:
    """Accuracy on held-out sets of ratio * a + b, by RATIOS; the first is b alone."""
    found = iter(scores(model, [p for each in held.values() for p in each.packs], TOKENS_A_BATCH))
    result = {}
    for name, each in held.items():
        b = [next(found) for _ in each.packs]
        result[name] = [
            right(each.labels, [ratio * a + s for a, s in zip(each.similar, b, strict=True)]) for ratio in RATIOS
        ]
    return result


def right(labels: Sequence[int], z: Sequence[np.ndarray]) -> float:
    """The share of rows whose highest score is that of the label."""
    return float(np.mean([int(np.argmax(s)) == label for label, s in zip(labels, z, strict=True)]))
