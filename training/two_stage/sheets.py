r"""Texts with many questions (`training/everyday/sheets/`): whoever learns from them has to read the question, because
one text has a dozen and their answers differ.

A file is the work of one writer, in lines:

    @ a field                            of the sheets that follow
    > a text                             begins a sheet; "\n" is the end of a line in it
    + a question // its opposite         the answer to the question is yes; the opposite may be missing
    - a question // its opposite         the answer to the question is no
    f a claim                            that follows from the text
    c a claim                            that the text contradicts
    u a claim                            that the text leaves open
    ? a question | right | wrong | ...   with two answers or more, the right one first
"""

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

from . import negation
from .everyday import FOLDER
from .records import Decision
from .wordings import FOLLOWS, STATEMENTS, VERDICTS, YES_NO

SHEETS = FOLDER / "sheets"
# Of the sheets, by the hashes of their first questions, one in so many is held out.
EVERY_HELD_OUT = 8
# The letters of claims, in the order of VERDICTS.
CLAIMS = "fcu"
# How often a sheet is asked for: one of its yes/no questions, whether a claim is right, which claim is, and one of the
# questions with answers of their own.
ASKED = {"yes_no": 0.42, "claim": 0.2, "which": 0.1, "answer": 0.28}
# What is held out, each a kind of question for the rule that joins the stages.
KINDS = ("sheet_yes_no", "sheet_claim", "sheet_answer")
# Of yes/no questions: answered with these two words.
PLAIN_NAMES = 0.5
# Of claims: asked for as a pair of opposite questions, where the text decides them.
CLAIM_PAIRS = 0.35


@dataclass(frozen=True)
class Sheet:
    """A text and what is asked of it.

    `asked`: (question, opposite or None, whether the answer to the question is yes); `claims`: (claim, its place in
    CLAIMS); `answered`: (question, answers), the right answer first.
    """

    writer: str
    field: str
    text: str
    asked: tuple[tuple[str, str | None, bool], ...]
    claims: tuple[tuple[str, int], ...]
    answered: tuple[tuple[str, tuple[str, ...]], ...]

    def row(self, instruction: str, choices: tuple[str, ...], label: str) -> Decision:
        """A decision about the text."""
        return Decision(self.text, instruction, choices, label, "everyday/sheet", f"{self.writer}/{self.field}")


def read_sheet(writer: str, field: str, text: str, lines: list[str]) -> Sheet:
    """The sheet of a text and the lines behind it; a ValueError names a line that is not of the form or has no text."""
    asked, claims, answered = [], [], []
    for line in lines:
        mark, rest = line[0], line[2:].strip()
        question, *answers = (part.strip() for part in rest.split(" | "))
        if text and mark in "+-" and rest.count(" // ") < 2:
            question, _, opposite = rest.partition(" // ")
            asked.append((question, opposite or None, mark == "+"))
        elif text and mark in CLAIMS:
            claims.append((rest, CLAIMS.index(mark)))
        elif text and mark == "?" and len(set(answers)) == len(answers) > 1:
            answered.append((question, tuple(answers)))
        else:
            raise ValueError(f"{writer}: {line[:60]!r} is not of the form")
    if not asked:
        raise ValueError(f"{writer}: {text[:60]!r} has no yes/no question")
    return Sheet(writer, field, text.replace("\\n", "\n"), tuple(asked), tuple(claims), tuple(answered))


def read_sheets(folder: Path = SHEETS) -> list[Sheet]:
    """All sheets of a folder."""
    sheets = []
    for path in sorted(folder.glob("*.txt")):
        field, text, lines = "", "", []
        for line in [*filter(str.strip, path.read_text(encoding="utf-8").splitlines()), "> "]:
            if line[0] in "@>":
                if text or lines:
                    sheets.append(read_sheet(path.stem, field, text, lines))
                text, lines = "", []
            if line[0] == "@":
                field = line[2:].strip()
            elif line[0] == ">":
                text = line[2:].strip()
            else:
                lines.append(line)
    return sheets


