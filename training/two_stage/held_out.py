"""Label sets that no stage was trained on, for stacking and calibration: the held-out sets as they are, and decisions made of them.

Kinds of decision that users bring (`KINDS`): intents among few and among many choices, "none of these", yes/no and its negation, polarity,
emotions, two-way labels that need a convention, topics, kinds of text, multiple choice with short and with sentence-long choices,
entailment, questions on a passage. The negated questions are worded otherwise than the training's.
"""

import random
from dataclasses import replace

from .records import Decision
from .tasks import HELD_OUT, KEPT_BACK, Mix, sentences

FIELDS = {
    "snips": {
        "add to playlist": "music",
        "book restaurant": "restaurants",
        "get weather": "weather",
        "play music": "music",
        "search screening event": "cinema",
        "rate book": "books",
    },
    "ms_va": {
        "calendar": "calendar",
        "email": "email",
        "music": "music",
        "weather": "weather",
        "todo": "to-do lists",
        "news": "news",
    },
    "multidogo_finance": "personal finance",
    "multidogo_software": "software support",
    "multidogo_media": "television and internet contracts",
    "scicite": "scientific research",
}
BROAD = {
    "entertainment": ["music", "cinema", "television and internet contracts"],
    "money": ["personal finance"],
    "computers": ["software support", "email"],
    "food and drink": ["restaurants"],
    "reading": ["books", "news"],
    "science": ["scientific research"],
    "weather": ["weather"],
}
SOURCES = {
    "vader_tweets": ["a tweet", "a post on social media", "someone's personal remark"],
    "clickbait": ["a headline", "a news title", "a newspaper headline"],
    "scicite": ["a scientific article", "an academic paper", "a research paper"],
    "xed_en": ["a line of film dialogue", "a film subtitle", "spoken dialogue"],
    "snips": ["a command to a voice assistant", "an order to a smart speaker", "a spoken command"],
    "multidogo_finance": ["a message to a bank", "a chat with a bank", "a bank customer's message"],
}
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
    "far_feelings": ["far_sides", "far_emotions"],
    "far_everyday": ["far_everyday_routing", "far_everyday_ordinal", "far_everyday_yes_no", "far_everyday_reading"],
}
# Wordings of questions and their opposites that no training row has.
ASKED_LABEL = [
    ("Is the message to do with {}?", "Is the message to do with anything besides {}?"),
    ("Does this come under {}?", "Does this fall outside {}?"),
    ("Would {} be a fitting name for it?", "Would {} be an unfitting name for it?"),
]
ASKED_SIDE = [
    ("Is the writer cheerful?", "Is the writer gloomy?"),
    ("Was it a good experience?", "Was it not a good experience?"),
    ("Does it sound optimistic?", "Does it sound pessimistic?"),
    ("Is the author fond of this?", "Is the author tired of this?"),
    ("Would the company enjoy reading this?", "Would the company hate reading this?"),
]
ASKED_FEELING = [
    ("Does the speaker show {}?", "Does the speaker show no sign of {}?"),
    ("Can one hear {} here?", "Is {} absent here?"),
]
ASKED_CLAIM = [
    ('Can you confirm that "{}"?', 'Must you deny that "{}"?'),
    ("So: {} Agreed?", "So: {} Mistaken?"),
    ('Would it be honest to claim "{}"?', 'Would it be a lie to claim "{}"?'),
]
ASKED_PASSAGE = [("{}", 'Is the reply to "{}" negative?'), ("Please decide: {}", "Should I answer this with a no? {}")]
SIDES = {"positive": ["joy", "trust"], "negative": ["anger", "disgust", "fear", "sadness"]}
SIDE_NAMES = {
    "positive": ["favourable", "cheerful", "complimentary"],
    "negative": ["unfavourable", "gloomy", "a complaint"],
}
PLAIN = [
    "confirms or agrees",
    "declines or says no",
    "greets",
    "says goodbye",
    "says thank you",
    "something outside the domain",
]


def field(row: Decision) -> str | None:
    known = FIELDS.get(row.set)
    return known if isinstance(known, str) or known is None else known.get(row.label) or known.get(row.task)


