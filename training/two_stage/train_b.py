"""Training stage B, resumable.

The rows are drawn in chunks, each a function of the seed and the chunk's number, so a run that was cut off goes on from its last
checkpoint with the same rows. The loss of a row is taken on z = alpha * a + b with the scores `a` of a fixed stage A and a random
`alpha` (0, 8 or 16), so that b is useful alone and beside A: cross-entropy + 0.5 Brier. `echo` rows have stage A's distribution
as their target, and rows whose text answers nothing an even one. A row with an opposite is trained with it in one batch, and pays for every bit by which the two answers fail to be each
other's mirror. The weights that count are an exponential moving average; whole held-out sets are watched, and the average that does best there is kept.
"""

import copy
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from .encoder import DEVICE, LAYERS, Encoder, mixed
from .records import Decision
from .stage_a import framed, vectors
from .stage_b import Pack, StageB, by_length, pack, scores
from .stack import BEST
from .tasks import EVEN, TEACHER, Mix
from .tokens import Reader

ALPHAS = (0.0, 8.0, 16.0)
TEACHER_SCALE = 20.0
CHUNK = 3000
WATCH_EVERY = 360  # seconds
RATIOS = (0, 16, 48)
TARGETS = {TEACHER: -1, EVEN: -2}
# Small batches: what bounds a run on a CPU is its rows, and more steps get more out of them.
TOKENS_A_BATCH = 1536
FROZEN_LAYERS = 1
MOST_INSTRUCTION, MOST_INPUT, MOST_OPTION = 96, 160, 40