def split(sheets: list[Sheet]) -> tuple[list[Sheet], list[Sheet]]:
    """(trained, held out). Twins stay together where they share their first question, whose hash decides."""

    def held(sheet: Sheet) -> bool:
        return int(hashlib.sha256(sheet.asked[0][0].encode()).hexdigest()[:8], 16) % EVERY_HELD_OUT == 0

    return [s for s in sheets if not held(s)], [s for s in sheets if held(s)]


def part(sheets: list[Sheet], share: float) -> list[Sheet]:
    """A share of the sheets, the same ones for every run, a smaller share inside a greater."""
    ordered = sorted(sheets, key=lambda sheet: hashlib.sha256(f"part {sheet.text}".encode()).hexdigest())
    return ordered[: round(share * len(ordered))]


def drawn(sheets: list[Sheet], rng: random.Random) -> Decision:
    """A question of one of the sheets."""
    sheet = rng.choice(sheets)
    choices = which(sheet)
    ways = {"yes_no": sheet.asked, "claim": sheet.claims, "which": choices, "answer": sheet.answered}
    there = {name: ASKED[name] for name, items in ways.items() if items}
    way = rng.choices(list(there), list(there.values()))[0]
    if way == "yes_no":
        return yes_no(sheet, rng)
    if way == "claim":
        return claim(sheet, rng)
    if way == "which":
        return sheet.row(rng.choice(FOLLOWS), choices, choices[0])
    question, answers = rng.choice(sheet.answered)
    return sheet.row(question, answers, answers[0])


def lent(sheets: list[Sheet], rng: random.Random) -> tuple[str, Decision]:
    """A text, and a question that was asked of another one of its field, if there is one."""
    sheet = rng.choice(sheets)
    others = [s for s in sheets if s.field == sheet.field and s.text != sheet.text]
    return sheet.text, drawn(others or sheets, rng)


def yes_no(sheet: Sheet, rng: random.Random) -> Decision:
    """One of the yes/no questions, with its opposite if it has one."""
    question, opposite, true = rng.choice(sheet.asked)
    yes, no = names = ("yes", "no") if rng.random() < PLAIN_NAMES else rng.choice(YES_NO)
    if opposite is not None:
        return negation.pair(sheet.row("", (), ""), question, opposite, true, rng, names)
    return sheet.row(question, (yes, no), yes if true else no)


def claim(sheet: Sheet, rng: random.Random) -> Decision:
    """Whether one of the claims is right."""
    said, place = rng.choice(sheet.claims)
    if place < 2 and rng.random() < CLAIM_PAIRS:
        return negation.pair(sheet.row("", (), ""), *negation.about_claim(said, rng), place == 0, rng)
    names = rng.choice(VERDICTS)
    return sheet.row(rng.choice(STATEMENTS).format(said), names, names[place])


def which(sheet: Sheet) -> tuple[str, ...]:
    """The claims, the one that follows first; none if not exactly one does."""
    right = [said for said, place in sheet.claims if place == 0]
    wrong = [said for said, place in sheet.claims if place > 0]
    return (*right, *wrong) if len(right) == 1 and wrong else ()


def held_out_sets(sheets: list[Sheet], count: int, seed: int) -> dict[str, list[Decision]]:
    """Up to `count` rows of each: yes/no questions, claims, and questions with answers of their own."""
    rng, result = random.Random(seed), {name: [] for name in KINDS}
    for sheet in sheets:
        for question, opposite, true in sheet.asked:
            name = "yes" if true else "no"
            result["sheet_yes_no"].append(sheet.row(question, ("yes", "no"), name))
            if opposite is not None:
                result["sheet_yes_no"].append(sheet.row(opposite, ("yes", "no"), "no" if true else "yes"))
        for said, place in sheet.claims:
            names = rng.choice(VERDICTS)
            result["sheet_claim"].append(sheet.row(rng.choice(STATEMENTS).format(said), names, names[place]))
        for question, answers in sheet.answered:
            result["sheet_answer"].append(sheet.row(question, answers, answers[0]))
    return {name: rng.sample(rows, min(count, len(rows))) for name, rows in result.items()}
