"""Weights in files that can be carried: those of products in five bits with a scale for each row, as the package of a
large stage B has them (`rounding.py`), or in eight; word embeddings in four bits with a scale for each group, or in 16;
and the rest in 16 and 32.

A file is a line of JSON, which names the tensors and their forms in order, and an entropy code of their bytes.
"""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from .rounding import LAYER_BITS, WORD_BITS, WORD_GROUP, codes_of, rounded_words, scales_of, without

WORDS = "encoder.words.weight"
# In bytes: what a file has at most where it is one of several.
MOST_A_FILE = 15 * 2**20


def coded(data: bytes) -> bytes:
    """Bytes in an entropy code; matches of weights are chance, and looking for them would take minutes."""
    coder = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_HUFFMAN_ONLY)
    return coder.compress(data) + coder.flush()


def raw(values: Tensor, kind: str) -> bytes:
    """The numbers of a tensor in a kind of numpy's."""
    return values.detach().cpu().float().numpy().astype(kind).tobytes()


def in_codes(weight: Tensor, kept: Sequence[int]) -> list[bytes]:
    """Weights [rows, columns] in five bits: scales, codes, and the columns that are kept out of them in 16."""
    rest = without(weight, kept)
    scale = scales_of(rest, LAYER_BITS)
    return [raw(scale, "<f4"), raw(codes_of(rest, scale, LAYER_BITS), "u1"), raw(weight[:, list(kept)], "<f2")]


def in_bytes(weight: Tensor) -> list[bytes]:
    """Weights [rows, columns] in eight bits: scales and codes."""
    scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return [raw(scale, "<f4"), raw((weight / scale).round(), "i1")]


def words_in_codes(words: Tensor) -> list[bytes]:
    """Word embeddings in four bits: scales and codes of groups."""
    groups = words.reshape(-1, WORD_GROUP)
    scale = scales_of(groups, WORD_BITS).half().float()
    return [raw(scale, "<f2"), raw(codes_of(groups, scale, WORD_BITS), "u1")]


def blocks_in_codes(words: Tensor, size: int) -> list[bytes]:
    """Word embeddings that came in four bits, so many in a block: bit for bit."""
    blocks = words.reshape(-1, size)
    greatest = blocks.gather(1, blocks.abs().argmax(1, keepdim=True))
    scale = (greatest / -8).half().float()
    codes = torch.where(scale == 0, 8.0, (blocks / scale.where(scale != 0, torch.ones(()))).round() + 8)
    return [raw(scale, "<f2"), raw(codes.clamp(0, 15), "u1")]


def written(
    state: Mapping[str, Tensor], channels: Mapping[str, Sequence[int]] | None, in_eight_bits: bool = False
) -> bytes:
    """A state of a stage, or a part of one, but for the words, as a file.

    `channels`: the input channels by the names of products that are kept out of their five bits; without it all layers
    are in 16 bits, or in eight.
    """
    head, parts = [], []
    for name, value in state.items():
        value = value.detach().float().cpu()
        entry = {"name": name, "shape": list(value.shape)}
        layer = name.removesuffix(".weight")
        if channels is not None and layer in channels:
            entry |= {"form": "codes", "kept": list(channels[layer])}
            parts += in_codes(value, channels[layer])
        elif in_eight_bits and value.dim() > 1:
            entry["form"] = "bytes"
            parts += in_bytes(value)
        else:
            entry["form"] = "half" if value.dim() > 1 else "float"
            parts.append(raw(value, "<f2" if value.dim() > 1 else "<f4"))
        head.append(entry)
    return json.dumps(head).encode() + b"\n" + coded(b"".join(parts))


def words_written(words: Tensor, rows: np.ndarray, block: int) -> bytes:
    """Some rows of the word embeddings as a file; `block`: of `Shape`. Those of a large reader are in four bits."""
    value = words.detach().float().cpu()[torch.from_numpy(rows)]
    entry = {"name": WORDS, "shape": list(words.shape), "rows": len(rows)}
    parts = [np.diff(rows, prepend=0).astype("<u2").tobytes()]
    if block:
        entry |= {"form": "blocks", "block": block}
        parts += blocks_in_codes(value, block)
    elif torch.equal(rounded_words(value), value):
        entry["form"] = "words"
        parts += words_in_codes(value)
    else:
        entry["form"] = "half"
        parts.append(raw(value, "<f2"))
    return json.dumps([entry]).encode() + b"\n" + coded(b"".join(parts))


def read(data: bytes) -> dict[str, Tensor]:
    """The state of a file; words that it lacks are 0."""
    head, _, body = data.partition(b"\n")
    numbers = numbers_in(zlib.decompress(body))
    next(numbers)
    found = {}
    for entry in json.loads(head):
        shape = entry["shape"]

        def take(count: int, kind: str) -> np.ndarray:
            return numbers.send((count, kind))

        if "rows" in entry:
            places = np.cumsum(take(entry["rows"], "<u2").astype(np.int64))
            value = np.zeros(shape, np.float32)
            size = entry["rows"] * shape[1]
            if entry["form"] == "half":
                value[places] = take(size, "<f2").reshape(-1, shape[1])
            else:
                group = entry.get("block", WORD_GROUP)
                scale = take(size // group, "<f2").astype(np.float32)[:, None]
                codes = take(size, "u1").reshape(-1, group).astype(np.float32)
                levels = codes - 8 if "block" in entry else 2 * codes - (2**WORD_BITS - 1)
                value[places] = (levels * scale).reshape(-1, shape[1])
        elif entry["form"] == "codes":
            scale = take(shape[0], "<f4")[:, None]
            value = (
                2 * take(shape[0] * shape[1], "u1").reshape(shape).astype(np.float32) - (2**LAYER_BITS - 1)
            ) * scale
            kept = entry["kept"]
            value[:, kept] = take(shape[0] * len(kept), "<f2").reshape(shape[0], len(kept))
        elif entry["form"] == "bytes":
            scale = take(shape[0], "<f4")[:, None]
            value = take(shape[0] * shape[1], "i1").reshape(shape) * scale
        else:
            value = take(int(np.prod(shape)), "<f2" if entry["form"] == "half" else "<f4").reshape(shape)
        found[entry["name"]] = torch.from_numpy(np.array(value, np.float32))
    return found


def numbers_in(data: bytes) -> Iterator[np.ndarray | None]:
    """Sent (count, kind), gives the next so many numbers of that kind."""
    place, found = 0, None
    while True:
        count, kind = yield found
        found = np.frombuffer(data, kind, count, place)
        place += found.nbytes


def in_files(data: bytes) -> list[bytes]:
    """A file in as many as are needed."""
    return [data[start : start + MOST_A_FILE] for start in range(0, len(data), MOST_A_FILE)]
