"""Yes/no questions in pairs: a question and its opposite on the same text, whose answers must differ.

Whoever sees only one of the two can guess from the text's mood; whoever sees both in one batch has to read the question. Opposites are
made in many ways: "not", antonyms, "other than", "free of", "fail to", "is it false that", and claims that are negated inside.
The measured list (`lists/negations.txt`) is not used here.
"""

import random
import re
from dataclasses import replace
from pathlib import Path

from .records import Decision
from .wordings import YES_NO

# -- claims -------------------------------------------------------------------------------------------------------------

ASSERTS = [
    'Is it true that "{}"?',
    "Is it right to say: {}",
    'Does the text support this: "{}"?',
    "Is this claim correct? {}",
    'Does it follow that "{}"?',
    "Would you agree, given the text: {}",
    'Can one conclude that "{}"?',
    "Is the following true? {}",
    "{} Is that so?",
    "{} True?",
    "Is it the case that {}",
]
DENIES = [
    'Is it false that "{}"?',
    "Is it wrong to say: {}",
    'Does the text contradict this: "{}"?',
    "Is this claim mistaken? {}",
    'Is it untrue that "{}"?',
    "Would you disagree, given the text: {}",
    'Does the text rule out that "{}"?',
    "Is the following false? {}",
    "{} Is that a mistake?",
    "{} False?",
    "Is it not the case that {}",
    'Is the opposite of this true: "{}"?',
]
ASSERTS_ANSWER = [
    "{}",
    "{} ",
    "Answer from the text: {}",
    "Is the answer to this yes? {}",
    'Would "yes" be the right answer? {}',
    "Is it right to answer yes? {}",
]
DENIES_ANSWER = [
    "Is the answer to this no? {}",
    'Would "no" be the right answer? {}',
    "Is it wrong to answer yes? {}",
    "Must one say no to this? {}",
    "Is yes the wrong answer? {}",
]
AUXILIARY = re.compile(
    r"^(?P<subject>(?:\S+ ){1,5}?)(?P<verb>is|are|was|were|can|could|will|would|has|have|had|should|must|may) (?!not )(?P<rest>.+?)[.]?$",
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
    if subject.split()[0] in (
        "A",
        "An",
        "The",
        "There",
        "Some",
        "Two",
        "Three",
        "People",
        "They",
        "He",
        "She",
        "It",
        "His",
        "Her",
        "Their",
        "One",
        "Someone",
        "Nobody",
    ):
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
    """A question that asserts a true claim or denies a false one, and a question for which it is the other way round. The claims
    contradict one another in people's own words, so nothing but their sense tells the questions apart."""
    asked, other = fronted(true, False), fronted(false, False)
    if asked and other and rng.random() < 0.7:
        return asked, other
    if rng.random() < 0.25:
        return rng.choice(DENIES).format(false), rng.choice(DENIES).format(true)
    form = rng.choice(ASSERTS)
    return form.format(true), (form if rng.random() < 0.5 else rng.choice(ASSERTS)).format(false)


# -- labels ------------------------------------------------------------------------------------------------------------

WANTS = [
    "Is the request about this: {}?",
    'Does "{}" describe the message?',
    "Does the user want this: {}?",
    "Would you file the message under {}?",
    "Is the user asking to {}?",
    "Does this concern {}?",
    "Is {} what the user means?",
    "Is {} the right label?",
    "Is this a case of {}?",
    "Is the message related to {}?",
]
WANTS_NOT = [
    "Is the request about something other than {}?",
    'Is "{}" the wrong label for the message?',
    "Is the message unrelated to this: {}?",
    "Does the user not want this: {}?",
    "Does the user want anything but this: {}?",
    "Is it wrong to file the message under {}?",
    "Is the user asking for something different from {}?",
    "Is {} not what the user means?",
    "Does this have nothing to do with {}?",
    "Does the message fail to mention {}?",
    "Isn't it true that the message is not about {}?",
    "Is it false that this concerns {}?",
]
FEELS = [
    "Does the writer express {}?",
    "Is this an expression of {}?",
    "Is the feeling here {}?",
    "Would you call this {}?",
    "Is there {} in this text?",
    "Does the text convey {}?",
]
FEELS_NOT = [
    "Is the writer free of {}?",
    "Does the writer not express {}?",
    "Is {} missing from this text?",
    "Is the feeling anything but {}?",
    "Does the text lack {}?",
    "Is there no {} in this text?",
    "Is the text without {}?",
    "Does the writer express something other than {}?",
    "Does the writer never sound like {}?",
]
ABOUT = [
    "Is this about {}?",
    "Is {} the topic?",
    "Does this text concern {}?",
    "Does this belong to {}?",
    "Is the subject {}?",
]
ABOUT_NOT = [
    "Is this about something other than {}?",
    "Is the topic not {}?",
    "Is this text unrelated to {}?",
    "Does this have nothing to do with {}?",
    "Is the subject anything but {}?",
    "Does this belong to a field other than {}?",
    "Is it wrong to say that this is about {}?",
]
RIGHT = ['Is "{}" the right answer?', "Is this correct: {}?", "Does {} fit here?", 'Would "{}" be a good answer?']
WRONG = [
    'Is "{}" the wrong answer?',
    "Is this incorrect: {}?",
    "Is the answer something other than {}?",
    'Would "{}" be a mistake?',
    "Is {} out of place here?",
]

# Question of a favourable text, its opposite.
SIDES = [
    ("pleased", "displeased"),
    ("satisfied", "dissatisfied"),
    ("happy", "unhappy"),
    ("content", "discontent"),
    ("positive", "negative"),
    ("favourable", "unfavourable"),
    ("approving", "disapproving"),
    ("sympathetic", "unsympathetic"),
    ("enthusiastic", "unenthusiastic"),
    ("kind", "unkind"),
    ("appreciative", "critical"),
    ("in favour", "against"),
    ("glad", "upset"),
    ("complimentary", "insulting"),
    ("warm", "icy"),
]
SIDE_FORMS = [
    "Is the writer {}?",
    "Is the tone {}?",
    "Does this sound {}?",
    "Is the author {}?",
    "Would you call the text {}?",
    "Is the speaker {} here?",
    "Is this a {} remark?",
]
SIDE_FORMS_NOT = [
    "Is the writer not {}?",
    "Is the tone anything but {}?",
    "Is it wrong to call this {}?",
    "Is the author far from {}?",
    "Is the speaker not {} at all?",
    "Does this not sound {}?",
    "Is it false that the writer is {}?",
]
SIDE_QUESTIONS = [
    ("Does the writer like it?", "Does the writer dislike it?"),
    ("Is this praise?", "Is this criticism?"),
    ("Does the author approve?", "Does the author disapprove?"),
    ("Is this a recommendation?", "Is this a warning?"),
    ("Would the writer recommend it?", "Would the writer advise against it?"),
    ("Has the writer reason to be glad?", "Has the writer reason to complain?"),
    ("Did it go well?", "Did it go badly?"),
    ("Is this good news for the writer?", "Is this bad news for the writer?"),
    ("Is the verdict good?", "Is the verdict bad?"),
    ("Does the author speak well of it?", "Does the author speak ill of it?"),
    ("Did it meet the writer's hopes?", "Did it disappoint the writer?"),
    ("Is the writer in a good mood?", "Is the writer in a bad mood?"),
]


def side(rng: random.Random) -> tuple[str, str]:
    """A question whose answer is yes for a favourable text, and an opposite."""
    if rng.random() < 0.35:
        asked, other = rng.choice(SIDE_QUESTIONS)
        return asked, other
    good, bad = rng.choice(SIDES)
    form = rng.choice(SIDE_FORMS)
    draw = rng.random()
    if draw < 0.4:
        return form.format(good), form.format(bad)
    if draw < 0.7:
        return form.format(good), rng.choice(SIDE_FORMS_NOT).format(good)
    return rng.choice(SIDE_FORMS_NOT).format(bad), form.format(bad)


# -- small worlds -------------------------------------------------------------------------------------------------------

PEOPLE = (
    "Anna Ben Carla David Elena Farid Grace Hugo Ines Jamal Kira Liam Olga Pablo Quinn Rosa Sven Umar Vera Zoe".split()
)
WHO = [
    "the manager",
    "our neighbour",
    "the client",
    "the driver",
    "the teacher",
    "my sister",
    "the guest",
    "the clerk",
    "the nurse",
    "the buyer",
    "the mayor",
    "the plumber",
    "my colleague",
    "the student",
]
STATES = [
    (
        ["room", "kitchen", "flat", "office", "hall", "hotel room", "garage", "lobby"],
        "clean/dirty tidy/messy warm/cold quiet/noisy bright/dark large/small locked/unlocked heated/unheated occupied/vacant spacious/cramped furnished/unfurnished",
    ),
    (
        ["soup", "bread", "meal", "coffee", "cake", "salad", "fish", "breakfast"],
        "fresh/stale tasty/tasteless cooked/raw hot/cold sweet/bitter healthy/unhealthy free/expensive salted/unsalted",
    ),
    (
        ["printer", "laptop", "lift", "heater", "app", "camera", "scanner", "website", "engine", "lamp"],
        "working/broken fast/slow reliable/unreliable cheap/expensive new/old modern/outdated safe/dangerous usable/unusable on/off connected/disconnected easy/difficult",
    ),
    (
        ["contract", "form", "report", "passport", "certificate", "letter", "application", "licence"],
        "complete/incomplete valid/invalid signed/unsigned correct/wrong public/secret readable/illegible accepted/rejected genuine/fake finished/unfinished official/unofficial",
    ),
    (
        ["street", "path", "pass", "bridge", "lane", "car park"],
        "open/closed dry/wet safe/unsafe clear/blocked wide/narrow busy/deserted paved/unpaved lit/unlit",
    ),
    (
        ["parcel", "ticket", "bill", "jacket", "box", "suitcase", "bag", "chair", "bicycle", "watch"],
        "heavy/light intact/damaged paid/unpaid full/empty cheap/expensive useful/useless sold/unsold comfortable/uncomfortable clean/dirty returnable/non-returnable",
    ),
    (
        ["shop", "museum", "pool", "office", "bank", "gym", "market", "station"],
        "open/closed busy/quiet crowded/empty popular/unpopular near/far profitable/unprofitable",
    ),
    (
        ["deal", "plan", "idea", "decision", "result", "answer", "offer", "change"],
        "fair/unfair good/bad realistic/unrealistic legal/illegal expected/unexpected final/provisional popular/unpopular likely/unlikely acceptable/unacceptable successful/unsuccessful",
    ),
]
TRAITS = "calm/nervous polite/rude patient/impatient honest/dishonest awake/asleep healthy/ill present/absent married/unmarried employed/unemployed careful/careless generous/mean grateful/ungrateful early/late sure/unsure friendly/hostile happy/sad proud/ashamed interested/uninterested ready/unready experienced/inexperienced guilty/innocent kind/unkind responsible/irresponsible satisfied/dissatisfied alive/dead hungry/full busy/free sober/drunk willing/unwilling right/wrong insured/uninsured"
# past, base, opposite past, opposite base, objects
DEEDS = """accepted,accept,refused,refuse: the invitation|the gift|the terms|the apology|the plan
passed,pass,failed,fail: the driving test|the interview|the audit|the course
remembered,remember,forgot,forget: the appointment|the password|the birthday|the key
bought,buy,sold,sell: the house|the old car|the shares|the boat
won,win,lost,lose: the match|the case|the bet|the election
praised,praise,criticised,criticise: the new design|the staff|the book|the speech
allowed,allow,forbade,forbid: smoking|visits|photographs|parking there
attended,attend,missed,miss: the meeting|the lecture|the wedding|the training
opened,open,closed,close: the window|the account|the gate|the file
admitted,admit,denied,deny: the error|the theft|the rumour|the delay
kept,keep,broke,break: the promise|the agreement|the rules
loved,love,hated,hate: the play|the food|the place|the job
saved,save,wasted,waste: a lot of money|several hours|the energy
joined,join,left,leave: the club|the party|the choir|the union
increased,increase,reduced,reduce: the price|the rent|the budget|the speed
started,start,ended,end: the project|the show|the talks
supported,support,opposed,oppose: the reform|the merger|the law|the strike
repaired,repair,damaged,damage: the roof|the fence|the bike|the machine
confirmed,confirm,cancelled,cancel: the booking|the order|the flight|the visit
followed,follow,ignored,ignore: the advice|the instructions|the warning
borrowed,borrow,returned,return: the ladder|the book|the tools
included,include,left out,leave out: breakfast|the tax|the address
hired,hire,dismissed,dismiss: the cook|the guard|two engineers
trusted,trust,doubted,doubt: the report|the witness|the numbers
answered,answer,ignored,ignore: the call|the letter|the question|the email
found,find,lost,lose: the ring|the wallet|the cat|the receipt
approved,approve,rejected,reject: the budget|the request|the loan|the claim
packed,pack,unpacked,unpack: the boxes|the suitcase
switched on,switch on,switched off,switch off: the alarm|the heating|the light
recommended,recommend,advised against,advise against: the hotel|the treatment|the trip""".splitlines()
HAPPENINGS = """The price of {x},rose,rise,fell,fall: petrol|milk|gold|tickets|rents
The {x},arrived,arrive,failed to arrive,fail to arrive: delivery|taxi|guests|email|spare part
The {x},survived,survive,died,die: tree|firm|horse|tradition
The {x},grew,grow,shrank,shrink: town|team|queue|deficit|class
The {x},succeeded,succeed,failed,fail: experiment|rescue|operation|campaign
The {x},improved,improve,got worse,get worse: weather|service|mood|cough|sound
The {x},stayed open,stay open,closed down,close down: school|cinema|mine|bakery
The {x},began on time,begin on time,was delayed,get delayed: concert|flight|lesson|hearing
The {x},went up,go up,went down,go down: number of visitors|temperature|water level|demand
The {x},worked,work,stopped working,stop working: lift|vaccine|trick|radio""".splitlines()


class Fact:
    """A sentence that is true, with questions that ask for it (`asks`) and for its opposite (`denies`)."""

    def __init__(self, text: str, asks: list[str], denies: list[str]):
        self.text, self.asks, self.denies = text, asks, denies


def cap(text: str) -> str:
    return text[0].upper() + text[1:]


def state(rng: random.Random) -> Fact:
    if rng.random() < 0.45:
        subject = rng.choice([*PEOPLE, *WHO])
        pairs, past = TRAITS, rng.random() < 0.5
    else:
        things, pairs = rng.choice(STATES)
        subject, past = f"the {rng.choice(things)}", rng.random() < 0.5
    one, other = rng.choice(pairs.split()).split("/")
    if rng.random() < 0.5:
        one, other = other, one
    be = "was" if past else "is"
    truth = rng.choice(
        [
            f"{{}} {be} {one}.",
            f"{{}} {be} very {one}.",
            f"{{}} {be} {one} again.",
            f"{{}} {be} not {other}.",
            f"{{}} {be} anything but {other}.",
            f"I must say, {{}} {be} {one}.",
            f"{{}} {be} no longer {other}, but {one}.",
        ]
    )
    text = cap(truth.format(subject))
    asks = [
        f"{cap(be)} {subject} {one}?",
        f"{cap(be)} {subject} {one}?",
        f"Is it true that {subject} {be} {one}?",
        f"{cap(be)} {subject} the opposite of {other}?",
        f"{cap(be)} {subject} not {other}?",
        f"Is it false that {subject} {be} {other}?",
    ]
    denies = [
        f"{cap(be)} {subject} {other}?",
        f"{cap(be)} {subject} {other}?",
        f"{cap(be)} {subject} not {one}?",
        f"Is it false that {subject} {be} {one}?",
        f"{cap(be)} {subject} anything but {one}?",
        f"{cap(be)} {subject} far from {one}?",
        f"Is it wrong to call {subject} {one}?",
        f"{cap(be)} {subject} no longer {one}?" if not past else f"{cap(be)} {subject} {other}, then?",
    ]
    return Fact(text, asks, denies)


def deed(rng: random.Random) -> Fact:
    if rng.random() < 0.3:
        words, objects = rng.choice(HAPPENINGS).split(": ")
        subject, past, base, other_past, other = words.split(",")
        subject, thing = subject.replace("{x}", rng.choice(objects.split("|"))), ""
    else:
        words, objects = rng.choice(DEEDS).split(": ")
        past, base, other_past, other = words.split(",")
        subject, thing = rng.choice([*PEOPLE, *WHO]), " " + rng.choice(objects.split("|"))
    if rng.random() < 0.5:
        past, base, other_past, other = other_past, other, past, base
    lower = subject if subject in PEOPLE else subject[0].lower() + subject[1:]
    text = cap(
        rng.choice(
            [
                f"{lower} {past}{thing}.",
                f"{lower} {past}{thing} yesterday.",
                f"In the end {lower} {past}{thing}.",
                f"{lower} did not {other}{thing}; {lower} {past} it." if thing else f"{lower} {past} at last.",
                f"As we heard, {lower} {past}{thing}.",
            ]
        )
    )
    asks = [
        f"Did {lower} {base}{thing}?",
        f"Did {lower} {base}{thing}?",
        f"Is it true that {lower} {past}{thing}?",
        f"Did {lower} not {other}{thing}?",
        f"Is it false that {lower} {other_past}{thing}?",
    ]
    denies = [
        f"Did {lower} {other}{thing}?",
        f"Did {lower} {other}{thing}?",
        f"Did {lower} not {base}{thing}?",
        f"Did {lower} fail to {base}{thing}?",
        f"Is it false that {lower} {past}{thing}?",
        f"Is it wrong to say that {lower} {past}{thing}?",
        f"Did {lower} do anything but {base}{thing}?" if thing else f"Did {lower} never {base}?",
    ]
    return Fact(text, asks, denies)


def owned(rng: random.Random) -> Fact:
    """Something that is there or is not."""
    things = [
        "milk",
        "a window",
        "a garden",
        "wifi",
        "parking",
        "snow",
        "smoke",
        "mould",
        "a dog",
        "insurance",
        "nuts",
        "sugar",
        "a lift",
        "a swimming pool",
        "fever",
        "a discount",
        "a guarantee",
        "a key",
        "a signature",
        "an attachment",
    ]
    thing, other = rng.sample(things, 2)
    bare = thing.removeprefix("a ").removeprefix("an ")
    place = rng.choice(
        ["the house", "the packet", "the offer", "the hotel", "the letter", "the car", "the report", "the flat"]
    )
    there = rng.random() < 0.5
    text = rng.choice(
        [f"There is {thing} in {place}.", f"{cap(place)} comes with {thing}.", f"{cap(place)} has {thing} and {other}."]
        if there
        else [
            f"There is no {bare} in {place}.",
            f"{cap(place)} comes without {bare}.",
            f"{cap(place)} has {other} but no {bare}.",
            f"{cap(place)} is free of {bare}.",
        ]
    )
    asks = [
        f"Is there {thing} in {place}?",
        f"Does {place} have {thing}?",
        f"Does {place} come with {thing}?",
        f"Is {thing} part of {place}?",
    ]
    denies = [
        f"Is there no {bare} in {place}?",
        f"Does {place} lack {bare}?",
        f"Is {place} without {bare}?",
        f"Is {place} free of {bare}?",
        f"Is {bare} missing from {place}?",
        f"Does {place} not have {thing}?",
    ]
    return Fact(text, asks, denies) if there else Fact(text, denies, asks)


def chosen(rng: random.Random) -> Fact:
    """One value of several: "other than"."""
    person = rng.choice([*PEOPLE, *WHO])
    start, values, ask = rng.choice(
        [
            (
                "{p} lives in {v}",
                "Berlin Madrid Oslo Lima Cairo Boston Perth".split(),
                "Does {p} live in {v}?|Does {p} live somewhere other than {v}?|Does {p} not live in {v}?|Is it false that {p} lives in {v}?",
            ),
            (
                "{p} ordered the {v} one",
                "red blue green black white small large".split(),
                "Did {p} order the {v} one?|Did {p} order one other than the {v} one?|Did {p} not order the {v} one?|Is it wrong that {p} ordered the {v} one?",
            ),
            (
                "{p} comes on {v}",
                "Monday Tuesday Wednesday Thursday Friday Sunday".split(),
                "Does {p} come on {v}?|Does {p} come on a day other than {v}?|Does {p} not come on {v}?|Is {v} the wrong day for {p}?",
            ),
            (
                "{p} travels by {v}",
                "train car bus bicycle ship plane".split(),
                "Does {p} travel by {v}?|Does {p} travel by something other than {v}?|Does {p} not travel by {v}?|Does {p} use anything but the {v}?",
            ),
            (
                "{p} paid with {v}",
                ["cash", "a card", "a cheque", "a voucher"],
                "Did {p} pay with {v}?|Did {p} pay with something other than {v}?|Did {p} not pay with {v}?|Is it false that {p} paid with {v}?",
            ),
            (
                "{p} called because of {v}",
                ["a refund", "a delay", "a broken screen", "a lost key", "an invoice", "noise"],
                "Was {v} the reason for the call?|Was the reason something other than {v}?|Did {p} call about anything but {v}?|Was {v} not the reason?",
            ),
        ]
    )
    value, other = rng.sample(values, 2)
    yes, *no = ask.split("|")
    text = cap(start.format(p=person, v=value)) + rng.choice(
        [".", f", not {other}." if start.endswith("{v}") else ".", " as usual."]
    )
    if rng.random() < 0.5:
        return Fact(text, [yes.format(p=person, v=value)], [q.format(p=person, v=value) for q in no])
    return Fact(text, [q.format(p=person, v=other) for q in no], [yes.format(p=person, v=other)])


def read_frames() -> list[dict[str, list[str]]]:
    """The frames of `lists/frames.txt`: their alternatives by the sign that starts the line."""
    lines = (Path(__file__).parent / "lists" / "frames.txt").read_text(encoding="utf-8").splitlines()
    found: list[dict[str, list[str]]] = []
    for line in lines:
        if line.startswith("= "):
            found.append({})
        if not line.startswith("#"):
            found[-1][line[0]] = line[2:].split(" | ")
    return found


FRAMES = read_frames()


def matter(rng: random.Random) -> Fact:
    """An everyday matter, said and asked for in different words."""
    frame = rng.choice(FRAMES)
    said, asks, denies = ("+", "?", "!") if rng.random() < 0.5 else ("-", "!", "?")
    subject = rng.choice(frame["="])
    fill = lambda text: cap(text.replace("{s}", subject))
    return Fact(
        fill(rng.choice(frame[said])) + rng.choice([".", ".", "!"]),
        [fill(q) for q in frame[asks]],
        [fill(q) for q in frame[denies]],
    )


def world(rng: random.Random) -> tuple[str, str, str]:
    """(text, a question with the answer yes, an opposite): one to three facts, one of them asked for."""
    facts = [
        rng.choice([state, state, deed, deed, owned, chosen, matter, matter, matter, matter, matter, matter])(rng)
        for _ in range(rng.choice([1, 1, 2, 3]))
    ]
    asked = facts[0]
    rng.shuffle(facts)
    return " ".join(f.text for f in facts), rng.choice(asked.asks), rng.choice(asked.denies)


def pair(row: Decision, question: str, opposite: str, truth: bool, rng: random.Random) -> Decision:
    """The row with one of both questions, and the other as its `opposite`. `truth`: whether `question` is answered with yes."""
    yes, no = rng.choice(YES_NO)
    first = replace(row, instruction=question, choices=(yes, no), label=yes if truth else no)
    second = replace(row, instruction=opposite, choices=(yes, no), label=no if truth else yes)
    return replace(first, opposite=second) if rng.random() < 0.5 else replace(second, opposite=first)
