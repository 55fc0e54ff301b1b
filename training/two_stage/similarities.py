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


def similar(encoder: Encoder, chunk: Chunk, cache: dict[str | bytes, np.ndarray]) -> np.ndarray:
    """a of every option of a chunk, in the order of `chunk.options`.

    Vectors are cached: those of choices by text, those of inputs by their ids. A row and its opposite have one input,
    and everyday texts are drawn again and again.
    """
    texts = [chunk.texts[i].tobytes() for i in range(len(chunk.labels))]
    fresh: dict[str | bytes, list[int]] = {
        name: framed(chunk.choices[i].tolist()) for i, name in enumerate(chunk.names) if name not in cache
    }
    fresh |= {
        text: framed(chunk.texts[i].tolist(), MOST_INPUT + 2) for i, text in enumerate(texts) if text not in cache
    }
    cache.update(zip(fresh, vectors(encoder, list(fresh.values())), strict=True))
    names = np.stack([cache[name] for name in chunk.names])
    inputs = np.stack([cache[text] for text in texts])
    of_row = np.repeat(np.arange(len(chunk.labels)), chunk.options.lengths)
    return np.einsum("ow,ow->o", inputs[of_row], names[chunk.options.values])
