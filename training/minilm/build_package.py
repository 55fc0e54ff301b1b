"""Writes the package's generated files, model.onnx, tokenizer.json and model.json, to models/minilm-l6/r2.

The result depends on the base weights, this folder's code and fitted.json alone: a second run writes the same bytes.
MODEL_CARD.md, NOTICE and LICENSE beside them are kept by hand.
"""

import hashlib
import json
from pathlib import Path

import base_model
import encoder_graph

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "models" / "minilm-l6" / "r2"


def main() -> None:
    """Writes the package."""
    PACKAGE.mkdir(parents=True, exist_ok=True)
    files = {
        "model.onnx": encoder_graph.build(base_model.weights()),
        "tokenizer.json": json.dumps(base_model.tokenizer_json(), ensure_ascii=False, separators=(",", ":")).encode(),
    }
    for name, data in files.items():
        (PACKAGE / name).write_bytes(data)
    fitted = json.loads((HERE / "fitted.json").read_text())
    manifest = {
        "schema": 1,
        "id": "minilm-l6",
        "revision": "r2",
        "family": "bi-encoder",
        "owned_by": "umpire",
        "status": "ready",
        "default": True,
        "languages": ["en"],
        "limits": {"input_tokens": 500, "candidate_tokens": 96, "choices": 300},
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in files.items()
        },
        "options": {
            "graph": "model.onnx",
            "tokenizer": "tokenizer.json",
            "joint_weight": fitted["joint_weight"],
            "temperature": fitted["temperature"],
            "special_tokens": {"cls": 101, "sep": 102, "unk": 100},
        },
        "unread": fitted["unread"],
        "canary": {
            "input": "I was charged twice for my order",
            "instruction": "Which team should handle this?",
            "choices": ["billing", "shipping", "technical support"],
            "choice": "billing",
        },
    }
    (PACKAGE / "model.json").write_text(json.dumps(manifest, indent=2) + "\n")


if __name__ == "__main__":
    main()
