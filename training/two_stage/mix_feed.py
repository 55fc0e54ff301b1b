"""What stage B learns from in the recipe: chunks that are drawn from the mix, and what stage A says of them."""

import os
from collections.abc import Iterator

import numpy as np

from .chunks import Chunk, Source, flattened, shortlisted
from .encoder import DEVICE, Encoder
from .mix import Mix
from .records import Decision
from .settings import Settings
from .similarities import similar, similarities
from .tokens import Reader
from .watch import Watched

# Drawn at once, so that a batch is of rows of like length.
ROWS_A_CHUNK = 3000
# Processes that draw chunks ahead: on a GPU the cores have nothing else to do.
PROCESSES = max(1, len(os.sched_getaffinity(0)) - 1) if DEVICE == "cuda" else 0


class MixFeed:
    """A `Feed` of the mix; `taught`: whether a teacher answers rows that nobody labelled."""

    def __init__(
        self,
        mix: Mix,
        reader: Reader,
        stage_a: Encoder,
        held: dict[str, list[Decision]],
        settings: Settings,
        taught: bool,
    ):
        self.mix, self.reader, self.stage_a, self.settings = mix, reader, stage_a, settings
        # Vectors of choices by their texts and of inputs by their ids: 1.5 KB each, 300 MB of a run's 200,000 rows.
        self.cache: dict[str | bytes, np.ndarray] = {}
        self.watched = {
            name: Watched.of(rows, similarities(stage_a, rows, reader, self.cache), reader)
            for name, rows in held.items()
        }
        self.weights = mix.weights(settings.everyday, settings.without, taught, settings.tables)
        phases = zip(mix.first_weights(settings.without), settings.first_rows, strict=False)
        # Of each chunk of the first phases, its tasks' weights.
        self.first = [phase for phase, rows in phases for _ in range(rows // ROWS_A_CHUNK)]

    def drawn(self, number: int) -> Chunk:
        """The chunk of this number."""
        weights = self.first[number] if number < len(self.first) else self.weights
        rows = self.mix.rows(ROWS_A_CHUNK, self.settings.seed * 10007 + number, weights)
        return flattened([row for _, row in rows], self.reader)

    def with_similar(self, chunk: Chunk) -> tuple[Chunk, np.ndarray]:
        """A chunk, its rows cut to the choices that stage B reads, and what stage A says of them."""
        return shortlisted(chunk, similar(self.stage_a, chunk, self.cache))

    def chunks(self, first: int) -> Iterator[tuple[Chunk, np.ndarray]]:
        """The chunks from the number `first` on."""
        return map(self.with_similar, Source(self.drawn, PROCESSES).drawn(first))
