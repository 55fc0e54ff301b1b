"""Writing the package: graphs, shared words, tokenizer, symbols, and model.json with checksums."""

import hashlib
import json
from pathlib import Path

import numpy as np

from . import export, multilingual
from .encoder import E5_READER, MINILM, SHAPES, Encoder
from .finder import Finder
from .stack import BEST, FEATURES, Stack
from .stage_b import PACK_TOKENS, StageB
from .tokens import CLS, MASK, SEP, UNK
from .wordings import RESIDUAL
from .windows import CARRIED_INSTRUCTION, FIRST, KAPPA, LEAST, PREMISE, READ, SEGMENT, STOPS

# By what stage B is grown from: the largest request must be done in time on one core.
LIMITS = {
    "minilm": {"input_tokens": 4096, "candidate_tokens": 72, "choices": 300},
    "mpnet": {"input_tokens": 2048, "candidate_tokens": 48, "choices": 300},
}
# Choices that answer the question and name nothing that a text could be near to.
VERDICTS = [
    "yes",
    "no",
    "true",
    "false",
    "correct",
    "incorrect",
    "right",
    "wrong",
    "maybe",
    "perhaps",
    "unknown",
    "unclear",
    "cannot be determined",
    "can't be determined",
    "cannot tell",
    "not enough information",
    "it depends",
]
NEGATION = "not"
CANARY = {
    "input": "I was charged twice for my order",
    "instruction": "Which team should handle this?",
    "choices": ["billing", "shipping", "technical support"],
    "choice": "billing",
}


def verdicts(reader: str) -> list[str]:
    """The verdicts that a reader knows."""
    return VERDICTS + (multilingual.VERDICTS if reader == "e5" else [])


def residuals(reader: str) -> list[str]:
    """The ways to say that none fits that a reader knows."""
    return RESIDUAL + (multilingual.RESIDUAL if reader == "e5" else [])


UNFITTED = Stack((0,), np.zeros(1), np.zeros(1))


def write(
    folder: Path,
    encoder: Encoder,
    model: StageB,
    large: dict,
    tokenizer: str,
    symbols: dict[str, str],
    finder: Finder,
    kept_a: Path | None = None,
    large_a: dict | None = None,
) -> None:
    """All files that the engine loads, with a rule that is still to be fitted. The same weights give the same bytes, but for a graph that was read back,
    whose scales are rounded once more: stage A's is copied from `kept_a` if it is the one of another package."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = encoder.shape
    stage_a, words = export.without_words(export.stage_a(encoder, "int8", large_a), vocabulary=shape.vocabulary)
    if model.encoder.shape in (MINILM, E5_READER):
        stage_b, reader_words = export.without_words(export.stage_b(model, "int8", large), vocabulary=shape.vocabulary)
        if words != reader_words:
            raise ValueError("the stages do not share their word embeddings")
        weights = {}
    else:
        stage_b, codes = export.weights_apart(export.stage_b(model, "packed", large))
        weights = {export.WEIGHTS_FILE: codes}
    files = {
        "stage-a.onnx": kept_a.read_bytes() if kept_a else stage_a,
        "stage-b.onnx": stage_b,
        "words.bin": words,
        **weights,
        "tokenizer.json": json.dumps(json.loads(tokenizer), ensure_ascii=False, separators=(",", ":")).encode(),
        "symbols.json": (json.dumps(symbols, ensure_ascii=True, separators=(",", ":")) + "\n").encode(),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    finder.save(folder / "finder.json")
    describe(folder, UNFITTED, next(name for name, shape in SHAPES.items() if shape == model.encoder.shape))


FILES = (
    "stage-a.onnx",
    "stage-b.onnx",
    "words.bin",
    export.WEIGHTS_FILE,
    "tokenizer.json",
    "symbols.json",
    "finder.json",
)
# What a package is called, by what its stage B is grown from.
IDS = {"minilm": "umpire-mini", "mpnet": "umpire-base", "e5": "umpire-multi"}


def describe(folder: Path, stack: Stack, reader: str) -> dict:
    """Writes model.json over the files that are there; returns its content."""
    files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
    manifest = {
        "schema": 1,
        "id": IDS[reader],
        "revision": folder.name,
        "family": "two-stage",
        "owned_by": "umpire",
        "status": "ready",
        **({"default": True} if reader == "minilm" else {}),
        "limits": LIMITS[reader],
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in files.items()
        },
        "options": {
            "graphs": {
                "stage_a": "stage-a.onnx",
                "stage_b": "stage-b.onnx",
                **({"stage_b_weights": export.WEIGHTS_FILE} if export.WEIGHTS_FILE in files else {}),
            },
            "tokenizer": "tokenizer.json",
            "symbols": "symbols.json",
            "special_tokens": {"cls": CLS, "sep": SEP, "mask": MASK, "unk": UNK},
            "best": BEST,
            "pack_tokens": PACK_TOKENS[reader],
            "stack": {
                "lean": stack.lean,
                "features": [FEATURES[i] for i in stack.used],
                "alpha": [round(float(x), 6) for x in stack.alpha],
                "beta": [round(float(x), 6) for x in stack.beta],
                "a_temperature": [round(float(x), 6) for x in stack.a_temperature],
                "verdicts": verdicts(reader),
                "negation": NEGATION,
                "residuals": residuals(reader),
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
