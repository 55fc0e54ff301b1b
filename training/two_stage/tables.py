r"""Tables of ordinary decisions (`training/everyday/tables/`): texts of one kind, each with an answer to every one of
five to eight questions, so that whoever learns from them has to read the question.

A file is the work of one writer, in lines:

    ## a kind of text                                      begins a table
    A question // the same // ... || choices || choices    a column: wordings of one question, then lists of names for
                                                           the same choices in the same order, apart by |
    > 1 2 - a text                                         for each column the number of its right choice, or - where no
                                                           choice answers the question; "\n" is the end of a line in it
"""

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from .everyday import BLANKS, FOLDER, fewer, residual
from .records import EVEN, Decision
from .wordings import RESIDUAL, VERDICTS, YES_NO

TABLES = FOLDER / "tables"
# Of the tables, by the hashes of their writers and kinds, one in so many is held out.
EVERY_HELD_OUT = 10
# What is held out, each a kind of question for the rule that joins the stages.
KINDS = ("table_yes_no", "table_scale", "table_choice")
# The same in other languages.
FAR = tuple(f"far_{kind}" for kind in KINDS)
# Of questions: with a list of names that describes nothing.
BARE = 2 / 3
# Of a text's other columns: so many follow it at most, so that one text is asked different things in one chunk.
MOST_AFTER = 2
# Of questions: the text is one that says nothing.
BLANK = 0.03
# Of questions that nothing answers: with "none of these" beside the choices, which then is right.
RESIDUAL_FITS = 0.4
# Of questions with three choices or more: some wrong choices less; "none of these" more, in a third of them in the right
# one's place; and the answer to another question about the same text more, which is true of it and still wrong here.
FEWER, WITH_RESIDUAL, GONE, CONTRAST = 0.12, 0.12, 0.35, 0.1
# Words that are the steps of a scale if they stand in this order.
ORDERS = tuple(
    order.split()
    for order in (
        "none low moderate medium high critical",
        "small medium large",
        "trivial minor moderate major severe critical",
        "none mild moderate severe",
        "poor weak fair average good excellent",
        "never rarely sometimes often always",
        "terrible bad mediocre fine good great",
        "beginner intermediate advanced expert",
        "later soon today now",
        "few some many",
        "easy medium hard",
        "calm annoyed angry furious",
        "low normal high urgent",
        "short medium long",
        "worse same better",
        "cold cool warm hot",
    )
)
ANSWERS = {"yes", "no", "true", "false"}


@dataclass(frozen=True)
class Column:
    """One question: its wordings, and lists of names for its choices."""

    wordings: tuple[str, ...]
    lists: tuple[tuple[str, ...], ...]

    @cached_property
    def bare(self) -> tuple[tuple[str, ...], ...]:
        """The lists without descriptions; the first one, if all have some."""
        return tuple(names for names in self.lists if not any(": " in name for name in names)) or self.lists[:1]

    @cached_property
    def is_scale(self) -> bool:
        """Whether one of the lists has numbers that rise or fall, or words of ORDERS in their order."""
        return any(map(rising, self.lists))

    @cached_property
    def is_verdict(self) -> bool:
        """Whether the choices are yes and no, or true and false, and perhaps that the text leaves it open."""
        return len({name.lower() for name in self.lists[0]} & ANSWERS) == 2

    @property
    def kind(self) -> str:
        """Of KINDS."""
        return KINDS[0 if self.is_verdict else 1 if self.is_scale else 2]


@dataclass(frozen=True)
class Table:
    """Texts of one kind; `rows`: (the index of the right choice, or None, of each column; text)."""

    writer: str
    kind: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[tuple[int | None, ...], str], ...]

    @cached_property
    def by_answer(self) -> list[dict[int | None, list[int]]]:
        """Of each column, the rows of each answer."""
        found: list[dict[int | None, list[int]]] = [defaultdict(list) for _ in self.columns]
        for row, (answers, _) in enumerate(self.rows):
            for column, answer in enumerate(answers):
                found[column][answer].append(row)
        return found

    def decision(self, row: int, column: int, instruction: str, names: Sequence[str]) -> Decision:
        """A decision about a text by one of the columns; its target is even where no choice answers the question."""
        answers, text = self.rows[row]
        label = EVEN if answers[column] is None else names[answers[column]]
        ranks = tuple(range(len(names))) if self.columns[column].is_scale else ()
        return Decision(
            text, instruction, tuple(names), label, "everyday/table", f"{self.writer}/{self.kind}", ranks=ranks
        )


