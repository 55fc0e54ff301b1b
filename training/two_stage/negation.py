"""Yes/no questions in pairs: a question and its opposite on the same text, whose answers must differ.

Whoever sees only one of the two can guess from the text's mood; whoever sees both in one batch has to read the
question. Opposites are made in many ways: "not", antonyms, "other than", "free of", "fail to", "is it false that", and
claims that are negated inside (`lists/opposites.txt`). The list that is measured with (`lists/negations.txt`) is not
used here.
"""

import random
import re
from dataclasses import replace

from .lists import Lists
from .records import Decision
from .wordings import YES_NO

_LISTS = Lists("opposites")

ASSERTS, DENIES = _LISTS.entries("asserts"), _LISTS.entries("denies")
ASSERTS_ANSWER, DENIES_ANSWER = _LISTS.entries("asserts answer"), _LISTS.entries("denies answer")
WANTS, WANTS_NOT = _LISTS.entries("wants"), _LISTS.entries("wants not")
FEELS, FEELS_NOT = _LISTS.entries("feels"), _LISTS.entries("feels not")
ABOUT, ABOUT_NOT = _LISTS.entries("about"), _LISTS.entries("about not")
RIGHT, WRONG = _LISTS.entries("right"), _LISTS.entries("wrong")
HATE, HATE_NOT = _LISTS.entries("hate"), _LISTS.entries("hate not")
# nlupp_banking's own questions, and their opposites.
INTENT_QUESTIONS = (
    (re.compile(r"^Is the intent to (.*)\?$"), _LISTS.entries("intent to, not")),
    (re.compile(r"^Is the intent (?:about|related to) (.*)\?$"), _LISTS.entries("intent about, not")),
)
# Of a favourable text and of an unfavourable one.
SIDES, SIDE_QUESTIONS = _LISTS.tuples("sides"), _LISTS.tuples("side questions")
SIDE_ASKED, SIDE_DENIED = _LISTS.entries("side asked"), _LISTS.entries("side denied")

SENTENCE_STARTS = frozenset(_LISTS.words("sentence starts"))
# A subject of at most five words, so that the verb is that of the main clause; a claim that is negated already is not
# negated again.
AUXILIARY = re.compile(
    r"^(?P<subject>(?:\S+ ){1,5}?)"
    r"(?P<verb>is|are|was|were|can|could|will|would|has|have|had|should|must|may) "
    r"(?!not )(?P<rest>.+?)[.]?$",
    re.IGNORECASE,
)


def negated_claim(claim: str) -> str | None:
    """The claim with "not" after its auxiliary, or None where there is none near the start."""
    found = AUXILIARY.match(claim)
    return f"{found['subject']}{found['verb']} not {found['rest']}." if found else None


def fronted(claim: str, negated: bool) -> str | None:
    """The claim as a question, its auxiliary in front: "Is a man (not) asleep?"."""
    found = AUXILIARY.match(claim)
    if not found or '"' in claim:
        return None
    subject = found["subject"].strip()
    if subject.split()[0] in SENTENCE_STARTS:
        subject = subject[0].lower() + subject[1:]
    return f"{found['verb'].capitalize()} {subject}{' not' if negated else ''} {found['rest']}?"


def about_claim(claim: str, rng: random.Random) -> tuple[str, str]:
    """A question that asserts the claim, and one that denies it."""
    draw = rng.random()
    if draw < 0.35 and (asked := fronted(claim, False)):
        other = fronted(claim, True) if rng.random() < 0.6 else rng.choice(DENIES).format(claim)
        return asked, other
    if draw < 0.65 and (denied := negated_claim(claim)):
        return rng.choice(
            [
                (rng.choice(ASSERTS).format(claim), rng.choice(ASSERTS).format(denied)),
                (rng.choice(DENIES).format(denied), rng.choice(DENIES).format(claim)),
                (rng.choice(DENIES).format(denied), rng.choice(ASSERTS).format(denied)),
            ]
        )
    return rng.choice(ASSERTS).format(claim), rng.choice(DENIES).format(claim)


def about_contrast(true: str, false: str, rng: random.Random) -> tuple[str, str]:
    """A question that asserts a true claim or denies a false one, and a question for which it is the other way round.

    The claims contradict one another in people's own words, so nothing but their sense tells the questions apart.
    """
    asked, other = fronted(true, False), fronted(false, False)
    if asked and other and rng.random() < 0.7:
        return asked, other
    if rng.random() < 0.25:
        return rng.choice(DENIES).format(false), rng.choice(DENIES).format(true)
    form = rng.choice(ASSERTS)
    return form.format(true), (form if rng.random() < 0.5 else rng.choice(ASSERTS)).format(false)


def side(rng: random.Random) -> tuple[str, str]:
    """A question whose answer is yes for a favourable text, and an opposite."""
    if rng.random() < 0.35:
        asked, other = rng.choice(SIDE_QUESTIONS)
        return asked, other
    good, bad = rng.choice(SIDES)
    form = rng.choice(SIDE_ASKED)
    draw = rng.random()
    if draw < 0.4:
        return form.format(good), form.format(bad)
    if draw < 0.7:
        return form.format(good), rng.choice(SIDE_DENIED).format(good)
    return rng.choice(SIDE_DENIED).format(bad), form.format(bad)


def pair(
    row: Decision,
    question: str,
    opposite: str,
    truth: bool,
    rng: random.Random,
    names: tuple[str, str] | None = None,
) -> Decision:
    """The row with one of both questions, and the other as its `opposite`.

    `truth`: whether `question` is answered with yes. `names`: of yes and no; drawn if they are not given.
    """
    yes, no = names or rng.choice(YES_NO)
    first = replace(row, instruction=question, choices=(yes, no), label=yes if truth else no)
    second = replace(row, instruction=opposite, choices=(yes, no), label=no if truth else yes)
    return replace(first, opposite=second) if rng.random() < 0.5 else replace(second, opposite=first)


def pair_about(
    row: Decision, name: str, asked: list[str], denied: list[str], truth: bool, rng: random.Random
) -> Decision:
    """The pair of a question for `name` and its opposite, in one of the wordings each."""
    return pair(row, rng.choice(asked).format(name), rng.choice(denied).format(name), truth, rng)
