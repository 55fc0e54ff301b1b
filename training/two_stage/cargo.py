"""Training rows as they are carried to another machine: texts, questions and choices as token ids, each once, and rows
as numbers of these; and tables (`table_draws.py`), from which rows are drawn there.

A file of arrays is a line of JSON with their names, kinds and sizes, and each array's bytes in an LZMA code, byte by
byte of its numbers: most of the higher ones are alike.
"""

import json
import lzma
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from . import coded_weights
from .chunks import MOST_INPUT, TARGETS, Chunk, Ragged, Source, shortlist, within
from .encoder import DEVICE, Encoder, Shape
from .records import EVEN, Decision
from .stage_a import framed, vectors
from .stage_b import pack
from .table_draws import Column, Lexicon, Table, draws
from .tokens import CLS, SEP
from .watch import Watched

# What stage A says, in whole numbers of this, which one byte holds.
SIMILAR_STEP = 1 / 100
# Of rows, for which what stage A says is found at once.
OPTIONS_AT_ONCE = 1_000_000
# Drawn at once, so that a batch is of rows of like length; a GPU's batches are larger.
ROWS_A_CHUNK = 6000 if DEVICE == "cuda" else 2000
# Processes that draw chunks ahead: on a GPU the cores have nothing else to do.
PROCESSES = min(12, max(1, len(os.sched_getaffinity(0)) - 2)) if DEVICE == "cuda" else 0
# LZMA2 in its raw form, so that a small array costs no head.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 0, "pb": 0}]


def narrow(values: np.ndarray) -> np.ndarray:
    """Whole numbers in as few bytes as hold them."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    kinds = ("u1", "<u2", "<u4") if low >= 0 else ("i1", "<i2", "<i4")
    return values.astype(next(k for k in kinds if np.iinfo(k).min <= low and high <= np.iinfo(k).max))


def arrays_written(arrays: dict[str, np.ndarray]) -> bytes:
    """A file of arrays of whole numbers."""
    head, parts = [], []
    for name, values in arrays.items():
        values = narrow(np.asarray(values).ravel())
        planes = values.view("u1").reshape(-1, values.itemsize).T.tobytes()
        parts.append(lzma.compress(planes, lzma.FORMAT_RAW, filters=FILTERS))
        head.append([name, values.dtype.str, len(parts[-1])])
    return json.dumps(head).encode() + b"\n" + b"".join(parts)


def arrays_read(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of a file, as 64-bit numbers."""
    head, _, body = data.partition(b"\n")
    found, place = {}, 0
    for name, kind, size in json.loads(head):
        planes = lzma.decompress(body[place : place + size], lzma.FORMAT_RAW, filters=FILTERS)
        width = np.dtype(kind).itemsize
        values = np.frombuffer(planes, "u1").reshape(width, -1).T.copy().view(kind).ravel()
        found[name], place = values.astype(np.int64), place + size
    return found


@dataclass(frozen=True)
class Rows:
    """Rows as numbers: their texts and questions, their options (which choices), labels (places in these, or TARGETS),
    what stage A says of each option, whether the next row is the opposite, and whether the options are a scale's steps
    in order.
    """

    texts: np.ndarray
    questions: np.ndarray
    options: Ragged
    labels: np.ndarray
    similar: np.ndarray
    paired: np.ndarray
    scales: np.ndarray

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """As arrays that are named behind `name`."""
        sets: dict[tuple, int] = {}
        of_row = [sets.setdefault(tuple(self.options[i].tolist()), len(sets)) for i in range(len(self.labels))]
        found = {
            "texts": np.diff(self.texts, prepend=0),
            "questions": self.questions,
            "sets": np.array(of_row),
            **ragged_arrays("options", Ragged.of(list(sets))),
            "labels": self.labels,
            "similar": self.similar,
            "paired": self.paired,
            "scales": self.scales,
        }
        return {f"{name}.{key}": values for key, values in found.items()}

    @staticmethod
    def of(arrays: dict[str, np.ndarray], name: str) -> "Rows":
        """From the arrays behind `name`."""
        own = {key.removeprefix(f"{name}."): v for key, v in arrays.items() if key.startswith(f"{name}.")}
        values, lengths = ragged_of(own, "options").taken(own["sets"])
        return Rows(
            np.cumsum(own["texts"]),
            own["questions"],
            Ragged(values, np.cumsum(lengths) - lengths, lengths),
            own["labels"],
            own["similar"],
            own["paired"].astype(bool),
            own["scales"].astype(bool),
        )


