"""The corpus of everyday decisions. These tasks need a pool that has one."""

import random
from dataclasses import replace

from .. import negation, sheets
from ..everyday import OF_A_FIELD, ORDINAL, Group, open_question, residual
from ..pool import Pool
from ..records import CROSSED, EVEN, Decision
from ..table_draws import fewer
from ..wordings import RESIDUAL

# The kinds of `reading`.
READING = ("needle", "passage", "samequestion", "tone", "answer_kind", "knowledge")


def everyday(pool: Pool, rng: random.Random) -> Decision:
    """A row as it was written, with one of its wordings and lists of names.

    Some have fewer choices, some "none of these" beside the others or in the right one's place.
    """
    return written(*pool.corpus.row(rng), rng)


def scale(pool: Pool, rng: random.Random) -> Decision:
    """A row whose choices are steps of a scale."""
    return of_kinds(pool, rng, ORDINAL)


def moderation(pool: Pool, rng: random.Random) -> Decision:
    """A row about what people may say to each other."""
    return of_kinds(pool, rng, "moderation")


def described(pool: Pool, rng: random.Random) -> Decision:
    """A row whose choices say what belongs to them."""
    return of_kinds(pool, rng, "described", "ids")


def reading(pool: Pool, rng: random.Random) -> Decision:
    """A row whose text or question has to be understood, and whose choices' names do not give the answer away."""
    return of_kinds(pool, rng, *READING)


def of_kinds(pool: Pool, rng: random.Random, *kinds: str) -> Decision:
    """A row of some kinds, each as often as another, or any if the corpus has none of them."""
    groups = [group for kind in kinds for group in pool.corpus.of_kind[kind]]
    group = rng.choices(groups, [len(g.rows) for g in groups])[0] if groups else pool.corpus.group(rng)
    return written(group, *rng.choice(group.rows), rng)


def written(group: Group, text: str, label: int | None, rng: random.Random) -> Decision:
    """A row of a group; see `everyday`."""
    instruction = rng.choice(group.instructions)
    names = rng.choice(group.choices) if rng.random() < 0.5 else group.choices[0]
    row = group.decision(text, label, instruction, names, EVEN)
    draw, choices = rng.random(), list(row.choices)
    if label is None or len(choices) < 3:
        return row
    if draw < 0.15:
        return fewer(row, rng)
    if draw < 0.24 and group.kind in OF_A_FIELD and not any(map(residual, choices)):
        gone, none = rng.random() < 0.4, rng.choice(RESIDUAL)
        if gone:
            choices.remove(row.label)
        return replace(row, choices=(*choices, none), label=none if gone else row.label)
    return row


def everyday_proposal(pool: Pool, rng: random.Random) -> Decision:
    """Whether a choice is the right one, and whether it is a wrong one."""
    group, text, label = pool.corpus.row(rng)
    if label is None or len(group.choices[0]) < 3:
        return everyday(pool, rng)
    names = rng.choice(group.choices)
    true = rng.random() < 0.5
    asked = names[label] if true else rng.choice([n for n in names if n != names[label]])
    question = rng.choice(group.instructions)
    right, wrong = rng.choice(negation.RIGHT).format(asked), rng.choice(negation.WRONG).format(asked)
    row = Decision(text, "", (), "", f"everyday/{group.kind}", group.task)
    return negation.pair(row, f"{question} {right}", f"{question} {wrong}", true, rng)


def everyday_open(pool: Pool, rng: random.Random) -> Decision:
    """A question that its text does not answer."""
    return open_question(pool.corpus, rng, EVEN)


def sheet(pool: Pool, rng: random.Random) -> Decision:
    """One of the many questions on a text."""
    return sheets.drawn(pool.sheets, rng)


def crossed(pool: Pool, rng: random.Random) -> Decision:
    """A text under a question that nobody answered for it, for a teacher's distributions: mostly one that was asked of
    like texts.
    """
    draw = rng.random()
    if draw < 0.3 and pool.sheets:
        text, asked = sheets.lent(pool.sheets, rng)
        return replace(asked, input=text, label=CROSSED, opposite=None, set="everyday/crossed")
    if draw < 0.75:
        _, text, _ = pool.corpus.row(rng)
        group = pool.corpus.near(text, rng) if draw < 0.6 else rng.choice(pool.corpus.taught)
    else:
        text, group = rng.choice(pool.chatter if draw < 0.85 else pool.texts), rng.choice(pool.corpus.taught)
    question, choices = rng.choice(group.instructions), rng.choice(group.choices)
    return Decision(text, question, choices, CROSSED, "everyday/crossed", group.task)
