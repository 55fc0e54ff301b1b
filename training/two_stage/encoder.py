"""The BERT encoder of MiniLM-L6 in plain PyTorch: 6 layers, width 384, 12 heads.

Attention is written as matmul and softmax: below 150 tokens on a CPU it trains faster than the fused kernel.
"""

import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, INNER, POSITIONS, VOCABULARY = 384, 12, 6, 1536, 512, 30522
EPSILON = 1e-12
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BLOCKED = -10000.0


def has_bfloat16() -> bool:
    """Whether bfloat16 is worth using: a GPU, or a CPU that multiplies in it (others emulate it, three times as slow as float32)."""
    flags = Path("/proc/cpuinfo")
    return DEVICE == "cuda" or (flags.exists() and any(name in flags.read_text() for name in ("avx512_bf16", "amx_bf16")))


HALF = has_bfloat16()


def mixed() -> torch.autocast:
    """The precision of products in training and in scoring."""
    return torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=HALF)


class Layer(nn.Module):
    """One post-norm transformer layer."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.attended = nn.Linear(WIDTH, WIDTH)
        self.attended_norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.inner = nn.Linear(WIDTH, INNER)
        self.outer = nn.Linear(INNER, WIDTH)
        self.outer_norm = nn.LayerNorm(WIDTH, eps=EPSILON)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """hidden [batch, tokens, width], bias [batch, 1, tokens or 1, tokens] -> [batch, tokens, width]."""
        batch, tokens, _ = hidden.shape
        split = lambda x: x.view(batch, tokens, HEADS, WIDTH // HEADS).transpose(1, 2)
        query, key, value = split(self.query(hidden)), split(self.key(hidden)), split(self.value(hidden))
        scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + bias
        mixed = (torch.softmax(scores, -1) @ value).transpose(1, 2).reshape(batch, tokens, WIDTH)
        hidden = self.attended_norm(hidden + self.attended(mixed))
        return self.outer_norm(hidden + self.outer(F.gelu(self.inner(hidden))))


class Encoder(nn.Module):
    """Token ids to hidden states. The word embeddings are frozen: both stages share one table in the package."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.types = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.words.weight.requires_grad_(False)

    def forward(self, ids: Tensor, positions: Tensor, types: Tensor, bias: Tensor) -> Tensor:
        """ids, positions, types [batch, tokens] int64; bias added to the attention scores -> [batch, tokens, width]."""
        hidden = self.norm(self.words(ids) + self.positions(positions) + self.types(types))
        for layer in self.layers:
            hidden = layer(hidden, bias)
        return hidden


def load_base(path: Path) -> Encoder:
    """The encoder with the weights of a `model.safetensors` of all-MiniLM-L6-v2."""
    weights = load_file(str(path))
    renamed = {
        "words.weight": weights["embeddings.word_embeddings.weight"],
        "positions.weight": weights["embeddings.position_embeddings.weight"],
        "types.weight": weights["embeddings.token_type_embeddings.weight"],
        "norm.weight": weights["embeddings.LayerNorm.weight"],
        "norm.bias": weights["embeddings.LayerNorm.bias"],
    }
    parts = {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "attended": "attention.output.dense",
        "attended_norm": "attention.output.LayerNorm",
        "inner": "intermediate.dense",
        "outer": "output.dense",
        "outer_norm": "output.LayerNorm",
    }
    for index in range(LAYERS):
        for ours, theirs in parts.items():
            for kind in ("weight", "bias"):
                renamed[f"layers.{index}.{ours}.{kind}"] = weights[f"encoder.layer.{index}.{theirs}.{kind}"]
    encoder = Encoder()
    encoder.load_state_dict(renamed)
    return encoder.to(DEVICE)
