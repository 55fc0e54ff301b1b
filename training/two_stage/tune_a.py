"""Tuning stage A lightly: contrastive, few minutes, then averaged with the original weights.

Hard tuning ruins what makes the encoder good at unseen choices, so the learning rate is low and only a share of the
tuned weights is kept (`average`), chosen on whole sets that were held out.
"""

import copy
import time
from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional as F

from .encoder import Encoder, mixed
from .records import CROSSED, EVEN, TEACHER, Decision
from .stage_a import embed_many, framed, vectors
from .tokens import Reader
from .wordings import RESIDUAL

# What makes logits of cosines.
SCALE = 20.0
# Low, so that little is forgotten.
LEARNING_RATE = 2e-5
# The choices of a batch are encoded once, however many of its rows have them; a row with more of its own is left out.
ROWS_A_BATCH, MOST_CHOICES = 40, 16
# What similarity of texts can be learned from, by weight.
TASKS = {
    "sgd": 5,
    "airline": 1,
    "fastfood": 1,
    "insurance": 1,
    "any_intent": 6,
    "emotion": 5,
    "emotion_polarity": 4,
    "review_sentence": 5,
    "editorial": 2,
    "domain": 6,
    "title": 8,
    "openbookqa": 9,
    "figqa": 4,
    "follows": 5,
    "wanted": 1.5,
    "offence": 2,
    "message": 2,
}


def usable(row: Decision) -> bool:
    """A similarity of texts can be taught by it: it has a label, and that is not "none of these"."""
    return (
        row.label not in (TEACHER, EVEN, CROSSED)
        and row.label.lower().replace("_", " ") not in RESIDUAL
        and len(row.choices) <= MOST_CHOICES
    )


# The same of a stage A for many languages, and how many pairs of lines there are for each row.
MULTILINGUAL_TASKS = {**TASKS, "spoken": 6, "meaning": 6, "everyday": 20, "far_request": 16}
PAIRS_A_ROW = 1.0


def tune(
    base: Encoder, rows: Sequence[Decision], reader: Reader, minutes: float, log, pairs: Sequence[tuple[str, str]] = ()
) -> Encoder:
    """The encoder after one pass over `rows`, or `minutes` of one core's work, whichever ends first; the learning rate
    falls to 0 by then. `pairs` of texts with one meaning are spread over the batches: each text is to find its other
    among those of the batch.
    """
    encoder = copy.deepcopy(base).train()
    weights = [p for p in encoder.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=0.01, fused=True)
    started, losses = time.process_time(), []
    for start in range(0, len(rows), ROWS_A_BATCH):
        progress = max(start / len(rows), (time.process_time() - started) / 60 / minutes)
        if progress >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, progress / 0.05 + 0.02) * (1 - progress)
        batch = rows[start : start + ROWS_A_BATCH]
        texts = sorted({c for row in batch for c in row.choices})
        place = {text: i for i, text in enumerate(texts)}
        with mixed():
            inputs = embed_many(encoder, [framed(reader.plain(row.input), 96) for row in batch])
            choices = embed_many(encoder, [framed(reader.choice(text), 40) for text in texts])
        loss = 0.0
        for row, vector in zip(batch, inputs, strict=True):
            logits = SCALE * choices[[place[c] for c in row.choices]] @ vector
            loss = loss + F.cross_entropy(
                logits[None], torch.tensor([row.choices.index(row.label)], device=logits.device)
            )
        loss = loss / len(batch)
        share = -(-len(pairs) * ROWS_A_BATCH // len(rows))
        if drawn := pairs[start // ROWS_A_BATCH * share :][:share]:
            with mixed():
                one, other = (
                    embed_many(encoder, [framed(reader.plain(pair[side]), 64) for pair in drawn]) for side in (0, 1)
                )
            logits, own = SCALE * one @ other.T, torch.arange(len(drawn), device=one.device)
            loss = loss + 0.5 * (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        losses.append(loss.item())
        if len(losses) % 20 == 0:
            log(f"stage A: {start + len(batch)} rows, {progress:.2f} of the way, loss {np.mean(losses[-20:]):.3f}")
    return encoder.eval()


def average(base: Encoder, tuned: Encoder, share: float) -> Encoder:
    """`share` of the tuned weights and the rest of the original."""
    mixed = copy.deepcopy(base)
    theirs = tuned.state_dict()
    mixed.load_state_dict({name: torch.lerp(value, theirs[name], share) for name, value in base.state_dict().items()})
    return mixed.eval()


def accuracy(encoder: Encoder, rows: Sequence[Decision], reader: Reader) -> float:
    """Share of rows whose nearest choice is the label."""
    texts = sorted({c for row in rows for c in row.choices})
    choices = dict(zip(texts, vectors(encoder, [framed(reader.choice(t)) for t in texts]), strict=True))
    inputs = vectors(encoder, [framed(reader.plain(row.input)) for row in rows])
    right = [
        row.choices[int(np.argmax([choices[c] @ v for c in row.choices]))] == row.label
        for row, v in zip(rows, inputs, strict=True)
    ]
    return float(np.mean(right))
