"""Training stage B, resumable.

The rows are drawn in chunks, each a function of the seed and the chunk's number (`chunks.py`), so a run that was cut off goes on from its last
checkpoint with the same rows. The loss of a row is taken on z = alpha * a + b with the scores `a` of a fixed stage A and a random
`alpha` (0, 8 or 16), so that b is useful alone and beside A: cross-entropy + 0.5 Brier. `echo` rows have stage A's distribution
as their target, and rows whose text answers nothing an even one. A row with an opposite is trained with it in one batch, and pays for every bit by which the two answers fail to be each
other's mirror. Of twins, one question about a line and about the same line in another language, the other's reading is drawn to the English one's. With a teacher, another stage B, half of a row's loss is how far its distribution is from the teacher's, and rows that nobody labelled have that alone.
The weights that count are an exponential moving average; whole held-out sets are watched, and the average that does best there is kept.
"""

import copy
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .chunks import (
    MOST_INPUT,
    MOST_INSTRUCTION,
    MOST_OPTION,
    TARGETS,
    Batch,
    Chunk,
    Source,
    batches,
    collate,
    shortlisted,
)
from .encoder import DEVICE, SHAPES, Encoder, mixed
from .records import Decision
from .rounding import large_channels, set_rounding
from .stage_a import framed, vectors
from .stage_b import Pack, StageB, pack, scores
from .tasks import CROSSED, TEACHER, Mix
from .tokens import Reader

ALPHAS = (0.0, 8.0, 16.0)
TEACHER_SCALE = 20.0
ROWS_A_CHUNK = 3000
RATIOS = (0, 16, 48)
# Of a row with a label beside a teacher's distribution, and what both distributions are flattened by.
TAUGHT, FLATTENED = 0.6, 1.5
GPU = DEVICE == "cuda"
WATCH_EVERY, SAVE_EVERY = (45, 150) if GPU else (360, 300)  # seconds
# What bounds a run on a CPU is its rows: small batches are more steps, and get more out of them. A GPU is idle with small batches.
TOKENS_A_BATCH = 20_480 if GPU else 1536
PROCESSES = max(1, len(os.sched_getaffinity(0)) - 1) if GPU else 0


@dataclass(frozen=True)
class Settings:
    """How long and how fast, and which tasks of the mix are left out. The learning rate warms up, then falls to 0 by `rows` or `minutes`, whichever
    comes first. `frozen`: layers that stay as they are. `rounded_from`: the progress from which weights are rounded as the package rounds them (1: never).
    `everyday`: the share of rows from the everyday corpus."""

    rows: int
    minutes: float
    learning_rate: float = 1e-4
    head_rate: float = 4e-4
    layer_decay: float = 0.85
    frozen: int = 1
    dropout: float = 0.0
    warm_up: float = 0.04
    average: float = 0.997
    consistency: float = 1.0
    rounded_from: float = 1.0
    everyday: float = 0.3
    seed: int = 1
    without: tuple[str, ...] = ()


def similarities(
    encoder: Encoder, rows: Sequence[Decision], reader: Reader, cache: dict[str, np.ndarray]
) -> list[np.ndarray]:
    """a_i of every row: cosines [options] of the input with each choice. Vectors of choices are cached by text."""
    fresh = sorted({c for row in rows for c in row.choices} - cache.keys())
    cache.update(zip(fresh, vectors(encoder, [framed(reader.choice(t)) for t in fresh])))
    inputs = vectors(encoder, [framed(reader.plain(row.input), MOST_INPUT + 2) for row in rows])
    return [np.stack([cache[c] for c in row.choices]) @ v for row, v in zip(rows, inputs)]


