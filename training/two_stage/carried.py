"""Training stage B on another machine, which has an archive of `carry.py` and nothing but PyTorch and numpy.

    python3 ARCHIVE --minutes 10 --out FOLDER

It trains on whatever device there is and is done after so many minutes, reading and writing included. What it learned
is in FOLDER in the form of the package (`coded_weights.py`), in files of at most 15 MiB, from the first minutes on, so
that a machine that is taken away early leaves something. `recipe --finish --from FOLDER` goes on from there.
"""

import argparse
import json
import os
import random
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from . import coded_weights
from .cargo import CargoFeed
from .encoder import DEVICE, HALF, Encoder, Shape
from .settings import Settings, learned
from .stage_b import StageB
from .train_b import GPU, Trainer, channels_of, keep_memory
from .watch import RATIOS, watch

WEIGHTS, REPORT, LOG = "weights.{}", "carried.json", "log.txt"
# The share of the time that a look at the held-out sets may take, and the rows of each that are tried to learn that.
LOOK_SHARE, TRIED_ROWS = 0.05, 2
# With so many minutes for each, another seed is trained on its own, and the seeds' weights are averaged.
MINUTES_A_SEED, MOST_SEEDS = 10.0, 3


class CarriedTrainer(Trainer):
    """Whose checkpoints are files to be carried back, and whose minutes are those of the clock."""

    longest_step = float("inf")
    out: Path
    told: dict

    def save(self) -> None:
        """Writes what would be kept if this were the end."""
        channels = self.done["channels"] or channels_of(self.average, self.typical)
        told = {**self.told, "done": self.done, "settings": asdict(self.settings), "channels": channels}
        told["watched"]["after"] = self.kept_seen
        leave(self.out, self.model, self.kept, told)


def leave(out: Path, model: StageB, state: dict, told: dict) -> None:
    """Writes the learned weights of a state, and what is told about them; the report is written last."""
    own = {id(tensor) for tensor in learned(model)}
    names = [name for name, tensor in model.named_parameters() if id(tensor) in own]
    coded = told["channels"] if model.encoder.shape.is_large else None
    files = coded_weights.in_files(coded_weights.written({name: state[name] for name in names}, coded))
    for number, data in enumerate(files, start=1):
        temporary = out / f".{WEIGHTS.format(number)}"
        temporary.write_bytes(data)
        temporary.replace(out / WEIGHTS.format(number))
    report = {"files": len(files), "shape": asdict(model.encoder.shape), **told}
    (out / REPORT).write_text(json.dumps(report, indent=1) + "\n")


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, required=True, help="after so many it has ended")
    parser.add_argument("--out", type=Path, required=True, help="where it leaves the weights, a report and a log")
    parser.add_argument("--seeds", type=int, help=f"{MOST_SEEDS} at most; one for each {MINUTES_A_SEED:.0f} minutes")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="on a CPU")
    return parser.parse_args()


def main(folder: Path, started: float) -> None:
    """Trains from what was carried in `folder`, since the time `started`."""
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / LOG, "a", encoding="utf-8") as file:

        def log(line: str) -> None:
            text = f"{time.strftime('%H:%M:%S')} {line}"
            print(text, flush=True)
            print(text, file=file, flush=True)

        run(folder, started + 60 * options.minutes, options, log)


def run(folder: Path, end: float, options: argparse.Namespace, log) -> None:
    """Trains until the time `end`."""
    keep_memory()
    torch.set_num_threads(options.threads)
    random.seed(1)
    told = json.loads((folder / "run.json").read_text())
    settings = Settings(**told["settings"][DEVICE])
    feed = CargoFeed(folder, settings.tables, settings.seed)
    log(f"{len(feed.firsts)} rows and pairs, {len(feed.tables.tables)} tables")
    where = torch.cuda.get_device_name() if GPU else f"{torch.get_num_threads()} threads, {torch.__version__}"
    log(f"{DEVICE}: {where}, {'bfloat16' if HALF else 'float32'}")
    start = StageB(Encoder(Shape(**told["shape"])))
    files = [(folder / name).read_bytes() for name in ("weights.bin", "words.bin")]
    start.load_state_dict({name: value for data in files for name, value in coded_weights.read(data).items()})
    start.eval()
    tried = {name: held.first(TRIED_ROWS) for name, held in feed.watched.items()}
    watch(start, tried)  # the first one on a GPU waits for that to begin
    looked = time.time()
    watch(start, tried)
    a_row = (time.time() - looked) / TRIED_ROWS
    rows = max(TRIED_ROWS, int(LOOK_SHARE * (end - time.time()) / a_row))
    feed.watched = {name: held.first(rows) for name, held in feed.watched.items()}
    looked = time.time()
    before = watch(start, feed.watched)
    looked = time.time() - looked
    most = max(len(held.labels) for held in feed.watched.values())
    log(f"before: ratios {RATIOS} {np.mean(list(before.values()), 0).round(3)}, {most} rows a set in {looked:.0f} s")
    report = {key: told[key] for key in ("started_from", "data")} | {"device": f"{DEVICE}: {where}"}
    report["watched"] = {"ratios": RATIOS, "before": before}
    seeds = options.seeds or int((end - time.time()) / 60 // MINUTES_A_SEED)
    seeds = min(MOST_SEEDS, max(1, seeds))
    states, looks = [], 1.2 * looked * (2 if seeds > 1 else 1)
    for number in range(seeds):
        own = replace(settings, minutes=1.0, seed=settings.seed + number)
        trainer = CarriedTrainer(feed, start, None, own, options.out, log)
        trainer.out, trainer.told = options.out, report
        if number == 0:  # so there is something from the first minute on, and it is known what that takes
            wrote = time.time()
            trainer.save()
            wrote = time.time() - wrote
        left = end - time.time() - looks - 1.5 * wrote * (2 if seeds > 1 else 1)
        trainer.settings = replace(own, minutes=max(0.1, left / 60 / (seeds - number)))
        trainer.last = trainer.saved_at = trainer.watched_at = time.time()
        trainer.run()
        states.append(trainer.kept)
        log(f"seed {number + 1} of {seeds}: {trainer.done}")
    after = trainer.kept_seen
    if len(states) > 1:
        trainer.kept = {name: torch.stack([s[name].float() for s in states]).mean(0) for name in states[0]}
        trainer.average.load_state_dict(trainer.kept)
        trainer.kept_seen = after = watch(trainer.average, feed.watched)
        trainer.done["seeds"] = seeds
        trainer.save()
    log(f"after: ratios {RATIOS} {np.mean(list(after.values()), 0).round(3)}")
    for name in before:
        log(f"  {name}: {np.round(before[name], 2)} -> {np.round(after[name], 2)}")
    feed.close()
    log("done")


def read_back(folder: Path, model: StageB) -> tuple[dict, dict]:
    """The state of `model` with what was learned on another machine, and the report on it."""
    report = json.loads((folder / REPORT).read_text())
    data = b"".join((folder / WEIGHTS.format(n)).read_bytes() for n in range(1, report["files"] + 1))
    found = coded_weights.read(data)
    state = model.state_dict()
    shape = json.loads(json.dumps(asdict(model.encoder.shape)))
    if found.keys() - state.keys() or report["shape"] != shape:
        raise ValueError(f"{folder} has weights of another reader than the one that it is to go on from")
    return {**state, **{name: value.to(state[name].device) for name, value in found.items()}}, report


if __name__ == "__main__":
    main(Path(sys.argv.pop(1)), time.time())
