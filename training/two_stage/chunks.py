"""Training rows as flat arrays, drawn chunk by chunk, so that other processes can draw them while a GPU learns.

A chunk is a function of the seed and its number alone. Its texts and choices are token ids, and `collate` lays any of
its rows out as a batch of stage B.
"""

import os
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import TypeVar

import numpy as np

from .records import CROSSED, EVEN, TEACHER, Decision
from .stack import BEST
from .stage_b import Pack, pack
from .tokens import CLS, MASK, SEP, Reader

T = TypeVar("T")

# Targets other than a label.
TARGETS = {TEACHER: -1, EVEN: -2, CROSSED: -3}
# In tokens, of a row that is trained on: an engine reads more, but long rows would cost most of the time.
MOST_INSTRUCTION, MOST_INPUT, MOST_OPTION = 96, 320, 40
# How far a step of a scale leads to its neighbours: their share of the target.
NEIGHBOURS = 0.12


@dataclass(frozen=True)
class Ragged:
    """Sequences of whole numbers one after another: sequence i is values[starts[i] : starts[i] + lengths[i]]."""

    values: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @staticmethod
    def of(sequences: Sequence[Sequence[int]]) -> "Ragged":
        """The sequences laid one after another."""
        lengths = np.array([len(s) for s in sequences], np.int64)
        values = np.fromiter((v for s in sequences for v in s), np.int32, int(lengths.sum()))
        return Ragged(values, np.cumsum(lengths) - lengths, lengths)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.values[self.starts[index] : self.starts[index] + self.lengths[index]]

    def taken(self, indices: np.ndarray, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The sequences at `indices` one after another, each cut to `most`, and their lengths."""
        lengths = self.lengths[indices] if most is None else np.minimum(self.lengths[indices], most)
        return self.values[np.repeat(self.starts[indices], lengths) + within(lengths)], lengths


def within(lengths: np.ndarray) -> np.ndarray:
    """0, 1, ... in each of some sequences of these lengths."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


@dataclass(frozen=True)
class Chunk:
    """Rows as arrays.

    `premises`: [CLS] instruction [SEP] input [SEP]; `texts`: what stage A reads; `names` and `choices`: the different
    choices; `options`: which of them a row has; `labels`: places in them, or TARGETS; `paired`: the next row is the
    opposite; `ranks`: places of the options in a scale, -1 for none.
    """

    premises: Ragged
    texts: Ragged
    names: list[str]
    choices: Ragged
    options: Ragged
    labels: np.ndarray
    paired: np.ndarray
    ranks: np.ndarray


def label_of(row: Decision) -> int:
    """The place of the row's label among its choices, or one of TARGETS."""
    return TARGETS[row.label] if row.label in TARGETS else row.choices.index(row.label)


def flattened(rows: Sequence[Decision], reader: Reader) -> Chunk:
    """Rows, each followed by its opposite, as a chunk."""
    rows = [r for row in rows for r in (row, row.opposite) if r is not None]
    names = sorted({c for row in rows for c in row.choices})
    place = {name: i for i, name in enumerate(names)}
    texts = [reader.plain(row.input)[:MOST_INPUT] for row in rows]
    return Chunk(
        premises=Ragged.of(
            [
                [CLS, *reader.plain(row.instruction)[:MOST_INSTRUCTION], SEP, *text, SEP]
                for row, text in zip(rows, texts, strict=True)
            ]
        ),
        texts=Ragged.of(texts),
        names=names,
        choices=Ragged.of([reader.choice(name) for name in names]),
        options=Ragged.of([[place[c] for c in row.choices] for row in rows]),
        labels=np.array([label_of(row) for row in rows]),
        paired=np.array([row.opposite is not None for row in rows]),
        ranks=np.array([r for row in rows for r in (row.ranks or (-1,) * len(row.choices))]),
    )


def shortlisted(chunk: Chunk, similar: np.ndarray) -> tuple[Chunk, np.ndarray]:
    """Rows with more choices than stage B reads cut to those that stage A finds best, and the right one; the
    similarities with them.
    """
    there, options, labels = shortlist(chunk.options, chunk.labels, similar)
    return replace(chunk, options=options, labels=labels, ranks=chunk.ranks[there]), similar[there]


def shortlist(options: Ragged, labels: np.ndarray, similar: np.ndarray) -> tuple[np.ndarray, Ragged, np.ndarray]:
    """Which options of some rows stage B reads, those options, and the labels as places among them."""
    there, labels = np.ones(len(similar), bool), labels.copy()
    for row in np.flatnonzero(options.lengths > BEST):
        start, length, label = options.starts[row], options.lengths[row], labels[row]
        order = np.lexsort((-similar[start : start + length], np.arange(length) != label))
        there[start + order[BEST:]] = False
        if label >= 0:
            labels[row] = int(there[start : start + label].sum())
    lengths = np.minimum(options.lengths, BEST)
    return there, Ragged(options.values[there], np.cumsum(lengths) - lengths, lengths), labels


def packed(row: Decision, reader: Reader) -> Pack:
    """The pack of a row, its parts cut to training lengths."""
    options = [reader.choice(c)[:MOST_OPTION] for c in row.choices]
    return pack(reader.plain(row.instruction)[:MOST_INSTRUCTION], reader.plain(row.input)[:MOST_INPUT], options)


@dataclass(frozen=True)
class Batch:
    """Packs [rows, tokens] (a multiple of 8 tokens, as fused attention wants it), the places of their markers, and what
    is aimed at [rows, most options]: similarities, targets, which options there are. `rows` and `places`: of each
    marker; `slots`: its option.
    """

    ids: np.ndarray
    positions: np.ndarray
    blocks: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    slots: np.ndarray
    similar: np.ndarray
    targets: np.ndarray
    there: np.ndarray
    labels: np.ndarray
    paired: np.ndarray


def collate(chunk: Chunk, similar: np.ndarray, chosen: np.ndarray) -> Batch:
    """The rows `chosen` of a chunk as a batch."""
    counts = chunk.options.lengths[chosen]
    options, _ = chunk.options.taken(chosen)
    flat = np.repeat(chunk.options.starts[chosen], counts) + within(counts)
    of_row, slots = np.repeat(np.arange(len(chosen)), counts), within(counts)
    premises, premise_lengths = chunk.premises.taken(chosen)
    tokens, lengths = chunk.choices.taken(options, MOST_OPTION)
    sizes = lengths + 1
    before = np.cumsum(sizes) - sizes
    first = before[np.cumsum(counts) - counts]
    starts = premise_lengths[of_row] + before - first[of_row]
    totals = premise_lengths + np.add.reduceat(sizes, np.cumsum(counts) - counts)
    shape = (len(chosen), -(-int(totals.max()) // 8) * 8)
    ids, positions, blocks = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    row, column = np.repeat(np.arange(len(chosen)), premise_lengths), within(premise_lengths)
    ids[row, column], positions[row, column], blocks[row, column] = premises, column, 0
    row, inside = np.repeat(of_row, sizes), within(sizes)
    column = np.repeat(starts, sizes) + inside
    positions[row, column], blocks[row, column] = premise_lengths[row] + inside, np.repeat(slots + 1, sizes)
    ids[of_row, starts] = MASK
    ids[np.repeat(of_row, lengths), np.repeat(starts + 1, lengths) + within(lengths)] = tokens
    padded = (len(chosen), int(counts.max()))
    a, there, ranks = np.zeros(padded, np.float32), np.zeros(padded, bool), np.full(padded, -1)
    a[of_row, slots], there[of_row, slots], ranks[of_row, slots] = similar[flat], True, chunk.ranks[flat]
    return Batch(
        ids,
        positions,
        blocks,
        of_row,
        starts,
        slots,
        a,
        targets_of(chunk.labels[chosen], ranks, there),
        there,
        chunk.labels[chosen],
        chunk.paired[chosen],
    )


def targets_of(labels: np.ndarray, ranks: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Target distributions [rows, options]: the label, on a scale a little of its neighbours; even where there is no
    label (a teacher's are found in training).
    """
    labelled = labels >= 0
    rows, places = np.flatnonzero(labelled), labels[labelled]
    own = np.full((len(labels), 1), -9)
    own[rows, 0] = ranks[rows, places]
    near = (np.abs(ranks - own) == 1) & (ranks >= 0) & (own >= 0)
    neighbours = near.sum(1, keepdims=True)
    result = np.where(
        labelled[:, None], near * NEIGHBOURS / np.maximum(neighbours, 1), there / there.sum(1, keepdims=True)
    )
    result[rows, places] = np.where(neighbours[rows, 0] > 0, 1 - NEIGHBOURS, 1)
    return result.astype(np.float32)


def batches(chunk: Chunk, tokens_a_batch: int, seed: int) -> list[np.ndarray]:
    """The rows of a chunk in batches of like length and at most so many padded tokens, in random order.

    A row and its opposite stay together.
    """
    firsts = np.flatnonzero(~np.concatenate([[False], chunk.paired[:-1]]))
    sizes = np.minimum(chunk.choices.lengths, MOST_OPTION) + 1
    ends = np.cumsum(sizes[chunk.options.values])
    lengths = (
        chunk.premises.lengths
        + ends[chunk.options.starts + chunk.options.lengths - 1]
        - (ends - sizes[chunk.options.values])[chunk.options.starts]
    )
    longest = np.where(
        chunk.paired[firsts],
        np.maximum(lengths[firsts], lengths[np.minimum(firsts + 1, len(lengths) - 1)]),
        lengths[firsts],
    )
    rng = random.Random(seed)
    found, current = [], []
    for unit in np.argsort(longest, kind="stable"):
        first = int(firsts[unit])
        rows = [first, first + 1] if chunk.paired[first] else [first]
        if current and (len(current) + len(rows)) * longest[unit] > tokens_a_batch:
            found.append(np.array(current))
            current = []
        current += rows
    found.append(np.array(current))
    rng.shuffle(found)
    return found


class Source:
    """What `draw` makes of the numbers from `first` on, by so many processes ahead of its use (0: when it is asked
    for).
    """

    def __init__(self, draw: Callable[[int], T], processes: int):
        self.draw, self.processes = draw, processes

    def drawn(self, first: int) -> Iterator[T]:
        """In order, without end."""
        if not self.processes:
            while True:
                yield self.draw(first)
                first += 1
        global _source
        _source = self
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        with get_context("fork").Pool(self.processes) as pool:
            waiting = deque(pool.apply_async(_draw, (first + ahead,)) for ahead in range(2 * self.processes))
            following = first + len(waiting)
            while True:
                yield waiting.popleft().get()
                waiting.append(pool.apply_async(_draw, (following,)))
                following += 1


# The source of this process and of those forked from it, which so need not be sent what it holds.
_source: Source


def _draw(number: int) -> T:
    return _source.draw(number)
