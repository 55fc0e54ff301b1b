"""Small facts that the recipe writes itself, with questions that ask for them and questions that deny them: states,
deeds, what is there, one value of several, everyday matters (`lists/world.txt`, `lists/values.txt`,
`lists/frames.txt`).
"""

import random
from dataclasses import dataclass

from .lists import Lists, lines_of

_WORLD, _VALUES = Lists("world"), Lists("values")

PEOPLE = _WORLD.words("people")
SOMEONE = [*PEOPLE, *_WORLD.words("others")]


@dataclass(frozen=True)
class Fact:
    """A sentence that is true, with questions that ask for it (`asks`) and for its opposite (`denies`)."""

    text: str
    asks: list[str]
    denies: list[str]


@dataclass(frozen=True)
class Deed:
    """What may happen, and the opposite: past and verb of both, and what it may happen to.

    `subject` is empty where someone does it.
    """

    subject: str
    past: str
    base: str
    other_past: str
    other: str
    objects: list[str]


def _deeds(name: str) -> list[Deed]:
    found = []
    for words, objects in _WORLD.table(name).items():
        *subject, past, base, other_past, other = words.split(", ")
        found.append(Deed("".join(subject), past, base, other_past, other, objects))
    return found


def _opposites(pairs: list[str]) -> list[tuple[str, str]]:
    return [(one, other) for one, other in (pair.split("/") for pair in pairs)]


DEEDS, HAPPENINGS = _deeds("deeds"), _deeds("happenings")
# What things can be, a state and its opposite, and the same of people.
STATES = [(things.split(" | "), _opposites(pairs)) for things, pairs in _WORLD.table("states").items()]
TRAITS = _opposites(_WORLD.words("traits"))


def cap(text: str) -> str:
    """The text with its first letter large."""
    return text[0].upper() + text[1:]


def filled(name: str, **fields: str) -> list[str]:
    """The sentences of a list, with these words in their places."""
    return [form.format(**fields) for form in _WORLD.entries(name)]


def state(rng: random.Random) -> Fact:
    """What someone or something is or was."""
    if rng.random() < 0.45:
        subject = rng.choice(SOMEONE)
        pairs, past = TRAITS, rng.random() < 0.5
    else:
        things, pairs = rng.choice(STATES)
        subject, past = f"the {rng.choice(things)}", rng.random() < 0.5
    one, other = rng.choice(pairs)
    if rng.random() < 0.5:
        one, other = other, one
    be = "was" if past else "is"
    words = {"subject": subject, "be": be, "Be": cap(be), "one": one, "other": other}
    text = cap(rng.choice(filled("state said", **words)))
    denies = [*filled("state denied", **words), *filled(f"state denied, {be}", **words)]
    return Fact(text, filled("state asked", **words), denies)


def deed(rng: random.Random) -> Fact:
    """What someone did to something, or what happened."""
    happened = rng.random() < 0.3
    found = rng.choice(HAPPENINGS if happened else DEEDS)
    if happened:
        who, thing = found.subject.replace("{x}", rng.choice(found.objects)), ""
    else:
        who, thing = rng.choice(SOMEONE), rng.choice(found.objects)
    past, base, other_past, other = found.past, found.base, found.other_past, found.other
    if rng.random() < 0.5:
        past, base, other_past, other = other_past, other, past, base
    who = who if who in PEOPLE else who[0].lower() + who[1:]
    words = {"who": who, "thing": thing, "past": past, "base": base, "other_past": other_past, "other": other}
    kind = "happening" if happened else "deed"
    text = cap(rng.choice(filled(f"{kind} said", **words)))
    return Fact(text, filled(f"{kind} asked", **words), filled(f"{kind} denied", **words))


def owned(rng: random.Random) -> Fact:
    """Something that is there or is not."""
    thing, other = rng.sample(_WORLD.words("owned"), 2)
    bare = thing.removeprefix("a ").removeprefix("an ")
    place = rng.choice(_WORLD.words("places"))
    words = {"thing": thing, "other": other, "bare": bare, "place": place, "Place": cap(place)}
    there = rng.random() < 0.5
    text = rng.choice(filled("there" if there else "not there", **words))
    asks, denies = filled("there asked", **words), filled("there denied", **words)
    return Fact(text, asks, denies) if there else Fact(text, denies, asks)


def chosen(rng: random.Random) -> Fact:
    """One value of several: "other than"."""
    person = rng.choice(SOMEONE)
    statement = rng.choice(_VALUES.names())
    values, yes, *no = _VALUES.entries(statement)
    value, other = rng.sample(values.split(" | "), 2)
    end = f", not {other}." if statement.endswith("{v}") else "."
    text = cap(statement.format(p=person, v=value)) + rng.choice([".", end, " as usual."])
    if rng.random() < 0.5:
        return Fact(text, [yes.format(p=person, v=value)], [q.format(p=person, v=value) for q in no])
    return Fact(text, [q.format(p=person, v=other) for q in no], [yes.format(p=person, v=other)])


def read_frames() -> list[dict[str, list[str]]]:
    """The frames of `lists/frames.txt`: their alternatives by the sign that starts the line."""
    found: list[dict[str, list[str]]] = []
    for line in lines_of("frames"):
        if line.startswith("= "):
            found.append({})
        found[-1][line[0]] = line[2:].split(" | ")
    return found


FRAMES = read_frames()


def matter(rng: random.Random) -> Fact:
    """An everyday matter, said and asked for in different words."""
    frame = rng.choice(FRAMES)
    said, asks, denies = ("+", "?", "!") if rng.random() < 0.5 else ("-", "!", "?")
    subject = rng.choice(frame["="])

    def fill(text: str) -> str:
        return cap(text.replace("{s}", subject))

    text = fill(rng.choice(frame[said])) + rng.choice([".", ".", "!"])
    return Fact(text, [fill(q) for q in frame[asks]], [fill(q) for q in frame[denies]])


# Half of the facts are matters, which are worded the most freely.
FACTS = [state, state, deed, deed, owned, chosen, matter, matter, matter, matter, matter, matter]


def world(rng: random.Random) -> tuple[str, str, str]:
    """(text, a question with the answer yes, an opposite): one to three facts, one of them asked for."""
    facts = [rng.choice(FACTS)(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
    asked = facts[0]
    rng.shuffle(facts)
    return " ".join(f.text for f in facts), rng.choice(asked.asks), rng.choice(asked.denies)