def similar(encoder: Encoder, chunk: Chunk, cache: dict[str, np.ndarray]) -> np.ndarray:
    """a of every option of a chunk, in the order of `chunk.options`."""
    fresh = [i for i, name in enumerate(chunk.names) if name not in cache]
    cache.update(
        zip([chunk.names[i] for i in fresh], vectors(encoder, [framed(chunk.choices[i].tolist()) for i in fresh]))
    )
    names = np.stack([cache[name] for name in chunk.names])
    texts = vectors(encoder, [framed(chunk.texts[i].tolist(), MOST_INPUT + 2) for i in range(len(chunk.labels))])
    of_row = np.repeat(np.arange(len(chunk.labels)), chunk.options.lengths)
    return np.einsum("ow,ow->o", texts[of_row], names[chunk.options.values])


def packed(row: Decision, reader: Reader) -> Pack:
    """The pack of a row, its parts cut to training lengths."""
    options = [reader.choice(c)[:MOST_OPTION] for c in row.choices]
    return pack(reader.plain(row.instruction)[:MOST_INSTRUCTION], reader.plain(row.input)[:MOST_INPUT], options)


def scored(model: StageB, batch: Batch) -> Tensor:
    """b of a batch [rows, options], 0 where there is no option."""
    ids, positions, blocks, rows, places, slots = (
        torch.from_numpy(x).to(DEVICE, non_blocking=True)
        for x in (batch.ids, batch.positions, batch.blocks, batch.rows, batch.places, batch.slots)
    )
    with mixed():
        found = model.at(ids, positions, blocks, rows, places)
    return torch.zeros(batch.there.shape, device=DEVICE).index_put((rows, slots), found.float())


def loss_of(
    b: Tensor, batch: Batch, rng: np.random.Generator, settings: Settings, taught: Tensor | None = None
) -> Tensor:
    """The mean loss of a batch's rows; `taught`: the teacher's b."""
    labels, there, a, targets = (
        torch.from_numpy(x).to(DEVICE) for x in (batch.labels, batch.there, batch.similar, batch.targets)
    )
    closed = torch.where(there, 0.0, -1e9)
    alphas = torch.from_numpy(rng.choice(ALPHAS, len(batch.labels)).astype(np.float32)).to(DEVICE)
    has_label = labels >= 0
    z = torch.where(has_label, alphas, 0.0)[:, None] * a + b + closed
    like_a = torch.softmax(TEACHER_SCALE * a + closed, -1)
    targets = torch.where((labels == TARGETS[TEACHER])[:, None], like_a, targets)
    logs = torch.log_softmax(z, -1)
    # Less its own entropy, so that a distribution that is met costs nothing.
    row_losses = (torch.xlogy(targets, targets) - targets * logs.clamp(min=-1e4)).sum(-1)
    row_losses = row_losses + has_label * 0.5 * (logs.exp() - targets).square().sum(-1)
    if taught is None:
        row_losses = torch.where(labels == TARGETS[CROSSED], 0.0, row_losses)
    else:
        theirs, ours = (torch.log_softmax(x / FLATTENED + closed, -1) for x in (taught, b))
        learnt = FLATTENED**2 * (theirs.exp() * (theirs - ours.clamp(min=-1e4))).sum(-1)
        share = torch.where(labels == TARGETS[CROSSED], 1.0, torch.where(has_label, TAUGHT, 0.0))
        row_losses = (1 - share) * row_losses + share * learnt
    total = row_losses.sum()
    twins = batch.paired & (batch.labels == TARGETS[CROSSED])
    if twins.any():
        first = torch.from_numpy(np.flatnonzero(twins)).to(DEVICE)
        english, other = (torch.log_softmax(b[rows] + closed[rows], -1) for rows in (first, first + 1))
        english = english.detach()
        total = (
            total
            + settings.consistency * (english.exp() * (english - other.clamp(min=-1e4))).sum(-1).clamp(max=4.0).sum()
        )
    if (batch.paired & ~twins).any():
        first = torch.from_numpy(np.flatnonzero(batch.paired & ~twins)).to(DEVICE)
        total = total + settings.consistency * 2 * inconsistency(b[first][:, :2], b[first + 1][:, :2]).sum()
    return total / len(labels)


