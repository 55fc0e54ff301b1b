"""What the graphs of stages are made of: weights, words and constants in the precision that a package keeps them in.

Precisions: `fp32`; `int8`, whose weights have 7 bits; `packed`, whose weights have 5 bits (see rounding.py), so that a
package keeps them in a file of codes (`export.weights_apart`), and whose words are kept in 4 bits. Both multiply in
int8.
"""

import numpy as np
import torch
from onnx import TensorProto

from encoder_graph import EMBEDDING_LEVELS, RUNTIME, WEIGHT_LEVELS, GraphWriter, quantise_columns

from .encoder import Shape
from .rounding import LAYER_BITS, WORD_BITS, WORD_GROUP, codes_of, scales_of, without


class WeightsGraph(GraphWriter):
    """A graph whose nodes take their weights from the state of a `StageB` by name.

    `large`: for `int8` what the input channels of a product are divided by before it is quantised (outliers.py), by the
    name of its first layer; for `packed` the input channels that are kept out of it.
    """

    def __init__(self, weights: dict[str, np.ndarray], shape: Shape, precision: str, large: dict):
        super().__init__()
        self.weights, self.shape, self.precision, self.large = weights, shape, precision, large

    def whole(self, *values: int) -> str:
        """A constant of whole numbers [values]."""
        return self.constant(np.array(values, np.int64))

    def byte(self, *values: int) -> str:
        """The same, of 8 bits."""
        return self.constant(np.array(values, np.uint8))

    def half(self, value: np.ndarray) -> str:
        """A constant that is kept in 16 bits by packed graphs."""
        if self.precision != "packed":
            return self.constant(value)
        return self.node("Cast", [self.constant(value.astype(np.float16))], to=TensorProto.FLOAT)

    def linear(self, x: str, names: list[str]) -> str:
        """x times the weights of the layers `names` side by side, with their biases."""
        matrix = np.concatenate([self.weights[f"{n}.weight"] for n in names]).T
        offset = self.constant(np.concatenate([self.weights[f"{n}.bias"] for n in names]))
        if self.precision == "int8":
            return self.quantised(x, matrix, offset, self.large.get(names[0]))
        if self.precision == "packed":
            return self.packed(x, matrix, offset, self.large.get(names[0], []))
        return self.node("Add", [self.node("MatMul", [x, self.constant(matrix)]), offset])

    def quantised(self, x: str, matrix: np.ndarray, offset: str, channels: np.ndarray | None) -> str:
        """The product in int8; `channels`: what its input channels are divided by before."""
        if channels is not None:
            x = self.node("Mul", [x, self.constant(1 / channels)])
            matrix = matrix * channels[:, None]
        values, scales = quantise_columns(matrix, WEIGHT_LEVELS)
        return self.node(
            "DynamicQuantizeMatMul", [x, self.constant(values), self.constant(scales), "", offset], domain=RUNTIME
        )

    def packed(self, x: str, matrix: np.ndarray, offset: str, kept: list[int]) -> str:
        """The product in int8 with weights of five bits; `kept`: the input channels that are kept out of it."""
        rows = without(torch.from_numpy(matrix.T.copy()), kept)
        scales = scales_of(rows, LAYER_BITS)
        numbers = (2 * codes_of(rows, scales, LAYER_BITS) - (2**LAYER_BITS - 1)).numpy().astype(np.int8).T
        found = x
        if kept:
            there = np.ones(len(matrix), np.float32)
            there[kept] = 0
            found = self.node("Mul", [x, self.constant(there)])
        found = self.node(
            "DynamicQuantizeMatMul",
            [found, self.constant(numbers), self.constant(scales[:, 0].numpy()), "", offset],
            domain=RUNTIME,
        )
        if kept:
            beside = self.node(
                "MatMul", [self.node("Gather", [x, self.whole(*kept)], axis=-1), self.half(matrix[kept])]
            )
            found = self.node("Add", [found, beside])
        return found

    def words(self, ids: str) -> str:
        """The word embeddings of `ids`, by the precision."""
        table = self.weights["encoder.words.weight"]
        if self.shape.word_block and self.precision != "fp32":
            rows = self.node(
                "GatherBlockQuantized",
                [self.four_bits(*four_bits(table, self.shape.word_block)), ids, self.initialisers[-1].name],
                domain=RUNTIME,
                block_size=self.shape.word_block,
                gather_axis=0,
                quantize_axis=1,
            )
            return self.node("Cast", [rows], to=TensorProto.FLOAT)
        if self.precision == "fp32":
            return self.node("Gather", [self.constant(table), ids])
        if self.precision == "int8":
            values, scales = quantise_columns(table.T, EMBEDDING_LEVELS)
            rows = self.node("Gather", [self.constant(values.T), "input_ids"])
            row_scales = self.node("Gather", [self.constant(scales[:, None]), "input_ids"])
            return self.node("Mul", [self.node("Cast", [rows], to=TensorProto.FLOAT), row_scales])
        return self.packed_words(table)

    def packed_words(self, table: np.ndarray) -> str:
        """Word embeddings in four bits, two numbers in a byte, with a scale for each WORD_GROUP of them."""
        groups = torch.from_numpy(table).reshape(-1, WORD_GROUP)
        scales = scales_of(groups, WORD_BITS).half()
        codes = codes_of(groups, scales.float(), WORD_BITS).numpy().astype(np.uint8).reshape(table.shape)
        rows = self.node(
            "Unsqueeze",
            [self.node("Gather", [self.constant(codes[:, 0::2] | codes[:, 1::2] << 4), "input_ids"]), self.whole(-1)],
        )
        pair = self.node(
            "Concat",
            [
                self.node("BitwiseAnd", [rows, self.byte(15)]),
                self.node("BitShift", [rows, self.byte(4)], direction="RIGHT"),
            ],
            axis=-1,
        )
        two, top = (self.constant(np.array(value, np.float32)) for value in (2, 2**WORD_BITS - 1))
        codes = self.node(
            "Cast",
            [self.node("Reshape", [pair, self.whole(1, -1, self.shape.width // WORD_GROUP, WORD_GROUP)])],
            to=TensorProto.FLOAT,
        )
        numbers = self.node("Sub", [self.node("Mul", [codes, two]), top])
        group_scales = self.node("Gather", [self.constant(scales.numpy().reshape(len(table), -1)), "input_ids"])
        scaled = self.node(
            "Mul",
            [
                numbers,
                self.node("Unsqueeze", [self.node("Cast", [group_scales], to=TensorProto.FLOAT), self.whole(-1)]),
            ],
        )
        return self.node("Reshape", [scaled, self.whole(1, -1, self.shape.width)])


def four_bits(table: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Words that came as (code - 8) * scale in blocks, whose greatest is -8 scales: the whole numbers [rows, width] and
    the scales [rows, blocks].
    """
    blocks = table.reshape(len(table), -1, block)
    greatest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)
    scales = (greatest / -8).astype(np.float16)
    return np.clip(np.round(blocks / np.where(scales == 0, 1, scales).astype(np.float32)), -8, 7).astype(
        np.int8
    ).reshape(table.shape), scales[..., 0]
