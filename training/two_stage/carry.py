"""One archive with all that a training run of stage B needs on another machine: code, rows and weights.

    python -m two_stage.carry --archive FILE --megabytes 60 (and what the recipe is told of data, reader and weights)

The rows of the mix are drawn here, as many as there is room for; those of the tables are drawn there. What stage A says
of rows is found here, which takes most of the time that drawing takes, or there, where stage A is carried. How the
archive is run: `carried.py`.
"""

import json
import os
import tempfile
import time
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from . import coded_weights
from .cargo import Rows, Strings, arrays_written, in_steps, names_of, ragged_arrays, said_of, tables_written
from .chunks import MOST_INPUT, MOST_INSTRUCTION, MOST_OPTION, Chunk, Ragged, Source, flattened
from .encoder import Encoder
from .mix_feed import MixFeed
from .recipe import arguments, settings_of
from .records import Decision
from .stage_a import framed
from .stage_b import StageB
from .table_draws import Column, Lexicon, Table
from .tokens import CLS, MASK, SEP
from .train_b import TYPICAL_ROWS, channels_of, keep_memory
from .workshop import Workshop, log

CODE = Path(__file__).parent
MAIN = """import os, sys, tempfile, time, zipfile
started = time.time()
if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(sys.path[0]) as archive:
            archive.extractall(folder)
        sys.path[0] = folder
        from pathlib import Path
        from two_stage.carried import main
        main(Path(folder), started)
"""
# Rows that are drawn at first, to learn how much a row takes; and what part of the room may stay empty.
FIRST_ROWS, EMPTY = 12_000, 0.01
# Numbers of rows that are tried until they fill it.
MOST_TRIES = 6
# Of a run that only its minutes bound.
NO_BOUND = 10**12
# In bytes, of the code and of the archive's own.
BESIDE = 200_000


class Interned:
    """Sequences of token ids by numbers, each once."""

    def __init__(self) -> None:
        self.number: dict[bytes, int] = {}
        self.sequences: list[np.ndarray] = []

    def __call__(self, ids: np.ndarray) -> int:
        """The number of a sequence."""
        key = np.asarray(ids, np.int32).tobytes()
        if key not in self.number:
            self.number[key] = len(self.sequences)
            self.sequences.append(np.frombuffer(key, np.int32))
        return self.number[key]