def ragged_arrays(name: str, ragged: Ragged) -> dict[str, np.ndarray]:
    """Sequences as arrays."""
    return {f"{name}.values": ragged.values, f"{name}.lengths": ragged.lengths}


def ragged_of(arrays: dict[str, np.ndarray], name: str) -> Ragged:
    """Sequences from arrays."""
    lengths = arrays[f"{name}.lengths"]
    return Ragged(arrays[f"{name}.values"].astype(np.int32), np.cumsum(lengths) - lengths, lengths)


@dataclass(frozen=True)
class Strings:
    """The token ids of all texts, questions and choices."""

    texts: Ragged
    questions: Ragged
    choices: Ragged


@dataclass(frozen=True)
class Tables:
    """Tables of numbers, the words that drawing from them knows, and what stage A says: of each table a number for each
    of its rows and names, and of names that stand beside any text.
    """

    tables: tuple[Table, ...]
    words: Lexicon
    names: tuple[dict[int, int], ...]
    places: tuple[dict[int, int], ...]
    similar: tuple[np.ndarray, ...]
    beside: dict[int, int]

    @staticmethod
    def of(data: bytes) -> "Tables":
        """From a file; see `tables_written`."""
        head, _, body = lzma.decompress(data).partition(b"\n")
        told = json.loads(head)
        tables = tuple(
            Table(
                str(number),
                tuple(Column(tuple(c["wordings"]), tuple(map(tuple, c["lists"])), *rest(c)) for c in each["columns"]),
                tuple((tuple(answers), text) for answers, text in each["rows"]),
            )
            for number, each in enumerate(told["tables"])
        )
        words = Lexicon(
            frozenset(told["words"]["residuals"]),
            *(tuple(told["words"][key]) for key in ("none", "blanks")),
            *(tuple(map(tuple, told["words"][key])) for key in ("yes_no", "verdicts")),
        )
        names, similar, place = [], [], 0
        flat = np.frombuffer(body, "i1")
        for table in tables:
            own = names_of(table)
            size = len(own) * len(table.rows)
            similar.append(flat[place : place + size].reshape(len(table.rows), len(own)))
            names.append({name: i for i, name in enumerate(own)})
            place += size
        places = tuple({text: i for i, (_, text) in enumerate(table.rows)} for table in tables)
        beside = {int(name): value for name, value in told["beside"].items()}
        return Tables(tables, words, tuple(names), places, tuple(similar), beside)

    def similar_of(self, row: Decision) -> list[int]:
        """What stage A says of the options of a drawn row."""
        number = int(row.task)
        names, place = self.names[number], self.places[number].get(row.input)
        told = self.similar[number][place] if place is not None else None
        return [
            int(told[names[name]]) if told is not None and name in names else self.beside.get(name, 0)
            for name in row.choices
        ]


def rest(column: dict) -> tuple[int, tuple[int, ...], bool, bool]:
    """What a column has beside its wordings and lists."""
    return column["bare"], tuple(column["verdict"]), column["is_verdict"], column["is_scale"]


def names_of(table: Table) -> list[int]:
    """The different names of a table's choices in the order in which they first stand there."""
    return list(dict.fromkeys(name for column in table.columns for names in column.lists for name in names))


def tables_written(tables: Sequence[Table], words: Lexicon, similar: Sequence[np.ndarray], beside: dict) -> bytes:
    """Tables of numbers as a file; `similar` and `beside`: of `Tables`."""
    told = {
        "tables": [{"columns": [asdict(c) for c in table.columns], "rows": table.rows} for table in tables],
        "words": {**asdict(words), "residuals": sorted(words.residuals)},
        "beside": beside,
    }
    body = b"".join(each.astype("i1").tobytes() for each in similar)
    return lzma.compress(json.dumps(told, separators=(",", ":")).encode() + b"\n" + body, preset=9)


def carried_stage_a(folder: Path) -> Encoder | None:
    """The stage A of what was carried, if it travels with the rows."""
    path = folder / "stage-a.bin"
    if not path.exists():
        return None
    encoder = Encoder(Shape(**json.loads((folder / "run.json").read_text())["stage_a"]))
    words = coded_weights.read((folder / "words.bin").read_bytes())[coded_weights.WORDS]
    encoder.load_state_dict({**coded_weights.read(path.read_bytes()), "words.weight": words})
    return encoder.to(DEVICE).eval()


