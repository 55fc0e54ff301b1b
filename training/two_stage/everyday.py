"""The corpus of everyday decisions (`training/everyday/`), read and split: whole tasks are held out for fitting the
rule.

A file is JSON lines, a line a group of rows with one question: {"task", "kind", "field", "instructions": [...],
"choices": [[...], ...], "rows": [[text, index or null], ...]}. The instructions are wordings of the same question; the
lists of choices are other names of the same choices, in the same order; of ordinal groups that is the order of the
scale. A row's index is that of its choice; null where the choices do not answer the question.
"""

import hashlib
import json
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .lists import Lists
from .records import Decision
from .wordings import RESIDUAL

FOLDER = Path(__file__).resolve().parents[1] / "everyday"
# Each part is split by itself, so that what an earlier model was trained on is not held out for a later one.
PARTS = (FOLDER, *(FOLDER / part for part in ("more", "moderation", "third", "fourth")))
# The kind whose choices are steps of a scale.
ORDINAL = "ordinal"
# Kinds whose questions are about some field, so that a text of another field does not answer them.
OF_A_FIELD = ("routing", "described", "ids", "tools", "nextstep", "none")
# Kinds of questions as they are fitted and reported: several of the writers' kinds each.
FITTED_KINDS = {
    "everyday_routing": ("routing", "ids", "described", "tools", "nextstep", "none", "topic", "answer_kind"),
    "everyday_ordinal": ("ordinal",),
    "everyday_yes_no": ("yesno", "entail"),
    "everyday_reading": ("passage", "needle", "samequestion", "tone", "moderation", "knowledge"),
}
# Of these, kinds that ask about the text, which stage A does not read; and their names in other languages.
READ_KINDS = ("everyday_yes_no", "everyday_reading")
FAR = tuple(f"far_{kind}" for kind in FITTED_KINDS)
# The set of questions that nothing answers.
OPEN = "everyday_open"
# Kinds that no teacher is asked about: umpire-base decides them no better than umpire-mini.
UNTAUGHT = (ORDINAL, "moderation")
# Of the tasks of a kind, in the order of their hashes, every so many-th is held out.
EVERY_HELD_OUT = 8
_LISTS = Lists("everyday")
# Choices that mean nothing, so that no text is nearer to one of them.
MEANINGLESS = _LISTS.words("meaningless")
# Texts that answer nothing, and letters of texts without a word that is known.
BLANKS = ["", *_LISTS.words("blanks")]
LETTERS = _LISTS.entries("letters")
# A text whose vector is at most so near to each choice's does not answer the question.
UNRELATED = 0.16
# So many groups, those whose texts are nearest on average, have questions that may be asked of a text.
NEAR = 30


@dataclass(frozen=True)
class Group:
    """Rows under one question; see above. `task` is unique over files."""

    task: str
    kind: str
    field: str
    instructions: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[str, int | None], ...]

    def decision(self, text: str, label: int | None, instruction: str, names: tuple[str, ...], even: str) -> Decision:
        """A row of the group as a decision; `label` is None, and the target `even`, where the choices do not answer."""
        ranks = tuple(range(len(names))) if self.kind == ORDINAL else ()
        return Decision(
            text,
            instruction,
            names,
            even if label is None else names[label],
            f"everyday/{self.kind}",
            self.task,
            ranks=ranks,
        )


def read_groups(folder: Path = FOLDER) -> list[Group]:
    """All groups of the English files."""
    groups = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            g = json.loads(line)
            rows = tuple((text, label) for text, label in g["rows"])
            groups.append(
                Group(
                    f"{path.stem}/{g['task']}",
                    g["kind"],
                    g["field"],
                    tuple(g["instructions"]),
                    tuple(map(tuple, g["choices"])),
                    rows,
                )
            )
    return groups


