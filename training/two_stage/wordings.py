"""Other ways to say the same: instructions a set may carry, and names a label may have (`lists/wordings.txt`,
`lists/names.txt`).

A model that sees one question and one spelling a set learns the set. `INSTRUCTIONS` replaces or joins a set's own
instruction, `NAMES` lists names of equal meaning for a label.
"""

import random

from .lists import Lists

_WORDINGS, _NAMES = Lists("wordings"), Lists("names")

INTENT = _WORDINGS.entries("intent")
EMOTION = _WORDINGS.entries("emotion")
POLARITY = _WORDINGS.entries("polarity")
REVIEW = [*_WORDINGS.entries("review"), *POLARITY]
SERVICE = _WORDINGS.entries("service")
TOPIC = _WORDINGS.entries("topic")
CHOOSE = _WORDINGS.entries("choose")
TITLE = _WORDINGS.entries("title")
FOLLOWS = _WORDINGS.entries("follows")
WANTED = _WORDINGS.entries("wanted")
TARGET = _WORDINGS.entries("target")

# By set.
INSTRUCTIONS = {
    "multidogo_airline": [*INTENT, *_WORDINGS.entries("passenger")],
    "multidogo_fastfood": [*INTENT, *_WORDINGS.entries("guest")],
    "multidogo_insurance": [*INTENT, *_WORDINGS.entries("client")],
    "multidogo_media": INTENT,
    "sgd_intent": INTENT,
    "goemotions": EMOTION,
    "vader_nyt": POLARITY,
    "cad_imdb": REVIEW,
    "hate_offensive": _WORDINGS.entries("offence"),
    "query_wellformed": _WORDINGS.entries("form"),
    "openbookqa": CHOOSE,
    "figqa": _WORDINGS.entries("meaning"),
}

STATEMENTS = _WORDINGS.entries("statements")
VERDICTS = _WORDINGS.tuples("verdicts")
YES_NO = _WORDINGS.tuples("yes or no")
RESIDUAL = _WORDINGS.words("residual")
ANSWERS = _WORDINGS.words("answers")
STEPS = _WORDINGS.words("steps")

NAMES = _NAMES.table("labels")
POLARITY_OF = _NAMES.table("sides")
DOMAINS = _NAMES.table("domains of sets")
SERVICE_DOMAINS = _NAMES.table("domains of services")
TOPICS = _NAMES.words("topics")
KINDS_WANTED = _NAMES.table("kinds wanted")


def renamed(label: str, rng: random.Random) -> str:
    """The label or one of its other names."""
    return rng.choice([label, label, *NAMES.get(label, ())])


def respelled(choices: list[str], rng: random.Random) -> list[str]:
    """The choices in another case or as identifiers, all in the same manner."""
    style = rng.choice(["upper", "title", "capital", "snake", "lower"])
    # Longer ones are sentences, which nobody writes as identifiers.
    if style == "snake" and all(len(choice) < 40 for choice in choices):
        spelled = [
            " ".join("".join(c if c.isalnum() else " " for c in choice).split()).replace(" ", "_") for choice in choices
        ]
    else:
        change = {"upper": str.upper, "title": str.title, "capital": str.capitalize, "lower": str.lower}.get(style, str)
        spelled = [change(choice) for choice in choices]
    return spelled if len(set(spelled)) == len(choices) and all(spelled) else choices
