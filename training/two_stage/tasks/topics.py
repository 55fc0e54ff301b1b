"""What a text is about: its field, its title, the words in it, how two things in it are related."""

import random
from dataclasses import replace

from .. import negation, procedural
from ..pool import Pool, sentences, size
from ..records import Decision
from ..wordings import DOMAINS, SERVICE_DOMAINS, TITLE, TOPIC

# A field that is as near to the right one may be right, too.
TOO_NEAR = 0.55
# The services of sgd_intent are twenty fields; the other sets are one each.
DOMAIN_SETS = [*DOMAINS, *["sgd_intent"] * 12]
MOST_FIELDS, MOST_TITLES = 20, 16
# In characters, of a paragraph that is to be named.
LONGEST_PARAGRAPH = 300


def relation(pool: Pool, rng: random.Random) -> Decision:
    """How two things in a sentence are related; of the sentences with no relation of the list, some are drawn again."""
    row = rng.choice(pool.sets["semeval2010_relation"])
    if row.label.startswith("none") and rng.random() < 0.6:
        row = rng.choice(pool.sets["semeval2010_relation"])
    return pool.with_choices(row, list(row.choices), rng, rename=False)


def domain(pool: Pool, rng: random.Random) -> Decision:
    """Which field a text is from: the source set tells."""
    name = rng.choice(DOMAIN_SETS)
    row = rng.choice(pool.sets[name])
    families = [*DOMAINS.values(), *SERVICE_DOMAINS.values()]
    own = SERVICE_DOMAINS[row.task.split("_")[0]] if name == "sgd_intent" else DOMAINS[name]
    gold = rng.choice(own)
    others = [rng.choice(f) for f in rng.sample(families, size(MOST_FIELDS, rng)) if not set(f) & set(own)]
    if pool.similarity:
        others = [o for o in others if pool.similarity(o, gold) < TOO_NEAR]
    if not others:
        return domain(pool, rng)
    return replace(row, instruction=rng.choice(TOPIC), choices=tuple(dict.fromkeys([gold, *others])), label=gold)


def domain_pair(pool: Pool, rng: random.Random) -> Decision:
    """Whether a text is about a field."""
    row = domain(pool, rng)
    true = rng.random() < 0.5
    asked = row.label if true else rng.choice([c for c in row.choices if c != row.label])
    return negation.pair_about(row, asked, negation.ABOUT, negation.ABOUT_NOT, true, rng)


def title(pool: Pool, rng: random.Random) -> Decision:
    """Which title belongs to a paragraph whose title was taken off."""
    gold, text = rng.choice(pool.titled)
    drawn = rng.sample(pool.titled, size(MOST_TITLES, rng))
    others = [t for t, _ in drawn if t != gold] or [pool.titled[0][0] + " (other)"]
    parts = sentences(text)
    start = rng.randrange(len(parts))
    paragraph = " ".join(parts[start : start + 2])[:LONGEST_PARAGRAPH]
    return Decision(paragraph, rng.choice(TITLE), tuple(dict.fromkeys([gold, *others])), gold, "boolq")


def mention(pool: Pool, rng: random.Random) -> Decision:
    """Whether a text has a word."""
    made = None
    while made is None:
        made = procedural.mention(rng.choice(pool.texts), rng.choice(pool.texts), rng)
    return made
