"""Both stages over labelled rows, through a package's int8 graphs: what is shipped is what is fitted."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .records import Decision
from .reference import Package
from .stack import Scored
from .windows import PREMISE


def labelled(scored: Scored, row: Decision, order: Sequence[int]) -> Scored:
    """With the row's label and set."""
    return replace(scored, label=list(order).index(row.choices.index(row.label)), set=row.set)


def score(package: Package, rows: Sequence[Decision]) -> list[Scored]:
    """Scores of rows; inputs are cut to one window (see two_stage.md for the engine's windows)."""
    result = []
    for row in rows:
        room = PREMISE - 3 - len(package.reader.plain(row.instruction))
        parts = package.parts(row.input, row.instruction, list(row.choices), max(1, room))
        result.append(labelled(parts.scored[0], row, parts.order))
    return result


def score_long(package: Package, row: Decision) -> tuple[list[Scored], np.ndarray]:
    """One `Scored` a read window, and their relevances."""
    parts = package.parts(row.input, row.instruction, list(row.choices))
    return [labelled(s, row, parts.order) for s in parts.scored], parts.relevance