def inconsistency(one: Tensor, other: Tensor) -> Tensor:
    """How far the answers to questions and to their opposites are from mirroring each other: symmetric divergence, bounded by clamping.
    Scores [pairs, 2] each, of the same two choices in the same order -> [pairs]."""
    p, q = torch.log_softmax(one, -1), torch.log_softmax(other.flip(-1), -1)
    return 0.5 * ((p.exp() - q.exp()) * (p - q)).sum(-1).clamp(max=4.0)


def groups(model: StageB, settings: Settings) -> list[dict]:
    """Parameter groups: lower layers learn more slowly, the head faster, frozen ones are left out."""
    layers = model.encoder.layers
    result = [{"params": [*model.dense.parameters(), *model.score.parameters()], "rate": settings.head_rate}]
    for index, layer in enumerate(layers):
        if index >= settings.frozen:
            result.append(
                {
                    "params": list(layer.parameters()),
                    "rate": settings.learning_rate * settings.layer_decay ** (len(layers) - 1 - index),
                }
            )
    return result


def freeze(model: StageB, settings: Settings) -> None:
    """Embeddings and the lowest layers stay as the base model has them: less to forget, and less work a step."""
    encoder = model.encoder
    for part in (
        encoder.words,
        encoder.positions,
        encoder.types,
        encoder.distances,
        encoder.norm,
        *encoder.layers[: settings.frozen],
    ):
        if part is not None:
            part.requires_grad_(False)


def learned(model: StageB) -> list[Tensor]:
    """The trained weights."""
    return [p for p in model.parameters() if p.requires_grad]


def watch(
    model: StageB, held: dict[str, list[Decision]], similar: dict[str, list[np.ndarray]], reader: Reader
) -> dict[str, list[float]]:
    """Accuracy on held-out sets of ratio * a + b, by RATIOS; the first is b alone."""
    packs = [packed(row, reader) for rows in held.values() for row in rows]
    found = iter(scores(model, packs, max(4096, TOKENS_A_BATCH)))
    result = {}
    for name, rows in held.items():
        b = [next(found) for _ in rows]
        right = lambda z: float(np.mean([row.choices[int(np.argmax(s))] == row.label for row, s in zip(rows, z)]))
        result[name] = [right([ratio * a + s for a, s in zip(similar[name], b)]) for ratio in RATIOS]
    return result


def start_rounding(model: StageB, packs: Sequence[Pack]) -> dict[str, list[int]]:
    """Rounds the model's weights from now on; returns the input channels that are kept out of it."""
    training = model.training
    model.eval()
    kept = large_channels(model, lambda: scores(model, packs))
    model.train(training)
    set_rounding(model, kept)
    return kept


