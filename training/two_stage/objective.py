"""What stage B is trained to say: the loss of a batch.

It is taken on z = alpha * a + b with the scores `a` of a fixed stage A and a random `alpha`, so that b is useful alone
and beside A: cross-entropy + 0.5 Brier. `echo` rows have stage A's distribution as their target, and rows whose text
answers nothing an even one. A row with an opposite is trained with it in one batch, and pays for every bit by which the
two answers fail to be each other's mirror. Of twins, one question about a line and about the same line in another
language, the other's reading is drawn to the English one's. Rows that nobody labelled are drawn to the distribution of
a teacher, another stage B.
"""

import numpy as np
import torch
from torch import Tensor

from .chunks import TARGETS, Batch
from .encoder import DEVICE, mixed
from .records import CROSSED, TEACHER
from .stage_b import StageB

# How much stage A is heard beside b: one of these for each row.
ALPHAS = (0.0, 8.0, 16.0)
# What makes a distribution of stage A's cosines: the scale that it is tuned with.
TEACHER_SCALE = 20.0
# What a teacher's distribution and that of who learns from it are flattened by.
FLATTENED = 1.5
# Added where there is no option; the least logarithm, so that it times 0 is 0; the most that a pair pays, in nats.
CLOSED, LEAST_LOG, MOST_OF_A_PAIR = -1e9, -1e4, 4.0


def sent(array: np.ndarray) -> Tensor:
    """An array on the device. From pinned memory a GPU takes it while it works; other memory would wait for its end."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(DEVICE, non_blocking=True) if DEVICE == "cuda" else tensor


def scored(model: StageB, batch: Batch) -> Tensor:
    """b of a batch [rows, options], 0 where there is no option."""
    ids, positions, blocks, rows, places, slots = map(
        sent, (batch.ids, batch.positions, batch.blocks, batch.rows, batch.places, batch.slots)
    )
    with mixed():
        found = model.at(ids, positions, blocks, rows, places)
    return torch.zeros(batch.there.shape, device=DEVICE).index_put((rows, slots), found.float())


def loss_of(
    b: Tensor, batch: Batch, rng: np.random.Generator, consistency: float, taught: Tensor | None = None
) -> Tensor:
    """The mean loss of a batch's rows; `consistency`: the weight of what pairs pay; `taught`: the teacher's b of rows
    that are CROSSED.
    """
    labels, there, a, targets = map(sent, (batch.labels, batch.there, batch.similar, batch.targets))
    closed = torch.where(there, 0.0, CLOSED)
    alphas = sent(rng.choice(ALPHAS, len(batch.labels)).astype(np.float32))
    has_label = labels >= 0
    z = torch.where(has_label, alphas, 0.0)[:, None] * a + b + closed
    like_a = torch.softmax(TEACHER_SCALE * a + closed, -1)
    targets = torch.where((labels == TARGETS[TEACHER])[:, None], like_a, targets)
    logs = torch.log_softmax(z, -1)
    # Less its own entropy, so that a distribution that is met costs nothing.
    row_losses = (torch.xlogy(targets, targets) - targets * logs.clamp(min=LEAST_LOG)).sum(-1)
    row_losses = row_losses + has_label * 0.5 * (logs.exp() - targets).square().sum(-1)
    learnt = 0.0
    if taught is not None:
        theirs, ours = (torch.log_softmax(x / FLATTENED + closed, -1) for x in (taught, b))
        learnt = FLATTENED**2 * (theirs.exp() * (theirs - ours.clamp(min=LEAST_LOG))).sum(-1)
    row_losses = torch.where(labels == TARGETS[CROSSED], learnt, row_losses)
    total = row_losses.sum()
    for part in of_pairs(b, closed, batch):
        total = total + consistency * part
    return total / len(labels)


def of_pairs(b: Tensor, closed: Tensor, batch: Batch) -> list[Tensor]:
    """What the batch's twins pay together, and what its pairs of opposite questions do, of those that it has.

    `closed`: what is added to b, CLOSED where there is no option.
    """
    found = []
    twins = batch.paired & (batch.labels == TARGETS[CROSSED])
    if twins.any():
        first = sent(np.flatnonzero(twins))
        english, other = (torch.log_softmax(b[rows] + closed[rows], -1) for rows in (first, first + 1))
        english = english.detach()
        divergence = (english.exp() * (english - other.clamp(min=LEAST_LOG))).sum(-1)
        found.append(divergence.clamp(max=MOST_OF_A_PAIR).sum())
    if (batch.paired & ~twins).any():
        first = sent(np.flatnonzero(batch.paired & ~twins))
        found.append(2 * inconsistency(b[first][:, :2], b[first + 1][:, :2]).sum())
    return found


def inconsistency(one: Tensor, other: Tensor) -> Tensor:
    """How far the answers to questions and to their opposites are from mirroring each other.

    Scores [pairs, 2] each, of the same two choices in the same order -> symmetric divergence [pairs], bounded by
    clamping.
    """
    p, q = torch.log_softmax(one, -1), torch.log_softmax(other.flip(-1), -1)
    return 0.5 * ((p.exp() - q.exp()) * (p - q)).sum(-1).clamp(max=MOST_OF_A_PAIR)