class Hold:
    """What is carried: `rows` are those that were drawn, and `watched` the held-out ones, as of `Rows`; `unread`: what
    stage A says of drawn rows and of tables is not found here.
    """

    def __init__(self, workshop: Workshop, feed: MixFeed, model: StageB, unread: bool):
        self.workshop, self.feed, self.unread = workshop, feed, unread
        self.chunks = Source(feed.drawn, len(os.sched_getaffinity(0))).drawn(0)
        self.words, self.word_block = model.encoder.words.weight, model.encoder.shape.word_block
        self.texts, self.questions, self.choices = Interned(), Interned(), Interned()
        self.tables = self.tables_of()
        self.counts: dict[str, int] = {}
        self.watched: list[tuple] = []
        for name, rows in workshop.watched().items():
            added = self.rows_of(*feed.with_similar(flattened(rows, workshop.reader)))
            added = [row for row, own in zip(added, added_by(rows), strict=True) if own]
            self.counts[name] = len(added)
            self.watched += [(*row[:5], False, row[6]) for row in added]
        self.rows: list[tuple] = []

    def rows_of(self, chunk: Chunk, a: np.ndarray | None) -> list[tuple]:
        """The rows of a chunk as numbers: text, question, options, label, similar (0 where stage A is not asked here),
        paired, whether a scale's steps.
        """
        a = np.zeros(len(chunk.options.values)) if a is None else a
        names = [self.choices(chunk.choices[i][:MOST_OPTION]) for i in range(len(chunk.choices.lengths))]
        found = []
        for i, label in enumerate(chunk.labels):
            premise, text = chunk.premises[i], chunk.texts[i]
            start, options = chunk.options.starts[i], chunk.options[i]
            ranks, similar = chunk.ranks[start : start + len(options)], a[start : start + len(options)]
            # A pair's choices keep one order; of others the order says nothing, and one that is the same takes no room.
            scale = bool((ranks >= 0).all())
            numbers = np.array([names[o] for o in options])
            order = np.argsort(ranks if scale else numbers, kind="stable")
            found.append(
                (
                    self.texts(text),
                    self.questions(premise[1 : len(premise) - len(text) - 2]),
                    numbers[order],
                    label if label < 0 else int(np.flatnonzero(order == label)[0]),
                    in_steps(similar[order]),
                    bool(chunk.paired[i]),
                    scale,
                )
            )
        return found

    def draw(self, count: int) -> None:
        """Draws rows until there are so many."""
        began, before = time.time(), len(self.rows)
        while len(self.rows) < count:
            chunk, a = next(self.chunks), None
            if not self.unread:
                chunk, a = self.feed.with_similar(chunk)
            self.rows += self.rows_of(chunk, a)
        log(f"{len(self.rows) - before} rows drawn in {time.time() - began:.0f} s")

    def files(self, count: int) -> dict[str, bytes]:
        """The files of rows, with the first `count` drawn ones, and of the words that they have."""
        while self.rows[count - 1][5]:
            count += 1  # its opposite as well
        rows = self.rows[:count]
        firsts = [i for i in range(count) if i == 0 or not rows[i - 1][5]]
        firsts.sort(key=lambda i: (rows[i][0], rows[i][1]))
        drawn = [row for i in firsts for row in (rows[i : i + 2] if rows[i][5] else rows[i : i + 1])]
        # Texts that none of these rows has are left out; so are questions and choices.
        kept = Kept(self, [*drawn, *self.watched])
        arrays = {}
        for name, each in (("drawn", drawn), ("watched", self.watched)):
            arrays |= kept.rows(each).arrays(name)
        for name, ragged in asdict_shallow(kept.strings()).items():
            arrays |= ragged_arrays(name, ragged)
        words = coded_weights.words_written(self.words, kept.used(), self.word_block)
        return {"rows.bin": arrays_written(arrays), "tables.bin": kept.tables_file(), "words.bin": words}

    def tables_of(self) -> tuple[list[Table], Lexicon, list[np.ndarray], dict[int, int]]:
        """The tables as numbers, with what stage A says of each text and each name of its table."""
        reader, mix, encoder = self.workshop.reader, self.workshop.mix, self.feed.stage_a
        text_ids = {t: reader.plain(t)[:MOST_INPUT] for table in mix.tables for _, t in table.rows}
        text_ids |= {t: reader.plain(t)[:MOST_INPUT] for t in mix.words.blanks}

        def text(words: str) -> int:
            return self.texts(text_ids[words])

        def question(words: str) -> int:
            return self.questions(reader.plain(words)[:MOST_INSTRUCTION])

        def choice(words: str) -> int:
            return self.choices(reader.choice(words)[:MOST_OPTION])

        def column(asked: Column) -> Column:
            lists = tuple(tuple(map(choice, names)) for names in asked.lists)
            return replace(asked, wordings=tuple(map(question, asked.wordings)), lists=lists)

        tables = []
        for table in mix.tables:
            rows = tuple((answers, text(words)) for answers, words in table.rows)
            columns = tuple(map(column, table.columns))
            # Names that differ in case alone are the same to the reader, and no choices.
            apart = all(len(set(names)) == len(names) for c in columns for names in c.lists)
            if apart:
                tables.append(Table(table.name, columns, rows))
        log(f"{len(mix.tables) - len(tables)} tables have names that the reader does not tell apart, and stay here")
        words = mix.words
        lexicon = Lexicon(
            frozenset(map(choice, words.residuals)),
            tuple(map(choice, words.none)),
            tuple(map(text, words.blanks)),
            *(tuple(tuple(map(choice, names)) for names in each) for each in (words.yes_no, words.verdicts)),
        )
        of_text = self.vectors({text for table in tables for _, text in table.rows}, self.texts, encoder)
        of_name = self.vectors({name for table in tables for name in names_of(table)}, self.choices, encoder)
        also = [name for each in (lexicon.none, *lexicon.yes_no, *lexicon.verdicts) for name in each]
        of_also = self.vectors(set(also), self.choices, encoder)
        similar, beside = said_of(tables, of_also, of_text, of_name | of_also)
        return tables, lexicon, similar, beside

    def vectors(self, numbers: set[int], interned: Interned, encoder: Encoder) -> dict[int, np.ndarray]:
        """Stage A's vectors of sequences by their numbers, kept in the work folder."""
        if self.unread:
            return dict.fromkeys(numbers, np.zeros(encoder.shape.width))
        order = sorted(numbers)
        frames = [framed(interned.sequences[n].tolist(), MOST_INPUT + 2) for n in order]
        return dict(zip(order, self.workshop.kept_vectors(encoder, frames, ["stage A", *frames]), strict=True))


