"""Training stage B, resumable.

The rows are drawn in chunks, each a function of the seed and the chunk's number (`chunks.py`), so a run that was cut
off goes on from its last checkpoint with the same rows. The weights that count are an exponential moving average; whole
held-out sets are watched, and the average that does best there is kept.
"""

import copy
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .chunks import TARGETS, Batch, Chunk, Source, batches, collate, packed, shortlisted
from .encoder import DEVICE, Encoder
from .mix import Mix
from .objective import loss_of, scored
from .records import CROSSED, Decision
from .rounding import large_channels, set_rounding
from .settings import Settings, freeze, groups, learned
from .similarities import similar, similarities
from .stage_b import Pack, StageB, scores
from .tokens import Reader
from .watch import RATIOS, watch

# Drawn at once, so that a batch is of rows of like length.
ROWS_A_CHUNK = 3000
GPU = DEVICE == "cuda"
WATCH_EVERY, SAVE_EVERY = (45, 150) if GPU else (600, 300)  # seconds; a look reads as much as minutes of learning do
# What bounds a run on a CPU is its rows: small batches are more steps, and get more out of them. A GPU is idle with
# small batches.
TOKENS_A_BATCH = 20_480 if GPU else 1536
# Processes that draw chunks ahead: on a GPU the cores have nothing else to do.
PROCESSES = max(1, len(os.sched_getaffinity(0)) - 1) if GPU else 0
WEIGHT_DECAY = 0.01
# Of each held-out set, the rows that stand for what is typical.
TYPICAL_ROWS = 6
STEPS_A_LINE = 100
# Seconds that a step counts at most: a stopped process does not use up its minutes.
LONGEST_STEP = 30.0


@dataclass(frozen=True)
class Rows:
    """What is learned from, how it is read, and the held-out sets that training is watched by."""

    mix: Mix
    reader: Reader
    held: dict[str, list[Decision]]


@dataclass(frozen=True)
class Stages:
    """The fixed stage A, the stage B that training starts from, and another one to learn from."""

    a: Encoder
    start: StageB
    teacher: StageB | None = None


def start_rounding(model: StageB, packs: Sequence[Pack]) -> dict[str, list[int]]:
    """Rounds the model's weights from now on; returns the input channels that are kept out of it."""
    training = model.training
    model.eval()
    kept = large_channels(model, lambda: scores(model, packs))
    model.train(training)
    set_rounding(model, kept)
    return kept