def rising(names: Sequence[str]) -> bool:
    """Whether these names are the steps of a scale."""
    numbers = [re.findall(r"\d+", name) for name in names]
    if len(names) < 3:
        return False
    if all(len(n) >= 1 for n in numbers):
        values = [int(n[0]) for n in numbers]
        steps = [b - a for a, b in zip(values, values[1:], strict=False)]
        return all(s > 0 for s in steps) or all(s < 0 for s in steps)
    low = [name.lower() for name in names]
    for order in ORDERS:
        places = [order.index(name) for name in low if name in order]
        if len(places) >= max(2, len(names) - 1) and places in (sorted(places), sorted(places, reverse=True)):
            return True
    return False


def read_file(path: Path) -> list[Table]:
    """The tables of a file; a ValueError names a line that is not of the form."""
    tables: list[tuple[str, list[Column], list]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):

        def wrong(why: str, number: int = number) -> ValueError:
            return ValueError(f"{path.name}:{number}: {why}")

        if not line.strip():
            continue
        if line.startswith("## "):
            tables.append((line[3:].strip(), [], []))
            continue
        if not tables:
            raise wrong("before the first table")
        _, columns, rows = tables[-1]
        if re.match("[A-Z] ", line):
            question, *parts = (part.strip() for part in line[2:].split("||"))
            lists = tuple(tuple(name.strip() for name in part.split("|")) for part in parts)
            wordings = tuple(wording.strip() for wording in question.split("//"))
            if rows or not lists or not all(wordings) or len({len(names) for names in lists}) > 1:
                raise wrong("no column, or one behind texts")
            if any(len(names) < 2 or len(set(names)) < len(names) or not all(names) for names in lists):
                raise wrong("choices that are empty, fewer than two or the same")
            columns.append(Column(wordings, lists))
        elif line.startswith(">"):
            *marks, text = line[1:].strip().split(" ", len(columns))
            if len(marks) != len(columns) or not all(re.fullmatch(r"\d+|-", mark) for mark in marks):
                raise wrong(f"{len(columns)} answers and a text are wanted")
            answers = tuple(None if mark == "-" else int(mark) - 1 for mark in marks)
            for column, answer in zip(columns, answers, strict=True):
                if answer is not None and not 0 <= answer < len(column.lists[0]):
                    raise wrong(f"there is no choice {answer + 1}")
            rows.append((answers, text.replace("\\n", "\n")))
        else:
            raise wrong("neither a table, a column nor a text")
    return [Table(path.stem, kind, tuple(columns), tuple(rows)) for kind, columns, rows in tables]


def read_tables(folder: Path = TABLES) -> list[Table]:
    """All tables of a folder."""
    return [table for path in sorted(folder.glob("*.txt")) for table in read_file(path)]


def by_hash(table: Table, of: str = "") -> int:
    """A number that is the table's own, for what is drawn once for all runs."""
    return int(hashlib.sha256(f"{of}{table.writer}/{table.kind}".encode()).hexdigest()[:8], 16)


def split(tables: Sequence[Table]) -> tuple[list[Table], list[Table]]:
    """(trained, held out)."""
    held = [by_hash(table) % EVERY_HELD_OUT == 0 for table in tables]
    return (
        [t for t, out in zip(tables, held, strict=True) if not out],
        [t for t, out in zip(tables, held, strict=True) if out],
    )


def part(tables: Sequence[Table], share: float) -> list[Table]:
    """A share of the tables, the same ones for every run, a smaller share inside a greater."""
    return sorted(tables, key=lambda table: by_hash(table, "part "))[: round(share * len(tables))]


