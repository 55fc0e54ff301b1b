"""The training mix: from labelled sets to varied decisions.

A *task* draws one decision at a time. Most re-ask a labelled row in other words; some change the question on the same text
(topic, polarity, yes/no and its negation), and `echo` rows have no label at all: their target is what stage A thinks.
`MIX` gives each task its weight.
"""

import random
import re
from collections import defaultdict
from dataclasses import dataclass, replace

from . import negation, procedural
from .catalogs import catalog
from .everyday import BLANKS, OF_A_FIELD, Corpus, open_question, residual
from .records import Decision
from .services import read_requests
from .wordings import (
    CHOOSE,
    DOMAINS,
    FOLLOWS,
    INSTRUCTIONS,
    INTENT,
    KINDS_WANTED,
    NAMES,
    POLARITY,
    POLARITY_OF,
    RESIDUAL,
    REVIEW,
    SERVICE,
    SERVICE_DOMAINS,
    STATEMENTS,
    TITLE,
    TOPIC,
    TOPICS,
    VERDICTS,
    WANTED,
    YES_NO,
    renamed,
    respelled,
)

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
KEPT_BACK = {"boolq": 300, "mnli": 500}
# Targets other than a label: stage A's own distribution, every choice alike, and what another stage B says.
TEACHER, EVEN, CROSSED = "\0teacher", "\0even", "\0crossed"
LONGEST_INPUT, LONGEST_EVERYDAY = 700, 1400
# The tasks of the everyday corpus, by their share of what is drawn from it.
EVERYDAY = {"everyday": 0.84, "everyday_proposal": 0.08, "everyday_open": 0.08}
# Of all rows, where there is another stage B to learn from.
CROSSED_SHARE = 0.25
# Texts that people wrote to each other or to a service.
CHATTER = ["goemotions", "sgd_intent", "multidogo_airline", "multidogo_insurance", "nlupp_banking"]
# Tasks whose question an encyclopaedia's sentence does not answer, texts that answer nothing, and choices that say that nothing fits.
UNRELATED = [
    "sgd",
    "airline",
    "fastfood",
    "insurance",
    "any_intent",
    "emotion",
    "emotion_polarity",
    "review_sentence",
    "residual",
    "routing",
    "message",
]
# Pairs of questions that such a text leaves open, so that neither answer is better.
OPEN = ["claim_pair", "contrast_pair", "figure_pair", "world_pair", "side_pair"]
OF_NOTHING = {name.lower() for name in (*RESIDUAL, *NAMES["neutral"])}


@dataclass(frozen=True)
class Task:
    draw: object
    weight: float


def sentences(text: str) -> list[str]:
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