def added_by(rows: list[Decision]) -> list[bool]:
    """Of the rows of `flattened`, which are the given ones and not their opposites."""
    return [own for row in rows for own in ((True,) if row.opposite is None else (True, False))]


def asdict_shallow(strings: Strings) -> dict[str, Ragged]:
    """The parts by their names."""
    return {"texts": strings.texts, "questions": strings.questions, "choices": strings.choices}


class Kept:
    """What some rows and all tables have of what a hold knows, by new numbers, which are in the order of the ids so
    that like sequences are neighbours.
    """

    def __init__(self, hold: Hold, rows: list[tuple]):
        self.hold = hold
        tables, words, _, beside = hold.tables
        texts = {row[0] for row in rows} | {t for table in tables for _, t in table.rows} | {*words.blanks}
        questions = {row[1] for row in rows} | {q for t in tables for c in t.columns for q in c.wordings}
        choices = {int(c) for row in rows for c in row[2]} | {n for t in tables for n in names_of(t)}
        choices |= {*words.residuals, *beside}
        self.orders = {}
        self.new: dict[str, dict[int, int]] = {}
        for name, interned, numbers in (
            ("texts", hold.texts, texts),
            ("questions", hold.questions, questions),
            ("choices", hold.choices, choices),
        ):
            self.orders[name] = sorted(numbers, key=lambda n: interned.sequences[n].tolist())
            self.new[name] = {number: place for place, number in enumerate(self.orders[name])}

    def strings(self) -> Strings:
        """Their token ids."""
        hold = self.hold
        return Strings(
            *(
                Ragged.of([interned.sequences[n] for n in self.orders[name]])
                for name, interned in (("texts", hold.texts), ("questions", hold.questions), ("choices", hold.choices))
            )
        )

    def used(self) -> np.ndarray:
        """The token ids that occur, and those that every pack has."""
        strings = self.strings()
        parts = [strings.texts.values, strings.questions.values, strings.choices.values]
        return np.unique(np.concatenate([*parts, [0, CLS, SEP, MASK]]))

    def rows(self, rows: list[tuple]) -> Rows:
        """Rows by the new numbers."""
        texts, questions, options, labels, similar, paired, scales = zip(*rows, strict=True)
        choice = self.new["choices"]
        return Rows(
            np.array([self.new["texts"][t] for t in texts]),
            np.array([self.new["questions"][q] for q in questions]),
            Ragged.of([[choice[int(c)] for c in each] for each in options]),
            np.array(labels),
            np.concatenate(similar),
            np.array(paired),
            np.array(scales),
        )

    def tables_file(self) -> bytes:
        """The tables by the new numbers."""
        tables, words, similar, beside = self.hold.tables
        text, question, choice = (self.new[name] for name in ("texts", "questions", "choices"))

        def names(each: tuple) -> tuple:
            return tuple(choice[name] for name in each)

        carried = [
            Table(
                table.name,
                tuple(
                    replace(c, wordings=tuple(question[q] for q in c.wordings), lists=tuple(map(names, c.lists)))
                    for c in table.columns
                ),
                tuple((answers, text[t]) for answers, t in table.rows),
            )
            for table in tables
        ]
        lexicon = Lexicon(
            frozenset(names(tuple(words.residuals))),
            names(words.none),
            tuple(text[t] for t in words.blanks),
            tuple(map(names, words.yes_no)),
            tuple(map(names, words.verdicts)),
        )
        return tables_written(carried, lexicon, similar, {choice[n]: value for n, value in beside.items()})


