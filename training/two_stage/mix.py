"""The training mix: from labelled sets to varied decisions.

A *task* draws one decision at a time (`tasks/`). Most re-ask a labelled row in other words; some change the question on
the same text (topic, polarity, yes/no and its negation), and `echo` rows have no label at all: their target is what
stage A thinks.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from .everyday import BLANKS, Corpus
from .pool import Pool, Similarity, is_residual
from .records import CROSSED, EVEN, TEACHER, Decision
from .sheets import Sheet
from .table_draws import Table, draws
from .tables import lexicon
from .tasks import claims, corpus, feelings, freely, intents, questions, topics
from .wordings import NAMES, RESIDUAL, respelled

# In characters, of a text: about what is read of one in training, so that tokenising costs no more than it must.
# Everyday passages are longer than the sets' texts.
LONGEST_INPUT, LONGEST_EVERYDAY = 700, 1400
# The tasks of the everyday corpus, by their share of what is drawn from it.
EVERYDAY = {
    "everyday": 0.24,
    "scale": 0.12,
    "moderation": 0.08,
    "described": 0.11,
    "reading": 0.14,
    "everyday_proposal": 0.04,
    "everyday_open": 0.06,
    "sheet": 0.21,
}
# What a large reader learns first, in two phases, by the weights of their tasks: claims about a text, and then what has
# to be read as well, but in pairs of opposite questions. Pairs that come first teach it nothing: what it could learn of
# a text without the question is wrong in one of the two, and they pay for every answer that is not even.
FIRST = (
    {"mnli": 3, "cad_nli": 4, "conjnli": 3, "follows": 1, "boolq": 1.5, "everyday": 1, "sheet": 2},
    {
        "mnli": 2,
        "cad_nli": 3,
        "conjnli": 2,
        "follows": 1,
        "boolq": 1.5,
        "claim_pair": 4,
        "contrast_pair": 3,
        "figure_pair": 1,
        "world_pair": 1.5,
        "passage_pair": 1.5,
        "answer_pair": 1,
        "everyday": 4,
        "sheet": 12,
    },
)
# The task that draws from the tables of ordinary decisions, text by text.
TABLES = "table"
# Of all rows, where there is another stage B to learn from.
CROSSED_SHARE = 0.1
# Of rows: with choices spelled otherwise. Of texts that answer nothing: those that say nothing at all.
RESPELLED, BLANK_UNRELATED, BLANK_OPEN = 0.2, 0.25, 0.5
# Tasks whose question an encyclopaedia's sentence does not answer.
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
# Pairs of questions that such a sentence leaves open, so that neither answer is better.
OPEN = ["claim_pair", "contrast_pair", "figure_pair", "world_pair", "side_pair"]
# Choices that say that nothing fits.
OF_NOTHING = {name.lower() for name in (*RESIDUAL, *NAMES["neutral"])}


@dataclass(frozen=True)
class Task:
    """One way to draw a decision, and how often it is drawn beside the others."""

    draw: Callable[[random.Random], Decision]
    weight: float


class Mix:
    """All tasks over the training sets. Draws are a function of the generator given."""

    def __init__(
        self,
        sets: dict[str, list[Decision]],
        label_similarity: Similarity | None = None,
        corpus: Corpus | None = None,
        sheets: Sequence[Sheet] = (),
        tables: Sequence[Table] = (),
    ):
        self.pool = Pool(sets, label_similarity, corpus, sheets)
        self.tables, self.words = tables, lexicon(tables)
        self.tasks = self.build()

    @staticmethod
    def finish(row: Decision, rng: random.Random) -> Decision:
        """Spelling and order of the choices, and long inputs cut to a window."""
        choices = list(row.choices)
        order = list(range(len(choices)))
        rng.shuffle(order)
        spelled = respelled(choices, rng) if rng.random() < RESPELLED else choices
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

    def unrelated(self, rng: random.Random) -> Decision:
        """A question on a text that has nothing to do with it: no choice is better than another, unless one says so.

        Whoever has learned what a label's own pull is when nothing speaks for it leaves the word to texts that say
        something.
        """
        row = self.tasks[rng.choice(UNRELATED)].draw(rng)
        if row.opposite or row.label == TEACHER:
            return self.unrelated(rng)
        text = rng.choice(BLANKS) if rng.random() < BLANK_UNRELATED else rng.choice(self.pool.filler)
        fitting = [c for c in row.choices if is_residual(c) or c.lower() in OF_NOTHING]
        return replace(row, input=text, label=fitting[0] if fitting else EVEN)

    def open_question(self, rng: random.Random) -> Decision:
        """A yes/no question on a text that leaves it open: what a question suggests by itself is no answer to it."""
        row = self.tasks[rng.choice(OPEN)].draw(rng)
        text = rng.choice(BLANKS) if rng.random() < BLANK_OPEN else rng.choice(self.pool.filler)
        return replace(row, input=text, label=EVEN, opposite=None)

    def build(self) -> dict[str, Task]:
        """Every task by its name; those of the everyday corpus weigh nothing by themselves (see `weights`)."""
        pool = self.pool
        tasks = {
            "sgd": Task(partial(intents.intent, pool, name="sgd_intent"), 5),
            "airline": Task(partial(intents.intent, pool, name="multidogo_airline"), 1),
            "fastfood": Task(partial(intents.intent, pool, name="multidogo_fastfood"), 1),
            "insurance": Task(partial(intents.intent, pool, name="multidogo_insurance"), 1),
            "any_intent": Task(partial(intents.any_intent, pool), 3),
            "request": Task(partial(intents.request, pool), 6),
            "crowded": Task(partial(intents.crowded, pool), 5),
            "intent_yes_no": Task(partial(intents.intent_yes_no, pool), 3),
            "nlupp": Task(partial(questions.as_is, pool, name="nlupp_banking"), 1),
            "bank_pair": Task(partial(intents.bank_pair, pool), 2),
            "emotion": Task(partial(feelings.emotion, pool), 6),
            "emotion_yes_no": Task(partial(feelings.emotion_yes_no, pool), 2),
            "emotion_polarity": Task(partial(feelings.polarity_of_emotion, pool), 4),
            "review_sentence": Task(partial(feelings.review_sentence, pool), 8),
            "review": Task(partial(feelings.review, pool), 1),
            "editorial": Task(partial(feelings.editorial, pool), 2),
            "target": Task(partial(feelings.target_sentiment, pool), 2),
            "offence": Task(partial(feelings.offence, pool), 4),
            "well_formed": Task(partial(questions.well_formed, pool), 0.5),
            "wanted": Task(partial(questions.wanted, pool), 5),
            "mnli": Task(partial(claims.entailment, pool, name="mnli"), 5),
            "conjnli": Task(partial(claims.entailment, pool, name="conjnli"), 2),
            "cad_nli": Task(partial(claims.entailment, pool, name="cad_nli"), 5),
            "follows": Task(partial(claims.follows, pool), 3),
            "defeasible": Task(partial(claims.defeasible, pool), 1),
            "boolq": Task(partial(questions.passage_question, pool), 1.5),
            "openbookqa": Task(partial(questions.knowledge, pool), 5),
            "figqa": Task(partial(questions.as_is, pool, name="figqa"), 2),
            "csqa2": Task(partial(questions.as_is, pool, name="csqa2"), 0.5),
            "relation": Task(partial(topics.relation, pool), 1),
            "domain": Task(partial(topics.domain, pool), 5),
            "title": Task(partial(topics.title, pool), 3),
            "mention": Task(partial(topics.mention, pool), 1),
            "routing": Task(partial(intents.routing, pool), 2),
            "written": Task(partial(freely.written, pool), 2),
            "message": Task(partial(freely.message, pool), 3),
            "unrelated": Task(self.unrelated, 7),
            "open_question": Task(self.open_question, 7),
            "residual": Task(partial(freely.residual_row, pool), 6),
            "claim_pair": Task(partial(claims.claim_pair, pool), 6),
            "contrast_pair": Task(partial(claims.contrast_pair, pool), 8),
            "figure_pair": Task(partial(claims.figure_pair, pool), 5),
            "side_pair": Task(partial(feelings.side_pair, pool), 4),
            "world_pair": Task(partial(claims.world_pair, pool), 10),
            "domain_pair": Task(partial(topics.domain_pair, pool), 2),
            "passage_pair": Task(partial(questions.passage_pair, pool), 1),
            "answer_pair": Task(partial(questions.answer_pair, pool), 1),
            "echo": Task(partial(freely.echo, pool), 18),
        }
        if self.pool.corpus is not None:
            tasks |= {name: Task(partial(getattr(corpus, name), pool), 0) for name in (*EVERYDAY, "crossed")}
        return tasks

    def weights(
        self, everyday: float, without: tuple[str, ...] = (), taught: bool = False, tables: float = 0.0
    ) -> dict[str, float]:
        """The weight of each task: `everyday` of all to the corpus, `tables` to the tables of ordinary decisions, if
        there are some, CROSSED_SHARE to rows for a teacher, if there is one.
        """
        if tables and self.tables:
            weights = self.weights(everyday / (1 - tables), without, taught)
            return {**weights, TABLES: tables / (1 - tables) * sum(weights.values())}
        weights = {
            name: task.weight for name, task in self.tasks.items() if name not in (*without, *EVERYDAY, "crossed")
        }
        total = sum(weights.values())
        if self.pool.corpus is None or everyday == 0:
            return weights
        crossed = CROSSED_SHARE if taught else 0.0
        rest = 1 - everyday - crossed
        of_corpus = {name: share * everyday * total / rest for name, share in EVERYDAY.items() if name not in without}
        return {**weights, **of_corpus, **({"crossed": crossed * total / rest} if crossed else {})}

    def first_weights(self, without: tuple[str, ...] = ()) -> list[dict[str, float]]:
        """The weight of each task in the phases of FIRST, of those that there are."""
        return [
            {name: weight for name, weight in phase.items() if name in self.tasks and name not in without}
            for phase in FIRST
        ]

    def rows(self, count: int, seed: int, weights: dict[str, float] | None = None) -> list[tuple[str, Decision]]:
        """`count` (task, decision) pairs in random order, by the tasks' weights or by `weights`."""
        rng = random.Random(seed)
        weights = weights or {name: task.weight for name, task in self.tasks.items()}
        names = rng.choices(list(weights), list(weights.values()), k=count)
        of_tables = draws(self.tables, self.words, rng)

        def draw(name: str) -> Decision:
            return next(of_tables) if name == TABLES else self.tasks[name].draw(rng)

        return [(name, self.finish(draw(name), rng)) for name in names]
