"""Claims about a text: whether it makes them true, false or neither."""

import random
from dataclasses import replace

from .. import negation
from ..pool import Pool, claim_of
from ..records import Decision
from ..wordings import FOLLOWS, NAMES, STATEMENTS, VERDICTS
from ..world import world


def entailment(pool: Pool, rng: random.Random, name: str) -> Decision:
    """A row of the entailment set `name`, in its own words or in others; some as a question with its opposite."""
    row = rng.choice(pool.sets[name])
    claim = claim_of(row).strip()
    index = row.choices.index(row.label)
    question = rng.choice(STATEMENTS).format(claim) if rng.random() < 0.7 else row.instruction
    if rng.random() < 0.15 and index < 2:
        return negation.pair(row, *negation.about_claim(claim, rng), index == 0, rng)
    names = VERDICTS[0] if rng.random() < 0.5 else rng.choice(VERDICTS)
    return replace(row, instruction=question, choices=names, label=names[index])


def claim_pair(pool: Pool, rng: random.Random) -> Decision:
    """A claim that is true or false of a text, asked for and denied."""
    row = rng.choice(pool.decided)
    return negation.pair(row, *negation.about_claim(claim_of(row).strip(), rng), row.label == row.choices[0], rng)


def contrast_pair(pool: Pool, rng: random.Random) -> Decision:
    """Two claims that people wrote about one text, of which it makes one true and the other false."""
    premise, true, false = rng.choice(pool.opposed)
    questions = negation.about_contrast(rng.choice(true), rng.choice(false), rng)
    return negation.pair(Decision(premise, "", (), "", "cad_nli"), *questions, True, rng)


def figure_pair(pool: Pool, rng: random.Random) -> Decision:
    """What a figurative sentence means, and the opposite; half of the time the meaning itself is the text."""
    row = rng.choice(pool.figures)
    false = next(c for c in row.choices if c != row.label)
    text = row.input if rng.random() < 0.5 else row.label
    return negation.pair(replace(row, input=text), *negation.about_contrast(row.label, false, rng), True, rng)


def world_pair(_: Pool, rng: random.Random) -> Decision:
    """Small written facts with antonyms, "not", "free of", "other than"."""
    text, question, opposite = world(rng)
    return negation.pair(Decision(text, "", (), "", "procedural/world"), question, opposite, True, rng)


def follows(pool: Pool, rng: random.Random) -> Decision:
    """Which of some statements a text makes true."""
    premise = rng.choice(pool.contrasted)
    claims = pool.premises[premise]
    gold = rng.choice(claims["true"])
    others = [*claims["false"], *claims["cannot be determined"]]
    choices = list(dict.fromkeys([gold, *rng.sample(others, min(len(others), rng.randint(1, 4)))]))
    return Decision(premise, rng.choice(FOLLOWS), tuple(choices), gold, "cad_nli")


def defeasible(pool: Pool, rng: random.Random) -> Decision:
    """Whether something makes a claim more likely or less; both under one of their three other names, or their own."""
    row = rng.choice(pool.sets["defeasible_nli"])
    index = rng.randrange(4)
    names = row.choices if index == 3 else tuple(NAMES[label][index] for label in row.choices)
    return replace(row, choices=names, label=names[row.choices.index(row.label)])
