"""Rows that no set has: "none of these" among choices of any kind, written messages and facts, and texts among choices
that nobody labelled.
"""

import random
from dataclasses import replace

from .. import messages, procedural
from ..catalogs import catalog
from ..pool import INTENT_SETS, Pool, is_residual, size
from ..records import TEACHER, Decision
from ..wordings import CHOOSE, INTENT, RESIDUAL, TITLE, TOPIC, TOPICS, WANTED, renamed
from .topics import domain

# A label that is as near to the right one may be right, too; of so many labels at random the others are the wrong ones.
TOO_NEAR, DRAWN_LABELS = 0.6, 60
# How many choices a row without a label has.
ECHO_SIZES = [2, 3, 4, 6, 8, 12, 16, 24]


def residual_row(pool: Pool, rng: random.Random) -> Decision:
    """A choice like "none of these" beside others, the right one there or not: intents, fields, feelings."""
    draw = rng.random()
    if draw < 0.6:
        row = rng.choice(pool.sets[rng.choice(INTENT_SETS)])
        if is_residual(row.label):
            return residual_row(pool, rng)
        labels = pool.all_intents if row.set == "sgd_intent" or rng.random() < 0.4 else row.choices
        labels = [c for c in labels if not is_residual(c)]
        if pool.similarity:
            drawn = rng.sample(labels, min(DRAWN_LABELS, len(labels)))
            labels = [p for p in drawn if pool.similarity(row.label, p) < TOO_NEAR]
        instruction = pool.asked(row, rng)
    elif draw < 0.85:
        row = domain(pool, rng)
        labels, instruction = [c for c in row.choices if c != row.label], row.instruction
    else:
        row = rng.choice(pool.emotional)
        labels, instruction = [c for c in row.choices if c not in (row.label, "neutral")], pool.asked(row, rng)
    others = [renamed(o, rng) for o in pool.negatives(row.label, labels, size(len(labels), rng), rng)]
    residual, gone = rng.choice(RESIDUAL), rng.random() < 0.45
    gold = residual if gone else renamed(row.label, rng)
    choices = list(dict.fromkeys([*others, residual] if gone else [gold, *others, residual]))
    if len(choices) < 2:
        return residual_row(pool, rng)
    return replace(row, instruction=instruction, choices=tuple(choices), label=gold)


def message(pool: Pool, rng: random.Random) -> Decision:
    """A short message or mail, wanted or not."""
    return messages.message(rng, pool.chatter)


def written(_: Pool, rng: random.Random) -> Decision:
    """A row with a computed answer."""
    return rng.choice(procedural.MAKERS)(rng)


def echo(pool: Pool, rng: random.Random) -> Decision:
    """Any text among any phrases; the target is stage A's own distribution."""
    instructions = rng.choice([TOPIC, INTENT, TITLE, CHOOSE, WANTED])
    if rng.random() < 0.55:
        text, instruction = rng.choice(pool.texts), rng.choice(instructions)
        return Decision(text, instruction, catalog(rng, pool.long_phrases), TEACHER, "echo")
    count = rng.choice(ECHO_SIZES)
    phrases = TOPICS if rng.random() < 0.5 else pool.phrases
    text, instruction = rng.choice(pool.texts), rng.choice(instructions)
    return Decision(text, instruction, tuple(rng.sample(phrases, count)), TEACHER, "echo")
