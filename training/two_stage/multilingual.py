"""Rows in many languages: lines with the same meaning, emotions in film dialogue, questions and names in the text's own
language.

`parallel_*` sets hold pairs of an English line and the same line in another language, `train_xed_*` lines with an
emotion that was carried over from another language's annotation. Nobody labelled the pairs; what they teach is that a
decision does not depend on the language: a *twin* is one question about both lines of a pair, and the reading of the
other line is drawn to that of the English one.
"""

import random
from dataclasses import dataclass, replace
from pathlib import Path

from . import negation
from .e5 import parallel
from .held_out import SIDE_CHOICES, TONE
from .lists import Lists
from .mix import Mix, Task
from .records import CROSSED, Decision, read_folder
from .tasks.feelings import polarity
from .translated import Translated
from .wordings import EMOTION, POLARITY, TOPIC, TOPICS, renamed

# Of every language's pairs the first are held out, and of the emotions whole languages.
HELD_PAIRS = 60
HELD_LANGUAGES = ("ar", "fi", "pt", "tr", "zh")
SIDES = {"positive": ("joy", "trust"), "negative": ("anger", "disgust", "fear", "sadness")}
FOUR_EMOTIONS = ("anger", "fear", "joy", "sadness")
# In characters: lines that say something, and that stage A reads whole. The other language may be one that needs few.
SHORTEST, SHORTEST_OTHER, LONGEST = 12, 6, 240
# Of the rows that are not from the everyday corpus, these tasks' shares.
SHARES = {"spoken": 0.05, "meaning": 0.03, "same": 0.02, "twin": 0.12}
# Of the pairs of a twin, those that are requests (`translated`).
REQUESTED = 0.4

_LISTS = Lists("multilingual")
MEANING, SAME, NOT_SAME = _LISTS.entries("meaning"), _LISTS.entries("same"), _LISTS.entries("not same")
EMOTIONS = tuple(_LISTS.words("emotions"))
RESIDUAL = _LISTS.words("residual")


@dataclass(frozen=True)
class Own:
    """A language's own words: the question for the emotion, the names of EMOTIONS in their order, the question for the
    side, its names, yes and no.
    """

    emotion: str
    emotions: list[str]
    side: str
    positive: str
    negative: str
    yes: str
    no: str


def _own(words: list[str]) -> Own:
    emotion, emotions, *others = words
    return Own(emotion, emotions.split("; "), *others)


OWN = {language: _own(words) for language, words in _LISTS.table("own words").items()}
# Answers that name nothing, as callers write them in these languages.
VERDICTS = sorted(
    {w for own in OWN.values() for word in (own.yes, own.no) for w in (word, word.capitalize())}
    | {"Yes", "No", "True", "False", "YES", "NO"}
)


def usable(line: dict[str, str]) -> bool:
    """Whether a pair of lines is neither too short nor too long to teach something, nor the same text twice."""
    english, other = line["en"], line["other"]
    return SHORTEST <= len(english) <= LONGEST and SHORTEST_OTHER <= len(other) <= LONGEST and english != other


