"""Weights of stage B rounded to the whole numbers of a package one input channel after another, where the channels that
are still to be rounded make up for the error of those that are (GPTQ, arXiv 2210.17323).

What is made up for is the error of a product's outputs over the inputs that typical rows give it. So fewer answers
change than where every weight is rounded to the nearest whole number.
"""

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from encoder_graph import WEIGHT_LEVELS

from .encoder import Encoder, products, watch_inputs
from .stage_b import StageB

# Added to the diagonal of a product's second moments, as a share of its mean: inputs that typical rows never have.
DAMPING = 0.01


def compensated(model: StageB, large: dict[str, np.ndarray], run: Callable[[], object]) -> StageB:
    """The model with weights that a graph of precision `int8` holds exactly.

    `run` runs the model over what is typical; `large`: what the input channels of a product are divided by
    (outliers.py), by the name of its first layer.
    """
    result = copy.deepcopy(model)
    found = moments(model.encoder, run)
    for name, part in products(result.encoder).items():
        first = name.rsplit(".", 1)[0] + ".query" if name.endswith((".key", ".value")) else name
        channels = torch.from_numpy(large.get(f"encoder.{first}", np.ones(part.in_features))).double()
        moment = found[name] / channels[:, None] / channels
        part.weight.data.copy_(rounded(part.weight.detach().double() * channels, moment) / channels)
    return result


def moments(encoder: Encoder, run: Callable[[], object]) -> dict[str, Tensor]:
    """The second moments [in, in] of every product's inputs by its name while `run` runs the encoder."""
    found: dict[str, Tensor] = {}

    def see(name: str, x: Tensor) -> None:
        found[name] = found.get(name, 0) + x.double().T @ x.double()

    watch_inputs(products(encoder), run, see)
    return found


def rounded(weight: Tensor, moment: Tensor) -> Tensor:
    """Weights [out, in], each a whole number of its row's scale, for inputs of these second moments [in, in]."""
    scale = weight.abs().amax(1, keepdim=True) / WEIGHT_LEVELS
    moment = moment + torch.eye(len(moment)) * DAMPING * moment.diagonal().mean()
    # Channels with large inputs first, so that many are left to make up for their errors.
    order = moment.diagonal().argsort(descending=True)
    left = weight[:, order].clone()
    greatest = left.abs().argmax(1)
    upper = torch.linalg.cholesky(torch.linalg.inv(moment[order][:, order]), upper=True)
    for i in range(len(moment)):
        whole = (left[:, i] / scale[:, 0]).round().clamp(-WEIGHT_LEVELS, WEIGHT_LEVELS)
        # A row's greatest weight stays the greatest, by which the graph finds the scale.
        whole = torch.where(greatest == i, WEIGHT_LEVELS * weight[:, order[i]].sign(), whole) * scale[:, 0]
        left[:, i + 1 :] -= ((left[:, i] - whole) / upper[i, i])[:, None] * upper[i, i + 1 :]
        left[:, i] = whole
    return left[:, order.argsort()]