def held_out(sets: dict[str, list[Decision]], count: int, seed: int) -> dict[str, list[Decision]]:
    """Up to `count` rows of every stacking set by name."""
    rng = random.Random(seed)
    take = lambda rows, n=count: rng.sample(rows, min(n, len(rows)))
    result = {name: take(sets[name]) for name in HELD_OUT}
    for name, kept in KEPT_BACK.items():
        result[name] = take(sets[name][:kept])
    intents = [
        r
        for n in ("multidogo_finance", "multidogo_software", "multidogo_media", "ms_va", "snips")
        for r in sets[n]
        if r.label not in PLAIN and r.label != "none of these"
    ]
    by_label: dict[str, list[Decision]] = {}
    for row in intents:
        by_label.setdefault(row.label, []).append(row)
    labels = sorted(by_label)
    even = [rng.choice(by_label[rng.choice(labels)]) for _ in range(3 * count)]
    result["many_intents"] = [
        replace(r, choices=tuple(labels), instruction="What does the user want?", set="many_intents")
        for r in even[:count]
    ]

    def residual(row: Decision) -> Decision:
        own = [c for c in row.choices if c not in PLAIN and c != row.label and c != "none of these"]
        own = rng.sample(own, min(len(own), 14))
        gone = rng.random() < 0.34
        choices = [*own, "none of these"] if gone else [row.label, *own, "none of these"]
        return replace(row, choices=tuple(choices), label="none of these" if gone else row.label, set="residual")

    result["residual"] = [residual(r) for r in even[count : 2 * count]]

    def asked(row: Decision) -> Decision:
        true = rng.random() < 0.5
        name = row.label if true else rng.choice([l for l in labels if l != row.label])
        negated = rng.random() < 0.3
        question = f"Does the user not ask for this: {name}?" if negated else f"Does the user ask for this: {name}?"
        return replace(
            row, instruction=question, choices=("yes", "no"), label="yes" if true != negated else "no", set="yes_no"
        )

    result["yes_no"] = [asked(r) for r in even[2 * count : 3 * count]]
    fields = sorted({f for r in [*intents, *sets["scicite"][:50]] for f in [field(r)] if f})
    texts = [r for r in take(intents, 6 * count) + take(sets["scicite"], count // 6) if field(r)][:count]
    result["topic"] = [
        replace(r, instruction="What is the text about?", choices=tuple(fields), label=field(r), set="topic")
        for r in texts
    ]
    felt = [(r, side) for r in sets["xed_en"] for side, emotions in SIDES.items() if r.label in emotions]
    result["dialogue_polarity"] = [
        replace(
            r,
            instruction="Is the tone of this line positive or negative?",
            choices=("negative", "positive"),
            label=side,
            set="dialogue_polarity",
        )
        for r, side in take(felt)
    ]
    four = ["anger", "joy", "sadness", "fear"]
    result["four_emotions"] = [
        replace(r, choices=tuple(four), set="four_emotions")
        for r in take([r for r in sets["xed_en"] if r.label in four])
    ]
    polar = [r for r in sets["vader_tweets"] if r.label != "neutral"]
    result["or_not"] = [or_not(r, rng) for r in take(polar)]
    result["tweet_polarity"] = [replace(r, choices=("negative", "positive"), set="tweet_polarity") for r in take(polar)]
    titled = [tuple(r.input.split(" -- ", 1)) for r in sets["boolq"][: KEPT_BACK["boolq"]] if " -- " in r.input]
    names = sorted({t for t, _ in titled})
    result["titles"] = [
        Decision(
            text[:400],
            "What is the passage about?",
            tuple({t: 0 for t in [title, *rng.sample(names, 19)]}),
            title,
            "titles",
        )
        for title, text in take(titled)
    ]
    broad = {fine: coarse for coarse, fields in BROAD.items() for fine in fields}
    result["broad_topic"] = [
        replace(r, instruction="Which area is this text from?", choices=tuple(BROAD), label=broad[field(r)])
        for r in take([r for r in texts * 2 if field(r) in broad])
    ]

    def source(row: Decision, most: int) -> Decision:
        others = rng.sample([n for n in SOURCES if n != row.set], most - 1)
        names = [rng.choice(SOURCES[n]) for n in (row.set, *others)]
        return replace(row, instruction="What is this?", choices=tuple(names), label=names[0])

    mixed = [rng.choice(sets[rng.choice(sorted(SOURCES))]) for _ in range(2 * count)]
    result["sources"] = [source(r, 5) for r in mixed[:count]]
    result["two_sources"] = [source(r, 2) for r in mixed[count:]]
    kept = [r for r in sets["boolq"][: KEPT_BACK["boolq"]] if " -- " in r.input]
    split = [sentences(r.input.split(" -- ", 1)[1]) for r in kept]
    long = [(r, parts) for r, parts in zip(kept, split) if len(parts) > 2]
    result["continuation"] = [
        Decision(
            parts[0],
            "Which sentence comes next?",
            tuple({p: 0 for p in [parts[1], *(rng.choice(o)[:200] for _, o in rng.sample(long, 4))]}),
            parts[1],
            "",
        )
        for _, parts in take(long)
    ]
    result["answered_by"] = [
        Decision(
            r.instruction,
            "Which sentence is about the same thing as the question?",
            tuple({p: 0 for p in [parts[0], *(o[0] for _, o in rng.sample(long, 3))]}),
            parts[0],
            "",
        )
        for r, parts in take(long)
    ]
    result["negated"] = [row for row in take(negated_pairs(sets, even, rng, count), count)]
    return {name: [replace(r, set=name) for r in rows] for name, rows in result.items()}


def or_not(row: Decision, rng: random.Random) -> Decision:
    """A two-sided row asked for one side: that, or not."""
    side = rng.choice(("positive", "negative"))
    name = rng.choice(SIDE_NAMES[side])
    return replace(
        row,
        instruction=rng.choice(
            ("Is this {}?", "Would you call this tweet {}?", "Decide whether the message is {}.")
        ).format(name),
        choices=(name, f"not {name}"),
        label=name if row.label == side else f"not {name}",
        set="or_not",
    )


def negated_pairs(
    sets: dict[str, list[Decision]], intents: list[Decision], rng: random.Random, count: int
) -> list[Decision]:
    """Questions with their opposites, over all kinds of held-out texts; each row carries its opposite."""
    rows = []

    def add(row: Decision, words: tuple[str, str], asked: str, truth: bool) -> None:
        flip = rng.random() < 0.5
        one, other = (w.format(asked) for w in (reversed(words) if flip else words))
        choices, true = ("yes", "no"), truth != flip
        second = replace(row, instruction=other, choices=choices, label="no" if true else "yes", set="negated")
        rows.append(replace(row, instruction=one, choices=choices, label="yes" if true else "no", opposite=second))

    labels = sorted({r.label for r in intents})
    for row in rng.sample(intents, count // 4):
        true = rng.random() < 0.5
        add(
            row, rng.choice(ASKED_LABEL), row.label if true else rng.choice([l for l in labels if l != row.label]), true
        )
    for row in rng.sample([r for r in sets["vader_tweets"] if r.label != "neutral"], count // 4):
        add(row, rng.choice(ASKED_SIDE), "", row.label == "positive")
    feelings = sorted({f for felt in SIDES.values() for f in felt})
    for row in rng.sample([r for r in sets["xed_en"] if r.label in feelings], count // 8):
        true = rng.random() < 0.5
        add(
            row,
            rng.choice(ASKED_FEELING),
            row.label if true else rng.choice(SIDES["negative" if row.label in SIDES["positive"] else "positive"]),
            true,
        )
    for row in rng.sample([r for r in sets["mnli"][: KEPT_BACK["mnli"]] if r.label in r.choices[:2]], count // 4):
        add(row, rng.choice(ASKED_CLAIM), Mix.claim(row).strip(), row.label == row.choices[0])
    for row in rng.sample(sets["boolq"][: KEPT_BACK["boolq"]], count // 8):
        add(row, rng.choice(ASKED_PASSAGE), row.instruction, row.label == "yes")
    return rows
