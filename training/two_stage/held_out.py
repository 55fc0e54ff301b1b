"""Label sets that no stage was trained on, for stacking and calibration: the held-out sets as they are, and decisions
made of them.

Kinds of decision that users bring (`KINDS`): intents among few and among many choices, "none of these", yes/no and its
negation, polarity, emotions, two-way labels that need a convention, topics, kinds of text, multiple choice with short
and with sentence-long choices, entailment, questions on a passage. The negated questions are worded otherwise than the
training's (`lists/held_out.txt`).
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from .lists import Lists
from .pool import HELD_OUT, KEPT_BACK, claim_of, sentences
from .records import Decision

KINDS = {
    "intent": ["multidogo_finance", "multidogo_software", "multidogo_media", "ms_va", "snips"],
    "many": ["many_intents"],
    "residual": ["residual"],
    "yes_no": ["yes_no", "negated", "or_not"],
    "polarity": ["vader_tweets", "tweet_polarity", "dialogue_polarity"],
    "emotion": ["xed_en", "four_emotions"],
    "convention": ["clickbait", "scicite"],
    "topic": ["topic", "broad_topic", "titles"],
    "kind_of_text": ["sources", "two_sources"],
    "sentences": ["codah", "continuation", "answered_by"],
    "entailment": ["mnli"],
    "passage": ["boolq"],
}
# Kinds in languages other than English, of a reader that has them (multilingual.py).
FAR_KINDS = {
    "far_meaning": ["far_meaning"],
    "far_requests": ["far_requests"],
    "far_claims": ["far_claims"],
    "far_feelings": ["far_sides", "far_emotions"],
    "far_everyday": ["far_everyday_routing", "far_everyday_ordinal", "far_everyday_yes_no", "far_everyday_reading"],
}
_LISTS = Lists("held_out")
FIELDS = {place: fields[0] for place, fields in _LISTS.table("fields").items()}
AREAS, SOURCES = _LISTS.table("areas"), _LISTS.table("sources")
# The emotions of either side, and its names.
SIDES, SIDE_NAMES = _LISTS.table("emotions"), _LISTS.table("names of sides")
# Intents that say nothing of the matter.
PLAIN = _LISTS.words("plain")
NONE = "none of these"
INTENT_SETS = ("multidogo_finance", "multidogo_software", "multidogo_media", "ms_va", "snips")
# Emotions that every writer tells apart.
FOUR_EMOTIONS = ("anger", "joy", "sadness", "fear")
SIDE_CHOICES = ("negative", "positive")
TONE = "Is the tone of this line positive or negative?"
# How many choices stand beside "none of these", and in what share of the rows none of them is right.
MOST_BESIDE_NONE, NONE_FITS = 14, 0.34
# In characters: a passage that is to be named, and a sentence among others.
LONGEST_PASSAGE, LONGEST_SENTENCE = 400, 200

T = TypeVar("T")


def field(row: Decision) -> str | None:
    """The field of a row's text, by its set, label or task; None where they do not tell."""
    keys = (row.set, f"{row.set}/{row.label}", f"{row.set}/{row.task}")
    return next((FIELDS[key] for key in keys if key in FIELDS), None)


