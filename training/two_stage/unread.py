"""How much of a text a model with an English vocabulary has no words for, and how much less sure that makes it.

    share = tokens of spelt words / tokens of words;  T = exp(pull * max(0, share - bound));  P(i) ~ P(i)^(1/T)

A word is spelt if it is cut into three pieces or more, has a letter of a script other than Latin, or is unknown as a
whole; what has digits or no letter is no word here.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .tokens import UNK

# What a token has, one bit each.
LETTER, DIGIT, FOREIGN, CONTINUES, UNKNOWN = 1, 2, 4, 8, 16
# A word of so many pieces is spelt, not known.
SPELT = 3


@dataclass(frozen=True)
class Rule:
    """`unread` of model.json."""

    bound: float = 1.0
    pull: float = 0.0

    def temperature(self, share: float) -> float:
        """What a text with this share of unread tokens is divided by."""
        return float(np.exp(self.pull * max(0.0, share - self.bound)))


def kind(token: str) -> int:
    """What is in a token of WordPiece."""
    continues = token.startswith("##") and len(token) > 2
    text = token[2:] if continues else token
    letters = [c for c in text if unicodedata.category(c).startswith("L")]
    foreign = any("LATIN" not in unicodedata.name(c, "") and c not in "ªº" for c in letters)
    digit = any(unicodedata.category(c) == "Nd" for c in text)
    return CONTINUES * continues | LETTER * bool(letters) | DIGIT * digit | FOREIGN * foreign


def share_of(vocabulary: dict[str, int]) -> Callable[[Sequence[int]], float]:
    """The share of unread tokens of a text's ids, by a vocabulary of WordPiece."""
    kinds = np.zeros(max(vocabulary.values()) + 1, np.uint8)
    for token, number in vocabulary.items():
        kinds[number] = UNKNOWN if number == UNK else kind(token)

    def share(ids: Sequence[int]) -> float:
        counted = unread = 0
        words: list[list[int]] = []
        for found in kinds[list(ids)].tolist():
            if found & CONTINUES and words:
                words[-1].append(found)
            else:
                words.append([found])
        for pieces in words:
            whole = int(np.bitwise_or.reduce(pieces))
            if whole & UNKNOWN or (whole & LETTER and not whole & DIGIT):
                counted += len(pieces)
                unread += len(pieces) if len(pieces) >= SPELT or whole & (UNKNOWN | FOREIGN) else 0
        return unread / counted if counted else 0.0

    return share


def tempered(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """P^(1/T), normalised."""
    logs = np.log(np.maximum(probabilities, 1e-300)) / temperature
    powers = np.exp(logs - logs.max())
    return powers / powers.sum()