@dataclass(frozen=True)
class Settings:
    """How long and how fast, and which tasks of the mix are left out. The learning rate warms up, then falls to 0 by `rows` or `minutes`, whichever
    comes first."""

    rows: int
    minutes: float
    learning_rate: float = 1e-4
    head_rate: float = 4e-4
    layer_decay: float = 0.85
    warm_up: float = 0.04
    average: float = 0.997
    consistency: float = 1.0
    seed: int = 1
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A packed row: similarities [options] by stage A, the index of the label or one of TARGETS, and the row's
    opposite: the same text and choices, the opposite question."""

    packed: Pack
    similar: np.ndarray
    label: int
    opposite: "Example | None" = None


def similarities(encoder: Encoder, rows: Sequence[Decision], reader: Reader, cache: dict[str, np.ndarray]) -> list[np.ndarray]:
    """a_i of every row: cosines [options] of the input with each choice. Vectors of choices are cached by text."""
    fresh = sorted({c for row in rows for c in row.choices} - cache.keys())
    cache.update(zip(fresh, vectors(encoder, [framed(reader.choice(t)) for t in fresh])))
    inputs = vectors(encoder, [framed(reader.plain(row.input), MOST_INPUT + 2) for row in rows])
    return [np.stack([cache[c] for c in row.choices]) @ v for row, v in zip(rows, inputs)]


def shortlisted(row: Decision, similar: np.ndarray) -> tuple[Decision, np.ndarray]:
    """A row with more choices than stage B reads, cut to those that stage A finds best, and the right one; a [options] with it."""
    if len(row.choices) <= BEST:
        return row, similar
    best = sorted(range(len(row.choices)), key=lambda i: (row.choices[i] != row.label, -similar[i]))[:BEST]
    best.sort()
    return replace(row, choices=tuple(row.choices[i] for i in best)), similar[best]


def packed(row: Decision, reader: Reader) -> Pack:
    """The pack of a training row, its parts cut to training lengths."""
    options = [reader.choice(c)[:MOST_OPTION] for c in row.choices]
    return pack(reader.plain(row.instruction)[:MOST_INSTRUCTION], reader.plain(row.input)[:MOST_INPUT], options)


def chunk(number: int, mix: Mix, encoder: Encoder, reader: Reader, settings: Settings, cache: dict) -> list[list[Example]]:
    """The batches of one chunk, in random order."""
    seed = settings.seed
    weights = {name: task.weight for name, task in mix.tasks.items() if name not in settings.without}
    rows = [row for _, row in mix.rows(CHUNK, seed * 10007 + number, weights)]
    shortlists = [shortlisted(row, a) for row, a in zip(rows, similarities(encoder, rows, reader, cache))]
    rows, similar = [row for row, _ in shortlists], [a for _, a in shortlists]
    examples = [Example(packed(row, reader), a, label_of(row), row.opposite and Example(packed(row.opposite, reader), a, label_of(row.opposite))) for row, a in zip(rows, similar)]
    batches = [[examples[i] for i in batch] for batch in by_length([e.packed for e in examples], TOKENS_A_BATCH)]
    random.Random(seed + number).shuffle(batches)
    return batches


def label_of(row: Decision) -> int:
    return TARGETS[row.label] if row.label in TARGETS else row.choices.index(row.label)


def flat(batch: Sequence[Example]) -> list[Example]:
    """The examples of a batch, each followed by its opposite."""
    return [e for example in batch for e in (example, example.opposite) if e is not None]


def inconsistency(one: Tensor, other: Tensor) -> Tensor:
    """How far the answers to a question and to its opposite are from mirroring each other: symmetric divergence, bounded by clamping.
    Scores [2] each, of the same two choices in the same order."""
    p, q = torch.log_softmax(one, -1), torch.log_softmax(other.flip(0), -1)
    return 0.5 * ((p.exp() - q.exp()) * (p - q)).sum().clamp(max=4.0)


def loss_of(b: Tensor, example: Example, alpha: float) -> Tensor:
    """The loss of one row with scores b [options]."""
    a = torch.from_numpy(example.similar).to(b.device)
    if example.label < 0:
        target = torch.softmax(TEACHER_SCALE * a if example.label == TARGETS[TEACHER] else torch.zeros_like(a), -1)
        return -(target * torch.log_softmax(b, -1)).sum() + (target * target.log()).sum()
    z = alpha * a + b
    truth = F.one_hot(torch.tensor(example.label, device=z.device), len(z))
    return F.cross_entropy(z[None], torch.tensor([example.label], device=z.device)) + 0.5 * ((torch.softmax(z, -1) - truth) ** 2).sum()


def groups(model: StageB, settings: Settings) -> list[dict]:
    """Parameter groups: lower layers learn more slowly, the head faster, frozen ones are left out."""
    result = [{"params": [*model.dense.parameters(), *model.score.parameters()], "rate": settings.head_rate}]
    for index, layer in enumerate(model.encoder.layers):
        if index >= FROZEN_LAYERS:
            result.append({"params": list(layer.parameters()), "rate": settings.learning_rate * settings.layer_decay ** (LAYERS - 1 - index)})
    return result


def freeze(model: StageB) -> None:
    """Embeddings and the lowest layers stay as the base model has them: less to forget, and a ninth less work a step."""
    for part in (model.encoder.words, model.encoder.positions, model.encoder.types, model.encoder.norm, *model.encoder.layers[:FROZEN_LAYERS]):
        part.requires_grad_(False)


def learned(model: StageB) -> dict[str, Tensor]:
    """The trained weights by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def watch(model: StageB, held: dict[str, list[Decision]], similar: dict[str, list[np.ndarray]], reader: Reader) -> dict[str, list[float]]:
    """Accuracy on held-out sets of ratio * a + b, by RATIOS; the first is b alone."""
    result = {}
    for name, rows in held.items():
        b = scores(model, [packed(row, reader) for row in rows])
        right = lambda z: float(np.mean([row.choices[int(np.argmax(s))] == row.label for row, s in zip(rows, z)]))
        result[name] = [right([ratio * a + s for a, s in zip(similar[name], b)]) for ratio in RATIOS]
    return result


