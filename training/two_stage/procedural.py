"""Rows that the recipe writes itself, with computed answers: thresholds, dates, tables, routing rules, what a text
mentions. Their words are in `lists/procedural.txt`.

Every maker takes a random generator and returns a Decision of the set "procedural/<name>". They teach the reading of an
instruction and of a rule, not arithmetic: numbers are small and the comparison is one step.
"""

import datetime
import random

from .lists import Lists
from .records import Decision
from .wordings import YES_NO

LISTS = Lists("procedural")
PEOPLE, ITEMS, CITIES = LISTS.words("people"), LISTS.words("items"), LISTS.words("cities")
TEAMS, CODES = LISTS.words("teams"), LISTS.words("codes")
EVENTS = ["paid", "packed", "shipped", "delivered", "returned", "refunded"]
# Of YES_NO, those that answer any question.
PLAIN_YES_NO = YES_NO[:5]
# Shorter words are in every text.
LEAST_LETTERS = 5


def answer(text: str, question: str, truth: bool, name: str, rng: random.Random) -> Decision:
    """A yes/no decision under one of the wordings of yes and no."""
    yes, no = rng.choice(PLAIN_YES_NO)
    return Decision(text, question, (yes, no), yes if truth else no, f"procedural/{name}")


def threshold(rng: random.Random) -> Decision:
    """A rule with a limit, and an amount that is clearly above or below it."""
    limit = rng.choice([10, 20, 25, 50, 100, 200, 500, 1000])
    above = rng.random() < 0.5
    amount = round(limit * (rng.uniform(1.3, 5) if above else rng.uniform(0.05, 0.75)))
    item, person = rng.choice(ITEMS), rng.choice(PEOPLE)
    text = rng.choice(LISTS.entries("orders")).format(item=item, person=person, amount=amount)
    positive, negative = rng.choice(LISTS.tuples("outcomes"))
    if rng.random() < 0.5:
        question = rng.choice(LISTS.entries("rules")).format(limit=limit, above=positive, below=negative)
        return Decision(text, question, (positive, negative), positive if above else negative, "procedural/threshold")
    ask_above = rng.random() < 0.5
    question = f"Is the price {rng.choice(LISTS.words('more' if ask_above else 'less'))} ${limit}?"
    return answer(text, question, above == ask_above, "threshold", rng)


def date_order(rng: random.Random) -> Decision:
    """Which of two dated things came first, or whether one is past a deadline."""
    first = datetime.date(rng.randint(2015, 2025), rng.randint(1, 12), rng.randint(1, 28))
    later = first + datetime.timedelta(days=rng.randint(40, 900))

    def show(day: datetime.date) -> str:
        return rng.choice([day.isoformat(), f"{day:%B} {day.day}, {day.year}"])

    early, late = rng.sample(PEOPLE, 2)
    if rng.random() < 0.5:
        lines = [f"{early} applied on {show(first)}.", f"{late} applied on {show(later)}."]
        rng.shuffle(lines)
        ask_first = rng.random() < 0.5
        return Decision(
            " ".join(lines),
            f"Who applied {'first' if ask_first else 'last'}?",
            (early, late),
            early if ask_first else late,
            "procedural/date",
        )
    past = rng.random() < 0.5
    due, done = (first, later) if past else (later, first)
    text = f"The report was due on {show(due)} and was handed in on {show(done)}."
    ask_late = rng.random() < 0.5
    return answer(text, "Was it late?" if ask_late else "Was it on time?", past == ask_late, "date", rng)


def table(rng: random.Random) -> Decision:
    """A small table and a look-up in it."""
    people, cities, items = rng.sample(PEOPLE, 4), rng.sample(CITIES, 4), rng.sample(ITEMS, 4)
    text = rng.choice(
        [
            " ".join(f"{p} lives in {c} and owns a {i}." for p, c, i in zip(people, cities, items, strict=True)),
            "; ".join(f"{p}, {c}, {i}" for p, c, i in zip(people, cities, items, strict=True)),
        ]
    )
    k = rng.randrange(4)
    question, options, gold = rng.choice(
        [
            (f"Where does {people[k]} live?", cities, cities[k]),
            (f"Who owns the {items[k]}?", people, people[k]),
            (f"What does {people[k]} own?", items, items[k]),
            (f"Who lives in {cities[k]}?", people, people[k]),
        ]
    )
    return Decision(text, question, tuple(options), gold, "procedural/table")


def status(rng: random.Random) -> Decision:
    """Events in order, asked for the state at the end or for one that did (not) happen."""
    happened = rng.randint(1, 5)
    number = rng.randint(100, 9999)
    text = f"Order {number}: " + ", then ".join(EVENTS[:happened]) + "."
    if rng.random() < 0.4:
        return Decision(
            text, "What is the latest status of the order?", tuple(EVENTS), EVENTS[happened - 1], "procedural/status"
        )
    k = rng.randrange(len(EVENTS))
    negated = rng.random() < 0.5
    question = f"Has the order not been {EVENTS[k]} yet?" if negated else f"Has the order been {EVENTS[k]}?"
    return answer(text, question, (k < happened) != negated, "status", rng)


def mention(text: str, other: str, rng: random.Random) -> Decision | None:
    """Whether a text mentions a word: one of its own, or one of another text's."""
    own = sorted({w for w in text.lower().split() if w.isalpha() and len(w) >= LEAST_LETTERS})
    foreign = sorted(
        {w for w in other.lower().split() if w.isalpha() and len(w) >= LEAST_LETTERS} - set(text.lower().split())
    )
    if not own or not foreign:
        return None
    present = rng.random() < 0.5
    word = rng.choice(own if present else foreign)
    negated = rng.random() < 0.4
    asked = rng.choice(LISTS.entries("not mentioned" if negated else "mentioned")).format(word=word)
    return answer(text, asked, present != negated, "mention", rng)


def routing(text: str, label: str, others: list[str], rng: random.Random) -> Decision:
    """A rule in the instruction that sends labels to teams: the answer depends on the instruction alone."""
    labels = [label, *others]
    rng.shuffle(labels)
    names = rng.sample(TEAMS if rng.random() < 0.6 else CODES, len(labels))
    shape = rng.choice(LISTS.entries("sent"))
    rule = "; ".join(shape.format(label=one, name=name) for one, name in zip(labels, names, strict=True))
    question = rng.choice(LISTS.entries("routes")).format(rule=rule)
    return Decision(text, question, tuple(names), names[labels.index(label)], "procedural/routing")


# Tasks that need no other text.
MAKERS = [threshold, date_order, table, status]
