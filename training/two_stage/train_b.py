"""Training stage B, resumable.

The rows come in chunks, each a function of the seed and the chunk's number (`Feed`), so a run that was cut off goes on
from its last checkpoint with the same rows. The weights that count are an exponential moving average; whole held-out
sets are watched, and the average that does best there is kept.
"""

import copy
import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from .chunks import TARGETS, Batch, Chunk, batches, collate
from .encoder import DEVICE
from .objective import loss_of, scored
from .records import CROSSED
from .rounding import RoundedSteps, large_channels, set_rounding
from .settings import Settings, freeze, groups, learned
from .stage_b import Pack, StageB, scores
from .watch import RATIOS, Watched, watch

GPU = DEVICE == "cuda"
WATCH_EVERY, SAVE_EVERY = (45, 150) if GPU else (600, 300)  # seconds; a look reads as much as minutes of learning do
# What bounds a run on a CPU is its rows: small batches are more steps, and get more out of them. A GPU is idle with
# small batches.
TOKENS_A_BATCH = 20_480 if GPU else 1536
WEIGHT_DECAY = 0.01
# Of each held-out set, the rows that stand for what is typical.
TYPICAL_ROWS = 6
STEPS_A_LINE = 100


# Of mallopt(3).
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
# Steps that compiled layers are tried for, and of these the first, which compile; in a run of at least so many minutes,
# since it takes one or two.
TRIED_STEPS, COMPILING_STEPS, LEAST_TO_COMPILE = 6, 3, 20


class Feed(Protocol):
    """What is learned from, and the held-out sets that training is watched by."""

    watched: dict[str, Watched]

    def chunks(self, first: int) -> Iterator[tuple[Chunk, np.ndarray]]:
        """The chunks from the number `first` on, without end, each with what stage A says of its options."""


