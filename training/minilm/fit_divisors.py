"""Writes divisors.json: for each matrix product that is quantised, a power of two for each input channel.

The runtime quantises activations to 8 bits with one scale for the whole tensor, and this encoder has a few
channels that are 20 times larger than the others, so that the others are left with 3 or 4 bits. Dividing a large
channel before the product and multiplying its row of the weights by the same number changes nothing but the
rounding (the idea of SmoothQuant, arXiv 2211.10438, confined to outliers). Powers of two keep it exact in floating
point. Run: python fit_divisors.py DATA
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx

import base_model
import encoder_graph
from decisions import read_set, set_names
from scorer import Encoder

HERE = Path(__file__).resolve().parent
# A round number, some 240 inputs in all; no other is known to have been tried. Of each channel the greatest magnitude
# alone is asked for, and powers of two are coarse.
ROWS_PER_SET = 8
# A channel is large when its greatest magnitude is over so many times the median channel's: chosen among 1 to 8 by
# the mean cosine with the fp32 vectors of the same texts.
LARGE = {"attention.self": 1.5, "intermediate.dense": 3.0, "output.dense": 2.0}


def texts(data: Path) -> list[str]:
    """Inputs and labels of some rows of every training set, each text once."""
    rows = [row for name in set_names(data, "train") for row in read_set(data, "train", name, ROWS_PER_SET)]
    return list(dict.fromkeys(text for row in rows for text in (row.input, row.label)))


def main() -> None:
    """Writes divisors.json."""
    graph = onnx.load_from_string(encoder_graph.build(base_model.weights(), "fp32"))
    inputs = encoder_graph.product_inputs(graph)
    graph.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in inputs.values()
    )
    encoder = Encoder(graph.SerializeToString(), json.dumps(base_model.tokenizer_json()))
    greatest = {product: np.zeros(1) for product in inputs}
    for text in texts(Path(sys.argv[1])):
        for product, value in zip(inputs, encoder.outputs(list(inputs.values()), text), strict=True):
            greatest[product] = np.maximum(greatest[product], np.abs(value[0]).max(axis=0))
    exponents = {}
    for product, channels in greatest.items():
        large = next((ratio for kind, ratio in LARGE.items() if product.split(".", 3)[3] == kind), None)
        if large is not None:
            ratio = channels / (large * np.median(channels))
            exponents[product] = "".join(str(int(e)) for e in np.round(np.log2(np.maximum(1, ratio))))
    (HERE / "divisors.json").write_text(json.dumps(exponents, indent=2) + "\n")


if __name__ == "__main__":
    main()
