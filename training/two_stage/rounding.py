"""Weights in five and in four bits, as a package of a large stage B holds them.

A weight is an odd multiple of its row's scale: (2 c - 2^bits + 1) * scale with the code c of so many bits. So there are
as many levels above zero as below, and every level is a whole number of eight bits, which an engine unpacks when it
loads the graph: the runtime multiplies in int8. The scale is what makes the squared error least among a few fractions
of the row's greatest weight. Input channels whose activations are far larger than the others (`large_channels`) are
kept out of the product and multiplied in fp32, since one of them would take the others' levels in the activations.

While stage B is trained its weights are rounded in the forward pass and the gradient passes as if they were not
("straight-through"), so that it learns to do with them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from .encoder import greatest_inputs, products

# Bits of a layer's weight and of a word embedding's number, and how many of the latter share a scale.
LAYER_BITS, WORD_BITS, WORD_GROUP = 5, 4, 64
# Fractions of a row's greatest weight that are tried for its scale.
RATIOS = (1.0, 0.92, 0.84, 0.76, 0.68, 0.6)
# A channel is large when its greatest magnitude is so many times the median channel's; of these the largest are kept.
LARGE, MOST_LARGE = 4.0, 6


def scales_of(weight: Tensor, bits: int) -> Tensor:
    """The scale of each row [rows, 1] of weights [rows, columns]."""
    most = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / (2**bits - 1)
    best, least = most, torch.full_like(most, torch.inf)
    for ratio in RATIOS:
        scale = most * ratio
        error = (rounded(weight, scale, bits) - weight).square().sum(1, keepdim=True)
        best, least = torch.where(error < least, scale, best), torch.minimum(error, least)
    return best


def codes_of(weight: Tensor, scale: Tensor, bits: int) -> Tensor:
    """The codes of weights, as floats."""
    top = 2**bits - 1
    return ((weight / scale + top) / 2).round().clamp(0, top)


def rounded(weight: Tensor, scale: Tensor, bits: int) -> Tensor:
    """The weights that the codes stand for."""
    return (2 * codes_of(weight, scale, bits) - (2**bits - 1)) * scale


def rounded_words(table: Tensor) -> Tensor:
    """The word embeddings as they are kept: WORD_BITS a number, a scale for each WORD_GROUP of them."""
    groups = table.reshape(-1, WORD_GROUP)
    return rounded(groups, scales_of(groups, WORD_BITS).half().float(), WORD_BITS).reshape(table.shape)


class Rounding:
    """Rounds one layer's weights [out, in] but for the `kept` input channels.

    The scales are found anew every REFRESH calls.
    """

    REFRESH = 200

    def __init__(self, kept: Sequence[int]):
        self.kept = list(kept)
        self.scale: Tensor | None = None
        self.calls = 0

    def __call__(self, weight: Tensor) -> Tensor:
        """The rounded weights."""
        weight = weight.detach()
        if self.scale is None or self.calls % self.REFRESH == 0:
            self.scale = scales_of(without(weight, self.kept), LAYER_BITS)
        self.calls += 1
        result = rounded(weight, self.scale, LAYER_BITS)
        result[:, self.kept] = weight[:, self.kept].half().float()
        return result


def without(weight: Tensor, kept: Sequence[int]) -> Tensor:
    """The weights with the kept channels' at zero."""
    if not kept:
        return weight
    weight = weight.clone()
    weight[:, list(kept)] = 0
    return weight


def set_rounding(model: torch.nn.Module, kept: dict[str, list[int]] | None) -> None:
    """Rounds all layers from now on, or none. `kept`: the input channels kept by the name of a layer."""
    for name, part in products(model).items():
        part.rounding = None if kept is None else Rounding(kept.get(name, []))


class RoundedSteps:
    """Rounds the weights of a model that is trained for the length of each step, as `set_rounding` would; but the
    products know nothing of it, so they can be compiled. Weights that are not learned are rounded for good.
    """

    def __init__(self, model: torch.nn.Module, kept: dict[str, list[int]]):
        parts = [(part.weight, Rounding(kept.get(name, []))) for name, part in products(model).items()]
        self.learned = [(weight, rounding) for weight, rounding in parts if weight.requires_grad]
        with torch.no_grad():
            for weight, rounding in parts:
                if not weight.requires_grad:
                    weight.copy_(rounding(weight))

    @contextmanager
    def step(self) -> Iterator[None]:
        """Inside, the weights are rounded; behind it they are as they were, and have the gradients of the rounded."""
        weights = [weight for weight, _ in self.learned]
        with torch.no_grad():
            whole = [weight.clone() for weight in weights]
            torch._foreach_copy_(weights, [rounding(weight) for weight, rounding in self.learned])
        yield
        with torch.no_grad():
            torch._foreach_copy_(weights, whole)


def large_channels(model: torch.nn.Module, run) -> dict[str, list[int]]:
    """The large input channels of every product by its name, largest first; `run` runs the model over what is typical.

    Query, key and value have the same.
    """
    found = {}
    for name, most in greatest_inputs(products(model), run).items():
        large = (most > LARGE * most.median()).nonzero()[:, 0].tolist()
        found[name] = sorted(large, key=lambda channel: -float(most[channel]))[:MOST_LARGE]
    return found
