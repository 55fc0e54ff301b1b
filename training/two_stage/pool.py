"""What the tasks of the mix draw from: the training sets, sorted and paired as the tasks ask for them, and the ways to
lay out a row's choices.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from .everyday import Corpus
from .records import Decision
from .services import read_requests
from .sheets import Sheet
from .wordings import INSTRUCTIONS, KINDS_WANTED, NAMES, POLARITY_OF, RESIDUAL, TOPICS, renamed

# Sets that no stage is trained on: what the rule that joins the stages is fitted on, and the training watched by.
HELD_OUT = [
    "multidogo_finance",
    "multidogo_software",
    "multidogo_media",
    "ms_va",
    "snips",
    "vader_tweets",
    "xed_en",
    "clickbait",
    "scicite",
    "codah",
]
INTENT_SETS = ["sgd_intent", "multidogo_airline", "multidogo_fastfood", "multidogo_insurance"]
# The first rows of two sets that are trained on, for the same: no other set asks like them.
KEPT_BACK = {"boolq": 300, "mnli": 500}
# Texts that people wrote to each other or to a service.
CHATTER = ["goemotions", "sgd_intent", "multidogo_airline", "multidogo_insurance", "nlupp_banking"]
# In characters: a claim that is asked for inside a question, a message of chatter, and a text that any question may be
# asked of.
LONGEST_CLAIM, LONGEST_CHATTER, LONGEST_TEXT = 160, 160, 300
# Of a set, at most so many rows lend their texts and choices to other tasks, so that no large set crowds out the small
# ones.
LENT_ROWS, LENT_ANSWERS = 2500, 1500
# How many choices a row has; the sizes that callers bring most are there the most.
SIZES = [2, 3, 4, 5, 6, 7, 8, 8, 12, 16, 24, 32]

Similarity = Callable[[str, str], float]


def sentences(text: str) -> list[str]:
    """The sentences of a text, by its full stops and ends of lines."""
    return [s.strip() for s in re.split(r"(?<=[.!?])\s+|<br /><br />|\n", text) if s.strip()]


def revised_sentences(reviews: list[Decision]) -> list[tuple[str, str]]:
    """(sentence, label) for the sentences that differ between a review and its minimally edited opposite."""
    by_sentence = defaultdict(set)
    split = [sentences(r.input) for r in reviews]
    for index, parts in enumerate(split):
        for part in parts:
            if len(part) > 40:
                by_sentence[part].add(index)
    pairs = set()
    for index, parts in enumerate(split):
        votes = defaultdict(int)
        for part in parts:
            for other in by_sentence.get(part, ()):
                if other != index and reviews[other].label != reviews[index].label:
                    votes[other] += 1
        if votes:
            pairs.add((index, max(votes, key=votes.get)))
    found = {}
    for index, other in sorted(pairs):
        theirs = set(split[other])
        for part in split[index]:
            if part not in theirs and 25 < len(part) < 300:
                found[part] = reviews[index].label
    return sorted(found.items())


def is_residual(label: str) -> bool:
    """Whether a label of the intent sets says that none fits."""
    return label.startswith(("something", "none of"))


def claim_of(row: Decision) -> str:
    """The statement inside an instruction of an entailment set."""
    return row.instruction.split('"', 1)[1].rsplit('"', 1)[0]


def kind_wanted(query: str) -> list[str] | None:
    """The names of what a question asks for, by its first words; None where they do not tell."""
    low = query.lower()
    return next((kinds for start, kinds in KINDS_WANTED.items() if low.startswith(start + " ")), None)


def size(most: int, rng: random.Random) -> int:
    """A number of choices, at most `most`."""
    return min(most, rng.choice(SIZES))


class Pool:
    """The training sets, less what is held out or kept back, and what the tasks make of them once.

    `similarity`: of two labels, so that near-synonyms are no wrong choices; without it choices are drawn at random
    alone.
    """

    def __init__(
        self,
        sets: dict[str, list[Decision]],
        similarity: Similarity | None,
        corpus: Corpus | None,
        sheets: Sequence[Sheet] = (),
    ):
        self.corpus, self.sheets = corpus, sheets
        self.sets = {name: rows[KEPT_BACK.get(name, 0) :] for name, rows in sets.items() if name not in HELD_OUT}
        self.sets["sgd_intent"] = [replace(r, input=r.input.removeprefix("User: ")) for r in self.sets["sgd_intent"]]
        self.similarity = similarity
        self.labels = {n: sorted({c for r in self.sets[n] for c in r.choices}) for n in INTENT_SETS}
        self.all_intents = sorted(
            {label for labels in self.labels.values() for label in labels if not is_residual(label)}
        )
        self.reviews = revised_sentences(self.sets["cad_imdb"])
        self.emotional = [r for r in self.sets["goemotions"] if r.label != "neutral"]
        self.polar = [
            (r, side) for r in self.emotional for side, emotions in POLARITY_OF.items() if r.label in emotions
        ]
        self.titled = [tuple(r.input.split(" -- ", 1)) for r in self.sets["boolq"] if " -- " in r.input]
        self.premises = defaultdict(lambda: defaultdict(list))
        for row in self.sets["cad_nli"]:
            self.premises[row.input][row.label].append(claim_of(row))
        self.contrasted = sorted(
            p
            for p, claims in self.premises.items()
            if claims["true"] and (claims["false"] or claims["cannot be determined"])
        )
        self.opposed = self.opposed_claims()
        self.figures = [r for r in self.sets["figqa"] if len(r.choices) == 2]
        self.texts = [
            r.input for n, rows in sorted(self.sets.items()) for r in rows[:LENT_ROWS] if len(r.input) < LONGEST_TEXT
        ]
        self.phrases = sorted(
            {
                *TOPICS,
                *self.all_intents,
                *NAMES,
                *(t for t, _ in self.titled),
                *(c for r in self.sets["openbookqa"][:LENT_ANSWERS] for c in r.choices),
            }
        )
        self.long_phrases = sorted(
            {c for n in ("openbookqa", "figqa") for r in self.sets[n][:LENT_ROWS] for c in r.choices if len(c) > 20}
            | {claim_of(r).strip() for r in self.sets["cad_nli"][:LENT_ROWS]}
        )
        self.decided = [
            r
            for n in ("cad_nli", "cad_nli", "mnli", "conjnli")
            for r in self.sets[n]
            if r.label in r.choices[:2] and len(claim_of(r)) < LONGEST_CLAIM
        ]
        self.sided = [r for n in ("vader_nyt", "newsmtsc") for r in self.sets[n] if r.label != "neutral"]
        self.queries = [
            (r.input, kinds) for r in self.sets["query_wellformed"] for kinds in [kind_wanted(r.input)] if kinds
        ]
        self.requests = read_requests()
        self.chatter = [r.input for n in CHATTER for r in self.sets[n] if len(r.input) < LONGEST_CHATTER]
        self.filler = [part[:240] for _, text in self.titled for part in sentences(text) if len(part) > 30]

    def opposed_claims(self) -> list[tuple[str, list[str], list[str]]]:
        """(text, claims that it makes true, claims that it makes false), where there are both."""
        claims = defaultdict(lambda: ([], []))
        for name in ("cad_nli", "conjnli", "mnli"):
            for row in self.sets[name]:
                index = row.choices.index(row.label)
                if index < 2 and len(claim_of(row)) < LONGEST_CLAIM:
                    claims[row.input][index].append(claim_of(row).strip())
        return [(text, true, false) for text, (true, false) in sorted(claims.items()) if true and false]

    def negatives(self, gold: str, pool: list[str], count: int, rng: random.Random) -> list[str]:
        """`count` other labels: half of the time the nearest to the gold (less near-synonyms), else at random."""
        pool = [p for p in pool if p != gold]
        if self.similarity and len(pool) > count and rng.random() < 0.5:
            pool = sorted(rng.sample(pool, min(len(pool), 4 * count + 8)), key=lambda p: -self.similarity(gold, p))
            return pool[:count]
        return rng.sample(pool, min(count, len(pool)))

    def asked(self, row: Decision, rng: random.Random) -> str:
        """The row's own instruction or one of the set's wordings."""
        others = INSTRUCTIONS.get(row.set)
        return rng.choice(others) if others and rng.random() < 0.75 else row.instruction

    def with_choices(self, row: Decision, pool: list[str], rng: random.Random, rename: bool = True) -> Decision:
        """Gold and negatives from a pool, renamed; in some rows "none of these" joins, in some it takes the gold's
        place.
        """
        count = size(len(pool), rng)
        others = self.negatives(row.label, pool, count - 1, rng)
        name = (lambda label: renamed(label, rng)) if rename else (lambda label: label)
        gold = name(row.label)
        choices = [gold, *(name(o) for o in others)]
        draw = rng.random()
        if count > 2 and draw < 0.25 and not any(is_residual(c) for c in (row.label, *others)):
            residual = rng.choice(RESIDUAL)
            if draw < 0.11:
                gold, choices[0] = residual, residual
            else:
                choices.append(residual)
        choices = list(dict.fromkeys(choices))
        return replace(row, instruction=self.asked(row, rng), choices=tuple(choices), label=gold)
