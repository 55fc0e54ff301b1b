"""How decisions are drawn from tables: texts of one kind, each with an answer to every one of several questions.

Texts, questions and names are strings where the tables are read (`tables.py`), and numbers where a run is carried to
another machine: nothing here looks into them.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .records import EVEN, Decision

# A text, a question or a name.
Word = str | int

# Of questions: with a list of names that describes nothing.
BARE = 2 / 3
# Of a text's other columns: so many follow it at most, so that one text is asked different things in one chunk.
MOST_AFTER = 2
# Of questions: the text is one that says nothing. Of verdicts: by other names.
BLANK, OTHER_VERDICTS = 0.03, 0.2
# Of questions that nothing answers: with "none of these" beside the choices, which then is right.
RESIDUAL_FITS = 0.4
# Of questions with three choices or more: some wrong choices less; "none of these" more, in a third in the right
# one's place; the answer to another question about the same text more, which is true of it and still wrong here.
FEWER, WITH_RESIDUAL, GONE, CONTRAST = 0.12, 0.12, 0.35, 0.1


@dataclass(frozen=True)
class Lexicon:
    """Words that drawing knows.

    `residuals`: names that say that none fits; `none`: of them, those that may stand beside any choices; `blanks`:
    texts that say nothing; `yes_no` and `verdicts`: names of yes and no, and of the three verdicts on a claim.
    """

    residuals: frozenset[Word]
    none: tuple[Word, ...]
    blanks: tuple[Word, ...]
    yes_no: tuple[tuple[Word, ...], ...]
    verdicts: tuple[tuple[Word, ...], ...]


@dataclass(frozen=True)
class Column:
    """One question: its wordings, and lists of names for its choices, of which so many at first describe nothing.

    `verdict`: the places of its choices in `yes_no` or `verdicts`, if they are the plain ones; `is_verdict`: whether
    they are yes and no, or true and false, in any form; `is_scale`: whether they are steps in order.
    """

    wordings: tuple[Word, ...]
    lists: tuple[tuple[Word, ...], ...]
    bare: int
    verdict: tuple[int, ...]
    is_verdict: bool
    is_scale: bool


@dataclass(frozen=True)
class Table:
    """Texts of one kind; `rows`: (the index of the right choice, or None, of each column; text)."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[tuple[int | None, ...], Word], ...]

    @cached_property
    def by_answer(self) -> list[dict[int | None, list[int]]]:
        """Of each column, the rows of each answer."""
        found: list[dict[int | None, list[int]]] = [defaultdict(list) for _ in self.columns]
        for row, (answers, _) in enumerate(self.rows):
            for column, answer in enumerate(answers):
                found[column][answer].append(row)
        return [dict(sorted(answers.items(), key=str)) for answers in found]

    def decision(self, row: int, column: int, instruction: Word, names: Sequence[Word]) -> Decision:
        """A decision about a text by one of the columns; its target is even where no choice answers the question."""
        answers, text = self.rows[row]
        label = EVEN if answers[column] is None else names[answers[column]]
        ranks = tuple(range(len(names))) if self.columns[column].is_scale else ()
        return Decision(text, instruction, tuple(names), label, "everyday/table", self.name, ranks=ranks)


def draws(tables: Sequence[Table], words: Lexicon, rng: random.Random) -> Iterator[Decision]:
    """Decisions without end: every column as often as another, and each of its answers, `-` among them; then the same
    text by others of its columns.
    """
    places = [(table, column) for table in tables for column in range(len(table.columns))]
    while True:
        table, column = rng.choice(places)
        row = rng.choice(rng.choice(list(table.by_answer[column].values())))
        others = [k for k in range(len(table.columns)) if k != column]
        for asked in (column, *rng.sample(others, min(rng.randint(0, MOST_AFTER), len(others)))):
            yield drawn(table, words, row, asked, rng)


def names_of(column: Column, words: Lexicon, rng: random.Random) -> tuple[Word, ...]:
    """Names of a column's choices."""
    if column.verdict and rng.random() < OTHER_VERDICTS:
        names = rng.choice(words.yes_no if len(column.verdict) == 2 else words.verdicts)
        return tuple(names[place] for place in column.verdict)
    return column.lists[rng.randrange(column.bare if rng.random() < BARE else len(column.lists))]


def drawn(table: Table, words: Lexicon, row: int, column: int, rng: random.Random) -> Decision:
    """A text by one of its columns, in one of its wordings, with one of its lists, perhaps with other choices."""
    asked = table.columns[column]
    names = names_of(asked, words, rng)
    decision = table.decision(row, column, rng.choice(asked.wordings), names)
    fitting = [name for name in names if name in words.residuals]
    if not asked.is_verdict and rng.random() < BLANK:
        return replace(decision, input=rng.choice(words.blanks), label=fitting[0] if fitting else EVEN)
    if decision.label == EVEN:
        if fitting or rng.random() >= RESIDUAL_FITS:
            return decision
        none = rng.choice(words.none)
        return with_choices(decision, none, (*names, none))
    if len(names) < 3 or asked.is_verdict:
        return decision
    draw = rng.random()
    if draw < FEWER:
        return fewer(decision, rng)
    if fitting or draw >= FEWER + WITH_RESIDUAL + CONTRAST:
        return decision
    if draw < FEWER + WITH_RESIDUAL:
        none, gone = rng.choice(words.none), rng.random() < GONE
        kept = tuple(name for name in names if not (gone and name == decision.label))
        return with_choices(decision, none if gone else decision.label, (*kept, none))
    other = rng.randrange(len(table.columns))
    answer, theirs = table.rows[row][0][other], table.columns[other]
    if other == column or theirs.is_verdict or answer is None or theirs.lists[0][answer] in names:
        return decision
    return with_choices(decision, decision.label, (*names, theirs.lists[0][answer]))


def with_choices(decision: Decision, label: Word, choices: tuple[Word, ...]) -> Decision:
    """The decision with other choices, which are no scale."""
    return replace(decision, label=label, choices=choices, ranks=())


def fewer(row: Decision, rng: random.Random) -> Decision:
    """The row with some of its wrong choices left out."""
    wrong = [i for i, c in enumerate(row.choices) if c != row.label]
    kept = {*rng.sample(wrong, rng.randint(1, len(wrong))), row.choices.index(row.label)}
    ranks = tuple(r for i, r in enumerate(row.ranks) if i in kept)
    return replace(row, choices=tuple(c for i, c in enumerate(row.choices) if i in kept), ranks=ranks)
