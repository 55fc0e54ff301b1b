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
from collections.abc import Sequence
from pathlib import Path

from .everyday import BLANKS, FOLDER
from .records import Decision
from .table_draws import BARE, Column, Lexicon, Table
from .wordings import RESIDUAL, VERDICTS, YES_NO

TABLES = FOLDER / "tables"
# Of the tables, by the hashes of their names, one in so many is held out.
EVERY_HELD_OUT = 10
# What is held out, each a kind of question for the rule that joins the stages; and the same in other languages.
KINDS = ("table_yes_no", "table_scale", "table_choice")
FAR = tuple(f"far_{kind}" for kind in KINDS)
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
# Verdicts by their plain names, and the places of these in YES_NO or VERDICTS.
PLAIN = {("yes", "no"): (0, 1), ("no", "yes"): (1, 0), ("true", "false", "not stated"): (0, 1, 2)}
ANSWERS = {"yes", "no", "true", "false"}
# Names that say that no other choice fits. "Not allowed" and "no pain" do not.
NONE_FITS = re.compile(
    "none of|neither( of|$)|(something|anything|everything|someone|somewhere) else|other\\b|unclear|unknown|cannot be"
    "|not (stated|said|mentioned|given|known|clear|settled|applicable)"
)


def column(wordings: tuple[str, ...], lists: Sequence[tuple[str, ...]]) -> Column:
    """A column, its lists without descriptions at first."""
    described = [any(": " in name for name in names) for names in lists]
    order = sorted(range(len(lists)), key=lambda i: described[i])
    low = tuple(name.lower() for name in lists[0])
    return Column(
        wordings,
        tuple(lists[i] for i in order),
        max(1, described.count(False)),
        PLAIN.get(low, ()),
        len({*low} & ANSWERS) == 2,
        any(map(rising, lists)),
    )


def kind_of(asked: Column) -> str:
    """Of KINDS."""
    return KINDS[0 if asked.is_verdict else 1 if asked.is_scale else 2]


def rising(names: Sequence[str]) -> bool:
    """Whether these names are the steps of a scale: numbers that rise or fall, or words of ORDERS in their order."""
    if len(names) < 3:
        return False
    numbers = [re.findall(r"\d+", name) for name in names]
    if all(numbers):
        values = [int(found[0]) for found in numbers]
        return len(set(values)) == len(values) and values in (sorted(values), sorted(values, reverse=True))
    for order in ORDERS:
        places = [order.index(name.lower()) for name in names if name.lower() in order]
        if len(places) >= max(2, len(names) - 1) and places in (sorted(places), sorted(places, reverse=True)):
            return True
    return False


def read_file(path: Path) -> list[Table]:
    """The tables of a file; a ValueError names a line that is not of the form."""
    tables: list[tuple[str, list[Column], list]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        try:
            read_line(line, tables)
        except ValueError as error:
            raise ValueError(f"{path.name}:{number}: {error}") from error
    return [Table(f"{path.stem}/{kind}", tuple(columns), tuple(rows)) for kind, columns, rows in tables]


def read_line(line: str, tables: list[tuple[str, list[Column], list]]) -> None:
    """Adds what a line says to the last table, or a table; a ValueError says what is wrong with it."""
    if not line.strip():
        return
    if line.startswith("## "):
        tables.append((line[3:].strip(), [], []))
        return
    if not tables:
        raise ValueError("before the first table")
    _, columns, rows = tables[-1]
    if re.match("[A-Z] ", line):
        question, *parts = (part.strip() for part in line[2:].split("||"))
        lists = [tuple(name.strip() for name in part.split("|")) for part in parts]
        wordings = tuple(wording.strip() for wording in question.split("//"))
        if rows or not lists or not all(wordings) or len({len(names) for names in lists}) > 1:
            raise ValueError("not a column, or one behind texts")
        if any(len(names) < 2 or len(set(names)) < len(names) or not all(names) for names in lists):
            raise ValueError("choices that are empty, fewer than two or the same")
        columns.append(column(wordings, lists))
    elif line.startswith(">"):
        *marks, text = line[1:].strip().split(" ", len(columns))
        if len(marks) != len(columns) or not all(re.fullmatch(r"\d+|-", mark) for mark in marks):
            raise ValueError(f"{len(columns)} answers and a text are wanted")
        answers = tuple(None if mark == "-" else int(mark) - 1 for mark in marks)
        for asked, answer in zip(columns, answers, strict=True):
            if answer is not None and not 0 <= answer < len(asked.lists[0]):
                raise ValueError(f"there is no choice {answer + 1}")
        rows.append((answers, text.replace("\\n", "\n")))
    else:
        raise ValueError("neither a table, a column nor a text")


def read_tables(folder: Path = TABLES) -> list[Table]:
    """All tables of a folder."""
    return [table for path in sorted(folder.glob("*.txt")) for table in read_file(path)]


def none_fits(name: str) -> bool:
    """Whether a name says in English that none fits."""
    return NONE_FITS.match(name.lower()) is not None


def lexicon(tables: Sequence[Table]) -> Lexicon:
    """The words that drawing from these tables has to know."""
    # A name in another language stands in the place of an English one; one that stands elsewhere as well ("yes") means
    # more than that.
    named = [names for table in tables for asked in table.columns for names in zip(*asked.lists, strict=True)]
    others = {name for names in named if not any(map(none_fits, names)) for name in names if not none_fits(name)}
    residuals = {name for names in named if any(map(none_fits, names)) for name in names} - others
    return Lexicon(
        frozenset(RESIDUAL) | residuals,
        tuple(RESIDUAL),
        tuple(BLANKS),
        tuple(map(tuple, YES_NO)),
        tuple(map(tuple, VERDICTS)),
    )


def by_hash(table: Table, of: str = "") -> int:
    """A number that is the table's own, for what is drawn once for all runs."""
    return int(hashlib.sha256(f"{of}{table.name}".encode()).hexdigest()[:8], 16)


def split(tables: Sequence[Table]) -> tuple[list[Table], list[Table]]:
    """(trained, held out)."""
    held = {table.name for table in tables if by_hash(table) % EVERY_HELD_OUT == 0}
    return [t for t in tables if t.name not in held], [t for t in tables if t.name in held]


def part(tables: Sequence[Table], share: float) -> list[Table]:
    """A share of the tables, the same ones for every run, a smaller share inside a greater."""
    return sorted(tables, key=lambda table: by_hash(table, "part "))[: round(share * len(tables))]


def held_out_sets(tables: Sequence[Table], count: int, seed: int) -> dict[str, list[Decision]]:
    """Up to `count` rows of each of KINDS, every column and each of its choices as often as another."""
    rng, result = random.Random(seed), {}
    for kind in KINDS:
        places = [(table, k) for table in tables for k, asked in enumerate(table.columns) if kind_of(asked) == kind]
        found: dict[tuple, Decision] = {}
        for _ in range(20 * count if places else 0):
            table, k = rng.choice(places)
            asked = table.columns[k]
            row = rng.choice(table.by_answer[k][rng.choice([a for a in table.by_answer[k] if a is not None])])
            names = asked.lists[rng.randrange(asked.bare if rng.random() < BARE else len(asked.lists))]
            if len(found) < count:
                found.setdefault((table.name, row, k), table.decision(row, k, rng.choice(asked.wordings), names))
        result[kind] = list(found.values())
    return {name: rows for name, rows in result.items() if rows}
