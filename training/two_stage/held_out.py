"""Label sets that no stage was trained on, for stacking and calibration: the held-out sets as they are, and decisions made of them.

Kinds of decision that users bring: intents among few and among many choices, "none of these", yes/no and its negation, polarity,
emotions, moderation-like two-way labels, topics, multiple choice, entailment, questions on a passage.
"""

import random
from dataclasses import replace

from .records import Decision
from .tasks import HELD_OUT, KEPT_BACK, Mix

FIELDS = {
    "snips": {"add to playlist": "music", "book restaurant": "restaurants", "get weather": "weather", "play music": "music", "search screening event": "cinema", "rate book": "books"},
    "ms_va": {"calendar": "calendar", "email": "email", "music": "music", "weather": "weather", "todo": "to-do lists", "news": "news"},
    "multidogo_finance": "personal finance",
    "multidogo_software": "software support",
    "multidogo_media": "television and internet contracts",
    "scicite": "scientific research",
}
SIDES = {"positive": ["joy", "trust"], "negative": ["anger", "disgust", "fear", "sadness"]}
PLAIN = ["confirms or agrees", "declines or says no", "greets", "says goodbye", "says thank you", "something outside the domain"]


def field(row: Decision) -> str | None:
    known = FIELDS.get(row.set)
    return known if isinstance(known, str) or known is None else known.get(row.label) or known.get(row.task)


def held_out(sets: dict[str, list[Decision]], count: int, seed: int) -> dict[str, list[Decision]]:
    """Up to `count` rows of every stacking set by name."""
    rng = random.Random(seed)
    take = lambda rows, n=count: rng.sample(rows, min(n, len(rows)))
    result = {name: take(sets[name]) for name in HELD_OUT}
    for name, kept in KEPT_BACK.items():
        result[name] = take(sets[name][:kept])
    intents = [r for n in ("multidogo_finance", "multidogo_software", "multidogo_media", "ms_va", "snips") for r in sets[n] if r.label not in PLAIN and r.label != "none of these"]
    by_label: dict[str, list[Decision]] = {}
    for row in intents:
        by_label.setdefault(row.label, []).append(row)
    labels = sorted(by_label)
    even = [rng.choice(by_label[rng.choice(labels)]) for _ in range(3 * count)]
    result["many_intents"] = [replace(r, choices=tuple(labels), instruction="What does the user want?", set="many_intents") for r in even[:count]]

    def residual(row: Decision) -> Decision:
        own = [c for c in row.choices if c not in PLAIN and c != row.label and c != "none of these"]
        own = rng.sample(own, min(len(own), 14))
        gone = rng.random() < 0.34
        choices = [*own, "none of these"] if gone else [row.label, *own, "none of these"]
        return replace(row, choices=tuple(choices), label="none of these" if gone else row.label, set="residual")

    result["residual"] = [residual(r) for r in even[count : 2 * count]]

    def asked(row: Decision) -> Decision:
        true = rng.random() < 0.5
        name = row.label if true else rng.choice([l for l in labels if l != row.label])
        negated = rng.random() < 0.3
        question = f"Does the user not ask for this: {name}?" if negated else f"Does the user ask for this: {name}?"
        return replace(row, instruction=question, choices=("yes", "no"), label="yes" if true != negated else "no", set="yes_no")

    result["yes_no"] = [asked(r) for r in even[2 * count : 3 * count]]
    fields = sorted({f for r in [*intents, *sets["scicite"][:50]] for f in [field(r)] if f})
    texts = [r for r in take(intents, 6 * count) + take(sets["scicite"], count // 6) if field(r)][:count]
    result["topic"] = [replace(r, instruction="What is the text about?", choices=tuple(fields), label=field(r), set="topic") for r in texts]
    felt = [(r, side) for r in sets["xed_en"] for side, emotions in SIDES.items() if r.label in emotions]
    result["dialogue_polarity"] = [replace(r, instruction="Is the tone of this line positive or negative?", choices=("negative", "positive"), label=side, set="dialogue_polarity") for r, side in take(felt)]
    four = ["anger", "joy", "sadness", "fear"]
    result["four_emotions"] = [replace(r, choices=tuple(four), set="four_emotions") for r in take([r for r in sets["xed_en"] if r.label in four])]
    polar = [r for r in sets["vader_tweets"] if r.label != "neutral"]
    result["tweet_polarity"] = [replace(r, choices=("negative", "positive"), set="tweet_polarity") for r in take(polar)]
    titled = [tuple(r.input.split(" -- ", 1)) for r in sets["boolq"][: KEPT_BACK["boolq"]] if " -- " in r.input]
    names = sorted({t for t, _ in titled})
    result["titles"] = [Decision(text[:400], "What is the passage about?", tuple({t: 0 for t in [title, *rng.sample(names, 19)]}), title, "titles") for title, text in take(titled)]
    return {name: [replace(r, set=name) for r in rows] for name, rows in result.items()}