def held_out_tasks(groups: list[Group]) -> set[str]:
    """The tasks that nothing is trained on: a share of every kind."""
    kinds = defaultdict(set)
    for group in groups:
        kinds[group.kind].add(group.task)

    def by_hash(task: str) -> str:
        return hashlib.sha256(task.encode()).hexdigest()

    return {
        task for tasks in kinds.values() for task in sorted(tasks, key=by_hash)[EVERY_HELD_OUT // 2 :: EVERY_HELD_OUT]
    }


def split(groups: list[Group]) -> tuple[list[Group], list[Group]]:
    """(trained, held out)."""
    held = held_out_tasks(groups)
    return [g for g in groups if g.task not in held], [g for g in groups if g.task in held]


def split_parts() -> tuple[list[Group], list[Group]]:
    """(trained, held out) of all English parts."""
    trained, held = zip(*(split(read_groups(folder)) for folder in PARTS), strict=True)
    return [g for groups in trained for g in groups], [g for groups in held for g in groups]


def part(groups: list[Group], share: float) -> list[Group]:
    """A share of the tasks, the same ones for every run, a smaller share inside a greater."""
    tasks = sorted({g.task for g in groups}, key=lambda task: hashlib.sha256(f"part {task}".encode()).hexdigest())
    kept = set(tasks[: round(share * len(tasks))])
    return [g for g in groups if g.task in kept]


def texts_of(groups: list[Group]) -> list[str]:
    """Every text and name of a choice that nearness is asked of."""
    return sorted(
        {t for g in groups for t, _ in g.rows} | {c for g in groups if g.kind in OF_A_FIELD for c in g.choices[0]}
    )


class Corpus:
    """Draws rows: every task as often as another, however many rows it has.

    `vectors`: a text's or choice's vector, for texts that answer nothing.
    """

    def __init__(self, groups: list[Group], vectors: dict[str, np.ndarray]):
        self.groups = groups
        self.vectors = vectors
        tasks = defaultdict(list)
        for group in groups:
            tasks[group.task].append(group)
        self.tasks = [tasks[name] for name in sorted(tasks)]
        self.of_a_field = [g for g in groups if g.kind in OF_A_FIELD]
        self.of_kind = defaultdict(list)
        for group in groups:
            self.of_kind[group.kind].append(group)
        self.taught = [g for g in groups if g.kind not in UNTAUGHT]
        self.centres = np.array([np.mean([vectors[text] for text, _ in g.rows], 0) for g in self.taught])

    def group(self, rng: random.Random) -> Group:
        """A group: any task, and of its groups one by how many rows they have."""
        groups = rng.choice(self.tasks)
        return rng.choices(groups, [len(g.rows) for g in groups])[0]

    def row(self, rng: random.Random) -> tuple[Group, str, int | None]:
        """A group, and the text and label of one of its rows."""
        group = self.group(rng)
        return group, *rng.choice(group.rows)

    def near(self, text: str, rng: random.Random) -> Group:
        """A group with texts like this one, that a teacher may be asked about."""
        nearest = np.argsort(self.centres @ self.vectors[text])[-NEAR:]
        return self.taught[rng.choice(nearest)]

    def foreign(self, rng: random.Random) -> tuple[Group, str]:
        """A group and a text of another field that has nothing to do with its question."""
        while True:
            group, (other, text, _) = rng.choice(self.of_a_field), self.row(rng)
            if other.field != group.field and other.task.split("/")[0] != group.task.split("/")[0]:
                near = max(float(self.vectors[text] @ self.vectors[c]) for c in group.choices[0])
                if near < UNRELATED:
                    return group, text


def held_out_sets(corpus: Corpus, count: int, seed: int, even: str) -> dict[str, list[Decision]]:
    """Up to `count` rows by FITTED_KINDS, and as many questions that nothing answers ("everyday_open")."""
    rng = random.Random(seed)
    result = defaultdict(list)
    for group in corpus.groups:
        kind = next((name for name, kinds in FITTED_KINDS.items() if group.kind in kinds), "everyday_reading")
        for text, label in group.rows:
            row = group.decision(text, label, rng.choice(group.instructions), rng.choice(group.choices), even)
            if label is not None:
                result[kind].append(replace(row, set=kind))
    found = {name: rng.sample(rows, min(count, len(rows))) for name, rows in sorted(result.items())}
    rows = [open_question(corpus, rng, even) for _ in range(2 * count)]
    return {**found, OPEN: [replace(row, set=OPEN) for row in rows if row.label == even][:count]}


def residual(choice: str) -> bool:
    """Whether a choice says that none fits."""
    low = choice.lower().replace("_", " ").split(":")[0].strip()
    return low in RESIDUAL or low.startswith(
        ("none", "something else", "anything else", "other", "neither", "no ", "not ", "everything else")
    )


def open_question(corpus: Corpus, rng: random.Random, even: str) -> Decision:
    """A question that its text does not answer, a text that says nothing, or choices without meaning: no choice is
    better than another, unless one says that none fits.
    """
    draw = rng.random()
    if draw < 0.25:
        group = rng.choice(corpus.of_a_field)
        _, text, _ = corpus.row(rng)
        first, count, letters = (
            rng.choice((0, 1, 1, 1, 2, 7, 10)),
            max(2, min(8, len(group.choices[0]))),
            rng.random() < 0.25,
        )
        form = rng.choice(MEANINGLESS)
        names = tuple(form.format(chr(ord("A") + i) if letters else first + i) for i in range(count))
        return Decision(text, rng.choice(group.instructions), names, even, "everyday/open", group.task)
    if draw < 0.75:
        group, text = corpus.foreign(rng)
    else:
        group = corpus.group(rng)
        text = rng.choice(BLANKS) if rng.random() < 0.4 else gibberish(rng)
    names = rng.choice(group.choices)
    fitting = [c for c in names if residual(c)] if group.kind in OF_A_FIELD else []
    return Decision(
        text, rng.choice(group.instructions), names, fitting[0] if fitting else even, "everyday/open", group.task
    )


def gibberish(rng: random.Random) -> str:
    """A text without a word that is known."""
    letters = rng.choice(LETTERS)
    return " ".join("".join(rng.choice(letters) for _ in range(rng.randint(2, 9))) for _ in range(rng.randint(1, 14)))
