"""Long inputs made on purpose: a row's text hidden at a random place in filler, to measure how windows are joined."""

import random
from collections.abc import Sequence
from dataclasses import replace

from .pool import KEPT_BACK
from .records import Decision
from .tokens import Reader

# Rows of each set that are hidden; sets of short texts whose questions are about the whole text.
HIDDEN_ROWS = 12
HIDDEN_SETS = ("many_intents", "tweet_polarity", "yes_no", "multidogo_finance", "snips")


def fillers(sets: dict[str, list[Decision]]) -> list[list[str]]:
    """What texts are hidden in: an encyclopaedia's paragraphs, sentences of news, sentences of research papers.

    No finder is trained with these rows, and with the last not even with such texts: they are for measuring alone.
    """
    unseen = {
        "boolq": sets["boolq"][KEPT_BACK["boolq"] :][1::2],
        "newsmtsc": sets["newsmtsc"][1::2],
        "scicite": sets["scicite"],
    }
    return [[row.input for row in rows] for rows in unseen.values()]


def hide(rows: Sequence[Decision], filler: Sequence[str], reader: Reader, tokens: int, seed: int) -> list[Decision]:
    """Each row with its input between paragraphs of filler, about `tokens` long in all: whole paragraphs are taken."""
    rng = random.Random(seed)
    hidden = []
    for row in rows:
        left = tokens - len(reader.plain(row.input)) - len(reader.plain(row.instruction))
        paragraphs = []
        while left > 60:
            paragraph = rng.choice(filler)
            if len(reader.plain(paragraph)) > left:
                paragraph = " ".join(paragraph.split()[: left // 2])
            paragraphs.append(paragraph)
            left -= len(reader.plain(paragraph))
        paragraphs.insert(rng.randint(0, len(paragraphs)), row.input)
        hidden.append(replace(row, input="\n\n".join(paragraphs)))
    return hidden
