"""Rows that the recipe writes itself, with computed answers: thresholds, dates, tables, routing rules, what a text mentions.

Every maker takes a random generator and returns a Decision of the set "procedural/<name>". They teach the reading of an
instruction and of a rule, not arithmetic: numbers are small and the comparison is one step.
"""

import datetime
import random
from collections.abc import Sequence

from .records import Decision
from .wordings import YES_NO

PEOPLE = "Anna Ben Carla David Elena Farid Grace Hugo Ines Jamal Kira Liam Maya Noah Olga Pablo Quinn Rosa Sven Tara Umar Vera Wei Yara Zoe".split()
ITEMS = "laptop phone chair desk lamp jacket bicycle camera printer kettle backpack tablet sofa watch monitor".split()
CITIES = "Berlin Paris Madrid Oslo Lima Cairo Tokyo Austin Boston Nairobi Lagos Quito Seoul Delhi Perth Lisbon Vienna".split()
TEAMS = "billing; support; sales; legal; security; shipping; human resources; marketing; engineering; accounts; returns; the front desk".split(
    "; "
)
CODES = [
    "A",
    "B",
    "C",
    "D",
    "E",
    "red",
    "green",
    "blue",
    "alpha",
    "beta",
    "gamma",
    "queue 1",
    "queue 2",
    "queue 3",
    "tier one",
    "tier two",
    "tier three",
]


def answer(text: str, question: str, truth: bool, name: str, rng: random.Random) -> Decision:
    """A yes/no decision under one of the wordings of yes and no."""
    yes, no = rng.choice(YES_NO[:5])
    return Decision(text, question, (yes, no), yes if truth else no, f"procedural/{name}")


def threshold(rng: random.Random) -> Decision:
    """A rule with a limit, and an amount that is clearly above or below it."""
    limit = rng.choice([10, 20, 25, 50, 100, 200, 500, 1000])
    above = rng.random() < 0.5
    amount = round(limit * (rng.uniform(1.3, 5) if above else rng.uniform(0.05, 0.75)))
    item, person = rng.choice(ITEMS), rng.choice(PEOPLE)
    text = rng.choice(
        [
            f"{person} ordered a {item} for ${amount}.",
            f"Order: 1 {item}. Total: {amount} dollars. Customer: {person}.",
            f"The {item} costs ${amount}, says {person}.",
        ]
    )
    positive, negative = rng.choice(
        [
            ("free shipping", "paid shipping"),
            ("manager approval needed", "no approval needed"),
            ("manual review", "automatic"),
            ("high value", "low value"),
        ]
    )
    if rng.random() < 0.5:
        question = rng.choice(
            [
                f"Orders over ${limit}: {positive}. Others: {negative}.",
                f"If the amount is more than ${limit} choose {positive}, otherwise {negative}.",
                f"Apply the rule: up to ${limit} {negative}, above that {positive}.",
            ]
        )
        return Decision(text, question, (positive, negative), positive if above else negative, "procedural/threshold")
    ask_above = rng.random() < 0.5
    question = f"Is the price {rng.choice(['more than', 'above', 'over']) if ask_above else rng.choice(['less than', 'below', 'under'])} ${limit}?"
    return answer(text, question, above == ask_above, "threshold", rng)


def date_order(rng: random.Random) -> Decision:
    """Which of two dated things came first, or whether one is past a deadline."""
    first = datetime.date(rng.randint(2015, 2025), rng.randint(1, 12), rng.randint(1, 28))
    later = first + datetime.timedelta(days=rng.randint(40, 900))
    show = lambda day: rng.choice([day.isoformat(), f"{day:%B} {day.day}, {day.year}"])
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
            " ".join(f"{p} lives in {c} and owns a {i}." for p, c, i in zip(people, cities, items)),
            "; ".join(f"{p}, {c}, {i}" for p, c, i in zip(people, cities, items)),
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
    events = ["paid", "packed", "shipped", "delivered", "returned", "refunded"]
    happened = rng.randint(1, 5)
    number = rng.randint(100, 9999)
    text = f"Order {number}: " + ", then ".join(events[:happened]) + "."
    if rng.random() < 0.4:
        return Decision(
            text, "What is the latest status of the order?", tuple(events), events[happened - 1], "procedural/status"
        )
    k = rng.randrange(len(events))
    negated = rng.random() < 0.5
    question = f"Has the order not been {events[k]} yet?" if negated else f"Has the order been {events[k]}?"
    return answer(text, question, (k < happened) != negated, "status", rng)