class Draw:
    """Draws up to `count` rows of each stacking set.

    What is drawn depends on the order of the calls, so the sets follow one another as they always have.
    """

    def __init__(self, sets: dict[str, list[Decision]], count: int, seed: int):
        self.sets, self.count, self.rng = sets, count, random.Random(seed)
        self.intents = [r for n in INTENT_SETS for r in sets[n] if r.label not in (*PLAIN, NONE)]
        self.labels = sorted({row.label for row in self.intents})
        # Passages with a title, kept back from training.
        self.titled = [r for r in sets["boolq"][: KEPT_BACK["boolq"]] if " -- " in r.input]

    def take(self, rows: Sequence[T], most: int | None = None) -> list[T]:
        """Some of the rows."""
        return self.rng.sample(rows, min(self.count if most is None else most, len(rows)))

    def all(self) -> dict[str, list[Decision]]:
        """Every set by its name."""
        result = {name: self.take(self.sets[name]) for name in HELD_OUT}
        result |= {name: self.take(self.sets[name][:kept]) for name, kept in KEPT_BACK.items()}
        even = self.even_intents()
        result |= self.of_intents(even)
        texts = self.with_fields()
        result |= self.of_topics(texts)
        result |= self.of_sides()
        result |= self.of_titles(texts)
        result |= self.of_sources()
        result |= self.of_sentences()
        result["negated"] = self.take(negated_pairs(self.sets, even, self.rng, self.count), self.count)
        return {name: [replace(r, set=name) for r in rows] for name, rows in result.items()}

    def even_intents(self) -> list[Decision]:
        """Rows with intents, every label as often as another."""
        by_label: dict[str, list[Decision]] = {}
        for row in self.intents:
            by_label.setdefault(row.label, []).append(row)
        return [self.rng.choice(by_label[self.rng.choice(self.labels)]) for _ in range(3 * self.count)]

    def of_intents(self, even: list[Decision]) -> dict[str, list[Decision]]:
        """Intents among all, beside "none of these", and asked for one by one."""
        count, many = self.count, tuple(self.labels)
        return {
            "many_intents": [replace(r, choices=many, instruction="What does the user want?") for r in even[:count]],
            "residual": [self.residual(r) for r in even[count : 2 * count]],
            "yes_no": [self.asked(r) for r in even[2 * count : 3 * count]],
        }

    def residual(self, row: Decision) -> Decision:
        """The row with "none of these" beside its choices, or in the right one's place."""
        own = [c for c in row.choices if c not in (*PLAIN, row.label, NONE)]
        own = self.take(own, MOST_BESIDE_NONE)
        gone = self.rng.random() < NONE_FITS
        choices = [*own, NONE] if gone else [row.label, *own, NONE]
        return replace(row, choices=tuple(choices), label=NONE if gone else row.label)

    def asked(self, row: Decision) -> Decision:
        """Whether the user asks for one intent, or does not."""
        true = self.rng.random() < 0.5
        name = row.label if true else self.rng.choice([label for label in self.labels if label != row.label])
        negated = self.rng.random() < 0.3
        question = f"Does the user not ask for this: {name}?" if negated else f"Does the user ask for this: {name}?"
        return replace(row, instruction=question, choices=("yes", "no"), label="yes" if true != negated else "no")

    def with_fields(self) -> list[Decision]:
        """Texts whose field is known."""
        texts = self.take(self.intents, 6 * self.count) + self.take(self.sets["scicite"], self.count // 6)
        return [r for r in texts if field(r)][: self.count]

    def of_topics(self, texts: list[Decision]) -> dict[str, list[Decision]]:
        """What a text is about."""
        fields = tuple(sorted({f for r in [*self.intents, *self.sets["scicite"][:50]] for f in [field(r)] if f}))
        return {
            "topic": [replace(r, instruction="What is the text about?", choices=fields, label=field(r)) for r in texts]
        }

    def of_sides(self) -> dict[str, list[Decision]]:
        """On which side a text is, and which of four emotions it expresses."""
        emotional = self.sets["xed_en"]
        felt = [(r, side) for r in emotional for side, emotions in SIDES.items() if r.label in emotions]
        polar = [r for r in self.sets["vader_tweets"] if r.label != "neutral"]
        return {
            "dialogue_polarity": [
                replace(r, instruction=TONE, choices=SIDE_CHOICES, label=side) for r, side in self.take(felt)
            ],
            "four_emotions": [
                replace(r, choices=FOUR_EMOTIONS) for r in self.take([r for r in emotional if r.label in FOUR_EMOTIONS])
            ],
            "or_not": [or_not(r, self.rng) for r in self.take(polar)],
            "tweet_polarity": [replace(r, choices=SIDE_CHOICES) for r in self.take(polar)],
        }

    def of_titles(self, texts: list[Decision]) -> dict[str, list[Decision]]:
        """Which title a passage has, and from which broad area a text is."""
        titled = [tuple(r.input.split(" -- ", 1)) for r in self.titled]
        names = sorted({t for t, _ in titled})
        titles = [
            among(text[:LONGEST_PASSAGE], "What is the passage about?", [title, *self.rng.sample(names, 19)])
            for title, text in self.take(titled)
        ]
        area = {fine: coarse for coarse, fields in AREAS.items() for fine in fields}
        areas = [
            replace(r, instruction="Which area is this text from?", choices=tuple(AREAS), label=area[field(r)])
            for r in self.take([r for r in texts * 2 if field(r) in area])
        ]
        return {"titles": titles, "broad_topic": areas}

    def of_sources(self) -> dict[str, list[Decision]]:
        """What kind of text it is, among five and among two."""
        mixed = [self.rng.choice(self.sets[self.rng.choice(sorted(SOURCES))]) for _ in range(2 * self.count)]
        return {
            "sources": [self.source(r, 5) for r in mixed[: self.count]],
            "two_sources": [self.source(r, 2) for r in mixed[self.count :]],
        }

    def source(self, row: Decision, most: int) -> Decision:
        """The row's kind of text among `most`."""
        others = self.rng.sample([n for n in SOURCES if n != row.set], most - 1)
        names = tuple(self.rng.choice(SOURCES[n]) for n in (row.set, *others))
        return replace(row, instruction="What is this?", choices=names, label=names[0])

    def of_sentences(self) -> dict[str, list[Decision]]:
        """Which sentence goes on, and which is about the same thing as a question: choices as long as sentences."""
        split = [(r, sentences(r.input.split(" -- ", 1)[1])) for r in self.titled]
        long = [(r, parts) for r, parts in split if len(parts) > 2]
        going_on = []
        for _, parts in self.take(long):
            others = [self.rng.choice(o)[:LONGEST_SENTENCE] for _, o in self.rng.sample(long, 4)]
            going_on.append(among(parts[0], "Which sentence comes next?", [parts[1], *others]))
        answering = []
        for row, parts in self.take(long):
            others = [o[0] for _, o in self.rng.sample(long, 3)]
            asked = "Which sentence is about the same thing as the question?"
            answering.append(among(row.instruction, asked, [parts[0], *others]))
        return {"continuation": going_on, "answered_by": answering}


def held_out(sets: dict[str, list[Decision]], count: int, seed: int) -> dict[str, list[Decision]]:
    """Up to `count` rows of every stacking set by name."""
    return Draw(sets, count, seed).all()


def among(text: str, instruction: str, choices: list[str]) -> Decision:
    """A decision whose first choice is the right one; no choice stands twice."""
    return Decision(text, instruction, tuple(dict.fromkeys(choices)), choices[0], "")


def or_not(row: Decision, rng: random.Random) -> Decision:
    """A two-sided row asked for one side: that, or not."""
    side = rng.choice(("positive", "negative"))
    name = rng.choice(SIDE_NAMES[side])
    question, denied = rng.choice(_LISTS.entries("or not")).format(name), f"not {name}"
    return replace(row, instruction=question, choices=(name, denied), label=name if row.label == side else denied)


def negated_pairs(
    sets: dict[str, list[Decision]], intents: list[Decision], rng: random.Random, count: int
) -> list[Decision]:
    """Questions with their opposites, over all kinds of held-out texts; each row carries its opposite."""
    rows = []

    def add(row: Decision, words: tuple[str, ...], asked: str, truth: bool) -> None:
        flip = rng.random() < 0.5
        one, other = (w.format(asked) for w in (reversed(words) if flip else words))
        choices, true = ("yes", "no"), truth != flip
        second = replace(row, instruction=other, choices=choices, label="no" if true else "yes", set="negated")
        rows.append(replace(row, instruction=one, choices=choices, label="yes" if true else "no", opposite=second))

    labels = sorted({r.label for r in intents})
    for row in rng.sample(intents, count // 4):
        true, words = rng.random() < 0.5, rng.choice(_LISTS.tuples("label"))
        add(row, words, row.label if true else rng.choice([label for label in labels if label != row.label]), true)
    for row in rng.sample([r for r in sets["vader_tweets"] if r.label != "neutral"], count // 4):
        add(row, rng.choice(_LISTS.tuples("side")), "", row.label == "positive")
    feelings = sorted({f for felt in SIDES.values() for f in felt})
    for row in rng.sample([r for r in sets["xed_en"] if r.label in feelings], count // 8):
        true, words = rng.random() < 0.5, rng.choice(_LISTS.tuples("feeling"))
        opposed = SIDES["negative" if row.label in SIDES["positive"] else "positive"]
        add(row, words, row.label if true else rng.choice(opposed), true)
    for row in rng.sample([r for r in sets["mnli"][: KEPT_BACK["mnli"]] if r.label in r.choices[:2]], count // 4):
        add(row, rng.choice(_LISTS.tuples("claim")), claim_of(row).strip(), row.label == row.choices[0])
    for row in rng.sample(sets["boolq"][: KEPT_BACK["boolq"]], count // 8):
        add(row, rng.choice(_LISTS.tuples("passage")), row.instruction, row.label == "yes")
    return rows
