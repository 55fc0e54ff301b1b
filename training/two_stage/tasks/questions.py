"""Questions that have answers: on a passage, of general knowledge, about the question itself."""

import random
from dataclasses import replace

from .. import negation
from ..pool import Pool
from ..records import EVEN, Decision
from ..wordings import KINDS_WANTED, WANTED, renamed

# The names of yes and no that suit a question on a passage.
PASSAGE_ANSWERS = [("yes", "no"), ("yes", "no"), ("yes", "no"), ("true", "false")]


def well_formed(pool: Pool, rng: random.Random) -> Decision:
    """Whether a search query is a proper question."""
    row = rng.choice(pool.sets["query_wellformed"])
    names = {label: renamed(label, rng) for label in row.choices}
    return replace(row, instruction=pool.asked(row, rng), choices=tuple(names.values()), label=names[row.label])


def wanted(pool: Pool, rng: random.Random) -> Decision:
    """What kind of answer a query asks for, by its first words."""
    query, kinds = rng.choice(pool.queries)
    others = [rng.choice(k) for k in KINDS_WANTED.values() if not set(k) & set(kinds)]
    gold = rng.choice(kinds)
    choices = list(dict.fromkeys([gold, *rng.sample(others, rng.randint(1, min(6, len(others))))]))
    return Decision(query, rng.choice(WANTED), tuple(choices), gold, "query_wellformed")


def passage_question(pool: Pool, rng: random.Random) -> Decision:
    """A yes/no question on a passage."""
    row = rng.choice(pool.sets["boolq"])
    question = row.instruction if rng.random() < 0.7 else f"{row.instruction} Answer from the text."
    names = rng.choice(PASSAGE_ANSWERS)
    return replace(row, instruction=question, choices=names, label=names[row.choices.index(row.label)])


def passage_pair(pool: Pool, rng: random.Random) -> Decision:
    """A question on a passage, and whether its answer is no."""
    row = rng.choice(pool.sets["boolq"])
    return negation.pair_about(
        row, row.instruction, negation.ASSERTS_ANSWER, negation.DENIES_ANSWER, row.label == "yes", rng
    )


def answer_pair(pool: Pool, rng: random.Random) -> Decision:
    """Whether an answer is the right one."""
    row = rng.choice(pool.sets[rng.choice(["openbookqa", "figqa"])])
    true = rng.random() < 0.5
    asked = row.label if true else rng.choice([c for c in row.choices if c != row.label])
    return negation.pair_about(row, asked, negation.RIGHT, negation.WRONG, true, rng)


def as_is(pool: Pool, rng: random.Random, name: str) -> Decision:
    """A row of the set `name`, at most in other words."""
    row = rng.choice(pool.sets[name])
    return replace(row, instruction=pool.asked(row, rng))


def knowledge(pool: Pool, rng: random.Random) -> Decision:
    """A question of general knowledge.

    A third are even: without a text to read, so small a model only knows by heart.
    """
    row = as_is(pool, rng, "openbookqa")
    return replace(row, label=EVEN) if rng.random() < 1 / 3 else row