class Trainer:
    """Stage B while it is trained: `model` learns, `average` is its moving average, `kept` the average's weights that
    did best on held-out sets.

    `done` is how far it has come, and with the weights all that a checkpoint holds.
    """

    def __init__(self, rows: Rows, stages: Stages, settings: Settings, folder: Path, log: Callable[[str], None]):
        self.rows, self.stages, self.settings, self.log = rows, stages, settings, log
        self.checkpoint = folder / "stage_b.pt"
        torch.manual_seed(settings.seed)
        self.model = copy.deepcopy(stages.start).train()
        freeze(self.model, settings)
        self.average = copy.deepcopy(self.model).eval()
        for layer in self.model.encoder.layers:
            layer.dropout.p = settings.dropout
        rates = groups(self.model, settings)
        self.optimiser = torch.optim.AdamW(rates, lr=1.0, weight_decay=WEIGHT_DECAY, fused=True)
        self.done = {
            "chunk": 0,
            "batch": 0,
            "rows": 0,
            "steps": 0,
            "seconds": 0.0,
            "kept_rows": 0,
            "kept_accuracy": 0.0,
            "channels": None,
        }
        self.kept = self.average.state_dict()
        if self.checkpoint.exists():
            self.resume([group["rate"] for group in rates])
        # Vectors of choices by their texts and of inputs by their ids: 1.5 KB each, 300 MB of a run's 200,000 rows.
        self.cache: dict[str | bytes, np.ndarray] = {}
        self.held_similar = {
            name: similarities(stages.a, held, rows.reader, self.cache) for name, held in rows.held.items()
        }
        self.typical = [packed(row, rows.reader) for held in rows.held.values() for row in held[:TYPICAL_ROWS]]
        self.losses: list[Tensor] = []
        self.last = self.saved_at = self.watched_at = time.time()

    def resume(self, rates: Sequence[float]) -> None:
        """Goes on from the checkpoint, with the rates that are asked for now."""
        saved = torch.load(self.checkpoint, map_location=DEVICE)
        self.model.load_state_dict(saved["model"])
        self.average.load_state_dict(saved["average"])
        self.optimiser.load_state_dict(saved["optimiser"])
        for group, rate in zip(self.optimiser.param_groups, rates, strict=True):
            group["rate"] = rate
        self.done, self.kept = saved["done"], saved["kept"]
        for each in (self.model, self.average):
            set_rounding(each, self.done["channels"])
        self.log(f"stage B: goes on from {self.done}")

    def save(self) -> None:
        """Writes the checkpoint; a run that is cut off while it writes leaves the one before."""
        temporary = self.checkpoint.with_suffix(".new")
        state = {
            "model": self.model.state_dict(),
            "average": self.average.state_dict(),
            "kept": self.kept,
            "optimiser": self.optimiser.state_dict(),
            "done": self.done,
            "shape": asdict(self.model.encoder.shape),
        }
        torch.save(state, temporary)
        temporary.replace(self.checkpoint)

    def look(self) -> None:
        """Watches the held-out sets, and keeps the average if it has never done better there."""
        seen = watch(self.average, self.rows.held, self.held_similar, self.rows.reader)
        means = np.mean(list(seen.values()), 0)
        each = ", ".join(f"{n} {'/'.join(f'{v:.2f}' for v in values)}" for n, values in seen.items())
        self.log(f"watch: ratios {RATIOS} {means.round(3)}, {each}")
        accuracy = float(means[0] + means.max()) / 2
        if accuracy >= self.done["kept_accuracy"]:
            self.done["kept_accuracy"], self.done["kept_rows"] = accuracy, self.done["rows"]
            self.kept = {name: value.clone() for name, value in self.average.state_dict().items()}

    def progress(self) -> float:
        """How much of the way is done, from 0 to 1; counts the time since the last call."""
        now = time.time()
        self.done["seconds"] += min(now - self.last, LONGEST_STEP)
        self.last = now
        return max(self.done["rows"] / self.settings.rows, self.done["seconds"] / 60 / self.settings.minutes)

    def start_rounding(self) -> None:
        """Rounds the weights from now on."""
        self.done["channels"] = start_rounding(self.model, self.typical)
        set_rounding(self.average, self.done["channels"])
        self.done["kept_accuracy"] = 0.0  # what was kept before was not rounded
        kept = sum(map(len, self.done["channels"].values()))
        self.log(f"stage B: weights are rounded from here on; channels kept: {kept}")

    def taught(self, chunk: Chunk, a: np.ndarray, chosen: np.ndarray) -> Tensor | None:
        """The teacher's b [rows, options] of rows of a chunk, 0 where they have a label: a large teacher takes as long
        as the learning.
        """
        crossed = np.flatnonzero(chunk.labels[chosen] == TARGETS[CROSSED])
        if self.stages.teacher is None or not len(crossed):
            return None
        with torch.no_grad():
            theirs = scored(self.stages.teacher, collate(chunk, a, chosen[crossed]))
        result = torch.zeros(len(chosen), int(chunk.options.lengths[chosen].max()), device=DEVICE)
        result[torch.from_numpy(crossed).to(DEVICE), : theirs.shape[1]] = theirs
        return result

    def step(self, batch: Batch, taught: Tensor | None, progress: float) -> None:
        """Learns from one batch; `taught`: the teacher's b of it."""
        settings, done = self.settings, self.done
        for group in self.optimiser.param_groups:
            group["lr"] = group["rate"] * min(1.0, progress / settings.warm_up + 0.01) * (1 - progress)
        rng = np.random.default_rng(done["steps"])
        loss = loss_of(scored(self.model, batch), batch, rng, settings.consistency, taught)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned(self.model), 1.0)
        self.optimiser.step()
        done["steps"] += 1
        # The average follows closely at first, so that it does not carry the start along.
        keep = min(settings.average, (1 + done["steps"]) / (20 + done["steps"]))
        with torch.no_grad():
            torch._foreach_lerp_(learned(self.average), learned(self.model), 1 - keep)
        self.losses.append(loss.detach())

    def tell(self, progress: float) -> None:
        """Every so often: a line of the log, a checkpoint, a look at the held-out sets."""
        done = self.done
        if done["steps"] % STEPS_A_LINE == 0:
            loss = float(torch.stack(self.losses).mean())
            minutes = done["seconds"] / 60
            self.log(f"stage B: {done['rows']} rows, {minutes:.1f} min, {progress:.3f} of the way, loss {loss:.3f}")
            self.losses.clear()
        if time.time() - self.saved_at > SAVE_EVERY:
            self.save()
            self.saved_at = time.time()
        if time.time() - self.watched_at > WATCH_EVERY:
            self.look()
            self.watched_at = time.time()

    def learn(self, chunk: Chunk) -> bool:
        """Learns from what is left of a chunk; False when the way ends in it."""
        done = self.done
        chunk, a = shortlisted(chunk, similar(self.stages.a, chunk, self.cache))
        parts = batches(chunk, TOKENS_A_BATCH, self.settings.seed + done["chunk"])
        for number in range(done["batch"], len(parts)):
            progress = self.progress()
            if progress >= 1:
                return False
            if progress >= self.settings.rounded_from and done["channels"] is None:
                self.start_rounding()
            batch = collate(chunk, a, parts[number])
            self.step(batch, self.taught(chunk, a, parts[number]), progress)
            done["batch"], done["rows"] = number + 1, done["rows"] + len(batch.labels)
            self.tell(progress)
        done["chunk"], done["batch"] = done["chunk"] + 1, 0
        return True

    def run(self) -> StageB:
        """The weights that were kept, after the whole way."""
        mix, settings = self.rows.mix, self.settings
        weights = mix.weights(settings.everyday, settings.without, self.stages.teacher is not None, settings.tables)
        phases = zip(mix.first_weights(settings.without), settings.first_rows, strict=False)
        # Of each chunk of the first phases, its tasks' weights.
        first = [phase for phase, rows in phases for _ in range(rows // ROWS_A_CHUNK)]

        def weights_of(chunk: int) -> dict[str, float]:
            return first[chunk] if chunk < len(first) else weights

        source = Source(mix, self.rows.reader, weights_of, ROWS_A_CHUNK, settings.seed, PROCESSES)
        for chunk in source.chunks(self.done["chunk"]):
            if not self.learn(chunk):
                break
        self.look()
        self.save()
        self.average.load_state_dict(self.kept)
        return self.average


def train(rows: Rows, stages: Stages, settings: Settings, folder: Path, log: Callable[[str], None]) -> StageB:
    """Stage B trained from the weights of `stages.start`; goes on from `folder/stage_b.pt` if that is there."""
    return Trainer(rows, stages, settings, folder, log).run()