def mention(text: str, other: str, rng: random.Random) -> Decision | None:
    """Whether a text mentions a word: one of its own, or one of another text's."""
    own = sorted({w for w in text.lower().split() if w.isalpha() and len(w) > 4})
    foreign = sorted({w for w in other.lower().split() if w.isalpha() and len(w) > 4} - set(text.lower().split()))
    if not own or not foreign:
        return None
    present = rng.random() < 0.5
    word = rng.choice(own if present else foreign)
    negated = rng.random() < 0.4
    asked = (
        [f'Is "{word}" absent from the text?', f'Does the text lack the word "{word}"?']
        if negated
        else [f'Does the text mention "{word}"?', f'Is the word "{word}" used?', f"Is there any mention of {word}?"]
    )
    return answer(text, rng.choice(asked), present != negated, "mention", rng)


def routing(text: str, label: str, others: list[str], rng: random.Random) -> Decision:
    """A rule in the instruction that sends labels to teams: the answer depends on the instruction alone."""
    labels = [label, *others]
    rng.shuffle(labels)
    names = rng.sample(TEAMS if rng.random() < 0.6 else CODES, len(labels))
    shape = rng.choice(["{l} goes to {n}", "if it is about {l}: {n}", "{n} handles {l}", "{n} = {l}"])
    rule = "; ".join(shape.format(l=l, n=n) for l, n in zip(labels, names))
    question = rng.choice(
        [f"Where does this message go? {rule}.", f"Rules: {rule}. Choose.", f"Route the message: {rule}."]
    )
    return Decision(text, question, tuple(names), names[labels.index(label)], "procedural/routing")


UNWANTED = {
    "prize": [
        "CONGRATULATIONS! You have won {prize}. Claim it now at {url}",
        "Winner!! Your number was drawn for {prize}. Call {phone} before midnight, {cost} per min",
        "You are our lucky visitor no. {n}! {prize} is waiting, reply WIN to {short}",
        "U have been selected 4 {prize}! txt CLAIM to {short}. T&Cs apply",
    ],
    "offer": [
        "{off}% OFF everything this weekend only!! Shop now {url}",
        "Lowest rates on loans, no credit check, approved in {n} minutes. Apply {url}",
        "Lose {n} kg in two weeks with our miracle pill, free trial! {url}",
        "Hot singles near you want to chat. Txt MEET to {short}, {cost}/msg",
        "FREE ringtone! Reply TONE to {short}. Subscription {cost}/week. Stop? send STOP",
        "Work from home and earn ${money} a day, no experience needed. Limited places!",
        "Final notice: your upgrade to the latest phone is ready. Call {phone} FREE",
    ],
    "fraud": [
        "Your account has been suspended. Verify your password at {url} within 24 hours",
        "URGENT: unusual login. Confirm your card number here {url}",
        "Dear customer, a parcel could not be delivered, pay {cost} customs fee: {url}",
        "I am the lawyer of a late prince who left ${money}. Send me your bank details in confidence",
        "Tax office: you are due a refund of ${money}. Enter your card at {url}",
    ],
}
WANTED_MESSAGES = {
    "private": [
        "Hey {p}, are we still on for {day}? I can bring the {item}.",
        "running late, be there in {n} min",
        "Mum says dinner is at {n}. Don't forget the {item}!",
        "haha that was so funny, tell {p} I said hi",
        "ok see u at the station then",
        "Happy birthday {p}! Hope you have a lovely day",
        "Did you get home all right? Call me when you can",
        "sorry i was asleep, what did {p} want",
        "Can you pick up {p} from school on {day}?",
        "I miss you, when do you come back to {city}?",
        "cant talk now, in a lecture, text u later",
        "Love you too, sleep well",
        "Where did you put the {item}? I've looked everywhere",
    ],
    "work": [
        "Please find the minutes of {day}'s meeting attached. Regards, {p}",
        "{p}, could you send me the figures for {city} before {day}?",
        "The meeting has been moved to {day}, {n} o'clock.",
        "I have reviewed your draft, two small comments on page {n}.",
        "Thanks for the call. I will prepare the offer by {day}. {p}",
    ],
    "notice": [
        "Reminder: your dentist appointment is on {day} at {n}:30. Reply C to cancel.",
        "Your order of a {item} has been shipped and should arrive on {day}.",
        "Your table for {n} is booked for {day}. See you soon!",
        "The library book you reserved is ready to collect until {day}.",
        "School is closed on {day} because of the snow.",
    ],
}
MESSAGE_NAMES = [
    ("spam", "not spam"),
    ("unwanted advertising", "a wanted message"),
    ("junk", "not junk"),
    ("spam", "a legitimate message"),
    ("unsolicited", "personal or expected"),
    ("scam or advertising", "ordinary message"),
    ("spam", "ham"),
    ("block it", "let it through"),
]
KIND_NAMES = {
    "prize": ["prize notification", "a lottery scam"],
    "offer": ["advertisement", "a commercial offer"],
    "fraud": ["phishing", "an attempt at fraud"],
    "private": ["personal message", "a note from a friend or relative"],
    "work": ["work message", "a message from a colleague"],
    "notice": ["reminder or notice", "a notice from a service"],
}


