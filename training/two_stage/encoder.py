"""The encoders in plain PyTorch: post-norm transformers of two shapes, MiniLM-L6 (BERT) and MPNet-base.

MPNet has no token types; it adds to the attention scores what it has learned of the distance between two positions, in
buckets that grow with the distance, the same for all layers. On a CPU attention is written as matmul and softmax: below
150 tokens that trains faster than the fused kernel.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .tokens import PREFIX

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# What is added to the scores of tokens that may not see one another; in 16 bits, too, it is finite.
BLOCKED = -10000.0
# The distance from which on MPNet's buckets are all the same.
FAR = 128


@dataclass(frozen=True)
class Shape:
    """The sizes of an encoder.

    `types`: token types, 0 for none; `buckets`: of distances, 0 for none. `prefix`: what stage A reads before every
    text; an encoder that has one takes the `centre` of its vectors off them. `word_block`: the word embeddings came in
    4 bits, so many with one scale, and are kept so.
    """

    name: str
    width: int
    layers: int
    inner: int
    epsilon: float
    types: int
    buckets: int
    heads: int = 12
    positions: int = 512
    vocabulary: int = 30522
    prefix: tuple[int, ...] = ()
    word_block: int = 0

    @property
    def is_large(self) -> bool:
        """Whether a package keeps its weights in five bits, and its words in four."""
        return self.width > WIDTH


MINILM = Shape("MiniLM-L6", 384, 6, 1536, 1e-12, 2, 0)
MPNET = Shape("MPNet-base", 768, 12, 3072, 1e-5, 0, 32)
# multilingual-e5-small with a trimmed vocabulary, and the stage B that is grown from its lower layers.
E5 = Shape("multilingual-e5-small", 384, 12, 1536, 1e-12, 2, 0, vocabulary=170_000, prefix=PREFIX, word_block=32)
E5_READER = replace(E5, layers=8, prefix=())
SHAPES = {"minilm": MINILM, "mpnet": MPNET, "e5": E5_READER}
# Of every stage A.
WIDTH = MINILM.width


def has_bfloat16() -> bool:
    """Whether bfloat16 is worth using: a GPU, or a CPU that multiplies in it (others emulate it, three times as slow as
    float32).
    """
    flags = Path("/proc/cpuinfo")
    return DEVICE == "cuda" or (
        flags.exists() and any(name in flags.read_text() for name in ("avx512_bf16", "amx_bf16"))
    )


HALF = has_bfloat16()


def mixed() -> torch.autocast:
    """The precision of products in training and in scoring."""
    return torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=HALF)


class Product(nn.Linear):
    """A linear layer whose weights can be rounded as the package rounds them while they are trained: `rounding` is a
    function of the weights, which the gradient passes as if it were not there.
    """

    rounding = None
    # What was rounded last: the version of the weights, and the result, while they are not learned.
    rounded = (-1, None)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in] -> [..., out], by the weights as they are rounded, if they are."""
        if self.rounding is None:
            return super().forward(x)
        if not torch.is_grad_enabled() or not self.weight.requires_grad:
            if self.rounded[0] != self.weight._version:
                self.rounded = (self.weight._version, self.rounding(self.weight))
            return F.linear(x, self.rounded[1], self.bias)
        with torch.no_grad():
            error = self.rounding(self.weight) - self.weight
        return F.linear(x, self.weight + error, self.bias)


def watch_inputs(parts: dict[str, nn.Module], run: Callable[[], object], see: Callable[[str, Tensor], None]) -> None:
    """Gives `see` the name of each part and what goes into it [rows, in], each time it is used while `run` runs."""

    def hook_of(name: str):
        return lambda _, inputs: see(name, inputs[0].detach().flatten(0, -2))

    hooks = [part.register_forward_pre_hook(hook_of(name)) for name, part in parts.items()]
    run()
    for hook in hooks:
        hook.remove()


def greatest_inputs(parts: dict[str, nn.Module], run: Callable[[], object]) -> dict[str, Tensor]:
    """The greatest magnitude of each input channel [in] of the parts by their names while `run` runs."""
    greatest: dict[str, Tensor] = {}

    def see(name: str, x: Tensor) -> None:
        most = x.abs().amax(0).float()
        greatest[name] = torch.maximum(greatest.get(name, most), most)

    watch_inputs(parts, run, see)
    return greatest


def products(model: nn.Module) -> dict[str, nn.Module]:
    """The products of a model by their names."""
    return {name: part for name, part in model.named_modules() if isinstance(part, Product)}