# Vectors by the numbers of what was read.
Vectors = np.ndarray | Mapping[int, np.ndarray]


def in_steps(similar: np.ndarray) -> np.ndarray:
    """Cosines in whole numbers of SIMILAR_STEP."""
    return np.clip(np.round(similar / SIMILAR_STEP), -127, 127).astype(np.int64)


def said_by(encoder: Encoder, strings: Strings, rows: Rows, tables: Tables) -> tuple[Rows, Tables]:
    """Rows and tables with what a stage A says of them; rows are cut to the choices that stage B reads."""

    def read(sequences: Ragged, longest: int) -> np.ndarray:
        return vectors(encoder, [framed(sequences[i].tolist(), longest) for i in range(len(sequences.lengths))])

    texts, choices = read(strings.texts, MOST_INPUT + 2), read(strings.choices, MOST_INPUT + 2)
    of_text, of_choice = (torch.from_numpy(each).to(DEVICE) for each in (texts, choices))
    read_texts = torch.from_numpy(np.repeat(rows.texts, rows.options.lengths)).to(DEVICE)
    offered = torch.from_numpy(rows.options.values.astype(np.int64)).to(DEVICE)
    parts = zip(read_texts.split(OPTIONS_AT_ONCE), offered.split(OPTIONS_AT_ONCE), strict=True)
    found = [torch.einsum("ow,ow->o", of_text[text], of_choice[choice]).cpu().numpy() for text, choice in parts]
    similar = np.concatenate(found)
    there, options, labels = shortlist(rows.options, rows.labels, similar)
    rows = replace(rows, options=options, labels=labels, similar=in_steps(similar[there]))
    of_table, beside = said_of(tables.tables, tables.beside, texts, choices)
    return rows, replace(tables, similar=tuple(of_table), beside=beside)


def said_of(
    tables: Sequence[Table], beside: Iterable[int], texts: Vectors, names: Vectors
) -> tuple[list[np.ndarray], dict[int, int]]:
    """What a stage A says of each row and name of tables, and of names that stand `beside` any text; from its vectors
    of texts and names by their numbers.
    """
    found = [
        in_steps(np.stack([texts[t] for _, t in table.rows]) @ np.stack([names[n] for n in names_of(table)]).T)
        for table in tables
    ]
    read = sorted({text for table in tables for _, text in table.rows})
    centre = np.mean([texts[t] for t in read], 0) if read else 0.0
    return found, {name: int(in_steps(np.sum(names[name] * centre))) for name in beside}