def weights_of(model: StageB, feed: MixFeed, in_eight_bits: bool) -> bytes:
    """The weights that the run starts from, but for the words: those of a large reader in five bits."""
    typical = [pack for each in feed.watched.values() for pack in each.packs[:TYPICAL_ROWS]]
    channels = channels_of(model, typical) if model.encoder.shape.is_large else None
    state = {name: value for name, value in model.state_dict().items() if name != coded_weights.WORDS}
    return coded_weights.written(state, channels, in_eight_bits)


def filled(hold: Hold, most_rows: int, room: int) -> dict[str, bytes]:
    """The files of about as many rows as `room` bytes hold, and at most so many."""

    def size_of(files: dict[str, bytes]) -> int:
        return sum(map(len, files.values()))

    count, best = min(FIRST_ROWS, most_rows), None
    hold.draw(count)
    # What a row takes falls with their number, since texts are drawn again.
    last = max(1, count // 2), size_of(hold.files(max(1, count // 2)))
    for _ in range(MOST_TRIES):
        files = hold.files(count)
        size = size_of(files)
        log(f"{count} rows: {size / 2**20:.2f} of {room / 2**20:.2f} MiB")
        if size <= room:
            best = files
            if count == most_rows or size >= (1 - EMPTY) * room or count == last[0]:
                break
        a_row = max(1.0, (size - last[1]) / (count - last[0]))
        last = count, size
        count = min(most_rows, max(2, int(count + ((1 - EMPTY / 2) * room - size) / a_row)))
        hold.draw(count)
    if best is None:
        raise ValueError("there is no room for rows: give it more --megabytes")
    return best


def main() -> None:
    """Makes the archive."""
    options = arguments(carry=True)
    keep_memory()
    workshop = Workshop(options)
    settings = {device: replace(settings_of(options, device), rows=NO_BOUND) for device in ("cpu", "cuda")}
    # What is drawn here has no rows of tables: those are drawn there.
    rest = replace(settings["cpu"], tables=0.0, everyday=options.everyday / (1 - options.tables))
    feed, model = workshop.feed(rest, taught=False), workshop.start_b()
    if options.with_stage_a and not torch.equal(feed.stage_a.words.weight, model.encoder.words.weight):
        raise ValueError("--with-stage-a: both stages have to read the same words")
    hold = Hold(workshop, feed, model, options.with_stage_a)
    run = {
        "settings": {device: asdict(each) for device, each in settings.items()},
        "shape": asdict(model.encoder.shape),
        "started_from": workshop.started_from(),
        "data": workshop.hashes(),
        "watched": hold.counts,
    }
    # Beside a stage A there is no room for 16 bits, and what was read back from a package had eight.
    weights = {"weights.bin": weights_of(model, feed, options.with_stage_a)}
    if options.with_stage_a:
        run["stage_a"] = asdict(feed.stage_a.shape)
        state = {name: value for name, value in feed.stage_a.state_dict().items() if name != "words.weight"}
        weights["stage-a.bin"] = coded_weights.written(state, None, in_eight_bits=True)
    room = round(options.megabytes * 2**20) - BESIDE - sum(map(len, weights.values()))
    files = filled(hold, options.rows, room)
    write(options.archive, {**files, **weights, "run.json": json.dumps(run).encode()})
    log(f"{options.archive}: {options.archive.stat().st_size / 2**20:.2f} MiB, {len(hold.rows)} rows drawn")


def write(archive: Path, files: dict[str, bytes]) -> None:
    """The archive of code and files."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        path = Path(folder) / archive.name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archived:
            archived.writestr("__main__.py", MAIN)
            for source in sorted(CODE.glob("*.py")):
                archived.write(source, f"two_stage/{source.name}")
            for name, data in files.items():
                archived.writestr(name, data, zipfile.ZIP_STORED)
        path.replace(archive)


if __name__ == "__main__":
    main()
