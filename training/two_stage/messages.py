"""Short messages and mails that the recipe writes itself: wanted or not, or of which kind (`lists/messages.txt`)."""

import random
from collections.abc import Sequence

from .lists import Lists
from .procedural import CITIES, ITEMS, PEOPLE
from .records import Decision

LISTS = Lists("messages")
# By kind.
UNWANTED = {kind: LISTS.entries(f"unwanted, {kind}") for kind in ("prize", "offer", "fraud")}
WANTED = {kind: LISTS.entries(f"wanted, {kind}") for kind in ("private", "work", "notice")}
KIND_NAMES = LISTS.table("kinds")


def written(forms: Sequence[str], rng: random.Random) -> str:
    """One of the forms, its fields filled in. Every field is drawn, whichever the form has."""
    return rng.choice(forms).format(
        prize=rng.choice(LISTS.words("prize")),
        url=rng.choice(LISTS.words("url")),
        phone=f"0{rng.randint(800, 909)} {rng.randint(100000, 999999)}",
        cost=rng.choice(LISTS.words("cost")),
        short=rng.randint(60000, 89999),
        n=rng.randint(2, 12),
        off=rng.choice(LISTS.words("off")),
        money=rng.choice(LISTS.words("money")),
        p=rng.choice(PEOPLE),
        day=rng.choice(LISTS.words("day")),
        item=rng.choice(ITEMS),
        city=rng.choice(CITIES),
    )


def message(rng: random.Random, chatter: Sequence[str]) -> Decision:
    """A short message or mail: wanted or not, or of which kind.

    Half of the wanted ones are real (`chatter`), so that a careless spelling is no sign of the unwanted.
    """
    unwanted = rng.random() < 0.5
    kinds = UNWANTED if unwanted else WANTED
    kind = rng.choice(list(kinds))
    text = written(kinds[kind], rng)
    text = text.lower() if rng.random() < 0.15 else text
    real = not unwanted and rng.random() < 0.5
    text = rng.choice(chatter) if real else text
    # Nobody said of which kind a real one is.
    if real or rng.random() < 0.7:
        bad, good = rng.choice(LISTS.tuples("names"))
        question = rng.choice(LISTS.entries("wanted or not")).format(unwanted=bad, wanted=good)
        return Decision(text, question, (bad, good), bad if unwanted else good, "procedural/message")
    others = rng.sample([k for k in KIND_NAMES if k != kind], rng.randint(1, 5))
    gold = rng.choice(KIND_NAMES[kind])
    question = rng.choice(LISTS.entries("of which kind"))
    choices = (gold, *(rng.choice(KIND_NAMES[k]) for k in others))
    return Decision(text, question, choices, gold, "procedural/message")