def draws(tables: Sequence[Table], rng: random.Random) -> Iterator[Decision]:
    """Decisions without end: every column as often as another, and each of its answers, `-` among them; then the same
    text by others of its columns.
    """
    places = [(table, column) for table in tables for column in range(len(table.columns))]
    while True:
        table, column = rng.choice(places)
        answer = rng.choice(sorted(table.by_answer[column], key=str))
        row = rng.choice(table.by_answer[column][answer])
        others = [k for k in range(len(table.columns)) if k != column]
        for asked in (column, *rng.sample(others, min(rng.randint(0, MOST_AFTER), len(others)))):
            yield drawn(table, row, asked, rng)


def drawn(table: Table, row: int, column: int, rng: random.Random) -> Decision:
    """A text by one of its columns, in one of its wordings, with one of its lists, perhaps with other choices."""
    asked = table.columns[column]
    names = rng.choice((asked.bare[0], *asked.bare)) if rng.random() < BARE else rng.choice(asked.lists)
    if asked.is_verdict and rng.random() < 0.2:
        names = other_verdicts(names, rng)
    decision = table.decision(row, column, rng.choice(asked.wordings), names)
    has_residual = any(map(residual, names))
    if rng.random() < BLANK and not asked.is_verdict:
        fitting = [name for name in names if residual(name)]
        return replace(decision, input=rng.choice(BLANKS), label=fitting[0] if fitting else EVEN)
    if decision.label == EVEN:
        if has_residual or rng.random() >= RESIDUAL_FITS:
            return decision
        none = rng.choice(RESIDUAL)
        return with_choices(decision, none, (*names, none))
    if len(names) < 3 or asked.is_verdict:
        return decision
    draw = rng.random()
    if draw < FEWER:
        return fewer(decision, rng)
    if draw < FEWER + WITH_RESIDUAL and not has_residual:
        none, gone = rng.choice(RESIDUAL), rng.random() < GONE
        kept = tuple(name for name in names if not (gone and name == decision.label))
        return with_choices(decision, none if gone else decision.label, (*kept, none))
    if draw < FEWER + WITH_RESIDUAL + CONTRAST and not has_residual:
        other = table.columns[rng.randrange(len(table.columns))]
        place = table.rows[row][0][table.columns.index(other)]
        if other is not asked and not other.is_verdict and place is not None and other.bare[0][place] not in names:
            return with_choices(decision, decision.label, (*names, other.bare[0][place]))
    return decision


def other_verdicts(names: Sequence[str], rng: random.Random) -> tuple[str, ...]:
    """Other names of yes and no, or of the verdicts on a claim, in the order of `names`."""
    if [name.lower() for name in names] in (["yes", "no"], ["no", "yes"]):
        yes, no = rng.choice(YES_NO)
        return tuple(yes if name.lower() == "yes" else no for name in names)
    if [name.lower() for name in names] == ["true", "false", "not stated"]:
        return tuple(rng.choice(VERDICTS))
    return tuple(names)


def with_choices(decision: Decision, label: str, choices: tuple[str, ...]) -> Decision:
    """The decision with other choices, which are no scale."""
    return replace(decision, label=label, choices=choices, ranks=())


def held_out_sets(tables: Sequence[Table], count: int, seed: int) -> dict[str, list[Decision]]:
    """Up to `count` rows of each of KINDS, every column and each of its choices as often as another."""
    rng, result = random.Random(seed), {}
    for kind in KINDS:
        places = [(t, k) for t in tables for k, column in enumerate(t.columns) if column.kind == kind]
        found: dict[tuple, Decision] = {}
        for _ in range(20 * count if places else 0):
            table, column = rng.choice(places)
            asked = table.columns[column]
            answer = rng.choice([a for a in sorted(table.by_answer[column], key=str) if a is not None])
            row = rng.choice(table.by_answer[column][answer])
            names = rng.choice(asked.bare) if rng.random() < BARE else rng.choice(asked.lists)
            decision = table.decision(row, column, rng.choice(asked.wordings), names)
            if len(found) < count:
                found.setdefault((decision.input, decision.task, column), decision)
        result[kind] = list(found.values())
    return {name: rows for name, rows in result.items() if rows}