def train(mix: Mix, stage_a: Encoder, start: StageB, reader: Reader, held: dict[str, list[Decision]], settings: Settings, folder: Path, log) -> StageB:
    """Stage B trained from the weights of `start`; goes on from `folder/stage_b.pt` if that is there."""
    torch.manual_seed(settings.seed)
    model = copy.deepcopy(start).train()
    freeze(model)
    average = copy.deepcopy(model).eval()
    optimiser = torch.optim.AdamW(groups(model, settings), lr=1.0, weight_decay=0.01, fused=True)
    done = {"chunk": 0, "batch": 0, "rows": 0, "steps": 0, "seconds": 0.0, "kept_rows": 0, "kept_accuracy": 0.0}
    kept = average.state_dict()
    checkpoint = folder / "stage_b.pt"
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=DEVICE)
        model.load_state_dict(saved["model"])
        average.load_state_dict(saved["average"])
        optimiser.load_state_dict(saved["optimiser"])
        done, kept = saved["done"], saved["kept"]
        log(f"stage B: goes on from {done}")
    cache: dict[str, np.ndarray] = {}
    held_similar = {name: similarities(stage_a, rows, reader, cache) for name, rows in held.items()}

    def save():
        temporary = checkpoint.with_suffix(".new")
        torch.save({"model": model.state_dict(), "average": average.state_dict(), "kept": kept, "optimiser": optimiser.state_dict(), "done": done}, temporary)
        temporary.replace(checkpoint)

    def look():
        nonlocal kept
        seen = watch(average, held, held_similar, reader)
        means = np.mean(list(seen.values()), 0)
        log(f"watch: ratios {RATIOS} {means.round(3)}, " + ", ".join(f"{n} {'/'.join(f'{v:.2f}' for v in values)}" for n, values in seen.items()))
        accuracy = float(means[0] + means.max()) / 2
        if accuracy >= done["kept_accuracy"]:
            done["kept_accuracy"], done["kept_rows"] = accuracy, done["rows"]
            kept = {name: value.clone() for name, value in average.state_dict().items()}

    losses: list[float] = []
    last, saved_at, watched_at = time.time(), time.time(), time.time()
    progress = 0.0
    while progress < 1:
        batches = chunk(done["chunk"], mix, stage_a, reader, settings, cache)
        for number in range(done["batch"], len(batches)):
            now = time.time()
            done["seconds"] += min(now - last, 30.0)  # a stopped process does not use up its minutes
            last = now
            progress = max(done["rows"] / settings.rows, done["seconds"] / 60 / settings.minutes)
            if progress >= 1:
                break
            for group in optimiser.param_groups:
                group["lr"] = group["rate"] * min(1.0, progress / settings.warm_up + 0.01) * (1 - progress)
            batch = batches[number]
            with mixed():
                b = model([e.packed for e in flat(batch)])
            rng = random.Random(done["steps"])
            losses_of_rows = [loss_of(s, e, rng.choice(ALPHAS)) for s, e in zip(b, flat(batch))]
            pairs = [settings.consistency * 2 * inconsistency(b[i], b[i + 1]) for i, e in enumerate(flat(batch)) if e.opposite]
            loss = (torch.stack(losses_of_rows).sum() + sum(pairs)) / len(losses_of_rows)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learned(model).values(), 1.0)
            optimiser.step()
            done["steps"] += 1
            keep = min(settings.average, (1 + done["steps"]) / (20 + done["steps"]))
            with torch.no_grad():
                for theirs, ours in zip(learned(average).values(), learned(model).values()):
                    theirs.lerp_(ours, 1 - keep)
            losses.append(loss.item())
            done["batch"], done["rows"] = number + 1, done["rows"] + len(losses_of_rows)
            if done["steps"] % 100 == 0:
                log(f"stage B: {done['rows']} rows, {done['seconds'] / 60:.1f} min, {progress:.3f} of the way, loss {np.mean(losses[-100:]):.3f}")
            if time.time() - saved_at > 300:
                save()
                saved_at = time.time()
            if time.time() - watched_at > WATCH_EVERY:
                look()
                watched_at = time.time()
        else:
            done["chunk"], done["batch"] = done["chunk"] + 1, 0
    look()
    save()
    average.load_state_dict(kept)
    return average
