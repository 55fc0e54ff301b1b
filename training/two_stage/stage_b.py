"""Stage B: one sequence holds the premise and every option; options cannot see each other.

    [CLS] instruction [SEP] input [SEP]  [MASK] option 1  [MASK] option 2  ...
    block 0                              block 1          block 2

A token attends to the premise (block 0) and to its own block; premise tokens attend to the premise alone. Positions
restart after the premise in every block, so the order of the options leaves no trace. The score of an option is read at
its [MASK].
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .encoder import BLOCKED, DEVICE, Encoder, mixed
from .tokens import CLS, MASK, SEP

# The most tokens of one run, by the encoder's layers and width: what a run costs and holds grows with them.
PACK_TOKENS = {"minilm": 1024, "mpnet": 514, "e5": 1024}


@dataclass(frozen=True)
class Pack:
    """One decision for stage B: ids, positions and blocks are [tokens], markers [options] are places in them."""

    ids: list[int]
    positions: list[int]
    blocks: list[int]
    markers: list[int]


def pack(instruction: list[int], text: list[int], options: Sequence[list[int]]) -> Pack:
    """Token ids of the three parts (without special tokens) -> the packed sequence."""
    ids = [CLS, *instruction, SEP, *text, SEP]
    premise = len(ids)
    positions, blocks, markers = list(range(premise)), [0] * premise, []
    for number, option in enumerate(options, start=1):
        markers.append(len(ids))
        ids += [MASK, *option]
        positions += range(premise, premise + 1 + len(option))
        blocks += [number] * (1 + len(option))
    return Pack(ids, positions, blocks, markers)


def in_packs(premise: int, options: Sequence[list[int]], most: int) -> list[list[list[int]]]:
    """The options in order, split so that premise and options of a pack have at most `most` tokens (one option at
    least).
    """
    packs: list[list[list[int]]] = []
    room = 0
    for option in options:
        if not packs or len(option) + 1 > room:
            packs.append([])
            room = most - premise
        packs[-1].append(option)
        room -= len(option) + 1
    return packs


class StageB(nn.Module):
    """The encoder and a head of two layers on the marker's hidden state."""

    def __init__(self, encoder: Encoder):
        super().__init__()
        self.encoder = encoder
        self.dense = nn.Linear(encoder.shape.width, encoder.shape.width)
        self.score = nn.Linear(encoder.shape.width, 1)
        self.to(DEVICE)

    def hidden(self, ids: Tensor, positions: Tensor, blocks: Tensor) -> Tensor:
        """[batch, tokens] each; block -1 is padding -> hidden states [batch, tokens, width].

        Options are of token type 1, where there are types.
        """
        theirs = blocks[:, None, :]
        open_ = (theirs == 0) | (theirs == blocks[:, :, None])
        bias = torch.where(open_, 0.0, BLOCKED)[:, None]
        return self.encoder(ids, positions, (blocks > 0).long(), bias)

    def head(self, markers: Tensor) -> Tensor:
        """Hidden states of markers [..., width] -> scores [...], in fp32."""
        with torch.autocast(DEVICE, enabled=False):
            return self.score(F.gelu(self.dense(markers.float()))).squeeze(-1)

    def forward(self, packs: Sequence[Pack]) -> list[Tensor]:
        """Scores [options] of each pack."""
        tokens = max(len(p.ids) for p in packs)
        ids = torch.zeros(len(packs), tokens, dtype=torch.long)
        positions = torch.zeros_like(ids)
        blocks = torch.full_like(ids, -1)
        for row, p in enumerate(packs):
            ids[row, : len(p.ids)] = torch.tensor(p.ids)
            positions[row, : len(p.ids)] = torch.tensor(p.positions)
            blocks[row, : len(p.ids)] = torch.tensor(p.blocks)
        where = [(row, marker) for row, p in enumerate(packs) for marker in p.markers]
        rows, places = torch.tensor(where, device=DEVICE).T
        return list(
            self.at(ids.to(DEVICE), positions.to(DEVICE), blocks.to(DEVICE), rows, places).split(
                [len(p.markers) for p in packs]
            )
        )

    def at(self, ids: Tensor, positions: Tensor, blocks: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        """Scores [markers] of the markers at `places` in `rows` of a batch; see `hidden`."""
        return self.head(self.hidden(ids, positions, blocks)[rows, places])


def by_length(packs: Sequence[Pack], tokens_a_batch: int) -> list[list[int]]:
    """Indices of packs in batches of like length, each at most `tokens_a_batch` padded tokens (a longer pack stands
    alone).
    """
    order = sorted(range(len(packs)), key=lambda i: len(packs[i].ids))
    batches, current = [], []
    for index in order:
        if current and (len(current) + 1) * len(packs[index].ids) > tokens_a_batch:
            batches.append(current)
            current = []
        current.append(index)
    return [*batches, current] if current else batches


@torch.no_grad()
def scores(model: StageB, packs: Sequence[Pack], tokens_a_batch: int = 4096) -> list[np.ndarray]:
    """Scores of many packs, in their order."""
    result: list[np.ndarray] = [np.empty(0)] * len(packs)
    for batch in by_length(packs, tokens_a_batch):
        with mixed():
            for index, values in zip(batch, model([packs[i] for i in batch]), strict=True):
                result[index] = values.float().cpu().numpy()
    return result