class CargoFeed:
    """A `Feed` of what was carried: rows that were drawn before, again and again in another order, and rows that are
    drawn from the tables as long as it is asked. Options are in an order of their own each time.
    """

    def __init__(self, folder: Path, tables_share: float, seed: int):
        arrays = arrays_read((folder / "rows.bin").read_bytes())
        self.strings = Strings(*(ragged_of(arrays, name) for name in ("texts", "questions", "choices")))
        self.rows = Rows.of(arrays, "drawn")
        self.tables = Tables.of((folder / "tables.bin").read_bytes())
        stage_a = carried_stage_a(folder)
        if stage_a is not None:
            self.rows, self.tables = said_by(stage_a, self.strings, self.rows, self.tables)
        self.seed, self.share = seed, tables_share if self.tables.tables else 0.0
        # Of each row, or row and its opposite, the first.
        self.firsts = np.flatnonzero(~np.concatenate([[False], self.rows.paired[:-1]]))
        names = json.loads((folder / "run.json").read_text())["watched"]
        self.watched = self.watched_sets(Rows.of(arrays, "watched"), names)
        self.drawing = Source(self.drawn, PROCESSES).drawn(0)
        # Asked for once at once, so that other processes begin before this one has a GPU.
        self.source = chain([next(self.drawing)], self.drawing)

    def close(self) -> None:
        """Ends the other processes."""
        self.drawing.close()

    def watched_sets(self, rows: Rows, counts: dict[str, int]) -> dict[str, Watched]:
        """The held-out sets, which stand one behind another."""
        found, first = {}, 0
        for name, count in counts.items():
            packs, similar = [], []
            for i in range(first, first + count):
                options = [self.strings.choices[c].tolist() for c in rows.options[i]]
                question, text = self.strings.questions[rows.questions[i]], self.strings.texts[rows.texts[i]]
                packs.append(pack(question.tolist(), text.tolist(), options))
                start = rows.options.starts[i]
                similar.append(rows.similar[start : start + len(options)] * SIMILAR_STEP)
            found[name] = Watched(packs, similar, rows.labels[first : first + count].tolist())
            first += count
        return found

    def chunks(self, first: int) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Chunks without end; whoever asks again gets the following ones, so that several runs share none."""
        del first
        for chunk, a in self.source:
            yield replace(chunk, choices=self.strings.choices), a

    def drawn(self, number: int) -> tuple[Chunk, np.ndarray]:
        """The chunk of this number, without the choices' ids, which all share."""
        rng = random.Random(self.seed * 10007 + number)
        asked = round(self.share * ROWS_A_CHUNK) if len(self.firsts) else ROWS_A_CHUNK
        rows = [self.of_table(row, rng) for row in self.asked(asked, rng)] if self.share else []
        for first in self.taken(number * (ROWS_A_CHUNK - asked), ROWS_A_CHUNK - asked):
            rows += self.carried(first, rng)
        texts, questions, options, labels, similar, paired, ranks = zip(*rows, strict=True)
        chunk = Chunk(
            premises=self.premises(np.array(texts), np.array(questions)),
            texts=Ragged.of([]),
            names=[],
            choices=Ragged.of([]),
            options=Ragged.of(options),
            labels=np.array(labels),
            paired=np.array(paired),
            ranks=np.concatenate(ranks),
        )
        return chunk, (np.concatenate(similar) * SIMILAR_STEP).astype(np.float32)

    def taken(self, first: int, count: int) -> np.ndarray:
        """`count` of `firsts` from the place `first` on in an order that is another one each time around."""
        size, found = len(self.firsts), []
        while count > 0:
            turn, place = divmod(first, size)
            order = np.random.default_rng(self.seed + turn).permutation(size)[place : place + count]
            found.append(self.firsts[order])
            first, count = first + len(order), count - len(order)
        return np.concatenate(found) if found else np.empty(0, int)

    def asked(self, count: int, rng: random.Random) -> Iterator[Decision]:
        """So many decisions of the tables."""
        found = draws(self.tables.tables, self.tables.words, rng)
        return (next(found) for _ in range(count))

    def of_table(self, row: Decision, rng: random.Random) -> tuple:
        """A decision of a table as a row."""
        order = rng.sample(range(len(row.choices)), len(row.choices))
        similar = self.tables.similar_of(row)
        label = TARGETS[EVEN] if row.label == EVEN else order.index(row.choices.index(row.label))
        ranks = np.array(order) if row.ranks else np.full(len(order), -1)
        options = [row.choices[i] for i in order]
        return row.input, row.instruction, options, label, np.array([similar[i] for i in order]), False, ranks

    def carried(self, first: int, rng: random.Random) -> list[tuple]:
        """A row that was drawn before, with its opposite if it has one, which keeps the order of the choices."""
        rows, found = self.rows, []
        order = np.array(rng.sample(range(rows.options.lengths[first]), rows.options.lengths[first]))
        for i in (first, first + 1) if rows.paired[first] else (first,):
            start, label = rows.options.starts[i], rows.labels[i]
            found.append(
                (
                    rows.texts[i],
                    rows.questions[i],
                    rows.options[i][order],
                    label if label < 0 else int(np.flatnonzero(order == label)[0]),
                    rows.similar[start : start + len(order)][order],
                    rows.paired[i],
                    order if rows.scales[i] else np.full(len(order), -1),
                )
            )
        return found

    def premises(self, texts: np.ndarray, questions: np.ndarray) -> Ragged:
        """[CLS] question [SEP] text [SEP] of each row."""
        asked, asked_lengths = self.strings.questions.taken(questions)
        read, read_lengths = self.strings.texts.taken(texts)
        lengths = asked_lengths + read_lengths + 3
        starts = np.cumsum(lengths) - lengths
        values = np.full(int(lengths.sum()), SEP, np.int32)
        values[starts] = CLS
        values[np.repeat(starts + 1, asked_lengths) + within(asked_lengths)] = asked
        values[np.repeat(starts + 2 + asked_lengths, read_lengths) + within(read_lengths)] = read
        return Ragged(values, starts, lengths)
