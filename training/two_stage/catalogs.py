"""Invented lists of choices of many kinds and sizes, as callers bring them: sections, forums, mail, departments,
documents, shelves.

No text is labelled with them (`lists/catalogs.txt`). `echo` rows ask for them anyway, with stage A's own distribution
as the target, so that stage B learns to add nothing where it knows nothing.
"""

import random

from .lists import Lists

_CATALOGS = Lists("catalogs")
CATALOGS = [catalog for name in _CATALOGS.names() for catalog in _CATALOGS.tuples(name)]


def catalog(rng: random.Random, sentences: list[str]) -> tuple[str, ...]:
    """A list as it stands or a part of it, two lists joined, or sentences of other texts as choices."""
    draw = rng.random()
    if draw < 0.3:
        return tuple(dict.fromkeys(rng.sample(sentences, rng.choice([2, 3, 4, 4, 5, 5, 8]))))
    one = list(rng.choice(CATALOGS))
    if draw < 0.5:
        one += rng.choice(CATALOGS)
    if draw < 0.58:
        for _ in range(4):
            one += rng.choice(CATALOGS)
    choices = list(dict.fromkeys(one))
    most = 32 if draw < 0.58 else 16
    if len(choices) > most or (len(choices) > 3 and rng.random() < 0.3):
        choices = rng.sample(choices, min(most, max(2, int(len(choices) * rng.uniform(0.4, 1)))))
    return tuple(choices)
