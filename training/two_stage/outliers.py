"""Channels of stage B's activations that are far larger than the others, and what they are divided by before a
quantised product.

The runtime quantises activations to 8 bits with one scale a tensor, so a few large channels leave the others 3 or 4
bits. Dividing a channel by a power of two and multiplying its row of the weights by the same changes nothing but the
rounding (SmoothQuant's idea, arXiv 2211.10438, for outliers alone). Stage A has fixed ones:
`training/minilm/divisors.json`.
"""

from collections.abc import Callable

import numpy as np

from .encoder import Encoder, greatest_inputs

# A channel is large when its greatest magnitude is over so many times the median channel's, by kind of product; chosen
# among four by the scores of 150 held-out rows (mean difference from fp32 .093; 1.5, 3, 2: .100; without: .179).
LARGE = {"query": 2.0, "inner": 4.0, "outer": 3.0}


def divisors(encoder: Encoder, run: Callable[[], object]) -> dict[str, np.ndarray]:
    """`run` runs the encoder over what is typical.

    For each product with large channels, by its layer's name: powers of two [channels].
    """
    layers = {
        f"encoder.layers.{i}.{kind}": getattr(layer, kind) for i, layer in enumerate(encoder.layers) for kind in LARGE
    }
    result = {}
    for name, most in greatest_inputs(layers, run).items():
        ratio = most / (LARGE[name.rsplit(".", 1)[1]] * most.median())
        exponents = ratio.clamp(min=1).log2().round()
        if exponents.any():
            result[name] = (2.0**exponents).cpu().numpy().astype(np.float32)
    return result