class Mix:
    """All tasks over the training sets, less what is held out or kept back. Draws are a function of the generator given."""

    def __init__(self, sets: dict[str, list[Decision]], label_similarity=None, corpus: Corpus | None = None):
        self.corpus = corpus
        self.sets = {name: rows[KEPT_BACK.get(name, 0) :] for name, rows in sets.items() if name not in HELD_OUT}
        self.sets["sgd_intent"] = [replace(r, input=r.input.removeprefix("User: ")) for r in self.sets["sgd_intent"]]
        self.similarity = label_similarity
        self.labels = {n: sorted({c for r in self.sets[n] for c in r.choices}) for n in INTENT_SETS}
        self.all_intents = sorted(
            {label for labels in self.labels.values() for label in labels if not self.residual(label)}
        )
        self.reviews = revised_sentences(self.sets["cad_imdb"])
        self.emotional = [r for r in self.sets["goemotions"] if r.label != "neutral"]
        self.polar = [
            (r, side) for r in self.emotional for side, emotions in POLARITY_OF.items() if r.label in emotions
        ]
        self.titled = [tuple(r.input.split(" -- ", 1)) for r in self.sets["boolq"] if " -- " in r.input]
        self.premises = defaultdict(lambda: defaultdict(list))
        for row in self.sets["cad_nli"]:
            self.premises[row.input][row.label].append(self.claim(row))
        self.contrasted = sorted(
            p
            for p, claims in self.premises.items()
            if claims["true"] and (claims["false"] or claims["cannot be determined"])
        )
        self.opposed = self.opposed_claims()
        self.figures = [r for r in self.sets["figqa"] if len(r.choices) == 2]
        self.texts = [r.input for n, rows in sorted(self.sets.items()) for r in rows[:2500] if len(r.input) < 300]
        self.phrases = sorted(
            {
                *TOPICS,
                *self.all_intents,
                *(l for l in NAMES),
                *(t for t, _ in self.titled),
                *(c for r in self.sets["openbookqa"][:1500] for c in r.choices),
            }
        )
        self.long_phrases = sorted(
            {c for n in ("openbookqa", "figqa") for r in self.sets[n][:2500] for c in r.choices if len(c) > 20}
            | {self.claim(r).strip() for r in self.sets["cad_nli"][:2500]}
        )
        self.decided = [
            r
            for n in ("cad_nli", "cad_nli", "mnli", "conjnli")
            for r in self.sets[n]
            if r.label in r.choices[:2] and len(self.claim(r)) < 160
        ]
        self.sided = [r for n in ("vader_nyt", "newsmtsc") for r in self.sets[n] if r.label != "neutral"]
        self.queries = [
            (r.input, kinds) for r in self.sets["query_wellformed"] for kinds in [self.kind_wanted(r.input)] if kinds
        ]
        self.nlupp = self.sets["nlupp_banking"]
        self.requests = read_requests()
        self.chatter = [r.input for n in CHATTER for r in self.sets[n] if len(r.input) < 160]
        self.filler = [part[:240] for _, text in self.titled for part in sentences(text) if len(part) > 30]
        self.tasks = self.build()

    # -- pieces -------------------------------------------------------------------------------------------------------

    @staticmethod
    def residual(label: str) -> bool:
        return label.startswith(("something", "none of"))

    @staticmethod
    def claim(row: Decision) -> str:
        """The statement inside an instruction of an entailment set."""
        return row.instruction.split('"', 1)[1].rsplit('"', 1)[0]

    def opposed_claims(self) -> list[tuple[str, list[str], list[str]]]:
        """(text, claims that it makes true, claims that it makes false), where there are both."""
        claims = defaultdict(lambda: ([], []))
        for name in ("cad_nli", "conjnli", "mnli"):
            for row in self.sets[name]:
                index = row.choices.index(row.label)
                if index < 2 and len(self.claim(row)) < 160:
                    claims[row.input][index].append(self.claim(row).strip())
        return [(text, true, false) for text, (true, false) in sorted(claims.items()) if true and false]

    @staticmethod
    def kind_wanted(query: str) -> list[str] | None:
        low = query.lower()
        return next((kinds for start, kinds in KINDS_WANTED.items() if low.startswith(start + " ")), None)

    def negatives(self, gold: str, pool: list[str], count: int, rng: random.Random) -> list[str]:
        """`count` other labels: half of the time the nearest to the gold (less near-synonyms), else at random."""
        pool = [p for p in pool if p != gold]
        if self.similarity and len(pool) > count and rng.random() < 0.5:
            pool = sorted(rng.sample(pool, min(len(pool), 4 * count + 8)), key=lambda p: -self.similarity(gold, p))
            return pool[:count]
        return rng.sample(pool, min(count, len(pool)))

    def size(self, most: int, rng: random.Random) -> int:
        return min(most, rng.choice([2, 3, 4, 5, 6, 7, 8, 8, 12, 16, 24, 32]))

    def finish(self, row: Decision, rng: random.Random) -> Decision:
        """Spelling and order of the choices, and long inputs cut to a window."""
        choices = list(row.choices)
        order = list(range(len(choices)))
        rng.shuffle(order)
        spelled = respelled(choices, rng) if rng.random() < 0.2 else choices
        label = row.label if row.label in (TEACHER, EVEN, CROSSED) else spelled[choices.index(row.label)]
        ordered, ranks = tuple(spelled[i] for i in order), tuple(row.ranks[i] for i in order) if row.ranks else ()
        text = row.input[: LONGEST_EVERYDAY if row.set.startswith("everyday") else LONGEST_INPUT]
        twin = row.opposite is not None and row.opposite.label == CROSSED
        opposite = row.opposite and replace(
            row.opposite,
            input=row.opposite.input if twin else text,
            choices=ordered,
            label=CROSSED if twin else spelled[choices.index(row.opposite.label)],
        )
        return replace(row, input=text, choices=ordered, label=label, ranks=ranks, opposite=opposite)

    def asked(self, row: Decision, rng: random.Random) -> str:
        """The row's own instruction or one of the set's wordings."""
        others = INSTRUCTIONS.get(row.set)
        return rng.choice(others) if others and rng.random() < 0.75 else row.instruction

    def with_choices(self, row: Decision, pool: list[str], rng: random.Random, rename: bool = True) -> Decision:
        """Gold and negatives from a pool, renamed; in some rows "none of these" joins, in some it takes the gold's place."""
        count = self.size(len(pool), rng)
        others = self.negatives(row.label, pool, count - 1, rng)
        name = (lambda label: renamed(label, rng)) if rename else (lambda label: label)
        gold = name(row.label)
        choices = [gold, *(name(o) for o in others)]
        draw = rng.random()
        if count > 2 and draw < 0.25 and not any(self.residual(c) for c in (row.label, *others)):
            residual = rng.choice(RESIDUAL)
            if draw < 0.11:
                gold, choices[0] = residual, residual
            else:
                choices.append(residual)
        choices = list(dict.fromkeys(choices))
        return replace(row, instruction=self.asked(row, rng), choices=tuple(choices), label=gold)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def intent(self, name: str):
        def draw(rng):
            row = rng.choice(self.sets[name])
            own = list(row.choices)
            return (
                self.with_choices(row, own, rng)
                if name != "sgd_intent" or rng.random() < 0.4
                else self.mixed_intent(row, rng)
            )

        return draw

    def mixed_intent(self, row: Decision, rng) -> Decision:
        """The row's label among intents of every source."""
        if self.residual(row.label):
            return replace(row, instruction=self.asked(row, rng))
        pool = self.all_intents
        if self.similarity:
            pool = [p for p in rng.sample(pool, min(50, len(pool))) if self.similarity(row.label, p) < 0.62]
        return self.with_choices(row, [row.label, *pool], rng)

    def any_intent(self, rng) -> Decision:
        row = rng.choice(self.sets[rng.choice(INTENT_SETS)])
        return self.mixed_intent(row, rng)

    def request(self, rng) -> Decision:
        """A request to a service among that service's others, or which service it is made to, or whether it is that one."""
        asked = rng.choice(self.requests)
        near = [r for r in self.requests if r.service == asked.service and r is not asked]
        row = Decision(rng.choice(asked.said), rng.choice(INTENT), (), rng.choice(asked.names), "requests")
        draw = rng.random()
        if draw < 0.15:
            services = list(dict.fromkeys(r.service for r in self.requests))
            return self.with_choices(
                replace(row, instruction=rng.choice(SERVICE), label=asked.service), services, rng, rename=False
            )
        if draw < 0.35:
            true = rng.random() < 0.5
            name = row.label if true else rng.choice(rng.choice(near).names)
            return negation.pair(
                row, rng.choice(negation.WANTS).format(name), rng.choice(negation.WANTS_NOT).format(name), true, rng
            )
        return self.with_choices(row, [row.label, *(rng.choice(r.names) for r in near)], rng, rename=False)

    def crowded(self, rng) -> Decision:
        """A request among the intents of every source at once; what stage A finds nearest of them is read."""
        row = rng.choice(self.sets[rng.choice(INTENT_SETS)])
        service = None
        if self.residual(row.label) or rng.random() < 0.6:
            asked = rng.choice(self.requests)
            service = asked.service
            row = Decision(rng.choice(asked.said), "", (), rng.choice(asked.names), "requests")
        far = lambda name: not self.similarity or self.similarity(name, row.label) < 0.6
        others = [
            rng.choice(r.names)
            for r in self.requests
            if row.label not in r.names and (r.service == service or all(map(far, r.names)))
        ]
        choices = [row.label, *others, *(name for name in self.all_intents if name != row.label and far(name))]
        return replace(row, instruction=rng.choice(INTENT), choices=tuple(dict.fromkeys(choices)))

    def intent_yes_no(self, rng) -> Decision:
        row = rng.choice(self.sets[rng.choice(INTENT_SETS)])
        if self.residual(row.label):
            return self.any_intent(rng)
        true = rng.random() < 0.5
        asked = (
            row.label
            if true
            else rng.choice(
                [
                    c
                    for c in self.all_intents
                    if c != row.label and (not self.similarity or self.similarity(c, row.label) < 0.5)
                ]
            )
        )
        asked = renamed(asked, rng)
        return negation.pair(
            row, rng.choice(negation.WANTS).format(asked), rng.choice(negation.WANTS_NOT).format(asked), true, rng
        )

    def emotion(self, rng) -> Decision:
        row = rng.choice(self.emotional if rng.random() < 0.85 else self.sets["goemotions"])
        return self.with_choices(row, list(row.choices), rng)

    def emotion_yes_no(self, rng) -> Decision:
        row, side = rng.choice(self.polar)
        true = rng.random() < 0.5
        opposite = POLARITY_OF["negative" if side == "positive" else "positive"]
        asked = renamed(row.label if true else rng.choice(opposite), rng)
        return negation.pair(
            row, rng.choice(negation.FEELS).format(asked), rng.choice(negation.FEELS_NOT).format(asked), true, rng
        )

    def polarity_of_emotion(self, rng) -> Decision:
        row, side = rng.choice(self.polar)
        return self.polarity(replace(row, label=side), POLARITY, rng)

    def polarity(self, row: Decision, instructions: list[str], rng, neutral: bool = False) -> Decision:
        """Two or three sides under one of their names, or yes/no about one side."""
        if rng.random() < 0.2 and not neutral:
            return negation.pair(row, *negation.side(rng), row.label == "positive", rng)
        if rng.random() < 0.45:
            index = rng.randrange(len(NAMES["positive"]))
            sides = {
                "positive": NAMES["positive"][index],
                "negative": NAMES["negative"][index],
                "neutral": rng.choice(NAMES["neutral"]),
            }
        else:
            sides = {"positive": "positive", "negative": "negative", "neutral": "neutral"}
        names = [sides["negative"], sides["positive"]] + ([sides["neutral"]] if neutral else [])
        return replace(row, instruction=rng.choice(instructions), choices=tuple(names), label=sides[row.label])

    def review_sentence(self, rng) -> Decision:
        text, label = rng.choice(self.reviews)
        text = text.lower() if rng.random() < 0.3 else text
        return self.polarity(Decision(text, "", (), label, "cad_imdb"), REVIEW, rng)

    def review(self, rng) -> Decision:
        row = rng.choice(self.sets["cad_imdb"])
        parts = sentences(row.input)
        return self.polarity(
            replace(row, input=" ".join(parts[-4:] if rng.random() < 0.5 else parts[:3] + parts[-3:])[:LONGEST_INPUT]),
            REVIEW,
            rng,
        )

    def editorial(self, rng) -> Decision:
        return self.polarity(rng.choice(self.sets["vader_nyt"]), POLARITY, rng, neutral=True)

    def target_sentiment(self, rng) -> Decision:
        row = rng.choice(self.sets["newsmtsc"])
        target = self.claim(row)
        forms = [
            'What is the sentiment of the sentence towards "{}"?',
            "How is {} portrayed?",
            "What is the attitude to {}?",
            'Is the text for or against "{}"?',
        ]
        made = self.polarity(row, [rng.choice(forms).format(target)], rng, neutral=True)
        return made

    def offence(self, rng) -> Decision:
        row = rng.choice(self.sets["hate_offensive"])
        if row.label.startswith("offensive") and rng.random() < 0.6:
            row = rng.choice(self.sets["hate_offensive"])
        if rng.random() < 0.4:
            hate = row.label == "hate speech"
            if hate or row.label == "neither" or rng.random() < 0.3:
                return negation.pair(
                    row,
                    rng.choice(
                        [
                            "Does this post attack a group of people?",
                            "Is this hate speech?",
                            "Should this be removed as hate?",
                            "Is this hateful?",
                        ]
                    ),
                    rng.choice(
                        [
                            "Is this post free of hate?",
                            "Is it wrong to call this hate speech?",
                            "Does this post attack nobody?",
                            "Is this something other than hate speech?",
                            "Is this not hateful?",
                        ]
                    ),
                    hate,
                    rng,
                )
        return self.with_choices(row, list(row.choices), rng)

    def well_formed(self, rng) -> Decision:
        row = rng.choice(self.sets["query_wellformed"])
        names = {label: renamed(label, rng) for label in row.choices}
        return replace(row, instruction=self.asked(row, rng), choices=tuple(names.values()), label=names[row.label])

    def wanted(self, rng) -> Decision:
        """What kind of answer a query asks for, by its first words."""
        query, kinds = rng.choice(self.queries)
        others = [rng.choice(k) for k in KINDS_WANTED.values() if not set(k) & set(kinds)]
        gold = rng.choice(kinds)
        choices = list(dict.fromkeys([gold, *rng.sample(others, rng.randint(1, min(6, len(others))))]))
        return Decision(query, rng.choice(WANTED), tuple(choices), gold, "query_wellformed")

    def entailment(self, name: str):
        def draw(rng):
            row = rng.choice(self.sets[name])
            claim = self.claim(row).strip()
            index = row.choices.index(row.label)
            question = rng.choice(STATEMENTS).format(claim) if rng.random() < 0.7 else row.instruction
            if rng.random() < 0.15 and index < 2:
                return negation.pair(row, *negation.about_claim(claim, rng), index == 0, rng)
            names = VERDICTS[0] if rng.random() < 0.5 else rng.choice(VERDICTS)
            return replace(row, instruction=question, choices=names, label=names[index])

        return draw

    def claim_pair(self, rng) -> Decision:
        """A claim that is true or false of a text, asked for and denied."""
        row = rng.choice(self.decided)
        return negation.pair(row, *negation.about_claim(self.claim(row).strip(), rng), row.label == row.choices[0], rng)

    def contrast_pair(self, rng) -> Decision:
        """Two claims that people wrote about one text, of which it makes one true and the other false."""
        premise, true, false = rng.choice(self.opposed)
        return negation.pair(
            Decision(premise, "", (), "", "cad_nli"),
            *negation.about_contrast(rng.choice(true), rng.choice(false), rng),
            True,
            rng,
        )

    def figure_pair(self, rng) -> Decision:
        """What a figurative sentence means, and the opposite; half of the time the meaning itself is the text."""
        row = rng.choice(self.figures)
        false = next(c for c in row.choices if c != row.label)
        text = row.input if rng.random() < 0.5 else row.label
        return negation.pair(replace(row, input=text), *negation.about_contrast(row.label, false, rng), True, rng)

    def side_pair(self, rng) -> Decision:
        """Whether a text is favourable, and the opposite."""
        draw = rng.random()
        if draw < 0.45:
            text, label = rng.choice(self.reviews)
            row = Decision(text.lower() if rng.random() < 0.3 else text, "", (), label, "cad_imdb")
        elif draw < 0.85:
            row, label = rng.choice(self.polar)
        else:
            row = rng.choice(self.sided)
            label = row.label
        return negation.pair(row, *negation.side(rng), label == "positive", rng)

    def world_pair(self, rng) -> Decision:
        """Small written facts with antonyms, "not", "free of", "other than"."""
        text, question, opposite = negation.world(rng)
        return negation.pair(Decision(text, "", (), "", "procedural/world"), question, opposite, True, rng)

    def domain_pair(self, rng) -> Decision:
        """Whether a text is about a field."""
        row = self.domain(rng)
        true = rng.random() < 0.5
        asked = row.label if true else rng.choice([c for c in row.choices if c != row.label])
        return negation.pair(
            row, rng.choice(negation.ABOUT).format(asked), rng.choice(negation.ABOUT_NOT).format(asked), true, rng
        )

    def passage_pair(self, rng) -> Decision:
        """A question on a passage, and whether its answer is no."""
        row = rng.choice(self.sets["boolq"])
        return negation.pair(
            row,
            rng.choice(negation.ASSERTS_ANSWER).format(row.instruction).strip(),
            rng.choice(negation.DENIES_ANSWER).format(row.instruction),
            row.label == "yes",
            rng,
        )

    def answer_pair(self, rng) -> Decision:
        """Whether an answer is the right one."""
        row = rng.choice(self.sets[rng.choice(["openbookqa", "figqa"])])
        true = rng.random() < 0.5
        asked = row.label if true else rng.choice([c for c in row.choices if c != row.label])
        return negation.pair(
            row, rng.choice(negation.RIGHT).format(asked), rng.choice(negation.WRONG).format(asked), true, rng
        )

    def bank_pair(self, rng) -> Decision:
        """The yes/no questions of nlupp_banking, negated."""
        row = rng.choice(self.sets["nlupp_banking"])
        asked = row.instruction
        for start, other in (
            (
                r"^Is the intent to (.*)\?$",
                [
                    "Is the intent something other than to {}?",
                    "Is the intent not to {}?",
                    "Does the user want anything but to {}?",
                    "Is it false that the user wants to {}?",
                ],
            ),
            (
                r"^Is the intent (?:about|related to) (.*)\?$",
                [
                    "Is the intent unrelated to {}?",
                    "Is the intent about something other than {}?",
                    "Does this have nothing to do with {}?",
                ],
            ),
        ):
            found = re.match(start, asked)
            if found:
                return negation.pair(row, asked, rng.choice(other).format(found[1]), row.label == "yes", rng)
        return negation.pair(row, asked, rng.choice(negation.DENIES_ANSWER).format(asked), row.label == "yes", rng)

    def residual_row(self, rng) -> Decision:
        """ "None of these" beside other choices, the right one there or not: intents, fields, feelings."""
        draw = rng.random()
        if draw < 0.6:
            row = rng.choice(self.sets[rng.choice(INTENT_SETS)])
            if self.residual(row.label):
                return self.residual_row(rng)
            pool = [
                c
                for c in (self.all_intents if row.set == "sgd_intent" or rng.random() < 0.4 else row.choices)
                if not self.residual(c)
            ]
            if self.similarity:
                pool = [p for p in rng.sample(pool, min(60, len(pool))) if self.similarity(row.label, p) < 0.6]
            instruction = self.asked(row, rng)
        elif draw < 0.85:
            row = self.domain(rng)
            pool, instruction = [c for c in row.choices if c != row.label], row.instruction
        else:
            row = rng.choice(self.emotional)
            pool, instruction = [c for c in row.choices if c not in (row.label, "neutral")], self.asked(row, rng)
        others = [renamed(o, rng) for o in self.negatives(row.label, pool, self.size(len(pool), rng), rng)]
        residual, gone = rng.choice(RESIDUAL), rng.random() < 0.45
        gold = residual if gone else renamed(row.label, rng)
        choices = list(dict.fromkeys([*others, residual] if gone else [gold, *others, residual]))
        if len(choices) < 2:
            return self.residual_row(rng)
        return replace(row, instruction=instruction, choices=tuple(choices), label=gold)

    def message(self, rng) -> Decision:
        return procedural.message(rng, self.chatter)

    def unrelated(self, rng) -> Decision:
        """A question on a text that has nothing to do with it: no choice is better than another, unless one says so. Whoever has learned what
        a label's own pull is when nothing speaks for it leaves the word to texts that say something."""
        row = self.tasks[rng.choice(UNRELATED)].draw(rng)
        if row.opposite or row.label == TEACHER:
            return self.unrelated(rng)
        text = rng.choice(BLANKS) if rng.random() < 0.25 else rng.choice(self.filler)
        fitting = [c for c in row.choices if self.residual(c) or c.lower() in OF_NOTHING]
        return replace(row, input=text, label=fitting[0] if fitting else EVEN)

    def open_question(self, rng) -> Decision:
        """A yes/no question on a text that leaves it open: what a question suggests by itself is no answer to it."""
        row = self.tasks[rng.choice(OPEN)].draw(rng)
        return replace(
            row, input=rng.choice(BLANKS) if rng.random() < 0.5 else rng.choice(self.filler), label=EVEN, opposite=None
        )

    def follows(self, rng) -> Decision:
        premise = rng.choice(self.contrasted)
        claims = self.premises[premise]
        gold = rng.choice(claims["true"])
        others = [*claims["false"], *claims["cannot be determined"]]
        choices = list(dict.fromkeys([gold, *rng.sample(others, min(len(others), rng.randint(1, 4)))]))
        return Decision(premise, rng.choice(FOLLOWS), tuple(choices), gold, "cad_nli")

    def defeasible(self, rng) -> Decision:
        row = rng.choice(self.sets["defeasible_nli"])
        index = rng.randrange(4)
        names = row.choices if index == 3 else tuple(NAMES[label][index] for label in row.choices)
        return replace(row, choices=names, label=names[row.choices.index(row.label)])

    def passage_question(self, rng) -> Decision:
        row = rng.choice(self.sets["boolq"])
        question = row.instruction if rng.random() < 0.7 else f"{row.instruction} Answer from the text."
        names = rng.choice([YES_NO[0], YES_NO[0], YES_NO[0], YES_NO[3]])
        return replace(row, instruction=question, choices=names, label=names[row.choices.index(row.label)])

    def as_is(self, name: str):
        def draw(rng):
            row = rng.choice(self.sets[name])
            return replace(row, instruction=self.asked(row, rng))

        return draw

    def knowledge(self, rng) -> Decision:
        """A question of general knowledge. Every other one is even: without a text to read, what so small a model knows is what it learned by heart."""
        row = self.as_is("openbookqa")(rng)
        return row if rng.random() < 0.5 else replace(row, label=EVEN)

    def relation(self, rng) -> Decision:
        row = rng.choice(self.sets["semeval2010_relation"])
        if row.label.startswith("none") and rng.random() < 0.6:
            row = rng.choice(self.sets["semeval2010_relation"])
        return self.with_choices(row, list(row.choices), rng, rename=False)

    def domain(self, rng) -> Decision:
        """Which field a text is from: the source set tells."""
        name = rng.choice([*DOMAINS, *["sgd_intent"] * 12])
        row = rng.choice(self.sets[name])
        families = [*DOMAINS.values(), *SERVICE_DOMAINS.values()]
        own = SERVICE_DOMAINS[row.task.split("_")[0]] if name == "sgd_intent" else DOMAINS[name]
        gold = rng.choice(own)
        others = [rng.choice(f) for f in rng.sample(families, self.size(20, rng)) if not set(f) & set(own)]
        if self.similarity:
            others = [o for o in others if self.similarity(o, gold) < 0.55]
        if not others:
            return self.domain(rng)
        return replace(row, instruction=rng.choice(TOPIC), choices=tuple(dict.fromkeys([gold, *others])), label=gold)

    def title(self, rng) -> Decision:
        """Which title belongs to a paragraph whose title was taken off."""
        title, text = rng.choice(self.titled)
        others = [t for t, _ in rng.sample(self.titled, self.size(16, rng)) if t != title] or [
            self.titled[0][0] + " (other)"
        ]
        parts = sentences(text)
        start = rng.randrange(len(parts))
        return Decision(
            " ".join(parts[start : start + 2])[:300],
            rng.choice(TITLE),
            tuple(dict.fromkeys([title, *others])),
            title,
            "boolq",
        )

    def mention(self, rng) -> Decision:
        made = None
        while made is None:
            made = procedural.mention(rng.choice(self.texts), rng.choice(self.texts), rng)
        return made

    def routing(self, rng) -> Decision:
        row = rng.choice(self.sets[rng.choice(INTENT_SETS)])
        if self.residual(row.label):
            return self.routing(rng)
        others = self.negatives(
            row.label,
            [c for c in row.choices if not self.residual(c)] if row.set != "sgd_intent" else self.all_intents,
            rng.randint(1, 3),
            rng,
        )
        return procedural.routing(row.input, row.label, others, rng) if others else self.routing(rng)

    def written(self, rng) -> Decision:
        return rng.choice(procedural.MAKERS)(rng)

    def echo(self, rng) -> Decision:
        """Any text among any phrases; the target is stage A's own distribution."""
        instruction = rng.choice([TOPIC, INTENT, TITLE, CHOOSE, WANTED])
        if rng.random() < 0.55:
            return Decision(
                rng.choice(self.texts), rng.choice(instruction), catalog(rng, self.long_phrases), TEACHER, "echo"
            )
        count = rng.choice([2, 3, 4, 6, 8, 12, 16, 24])
        pool = TOPICS if rng.random() < 0.5 else self.phrases
        return Decision(
            rng.choice(self.texts), rng.choice(instruction), tuple(rng.sample(pool, count)), TEACHER, "echo"
        )

    # -- the everyday corpus --------------------------------------------------------------------------------------------

    def everyday(self, rng) -> Decision:
        """A row as it was written, with one of its wordings and lists of names; some with fewer choices, some with "none of these" beside the
        others or in the right one's place."""
        group, text, label = self.corpus.row(rng)
        row = group.decision(
            text,
            label,
            rng.choice(group.instructions),
            rng.choice(group.choices) if rng.random() < 0.5 else group.choices[0],
            EVEN,
        )
        draw, choices = rng.random(), list(row.choices)
        if label is None or len(choices) < 3:
            return row
        if draw < 0.15:
            return self.fewer(row, rng)
        if draw < 0.24 and group.kind in OF_A_FIELD and not any(map(residual, choices)):
            gone, none = rng.random() < 0.4, rng.choice(RESIDUAL)
            if gone:
                choices.remove(row.label)
            return replace(row, choices=(*choices, none), label=none if gone else row.label)
        return row

    @staticmethod
    def fewer(row: Decision, rng) -> Decision:
        """The row with some of its wrong choices left out."""
        wrong = [i for i, c in enumerate(row.choices) if c != row.label]
        kept = {*rng.sample(wrong, rng.randint(1, len(wrong))), row.choices.index(row.label)}
        ranks = tuple(r for i, r in enumerate(row.ranks) if i in kept)
        return replace(row, choices=tuple(c for i, c in enumerate(row.choices) if i in kept), ranks=ranks)

    def everyday_proposal(self, rng) -> Decision:
        """Whether a choice is the right one, and whether it is a wrong one."""
        group, text, label = self.corpus.row(rng)
        if label is None or len(group.choices[0]) < 3:
            return self.everyday(rng)
        names = rng.choice(group.choices)
        true = rng.random() < 0.5
        asked = names[label] if true else rng.choice([n for n in names if n != names[label]])
        question = rng.choice(group.instructions)
        right, wrong = rng.choice(negation.RIGHT).format(asked), rng.choice(negation.WRONG).format(asked)
        row = Decision(text, "", (), "", f"everyday/{group.kind}", group.task)
        return negation.pair(row, f"{question} {right}", f"{question} {wrong}", true, rng)

    def everyday_open(self, rng) -> Decision:
        return open_question(self.corpus, rng, EVEN)

    def crossed(self, rng) -> Decision:
        """Any text under any question, which nobody answered: for a teacher's distributions."""
        draw = rng.random()
        text = (
            self.corpus.row(rng)[1]
            if draw < 0.6
            else rng.choice(self.chatter)
            if draw < 0.8
            else rng.choice(self.texts)
        )
        group = self.corpus.group(rng)
        return Decision(
            text, rng.choice(group.instructions), rng.choice(group.choices), CROSSED, "everyday/crossed", group.task
        )

    def build(self) -> dict[str, Task]:
        tasks = {
            "sgd": Task(self.intent("sgd_intent"), 5),
            "airline": Task(self.intent("multidogo_airline"), 1),
            "fastfood": Task(self.intent("multidogo_fastfood"), 1),
            "insurance": Task(self.intent("multidogo_insurance"), 1),
            "any_intent": Task(self.any_intent, 3),
            "request": Task(self.request, 6),
            "crowded": Task(self.crowded, 5),
            "intent_yes_no": Task(self.intent_yes_no, 3),
            "nlupp": Task(self.as_is("nlupp_banking"), 1),
            "bank_pair": Task(self.bank_pair, 2),
            "emotion": Task(self.emotion, 6),
            "emotion_yes_no": Task(self.emotion_yes_no, 2),
            "emotion_polarity": Task(self.polarity_of_emotion, 4),
            "review_sentence": Task(self.review_sentence, 8),
            "review": Task(self.review, 1),
            "editorial": Task(self.editorial, 2),
            "target": Task(self.target_sentiment, 2),
            "offence": Task(self.offence, 3),
            "well_formed": Task(self.well_formed, 0.5),
            "wanted": Task(self.wanted, 1),
            "mnli": Task(self.entailment("mnli"), 5),
            "conjnli": Task(self.entailment("conjnli"), 2),
            "cad_nli": Task(self.entailment("cad_nli"), 5),
            "follows": Task(self.follows, 3),
            "defeasible": Task(self.defeasible, 1),
            "boolq": Task(self.passage_question, 1.5),
            "openbookqa": Task(self.knowledge, 3),
            "figqa": Task(self.as_is("figqa"), 2),
            "csqa2": Task(self.as_is("csqa2"), 0.5),
            "relation": Task(self.relation, 1),
            "domain": Task(self.domain, 5),
            "title": Task(self.title, 3),
            "mention": Task(self.mention, 1),
            "routing": Task(self.routing, 2),
            "written": Task(self.written, 2),
            "message": Task(self.message, 3),
            "unrelated": Task(self.unrelated, 7),
            "open_question": Task(self.open_question, 7),
            "residual": Task(self.residual_row, 6),
            "claim_pair": Task(self.claim_pair, 6),
            "contrast_pair": Task(self.contrast_pair, 8),
            "figure_pair": Task(self.figure_pair, 5),
            "side_pair": Task(self.side_pair, 4),
            "world_pair": Task(self.world_pair, 10),
            "domain_pair": Task(self.domain_pair, 2),
            "passage_pair": Task(self.passage_pair, 1),
            "answer_pair": Task(self.answer_pair, 1),
            "echo": Task(self.echo, 18),
        }
        if self.corpus is not None:
            tasks |= {name: Task(getattr(self, name), 0) for name in (*EVERYDAY, "crossed")}
        return tasks

    def weights(self, everyday: float, without: tuple[str, ...] = (), taught: bool = False) -> dict[str, float]:
        """The weight of each task, `everyday` of all of them to the corpus and CROSSED_SHARE to rows for a teacher, if there is one."""
        weights = {
            name: task.weight for name, task in self.tasks.items() if name not in (*without, *EVERYDAY, "crossed")
        }
        total = sum(weights.values())
        if self.corpus is None or everyday == 0:
            return weights
        crossed = CROSSED_SHARE if taught else 0.0
        rest = 1 - everyday - crossed
        corpus = {name: share * everyday * total / rest for name, share in EVERYDAY.items() if name not in without}
        return {**weights, **corpus, **({"crossed": crossed * total / rest} if crossed else {})}

    def rows(self, count: int, seed: int, weights: dict[str, float] | None = None) -> list[tuple[str, Decision]]:
        """`count` (task, decision) pairs in random order, by the tasks' weights or by `weights`."""
        rng = random.Random(seed)
        weights = weights or {name: task.weight for name, task in self.tasks.items()}
        names = rng.choices(list(weights), list(weights.values()), k=count)
        return [(name, self.finish(self.tasks[name].draw(rng), rng)) for name in names]
