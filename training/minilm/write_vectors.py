"""Writes test/golden/minilm-l6/vectors.json: what the base model says of some sentences, computed by PyTorch in fp32.

Whoever runs the package's graph on these token ids must get a vector whose cosine with the reference is at least
`min_cosine`: the least that the int8 graph reached when the file was written, rounded down to two decimals.
Run: python write_vectors.py (after build_package.py)
"""

import json
import math
from pathlib import Path

import numpy as np
import torch
from transformers import BertModel

import base_model
from build_package import PACKAGE
from scorer import Encoder

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parents[1] / "test" / "golden" / "minilm-l6" / "vectors.json"
# Near the package's limit of 500, whatever the last sentence adds.
LONG_TOKENS = 400


def sentences(encoder: Encoder) -> list[str]:
    """The committed sentences and two long texts made of them."""
    texts = json.loads((HERE / "sentences.json").read_text(encoding="utf-8"))
    long, words = texts[-1], " ".join(texts)
    while len(encoder.tokens(long)) < LONG_TOKENS:
        long += " " + texts[-2]
    return [*texts, words, long]


def main() -> None:
    """Writes vectors.json."""
    encoder = Encoder(PACKAGE / "model.onnx", (PACKAGE / "tokenizer.json").read_text(encoding="utf-8"))
    reference = BertModel.from_pretrained(base_model.folder(), add_pooling_layer=False).eval()
    entries, cosines = [], []
    for text in sentences(encoder):
        ids = encoder.tokens(text)
        with torch.inference_mode():
            hidden = reference(torch.tensor([ids])).last_hidden_state[0]
        vector = torch.nn.functional.normalize(hidden.mean(dim=0), dim=0).numpy()
        cosines.append(float(vector @ encoder.vector(text)))
        entries.append({"text": text, "ids": ids, "vector": [round(float(x), 6) for x in vector]})
    print(f"{len(entries)} texts, cosine with int8: mean {np.mean(cosines):.5f}, least {min(cosines):.5f}")
    head = {
        "about": "PyTorch fp32 vectors of all-MiniLM-L6-v2: training/minilm/write_vectors.py",
        "min_cosine": math.floor(min(cosines) * 100) / 100,
    }
    # One text a line, so that a change shows which ones it touches.
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_text(f'{json.dumps(head)[:-1]}, "texts": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