def message(rng: random.Random, chatter: Sequence[str]) -> Decision:
    """A short message or mail: wanted or not, or of which kind. Half of the wanted ones are real (`chatter`), so that a careless spelling is no
    sign of the unwanted."""
    unwanted = rng.random() < 0.5
    kinds = UNWANTED if unwanted else WANTED_MESSAGES
    kind = rng.choice(list(kinds))
    text = rng.choice(kinds[kind]).format(
        prize=rng.choice(
            ["a £1000 voucher", "a brand new phone", "$5,000 cash", "a free holiday", "two concert tickets"]
        ),
        url=rng.choice(["www.claim-now.example", "bit.example/x7", "http://deals4u.example"]),
        phone=f"0{rng.randint(800, 909)} {rng.randint(100000, 999999)}",
        cost=rng.choice(["£1.50", "$2", "150p"]),
        short=rng.randint(60000, 89999),
        n=rng.randint(2, 12),
        off=rng.choice([20, 50, 70]),
        money=rng.choice([300, 900, "2,500", "9 million"]),
        p=rng.choice(PEOPLE),
        day=rng.choice("Monday Tuesday Friday Saturday tomorrow".split()),
        item=rng.choice(ITEMS),
        city=rng.choice(CITIES),
    )
    text = text.lower() if rng.random() < 0.15 else text
    real = not unwanted and rng.random() < 0.5
    text = rng.choice(chatter) if real else text
    if real or rng.random() < 0.7:
        bad, good = rng.choice(MESSAGE_NAMES)
        return Decision(
            text,
            rng.choice(
                [
                    "What kind of message is this?",
                    "Should this message be blocked?",
                    "Is this message wanted?",
                    "Filter the inbox.",
                    "Classify this message.",
                    f"Is this {bad} or {good}?",
                ]
            ),
            (bad, good),
            bad if unwanted else good,
            "procedural/message",
        )
    others = rng.sample([k for k in KIND_NAMES if k != kind], rng.randint(1, 5))
    gold = rng.choice(KIND_NAMES[kind])
    return Decision(
        text,
        rng.choice(["What kind of message is this?", "Sort the mail.", "Which folder does this go to?"]),
        (gold, *(rng.choice(KIND_NAMES[k]) for k in others)),
        gold,
        "procedural/message",
    )


MAKERS = [threshold, date_order, table, status]
