"""How much of a text a model with an English vocabulary has no words for, and how much less sure that makes it.

    share = tokens of spelt words / tokens of words;  T = exp(pull * max(0, share - bound));  P(i) ~ P(i)^(1/T)

A word is spelt if it is cut into three pieces or more, has a letter of a script other than Latin, or is unknown as a
whole; what has digits or no letter is no word here.

Of a vocabulary of pieces in many languages it is the share of pieces: the unknown one, and letters that stand in no
longer piece, as those of a script whose words the vocabulary lacks. A Chinese character or a Korean syllable says
something by itself; pieces without a letter do not count.
"""

import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from .tokens import UNK

# What a token has, one bit each.
LETTER, DIGIT, FOREIGN, CONTINUES, UNKNOWN = 1, 2, 4, 8, 16
# What stands for a space at the beginning of a piece.
SPACE_MARK = "\u2581"
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


def kind_of_piece(piece: str, in_longer: set[str]) -> int:
    """Whether a piece of many languages has a letter, and whether it is one that no longer piece has."""
    text = piece.replace(SPACE_MARK, "", 1)
    if not any(unicodedata.category(c).startswith("L") for c in text):
        return 0
    whole = unicodedata.name(text[0], "").startswith(("CJK", "IDEOGRAPHIC", "HANGUL"))
    return LETTER | UNKNOWN * (len(text) == 1 and not whole and text not in in_longer)


def share_of_pieces(pieces: Sequence[str], unknown: int) -> Callable[[Sequence[int]], float]:
    """The share of unread tokens of a text's ids, by pieces of many languages."""
    bare = [piece.replace(SPACE_MARK, "", 1) for piece in pieces]
    in_longer = {c for text in bare if len(text) > 1 for c in text}
    kinds = np.array([kind_of_piece(piece, in_longer) for piece in pieces], np.uint8)
    kinds[unknown] = LETTER | UNKNOWN

    def share(ids: Sequence[int]) -> float:
        found = kinds[list(ids)]
        return float((found & UNKNOWN > 0).sum() / max(1, (found > 0).sum()))

    return share


def reads_many(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer's pieces are of many languages."""
    return json.loads(tokenizer.to_str())["model"]["type"] == "Unigram"


def share_by(tokenizer: Tokenizer) -> Callable[[Sequence[int]], float]:
    """The share of unread tokens of a text's ids, by a package's tokenizer."""
    model = json.loads(tokenizer.to_str())["model"]
    if model["type"] == "Unigram":
        return share_of_pieces([piece for piece, _ in model["vocab"]], model["unk_id"])
    return share_of(tokenizer.get_vocab())


def tempered(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """P^(1/T), normalised."""
    logs = np.log(np.maximum(probabilities, 1e-300)) / temperature
    powers = np.exp(logs - logs.max())
    return powers / powers.sum()
