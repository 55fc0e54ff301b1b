"""Stage B as an ONNX graph, written node by node from the weights.

Inputs  `input_ids`     int64 [1, tokens]  the packed sequence
        `position_ids`  int64 [1, tokens]  restart after the premise in every block
        `block_ids`     int64 [1, tokens]  0 for the premise, 1 ... options for the blocks
        `markers`       int64 [options]    where each block opens
Output  `scores`        float32 [options]  b, in the order of the markers

The mask is built inside: a token attends to block 0 and to its own block. The head is in fp32.

The precisions are those of weights_graph.py.
"""

import numpy as np
import torch
from onnx import TensorProto, helper

from encoder_graph import RUNTIME, GraphWriter

from .encoder import BLOCKED, Shape, bucket_of
from .weights_graph import WeightsGraph


class StageGraph(WeightsGraph):
    """A stage while it is written."""

    def __init__(self, weights: dict[str, np.ndarray], shape: Shape, precision: str, large: dict):
        super().__init__(weights, shape, precision, large)
        self.zero, self.minus_one = self.constant(np.array(0, np.int64)), self.whole(-1)
        self.first, self.second = self.whole(1), self.whole(2)

    def norm_of_sum(self, x: str, residual: str, name: str) -> str:
        """The norm of x and what goes around the layer."""
        parts = [self.constant(self.weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        return self.node("SkipLayerNormalization", [x, residual, *parts], domain=RUNTIME, epsilon=self.shape.epsilon)

    def visibility(self) -> str:
        """What is added to the scores of two tokens."""
        theirs, ours = (
            self.node("Unsqueeze", ["block_ids", self.first]),
            self.node("Unsqueeze", ["block_ids", self.second]),
        )
        visible = self.node("Or", [self.node("Equal", [theirs, self.zero]), self.node("Equal", [theirs, ours])])
        bias = self.node(
            "Where", [visible, self.constant(np.array(0, np.float32)), self.constant(np.array(BLOCKED, np.float32))]
        )
        bias = self.node("Unsqueeze", [bias, self.first])
        return self.with_distances(bias) if self.shape.buckets else bias

    def with_distances(self, bias: str) -> str:
        """The same with what the distance of two tokens adds."""
        buckets = bucket_of(torch.arange(1 - self.shape.positions, self.shape.positions), self.shape.buckets).numpy()
        apart = self.node(
            "Sub",
            [
                self.node("Unsqueeze", ["position_ids", self.first]),
                self.node("Unsqueeze", ["position_ids", self.second]),
            ],
        )
        index = self.node("Add", [apart, self.constant(np.array(self.shape.positions - 1, np.int64))])
        of_distance = self.node("Gather", [self.constant(self.weights["encoder.distances.weight"][buckets]), index])
        return self.node("Add", [bias, self.node("Transpose", [of_distance], perm=[0, 3, 1, 2])])

    def sentence_input(self) -> str:
        """The embedded tokens of a sentence, behind the shape's prefix."""
        ids = "input_ids"
        parts = [
            self.node("Slice", [ids, self.whole(start), self.whole(end), self.whole(1)])
            for start, end in ((0, 1), (1, 2**62))
        ]
        ids = self.node("Concat", [parts[0], self.constant(np.array([self.shape.prefix], np.int64)), parts[1]], axis=1)
        table = self.weights["encoder.positions.weight"] + self.weights["encoder.types.weight"][0]
        added = self.node(
            "Unsqueeze",
            [
                self.node(
                    "Slice", [self.constant(table), self.whole(0), self.node("Shape", [ids], start=1), self.whole(0)]
                ),
                self.whole(0),
            ],
        )
        return self.norm_of_sum(self.words(ids), added, "encoder.norm")

    def pack_input(self) -> str:
        """The embedded tokens of a pack."""
        added = self.node("Gather", [self.half(self.weights["encoder.positions.weight"]), "position_ids"])
        if self.shape.types:
            in_option = self.node("Cast", [self.node("Greater", ["block_ids", self.zero])], to=TensorProto.INT64)
            added = self.node(
                "Add", [added, self.node("Gather", [self.constant(self.weights["encoder.types.weight"]), in_option])]
            )
        return self.norm_of_sum(self.words("input_ids"), added, "encoder.norm")

    def layers(self, x: str, bias: str | None) -> str:
        """What the encoder makes of embedded tokens."""
        for index in range(self.shape.layers):
            name = f"encoder.layers.{index}"
            projected = self.linear(x, [f"{name}.{part}" for part in ("query", "key", "value")])
            query, key, value = self.node("Split", [projected], outputs=3, axis=-1, num_outputs=3)
            context = self.node(
                "MultiHeadAttention",
                [query, key, value] + ([] if bias is None else ["", "", bias]),
                domain=RUNTIME,
                num_heads=self.shape.heads,
            )
            x = self.norm_of_sum(self.linear(context, [f"{name}.attended"]), x, f"{name}.attended_norm")
            inner = self.node("Gelu", [self.linear(x, [f"{name}.inner"])], domain=RUNTIME)
            x = self.norm_of_sum(self.linear(inner, [f"{name}.outer"]), x, f"{name}.outer_norm")
        return x

    def sentence(self) -> bytes:
        """Stage A of an encoder with a prefix: `input_ids` -> `embedding` [1, width]."""
        x = self.layers(self.sentence_input(), None)
        mean = self.node("ReduceMean", [x, self.whole(1)], keepdims=0)
        away = self.node(
            "Sub",
            [
                self.node("Div", [mean, self.node("ReduceL2", [mean, self.whole(1)], keepdims=1)]),
                self.constant(self.weights["encoder.centre"]),
            ],
        )
        self.nodes.append(
            helper.make_node(
                "Div", [away, self.node("ReduceL2", [away, self.whole(1)], keepdims=1)], ["embedding"], name="embedding"
            )
        )
        return serialised(
            self,
            self.shape,
            ["input_ids"],
            [],
            helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, self.shape.width]),
        )

    def scores(self) -> bytes:
        """Stage B."""
        x = self.pack_input()
        x = self.layers(x, self.visibility())
        at_markers = self.node("Gather", [self.node("Squeeze", [x, self.whole(0)]), "markers"])
        dense = self.node(
            "Add",
            [
                self.node("MatMul", [at_markers, self.half(self.weights["dense.weight"].T)]),
                self.constant(self.weights["dense.bias"]),
            ],
        )
        score = self.node(
            "MatMul", [self.node("Gelu", [dense], domain=RUNTIME), self.constant(self.weights["score.weight"].T)]
        )
        score = self.node("Add", [score, self.constant(self.weights["score.bias"])])
        self.nodes.append(helper.make_node("Reshape", [score, self.minus_one], ["scores"], name="scores"))

        markers = helper.make_tensor_value_info("markers", TensorProto.INT64, ["options"])
        return serialised(
            self,
            self.shape,
            ["input_ids", "position_ids", "block_ids"],
            [markers],
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["options"]),
        )


def build(weights: dict[str, np.ndarray], shape: Shape, precision: str, large: dict, sentence: bool = False) -> bytes:
    """The serialised stage B, or, for `sentence`, stage A of an encoder with a prefix; arguments as of StageGraph."""
    graph = StageGraph(weights, shape, precision, large)
    return graph.sentence() if sentence else graph.scores()


def serialised(graph: GraphWriter, shape: Shape, tokens: list[str], others: list, output) -> bytes:
    """The model with inputs [1, tokens] of these names, other inputs, and an output."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, "tokens"]) for name in tokens]
    # The first version with numbers of 4 bits is 21.
    opset, version = (21, 10) if shape.word_block else (18, 9)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            f"{shape.name}-stage-{'b' if others else 'a'}",
            [*inputs, *others],
            [output],
            graph.initialisers,
        ),
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(RUNTIME, 1)],
        ir_version=version,
        producer_name="umpire",
    )
    return model.SerializeToString(deterministic=True)