def train(
    mix: Mix,
    stage_a: Encoder,
    start: StageB,
    reader: Reader,
    held: dict[str, list[Decision]],
    settings: Settings,
    folder: Path,
    log,
    teacher: StageB | None = None,
) -> StageB:
    """Stage B trained from the weights of `start`; goes on from `folder/stage_b.pt` if that is there."""
    torch.manual_seed(settings.seed)
    model = copy.deepcopy(start).train()
    freeze(model, settings)
    average = copy.deepcopy(model).eval()
    for layer in model.encoder.layers:
        layer.dropout.p = settings.dropout
    optimiser = torch.optim.AdamW(groups(model, settings), lr=1.0, weight_decay=0.01, fused=True)
    done = {
        "chunk": 0,
        "batch": 0,
        "rows": 0,
        "steps": 0,
        "seconds": 0.0,
        "kept_rows": 0,
        "kept_accuracy": 0.0,
        "channels": None,
    }
    kept = average.state_dict()
    checkpoint = folder / "stage_b.pt"
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=DEVICE)
        model.load_state_dict(saved["model"])
        average.load_state_dict(saved["average"])
        optimiser.load_state_dict(saved["optimiser"])
        done, kept = saved["done"], saved["kept"]
        for each in (model, average):
            set_rounding(each, done["channels"])
        log(f"stage B: goes on from {done}")
    cache: dict[str, np.ndarray] = {}
    held_similar = {name: similarities(stage_a, rows, reader, cache) for name, rows in held.items()}
    reader_name = next(name for name, shape in SHAPES.items() if shape == model.encoder.shape)
    typical = [packed(row, reader) for rows in held.values() for row in rows[:6]]

    def save():
        temporary = checkpoint.with_suffix(".new")
        torch.save(
            {
                "model": model.state_dict(),
                "average": average.state_dict(),
                "kept": kept,
                "optimiser": optimiser.state_dict(),
                "done": done,
                "reader": reader_name,
            },
            temporary,
        )
        temporary.replace(checkpoint)

    def look():
        nonlocal kept
        seen = watch(average, held, held_similar, reader)
        means = np.mean(list(seen.values()), 0)
        log(
            f"watch: ratios {RATIOS} {means.round(3)}, "
            + ", ".join(f"{n} {'/'.join(f'{v:.2f}' for v in values)}" for n, values in seen.items())
        )
        accuracy = float(means[0] + means.max()) / 2
        if accuracy >= done["kept_accuracy"]:
            done["kept_accuracy"], done["kept_rows"] = accuracy, done["rows"]
            kept = {name: value.clone() for name, value in average.state_dict().items()}

    source = Source(
        mix,
        reader,
        mix.weights(settings.everyday, settings.without, teacher is not None),
        ROWS_A_CHUNK,
        settings.seed,
        PROCESSES,
    )
    losses: list[Tensor] = []
    last, saved_at, watched_at = time.time(), time.time(), time.time()
    progress = 0.0
    for chunk in source.chunks(done["chunk"]):
        chunk, a = shortlisted(chunk, similar(stage_a, chunk, cache))
        parts = batches(chunk, TOKENS_A_BATCH, settings.seed + done["chunk"])
        for number in range(done["batch"], len(parts)):
            now = time.time()
            done["seconds"] += min(now - last, 30.0)  # a stopped process does not use up its minutes
            last = now
            progress = max(done["rows"] / settings.rows, done["seconds"] / 60 / settings.minutes)
            if progress >= 1:
                break
            if progress >= settings.rounded_from and done["channels"] is None:
                done["channels"] = start_rounding(model, typical)
                set_rounding(average, done["channels"])
                done["kept_accuracy"] = 0.0  # what was kept before was not rounded
                log(
                    f"stage B: weights are rounded from here on; channels kept: {sum(map(len, done['channels'].values()))}"
                )
            for group in optimiser.param_groups:
                group["lr"] = group["rate"] * min(1.0, progress / settings.warm_up + 0.01) * (1 - progress)
            batch = collate(chunk, a, parts[number])
            taught = None
            if teacher is not None:
                with torch.no_grad():
                    taught = scored(teacher, batch)
            loss = loss_of(scored(model, batch), batch, np.random.default_rng(done["steps"]), settings, taught)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learned(model), 1.0)
            optimiser.step()
            done["steps"] += 1
            keep = min(settings.average, (1 + done["steps"]) / (20 + done["steps"]))
            with torch.no_grad():
                torch._foreach_lerp_(learned(average), learned(model), 1 - keep)
            losses.append(loss.detach())
            done["batch"], done["rows"] = number + 1, done["rows"] + len(batch.labels)
            if done["steps"] % 100 == 0:
                log(
                    f"stage B: {done['rows']} rows, {done['seconds'] / 60:.1f} min, {progress:.3f} of the way, loss {float(torch.stack(losses).mean()):.3f}"
                )
                losses.clear()
            if time.time() - saved_at > SAVE_EVERY:
                save()
                saved_at = time.time()
            if time.time() - watched_at > WATCH_EVERY:
                look()
                watched_at = time.time()
        else:
            done["chunk"], done["batch"] = done["chunk"] + 1, 0
        if progress >= 1:
            break
    look()
    save()
    average.load_state_dict(kept)
    return average
