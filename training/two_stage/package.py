"""Writing the package: graphs, shared words, tokenizer, symbols, and model.json with checksums."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import export, multilingual
from .encoder import E5_READER, MINILM, Encoder
from .finder import Finder
from .joined import alone, joined
from .stack import BEST, FEATURES, Stack
from .stage_b import PACK_TOKENS, StageB
from .tokens import CLS, MASK, SEP, UNK
from .windows import CARRIED_INSTRUCTION, FIRST, KAPPA, LEAST, PREMISE, READ, SEGMENT, STOPS
from .wordings import ANSWERS, RESIDUAL, STEPS

# By what stage B is grown from: the largest request must be done in time on one core.
LIMITS = {
    "minilm": {"input_tokens": 4096, "candidate_tokens": 72, "choices": 300},
    "mpnet": {"input_tokens": 2048, "candidate_tokens": 66, "choices": 300},
    "e5": {"input_tokens": 4096, "candidate_tokens": 76, "choices": 300},
}
# The word that makes a choice the opposite of another, as in "urgent" and "not urgent".
NEGATION = "not"
# An engine decides it after loading, and takes the package only if the answer is this one.
CANARY = {
    "input": "I was charged twice for my order",
    "instruction": "Which team should handle this?",
    "choices": ["billing", "shipping", "technical support"],
    "choice": "billing",
}


def verdicts(reader: str) -> list[str]:
    """The verdicts that a reader knows."""
    return ANSWERS + (multilingual.VERDICTS if reader == "e5" else [])


def residuals(reader: str) -> list[str]:
    """The ways to say that none fits that a reader knows."""
    return RESIDUAL + (multilingual.RESIDUAL if reader == "e5" else [])


# What stands in a package until its rule is fitted.
UNFITTED = Stack((0,), np.zeros(1), np.zeros(1))


@dataclass(frozen=True)
class Stages:
    """Both stages as they are written.

    `large`: of stage B what `stage_b_graph.build` wants of its large channels; `large_a`: the same of a stage A with a
    prefix; `beside`: another package's graph of stage B and how much of its scores is added, see joined.py; `kept_a`:
    the graph of stage A if it is the one of another package. The same weights give the same bytes,
    but for a graph that was read back, whose scales are rounded once more: that one is copied.
    """

    a: Encoder
    b: StageB
    large: dict
    large_a: dict | None = None
    kept_a: Path | None = None
    beside: tuple[Path, float] | None = None


@dataclass(frozen=True)
class Texts:
    """How texts are read: the content of `tokenizer.json` and of `symbols.json`."""

    tokenizer: str
    symbols: dict[str, str]


def write(folder: Path, stages: Stages, texts: Texts, finder: Finder) -> None:
    """All files that the engine loads, but for `model.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = stages.a.shape
    stage_a, words = export.without_words(export.stage_a(stages.a, "int8", stages.large_a), vocabulary=shape.vocabulary)
    if stages.b.encoder.shape in (MINILM, E5_READER):
        stage_b, reader_words = export.without_words(
            export.stage_b(stages.b, "int8", stages.large), vocabulary=shape.vocabulary
        )
        if words != reader_words:
            raise ValueError("the stages do not share their word embeddings")
        weights = {}
    else:
        stage_b = export.stage_b(stages.b, "packed", stages.large)
        if stages.beside:
            stage_b = beside(stage_b, *stages.beside, words)
        stage_b, weights = export.weights_apart(stage_b)
    files = {
        "stage-a.onnx": stages.kept_a.read_bytes() if stages.kept_a else stage_a,
        "stage-b.onnx": stage_b,
        "words.bin": words,
        **weights,
        "tokenizer.json": json.dumps(json.loads(texts.tokenizer), ensure_ascii=False, separators=(",", ":")).encode(),
        "symbols.json": (json.dumps(texts.symbols, ensure_ascii=True, separators=(",", ":")) + "\n").encode(),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    finder.save(folder / "finder.json")


def beside(first: bytes, second: Path, share: float, words: bytes) -> bytes:
    """A graph of stage B and a share of another package's, which has to have the word embeddings `words`."""
    if (second.parent / export.WORDS_FILE).read_bytes() != words:
        raise ValueError(f"{second.parent} has other word embeddings")
    return joined(first, second, share)


def rejoin(folder: Path, second: Path, share: float) -> None:
    """Gives the package in `folder` another second reader, of the package `second`."""
    words = (folder / export.WORDS_FILE).read_bytes()
    first = alone(export.weights_within(folder / "stage-b.onnx", sorted(folder.glob(export.WEIGHTS_FILE.format("*")))))
    stage_b, weights = export.weights_apart(beside(first, second / "stage-b.onnx", share, words))
    for name, data in {"stage-b.onnx": stage_b, **weights}.items():
        (folder / name).write_bytes(data)


# All that a package may have beside `model.json` and files of coded weights.
FILES = (
    "stage-a.onnx",
    "stage-b.onnx",
    "words.bin",
    "tokenizer.json",
    "symbols.json",
    "finder.json",
)
# What a package is called, by what its stage B is grown from.
IDS = {"minilm": "umpire-mini", "mpnet": "umpire-base", "e5": "umpire-multi"}
# The languages that it was measured in.
LANGUAGES = {"minilm": "en", "mpnet": "en", "e5": "ar da de en es fr hi id it ja nl pl pt ru sr tr zh"}


def numbers(stack: Stack) -> dict:
    """The fitted numbers of a rule, as `model.json` has them."""
    return {
        "lean": stack.lean,
        "features": [FEATURES[i] for i in stack.used],
        "alpha": [round(float(x), 6) for x in stack.alpha],
        "beta": [round(float(x), 6) for x in stack.beta],
        "a_temperature": [round(float(x), 6) for x in stack.a_temperature],
    }


def describe(folder: Path, stack: Stack, reader: str) -> dict:
    """Writes model.json over the files that are there; returns its content."""
    weights = sorted(path.name for path in folder.glob(export.WEIGHTS_FILE.format("*")))
    files = {name: (folder / name).read_bytes() for name in (*FILES, *weights) if (folder / name).exists()}
    manifest = {
        "schema": 1,
        "id": IDS[reader],
        "revision": folder.name,
        "family": "two-stage",
        "owned_by": "umpire",
        "status": "ready",
        "default": True,
        "languages": LANGUAGES[reader].split(),
        "limits": LIMITS[reader],
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in files.items()
        },
        "options": {
            "graphs": {
                "stage_a": "stage-a.onnx",
                "stage_b": "stage-b.onnx",
                **({"stage_b_weights": [*weights, export.WORDS_FILE]} if weights else {}),
            },
            "tokenizer": "tokenizer.json",
            "symbols": "symbols.json",
            "special_tokens": {"cls": CLS, "sep": SEP, "mask": MASK, "unk": UNK},
            "best": BEST,
            "pack_tokens": PACK_TOKENS[reader],
            "stack": {
                **numbers(stack),
                "verdicts": verdicts(reader),
                "negation": NEGATION,
                "residuals": residuals(reader),
                **({"steps": STEPS} if FEATURES.index("steps") in stack.used else {}),
            },
            "windows": {
                "premise_tokens": PREMISE,
                "carried_instruction_tokens": CARRIED_INSTRUCTION,
                "segment_tokens": SEGMENT,
                "least_tokens": LEAST,
                "stop_tokens": list(STOPS),
                "read": READ,
                "first_lead": FIRST,
                "finder": "finder.json",
                "kappa_confidence": KAPPA[0],
                "kappa_relevance": KAPPA[1],
            },
        },
        "canary": CANARY,
    }
    (folder / "model.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest
