"""Feelings, opinions and insults: what the writer feels, and on which side they stand."""

import random
from dataclasses import replace

from .. import negation
from ..pool import Pool, claim_of, sentences
from ..records import Decision
from ..wordings import NAMES, POLARITY, POLARITY_OF, REVIEW, TARGET, renamed

# In characters: a review's first or last sentences.
LONGEST_REVIEW = 700


def emotion(pool: Pool, rng: random.Random) -> Decision:
    """Which emotion is expressed; most of the rows without one are left out, since they are a third of the set."""
    row = rng.choice(pool.emotional if rng.random() < 0.85 else pool.sets["goemotions"])
    return pool.with_choices(row, list(row.choices), rng)


def emotion_yes_no(pool: Pool, rng: random.Random) -> Decision:
    """Whether an emotion is expressed: the row's own, or one of the other side."""
    row, side = rng.choice(pool.polar)
    true = rng.random() < 0.5
    opposite = POLARITY_OF["negative" if side == "positive" else "positive"]
    asked = renamed(row.label if true else rng.choice(opposite), rng)
    return negation.pair_about(row, asked, negation.FEELS, negation.FEELS_NOT, true, rng)


def polarity_of_emotion(pool: Pool, rng: random.Random) -> Decision:
    """On which side a text is, by the emotion that it expresses."""
    row, side = rng.choice(pool.polar)
    return polarity(replace(row, label=side), POLARITY, rng)


def polarity(row: Decision, instructions: list[str], rng: random.Random, neutral: bool = False) -> Decision:
    """Two or three sides under one of their names, or yes/no about one side."""
    if rng.random() < 0.2 and not neutral:
        return negation.pair(row, *negation.side(rng), row.label == "positive", rng)
    sides = {"positive": "positive", "negative": "negative", "neutral": "neutral"}
    if rng.random() < 0.45:
        index = rng.randrange(len(NAMES["positive"]))
        sides = {
            "positive": NAMES["positive"][index],
            "negative": NAMES["negative"][index],
            "neutral": rng.choice(NAMES["neutral"]),
        }
    names = [sides["negative"], sides["positive"]] + ([sides["neutral"]] if neutral else [])
    return replace(row, instruction=rng.choice(instructions), choices=tuple(names), label=sides[row.label])


def review_sentence(pool: Pool, rng: random.Random) -> Decision:
    """One sentence of a review, which was changed to turn the review into its opposite."""
    text, label = rng.choice(pool.reviews)
    text = text.lower() if rng.random() < 0.3 else text
    return polarity(Decision(text, "", (), label, "cad_imdb"), REVIEW, rng)


def review(pool: Pool, rng: random.Random) -> Decision:
    """A review's last sentences, where the verdict is, or its first and last ones."""
    row = rng.choice(pool.sets["cad_imdb"])
    parts = sentences(row.input)
    parts = parts[-4:] if rng.random() < 0.5 else parts[:3] + parts[-3:]
    return polarity(replace(row, input=" ".join(parts)[:LONGEST_REVIEW]), REVIEW, rng)


def editorial(pool: Pool, rng: random.Random) -> Decision:
    """A sentence of a newspaper's opinion: two sides, or none."""
    return polarity(rng.choice(pool.sets["vader_nyt"]), POLARITY, rng, neutral=True)


def target_sentiment(pool: Pool, rng: random.Random) -> Decision:
    """How a sentence of political news bears on someone that it names."""
    row = rng.choice(pool.sets["newsmtsc"])
    return polarity(row, [rng.choice(TARGET).format(claim_of(row))], rng, neutral=True)


def offence(pool: Pool, rng: random.Random) -> Decision:
    """Hate speech, offensive language or neither; the second are most of the set, so some of them are drawn again."""
    row = rng.choice(pool.sets["hate_offensive"])
    if row.label.startswith("offensive") and rng.random() < 0.6:
        row = rng.choice(pool.sets["hate_offensive"])
    if rng.random() < 0.4:
        hate = row.label == "hate speech"
        if hate or row.label == "neither" or rng.random() < 0.3:
            return negation.pair(row, rng.choice(negation.HATE), rng.choice(negation.HATE_NOT), hate, rng)
    return pool.with_choices(row, list(row.choices), rng)


def side_pair(pool: Pool, rng: random.Random) -> Decision:
    """Whether a text is favourable, and the opposite."""
    draw = rng.random()
    if draw < 0.45:
        text, label = rng.choice(pool.reviews)
        row = Decision(text.lower() if rng.random() < 0.3 else text, "", (), label, "cad_imdb")
    elif draw < 0.85:
        row, label = rng.choice(pool.polar)
    else:
        row = rng.choice(pool.sided)
        label = row.label
    return negation.pair(row, *negation.side(rng), label == "positive", rng)
