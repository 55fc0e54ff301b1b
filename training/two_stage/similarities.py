"""What stage A says of training rows: cosines of inputs and choices."""

from collections.abc import Sequence

import numpy as np

from .chunks import MOST_INPUT, Chunk
from .encoder import Encoder
from .records import Decision
from .stage_a import framed, vectors
from .tokens import Reader


def similarities(
    encoder: Encoder, rows: Sequence[Decision], reader: Reader, cache: dict[str, np.ndarray]
) -> list[np.ndarray]:
    """a_i of every row: cosines [options] of the input with each choice. Vectors of choices are cached by text."""
    fresh = sorted({c for row in rows for c in row.choices} - cache.keys())
    cache.update(zip(fresh, vectors(encoder, [framed(reader.choice(t)) for t in fresh]), strict=True))
    inputs = vectors(encoder, [framed(reader.plain(row.input), MOST_INPUT + 2) for row in rows])
    return [np.stack([cache[c] for c in row.choices]) @ v for row, v in zip(rows, inputs, strict=True)]


def similar(encoder: Encoder, chunk: Chunk, cache: dict[str, np.ndarray]) -> np.ndarray:
    """a of every option of a chunk, in the order of `chunk.options`."""
    fresh = [i for i, name in enumerate(chunk.names) if name not in cache]
    cache.update(
        zip(
            [chunk.names[i] for i in fresh],
            vectors(encoder, [framed(chunk.choices[i].tolist()) for i in fresh]),
            strict=True,
        )
    )
    names = np.stack([cache[name] for name in chunk.names])
    texts = vectors(encoder, [framed(chunk.texts[i].tolist(), MOST_INPUT + 2) for i in range(len(chunk.labels))])
    of_row = np.repeat(np.arange(len(chunk.labels)), chunk.options.lengths)
    return np.einsum("ow,ow->o", texts[of_row], names[chunk.options.values])