def keep_memory() -> None:
    """Has glibc keep what is freed: taking pages anew for every large array costs a tenth of a step."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def channels_of(model: StageB, packs: Sequence[Pack]) -> dict[str, list[int]]:
    """The input channels that are kept out of the rounding of a model, by what is typical."""
    training = model.training
    model.eval()
    kept = large_channels(model, lambda: scores(model, packs))
    model.train(training)
    return kept


class Trainer:
    """Stage B while it is trained: `model` learns, `average` is its moving average, `kept` the average's weights that
    did best on held-out sets.

    `done` is how far it has come, and with the weights all that a checkpoint holds.
    """

    # Seconds that a step counts at most: a stopped process does not use up its minutes.
    longest_step = 30.0

    def __init__(
        self,
        feed: Feed,
        start: StageB,
        teacher: StageB | None,
        settings: Settings,
        folder: Path,
        log: Callable[[str], None],
    ):
        self.feed, self.teacher, self.settings, self.log = feed, teacher, settings, log
        self.checkpoint = folder / "stage_b.pt"
        torch.manual_seed(settings.seed)
        self.model = copy.deepcopy(start).train()
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
        self.kept, self.kept_seen = self.average.state_dict(), {}
        self.rounding: RoundedSteps | None = None
        self.tokens_a_batch = TOKENS_A_BATCH
        if self.checkpoint.exists():
            self.resume([group["rate"] for group in rates])
        self.typical = [pack for each in feed.watched.values() for pack in each.packs[:TYPICAL_ROWS]]
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
        self.round()
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
        if self.done["channels"] is not None:
            # Rounded anew: not every version of PyTorch counts what its `_foreach` operations have changed.
            set_rounding(self.average, self.done["channels"])
        seen = watch(self.average, self.feed.watched)
        means = np.mean(list(seen.values()), 0)
        each = ", ".join(f"{n} {'/'.join(f'{v:.2f}' for v in values)}" for n, values in seen.items())
        self.log(f"watch: ratios {RATIOS} {means.round(3)}, {each}")
        accuracy = float(means[0] + means.max()) / 2
        if accuracy >= self.done["kept_accuracy"]:
            self.kept_seen = seen
            self.done["kept_accuracy"], self.done["kept_rows"] = accuracy, self.done["rows"]
            self.kept = {name: value.clone() for name, value in self.average.state_dict().items()}

    def progress(self) -> float:
        """How much of the way is done, from 0 to 1; counts the time since the last call."""
        now = time.time()
        self.done["seconds"] += min(now - self.last, self.longest_step)
        self.last = now
        return max(self.done["rows"] / self.settings.rows, self.done["seconds"] / 60 / self.settings.minutes)

    def round(self) -> None:
        """Rounds the weights from now on, if that has begun."""
        if self.done["channels"] is not None:
            self.rounding = RoundedSteps(self.model, self.done["channels"])
            set_rounding(self.average, self.done["channels"])

    def start_rounding(self) -> None:
        """Begins to round the weights."""
        self.done["channels"] = channels_of(self.model, self.typical)
        self.round()
        self.done["kept_accuracy"] = 0.0  # what was kept before was not rounded
        kept = sum(map(len, self.done["channels"].values()))
        self.log(f"stage B: weights are rounded from here on; channels kept: {kept}")

    def taught(self, chunk: Chunk, a: np.ndarray, chosen: np.ndarray) -> Tensor | None:
        """The teacher's b [rows, options] of rows of a chunk, 0 where they have a label: a large teacher takes as long
        as the learning.
        """
        crossed = np.flatnonzero(chunk.labels[chosen] == TARGETS[CROSSED])
        if self.teacher is None or not len(crossed):
            return None
        with torch.no_grad():
            theirs = scored(self.teacher, collate(chunk, a, chosen[crossed]))
        result = torch.zeros(len(chosen), int(chunk.options.lengths[chosen].max()), device=DEVICE)
        result[torch.from_numpy(crossed).to(DEVICE), : theirs.shape[1]] = theirs
        return result

    def step(self, batch: Batch, taught: Tensor | None, progress: float) -> None:
        """Learns from one batch; `taught`: the teacher's b of it."""
        settings, done = self.settings, self.done
        for group in self.optimiser.param_groups:
            group["lr"] = group["rate"] * min(1.0, progress / settings.warm_up + 0.01) * (1 - progress)
        rng = np.random.default_rng(done["steps"])
        self.optimiser.zero_grad()
        with self.rounding.step() if self.rounding else nullcontext():
            loss = loss_of(scored(self.model, batch), batch, rng, settings.consistency, taught)
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

    def hasten(self, batch: Batch) -> None:
        """On a GPU: compiles the layers, if they can be compiled and then are faster on this batch."""

        def seconds() -> float:
            for number in range(TRIED_STEPS):
                if number == COMPILING_STEPS:
                    torch.cuda.synchronize()
                    started = time.time()
                scored(self.model, batch).sum().backward()
            torch.cuda.synchronize()
            self.optimiser.zero_grad()
            return time.time() - started

        plain, compiled, layers = 0.0, float("inf"), self.model.encoder.layers
        try:
            plain = seconds()
            for layer in layers:
                layer.compile(dynamic=True)
            compiled = seconds()
        except Exception as error:  # whatever the compiler lacks here, training goes on without it
            self.log(f"stage B: layers are not compiled: {type(error).__name__}: {str(error)[:300]}")
        self.log(f"stage B: {TRIED_STEPS - COMPILING_STEPS} steps take {plain:.3f} s, compiled {compiled:.3f} s")
        if compiled >= plain:
            for layer in layers:
                layer._compiled_call_impl = None

    def learn(self, chunk: Chunk, a: np.ndarray) -> bool:
        """Learns from what is left of a chunk; False when the way ends in it."""
        done = self.done
        parts = batches(chunk, self.tokens_a_batch, self.settings.seed + done["chunk"])[done["batch"] :]
        for part, batch in zip(parts, ahead(lambda part: collate(chunk, a, part), parts), strict=False):
            progress = self.progress()
            if progress >= 1:
                return False
            if progress >= self.settings.rounded_from and done["channels"] is None:
                self.start_rounding()
            try:
                self.step(batch, self.taught(chunk, a, part), progress)
            except torch.cuda.OutOfMemoryError:
                self.optimiser.zero_grad()
                torch.cuda.empty_cache()
                self.tokens_a_batch = max(1024, self.tokens_a_batch // 2)
                self.log(f"stage B: out of memory; batches of {self.tokens_a_batch} tokens from the next chunk on")
            done["batch"], done["rows"] = done["batch"] + 1, done["rows"] + len(batch.labels)
            self.tell(progress)
        done["chunk"], done["batch"] = done["chunk"] + 1, 0
        return True

    def run(self) -> StageB:
        """The weights that were kept, after the whole way."""
        torch.set_float32_matmul_precision("high")
        for number, (chunk, a) in enumerate(self.feed.chunks(self.done["chunk"])):
            if GPU and number == 0 and self.settings.minutes >= LEAST_TO_COMPILE:
                self.hasten(collate(chunk, a, batches(chunk, self.tokens_a_batch, 0)[0]))
                # What compiling took is off the way and not a part of it, or the rates would begin at their highest.
                took = (time.time() - self.last) / 60
                self.settings = replace(self.settings, minutes=max(0.1, self.settings.minutes - took))
                self.last = time.time()
            if not self.learn(chunk, a):
                break
        self.look()
        self.save()
        self.average.load_state_dict(self.kept)
        return self.average


def ahead(laid_out: Callable[[np.ndarray], Batch], parts: Sequence[np.ndarray]) -> Iterator[Batch]:
    """The batches of some parts of a chunk; on a GPU the next one is laid out while one is learned from."""
    if not GPU:
        yield from map(laid_out, parts)
        return
    with ThreadPoolExecutor(1) as pool:
        waiting = None
        for part in parts:
            following = pool.submit(laid_out, part)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()