class Multilingual:
    """Draws the rows of its tasks for a mix."""

    def __init__(self, mix: Mix, folder: Path):
        self.mix = mix
        pairs = parallel(folder)
        self.held = {language: [p for p in found[:HELD_PAIRS] if usable(p)] for language, found in pairs.items()}
        self.pairs = {language: [p for p in found[HELD_PAIRS:] if usable(p)] for language, found in pairs.items()}
        sets = read_folder(
            folder, [p.name.removesuffix(".jsonl.gz") for p in sorted(folder.glob("train_xed_*.jsonl.gz"))]
        )
        emotional = {name.removeprefix("train_xed_"): rows for name, rows in sets.items()}
        self.emotional = {language: rows for language, rows in emotional.items() if language not in HELD_LANGUAGES}
        self.held_emotional = {language: rows for language, rows in emotional.items() if language in HELD_LANGUAGES}
        self.languages = sorted(self.pairs)
        self.translated = Translated(mix)

    def install(self) -> None:
        """Adds the tasks to the mix."""
        self.translated.install()
        total = sum(task.weight for task in self.mix.tasks.values()) / (1 - sum(SHARES.values()))
        self.mix.tasks |= {name: Task(getattr(self, name), share * total) for name, share in SHARES.items()}

    def pair(self, rng: random.Random) -> tuple[str, dict[str, str]]:
        """A language, every one as often as another, and one of its pairs."""
        language = rng.choice(self.languages)
        return language, rng.choice(self.pairs[language])

    def spoken(self, rng: random.Random) -> Decision:
        """A line of dialogue: its emotion among names in English or in its own language, or its side."""
        language = rng.choice(sorted(self.emotional))
        row = rng.choice(self.emotional[language])
        own = OWN.get(language)
        if rng.random() < 0.45:
            side = next((side for side, emotions in SIDES.items() if row.label in emotions), None)
            if side is None:
                return self.spoken(rng)
            if own and rng.random() < 0.35:
                asked = own.side if rng.random() < 0.6 else rng.choice(POLARITY)
                label = own.positive if side == "positive" else own.negative
                return replace(row, instruction=asked, choices=(own.positive, own.negative), label=label)
            return polarity(replace(row, label=side), POLARITY, rng)
        kept = [row.label, *rng.sample([e for e in EMOTIONS if e != row.label], rng.randint(1, 7))]
        if own and rng.random() < 0.35:
            names = dict(zip(EMOTIONS, own.emotions, strict=True))
            asked = own.emotion if rng.random() < 0.6 else rng.choice(EMOTION)
        else:
            names, asked = {e: renamed(e, rng) for e in EMOTIONS}, rng.choice(EMOTION)
        return replace(row, instruction=asked, choices=tuple(names[e] for e in kept), label=names[row.label])

    def meaning(self, rng: random.Random) -> Decision:
        """Which line means the same, in English or in any other language."""
        language, pair = self.pair(rng)
        one, other = ("en", "other") if rng.random() < 0.5 else ("other", "en")
        wrong = [p[other] for p in rng.sample(self.pairs[language], rng.choice((1, 2, 3, 4, 7)))]
        return Decision(
            pair[one], rng.choice(MEANING), tuple(dict.fromkeys([pair[other], *wrong])), pair[other], "parallel"
        )

    def same(self, rng: random.Random) -> Decision:
        """Whether two lines mean the same, and the opposite question."""
        language, pair = self.pair(rng)
        one, other = ("en", "other") if rng.random() < 0.5 else ("other", "en")
        true = rng.random() < 0.5
        said = pair[other] if true else rng.choice(self.pairs[language])[other]
        if not true and said == pair[other]:
            return self.same(rng)
        return negation.pair_about(Decision(pair[one], "", (), "", "parallel"), said, SAME, NOT_SAME, true, rng)

    def twin(self, rng: random.Random) -> Decision:
        """One question about both lines of a pair; what it is nobody answered."""
        pair = self.translated.lines(rng) if rng.random() < REQUESTED else self.pair(rng)[1]
        draw = rng.random()
        if draw < 0.5 and self.mix.pool.corpus is not None:
            group = self.mix.pool.corpus.group(rng)
            question, choices = rng.choice(group.instructions), rng.choice(group.choices)
        elif draw < 0.65:
            question, choices = rng.choice(EMOTION), tuple(rng.sample(EMOTIONS, rng.randint(2, 8)))
        elif draw < 0.75:
            question, choices = rng.choice(POLARITY), ("negative", "neutral", "positive")[:: rng.choice((1, 2))]
        elif draw < 0.9:
            question, choices = rng.choice(TOPIC), tuple(rng.sample(TOPICS, rng.randint(3, 9)))
        else:
            question, choices = rng.choice(_LISTS.entries("yes or no")), ("yes", "no")
        row = Decision(pair["en"], question, tuple(choices), CROSSED, "parallel")
        return replace(row, opposite=replace(row, input=pair["other"]))

    def lines(self, count: int, rng: random.Random) -> list[tuple[str, str]]:
        """Pairs for tuning stage A."""
        found = []
        for _ in range(count):
            pair = self.translated.lines(rng) if rng.random() < REQUESTED else self.pair(rng)[1]
            found.append((pair["en"], pair["other"]))
        return found

    def held_out(self, count: int, seed: int) -> dict[str, list[Decision]]:
        """Emotions and sides in languages that were left out, held-out lines among others of the same language, and
        what `translated` holds out.
        """
        rng = random.Random(seed)
        lines = [(language, p) for language, pairs in sorted(self.held.items()) for p in pairs]
        meaning = []
        for language, pair in rng.sample(lines, min(count, len(lines))):
            wrong = [p["en"] for p in rng.sample(self.held[language], 5) if p["en"] != pair["en"]]
            choices = tuple(dict.fromkeys([pair["en"], *wrong]))
            meaning.append(
                Decision(pair["other"], "Which line of dialogue is this?", choices, pair["en"], "far_meaning")
            )
        rows = [row for rows in self.held_emotional.values() for row in rows]
        sided = [(row, side) for row in rows for side, emotions in SIDES.items() if row.label in emotions]
        return {
            "far_meaning": meaning,
            "far_sides": [
                replace(r, instruction=TONE, choices=SIDE_CHOICES, label=side, set="far_sides")
                for r, side in rng.sample(sided, min(count, len(sided)))
            ],
            "far_emotions": [
                replace(r, choices=FOUR_EMOTIONS, set="far_emotions")
                for r in rng.sample([r for r in rows if r.label in FOUR_EMOTIONS], count)
            ],
            **self.translated.held_out(count, seed),
        }