class Layer(nn.Module):
    """One post-norm transformer layer."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.heads, width = shape.heads, shape.width
        self.query = Product(width, width)
        self.key = Product(width, width)
        self.value = Product(width, width)
        self.attended = Product(width, width)
        self.attended_norm = nn.LayerNorm(width, eps=shape.epsilon)
        self.inner = Product(width, shape.inner)
        self.outer = Product(shape.inner, width)
        self.outer_norm = nn.LayerNorm(width, eps=shape.epsilon)
        self.dropout = nn.Dropout(0.0)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """hidden [batch, tokens, width], bias [batch, 1 or heads, tokens or 1, tokens] -> [batch, tokens, width]."""
        batch, tokens, width = hidden.shape

        def split(x: Tensor) -> Tensor:
            return x.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

        # In 16 bits once, not for each of the three products.
        read = hidden.to(torch.get_autocast_dtype(DEVICE)) if torch.is_autocast_enabled(DEVICE) else hidden
        query, key, value = split(self.query(read)), split(self.key(read)), split(self.value(read))
        if hidden.is_cuda:
            attended = F.scaled_dot_product_attention(query, key, value, bias.to(query.dtype))
        else:
            attended = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(width // self.heads) + bias, -1) @ value
        attended = attended.transpose(1, 2).reshape(batch, tokens, width)
        hidden = self.attended_norm(hidden + self.dropout(self.attended(attended)))
        return self.outer_norm(hidden + self.dropout(self.outer(F.gelu(self.inner(hidden)))))


class Encoder(nn.Module):
    """Token ids to hidden states.

    The word embeddings are frozen: both stages of umpire-mini share one table in the package.
    """

    def __init__(self, shape: Shape = MINILM):
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.types = nn.Embedding(shape.types, shape.width) if shape.types else None
        self.distances = nn.Embedding(shape.buckets, shape.heads) if shape.buckets else None
        self.norm = nn.LayerNorm(shape.width, eps=shape.epsilon)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.words.weight.requires_grad_(False)
        if shape.prefix:
            self.register_buffer("centre", torch.zeros(shape.width))

    def forward(self, ids: Tensor, positions: Tensor, types: Tensor, bias: Tensor) -> Tensor:
        """ids, positions, types [batch, tokens] int64; bias added to the attention scores -> [batch, tokens, width]."""
        embedded = self.words(ids) + self.positions(positions)
        hidden = self.norm(embedded if self.types is None else embedded + self.types(types))
        if self.distances is not None:
            bias = bias + self.of_distance(positions)
            if hidden.is_cuda:
                bias = bias.to(torch.bfloat16)
        for layer in self.layers:
            hidden = layer(hidden, bias)
        return hidden

    def of_distance(self, positions: Tensor) -> Tensor:
        """What the distance of two positions adds to their scores [batch, heads, tokens, tokens]."""
        apart = positions[:, None, :] - positions[:, :, None]
        table = self.distances(
            bucket_of(
                torch.arange(1 - self.shape.positions, self.shape.positions, device=positions.device),
                self.shape.buckets,
            )
        )
        return table[apart + self.shape.positions - 1].permute(0, 3, 1, 2).contiguous()


def bucket_of(apart: Tensor, buckets: int) -> Tensor:
    """The bucket of how far a key's position is behind a query's (negative: before it): half of them for each
    direction, the first half of these one a position, the others growing up to FAR.
    """
    half = buckets // 2
    exact = half // 2
    far = apart.abs()
    grown = exact + (torch.log(far.clamp(min=1).float() / exact) / math.log(FAR / exact) * (half - exact)).long()
    return (apart > 0).long() * half + torch.where(far < exact, far, grown.clamp(max=half - 1))


# Of a Layer, by their names.
LAYER_PARTS = ("query", "key", "value", "attended", "attended_norm", "inner", "outer", "outer_norm")


def load_base(path: Path) -> Encoder:
    """The encoder with the weights of a `model.safetensors` of all-MiniLM-L6-v2."""
    from safetensors.torch import load_file  # a carried run has none

    weights = load_file(str(path))
    renamed = {
        "words.weight": weights["embeddings.word_embeddings.weight"],
        "positions.weight": weights["embeddings.position_embeddings.weight"],
        "types.weight": weights["embeddings.token_type_embeddings.weight"],
        "norm.weight": weights["embeddings.LayerNorm.weight"],
        "norm.bias": weights["embeddings.LayerNorm.bias"],
    }
    names = (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "attention.output.LayerNorm",
        "intermediate.dense",
        "output.dense",
        "output.LayerNorm",
    )
    return filled(Encoder(MINILM), renamed, weights, names)


def filled(encoder: Encoder, renamed: dict[str, Tensor], weights: dict[str, Tensor], names: tuple[str, ...]) -> Encoder:
    """The encoder with the embeddings in `renamed` and the layers in `weights`, where LAYER_PARTS go by `names`."""
    for index in range(encoder.shape.layers):
        for ours, theirs in zip(LAYER_PARTS, names, strict=True):
            for kind in ("weight", "bias"):
                renamed[f"layers.{index}.{ours}.{kind}"] = weights[f"encoder.layer.{index}.{theirs}.{kind}"]
    encoder.load_state_dict(renamed)
    return encoder.to(DEVICE)
