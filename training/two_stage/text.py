"""What is done to a text before it is tokenised. For encoding only: answers return the choice byte for byte.

1. Symbols that the vocabulary lacks (emoji, arrows, currency signs, ...) are read by their Unicode names.
2. A choice that is written as an identifier (snake_case, camelCase, kebab-case) is read as words.

Letter case needs nothing: the tokenizer lowers it. The engine applies the same two rules from `symbols.json`.
"""

import json
import re
import unicodedata
from pathlib import Path

# Characters that only change how another one looks.
JOINERS = {"\u200d", "\ufe0e", "\ufe0f"}
FIRST_FLAG_LETTER, LAST_FLAG_LETTER = 0x1F1E6, 0x1F1FF
SKIN_TONES = range(0x1F3FB, 0x1F400)

# Where the words of an identifier meet.
UNDERSCORES = re.compile(r"_+")
INNER_HYPHEN = re.compile(r"(?<=[A-Za-z])-(?=[A-Za-z])")
CAMEL_HUMP = re.compile(r"(?<=[A-Za-z][a-z])(?=[A-Z])")
WHITESPACE = re.compile(r"\s")


def build_symbols(is_unknown) -> dict[str, str]:
    """Character -> the words it is read as, for every symbol that `is_unknown(character)` says the vocabulary lacks.

    A regional indicator becomes its plain letter, so that a flag reads as its country code; skin tones and joiners
    become "".
    """
    table = {}
    for code in range(0x80, 0x1FB00):
        character = chr(code)
        if FIRST_FLAG_LETTER <= code <= LAST_FLAG_LETTER:
            table[character] = chr(ord("a") + code - FIRST_FLAG_LETTER)
        elif character in JOINERS or code in SKIN_TONES:
            table[character] = ""
        elif unicodedata.category(character) in ("So", "Sm", "Sc", "Sk") and is_unknown(character):
            name = unicodedata.name(character, "")
            if name and "BRAILLE" not in name and "HEXAGRAM" not in name and "MUSICAL" not in name:
                table[character] = f" {name.lower().replace('-', ' ')} "
    return table


class TextReader:
    """Applies the rules with a table of symbols: `plain` for inputs and instructions, `choice` for choices."""

    def __init__(self, symbols: dict[str, str]):
        self.symbols = {ord(character): words for character, words in symbols.items()}

    @classmethod
    def load(cls, path: Path) -> "TextReader":
        """The reader of a package's `symbols.json`."""
        return cls(json.loads(path.read_text(encoding="utf-8")))

    def plain(self, text: str) -> str:
        """An input or instruction as it is tokenised."""
        return text if text.isascii() else text.translate(self.symbols)

    def choice(self, text: str) -> str:
        """A choice as it is tokenised."""
        words = UNDERSCORES.sub(" ", text)
        if not WHITESPACE.search(text):
            words = CAMEL_HUMP.sub(" ", INNER_HYPHEN.sub(" ", words))
        return self.plain(words if words.strip() else text)
