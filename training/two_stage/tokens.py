"""Tokenising: WordPiece ids without special tokens (the caller places them), cached a text."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from .text import TextReader, build_symbols

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Of BERT's uncased vocabulary.
CLS, SEP, MASK, UNK = 101, 102, 103, 100
# What multilingual-e5-small wants before every text ("query" and a colon); its pieces are brought into places that
# BERT's vocabulary leaves unused (e5.py).
PREFIX = (104, 105, 110)


def bare_tokenizer(path: Path) -> "tuple[Tokenizer, str]":
    """The tokenizer of `tokenizer.json` less its special tokens, and its JSON.

    Without added tokens a "[SEP]" in a text is plain text; without a post-processor no CLS and SEP are placed.
    """
    from tokenizers import Tokenizer  # a carried run has none

    spec = json.loads(path.read_text(encoding="utf-8"))
    spec.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
    text = json.dumps(spec, ensure_ascii=False)
    return Tokenizer.from_str(text), text


class Reader:
    """Text -> token ids, for plain texts and for choices."""

    def __init__(self, tokenizer: "Tokenizer", symbols: dict[str, str] | None = None):
        self.tokenizer = tokenizer
        self.symbols = symbols if symbols is not None else build_symbols(lambda c: self._raw(c) in ([UNK], []))
        self.text = TextReader(self.symbols)
        self._plain: dict[str, list[int]] = {}
        self._choice: dict[str, list[int]] = {}

    def _raw(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def plain(self, text: str) -> list[int]:
        """Ids of an input or an instruction."""
        ids = self._plain.get(text)
        if ids is None:
            ids = self._plain[text] = self._raw(self.text.plain(text))
        return ids

    def lines(self, text: str) -> list[list[int]]:
        """Ids of an input line by line; one line if there are more lines than tokens (most have none then)."""
        whole, lines = self.plain(text), [line for line in re.split(r"[\n\r]", text) if line.strip()]
        return [self._raw(self.text.plain(line)) for line in lines] if len(lines) <= len(whole) else [whole]

    def choice(self, text: str) -> list[int]:
        """Ids of a choice; never empty (an unreadable choice is one [UNK])."""
        ids = self._choice.get(text)
        if ids is None:
            ids = self._choice[text] = self._raw(self.text.choice(text)) or [UNK]
        return ids
