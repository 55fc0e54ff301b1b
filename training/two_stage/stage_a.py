"""Stage A: the sentence encoder.

Every text is encoded alone; a choice's score is the cosine of its vector with the input's.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from .encoder import BLOCKED, DEVICE, Encoder, mixed
from .tokens import CLS, SEP

# In tokens, of a text that is encoded for training or fitting.
LONGEST = 256


def framed(ids: list[int], longest: int = LONGEST) -> list[int]:
    """[CLS] text [SEP], cut to `longest` tokens (the engine reads longer texts by windows, training does not)."""
    return [CLS, *ids[: longest - 2], SEP]


def pad(sequences: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
    """Sequences -> ids [batch, tokens] padded with 0 and the mask of real tokens [batch, tokens]."""
    tokens = max(map(len, sequences))
    ids = np.zeros((len(sequences), tokens), np.int64)
    mask = np.zeros((len(sequences), tokens), np.float32)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return torch.from_numpy(ids).to(DEVICE), torch.from_numpy(mask).to(DEVICE)


def embed(encoder: Encoder, sequences: Sequence[list[int]]) -> Tensor:
    """Mean-pooled, normalised vectors [batch, width] of framed sequences."""
    shape = encoder.shape
    ids, mask = pad([[s[0], *shape.prefix, *s[1:]] for s in sequences] if shape.prefix else sequences)
    positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    bias = (1 - mask)[:, None, None, :] * BLOCKED
    hidden = encoder(ids, positions, torch.zeros_like(ids), bias).float()
    pooled = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return F.normalize(F.normalize(pooled, dim=-1) - encoder.centre if shape.prefix else pooled, dim=-1)


def embed_many(encoder: Encoder, sequences: Sequence[list[int]], together: int = 24) -> Tensor:
    """`embed` of sequences of very different lengths: those of like length together, so that little is padding."""
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    parts = [
        embed(encoder, [sequences[i] for i in order[start : start + together]])
        for start in range(0, len(order), together)
    ]
    places = torch.empty(len(order), dtype=torch.long)
    places[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(parts)[places.to(parts[0].device)]


@torch.no_grad()
def vectors(
    encoder: Encoder, sequences: Sequence[list[int]], tokens_a_batch: int = 65_536 if DEVICE == "cuda" else 6144
) -> np.ndarray:
    """Vectors [texts, width] of many sequences, batched by length."""
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    result = np.zeros((len(sequences), encoder.shape.width), dtype=np.float32)
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and (end + 1 - start) * len(sequences[order[end]]) <= tokens_a_batch:
            end += 1
        chosen = order[start:end]
        with mixed():
            result[chosen] = embed(encoder, [sequences[i] for i in chosen]).float().cpu().numpy()
        start = end
    return result
