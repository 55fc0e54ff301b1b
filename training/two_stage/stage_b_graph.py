"""Stage B as an ONNX graph, written node by node from the weights.

Inputs  `input_ids`     int64 [1, tokens]  the packed sequence
        `position_ids`  int64 [1, tokens]  restart after the premise in every block
        `block_ids`     int64 [1, tokens]  0 for the premise, 1 ... options for the blocks
        `markers`       int64 [options]    where each block opens
Output  `scores`        float32 [options]  b, in the order of the markers

The mask is built inside: a token attends to block 0 and to its own block. The head is in fp32.
"""

import numpy as np
from encoder_graph import EMBEDDING_LEVELS, RUNTIME, WEIGHT_LEVELS, GraphWriter, quantise_columns
from onnx import TensorProto, helper

from .encoder import BLOCKED, EPSILON, HEADS, LAYERS


def build(weights: dict[str, np.ndarray], precision: str, large: dict[str, np.ndarray]) -> bytes:
    """The serialised model from the state of a `StageB` by name; precision `int8` or `fp32`. `large`: what the input channels of a product
    are divided by before it is quantised (see outliers.py), by the name of its first layer."""
    quantised = {"int8": True, "fp32": False}[precision]
    graph = GraphWriter()
    zero, minus_one = graph.constant(np.array(0, np.int64)), graph.constant(np.array([-1], np.int64))
    first, second = graph.constant(np.array([1], np.int64)), graph.constant(np.array([2], np.int64))

    def linear(x: str, names: list[str]) -> str:
        matrix = np.concatenate([weights[f"{n}.weight"] for n in names]).T
        offset = graph.constant(np.concatenate([weights[f"{n}.bias"] for n in names]))
        if quantised:
            if names[0] in large:
                x = graph.node("Mul", [x, graph.constant(1 / large[names[0]])])
                matrix = matrix * large[names[0]][:, None]
            values, scales = quantise_columns(matrix, WEIGHT_LEVELS)
            return graph.node("DynamicQuantizeMatMul", [x, graph.constant(values), graph.constant(scales), "", offset], domain=RUNTIME)
        return graph.node("Add", [graph.node("MatMul", [x, graph.constant(matrix)]), offset])

    def norm_of_sum(x: str, residual: str, name: str) -> str:
        parts = [graph.constant(weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        return graph.node("SkipLayerNormalization", [x, residual, *parts], domain=RUNTIME, epsilon=EPSILON)

    def words() -> str:
        table = weights["encoder.words.weight"]
        if not quantised:
            return graph.node("Gather", [graph.constant(table), "input_ids"])
        values, scales = quantise_columns(table.T, EMBEDDING_LEVELS)
        rows = graph.node("Gather", [graph.constant(values.T), "input_ids"])
        row_scales = graph.node("Gather", [graph.constant(scales[:, None]), "input_ids"])
        return graph.node("Mul", [graph.node("Cast", [rows], to=TensorProto.FLOAT), row_scales])

    in_option = graph.node("Cast", [graph.node("Greater", ["block_ids", zero])], to=TensorProto.INT64)
    types = graph.node("Gather", [graph.constant(weights["encoder.types.weight"]), in_option])
    positions = graph.node("Gather", [graph.constant(weights["encoder.positions.weight"]), "position_ids"])
    x = norm_of_sum(words(), graph.node("Add", [positions, types]), "encoder.norm")

    theirs, ours = graph.node("Unsqueeze", ["block_ids", first]), graph.node("Unsqueeze", ["block_ids", second])
    visible = graph.node("Or", [graph.node("Equal", [theirs, zero]), graph.node("Equal", [theirs, ours])])
    bias = graph.node("Where", [visible, graph.constant(np.array(0, np.float32)), graph.constant(np.array(BLOCKED, np.float32))])
    bias = graph.node("Unsqueeze", [bias, first])

    for index in range(LAYERS):
        name = f"encoder.layers.{index}"
        projected = linear(x, [f"{name}.{part}" for part in ("query", "key", "value")])
        query, key, value = graph.node("Split", [projected], outputs=3, axis=-1, num_outputs=3)
        context = graph.node("MultiHeadAttention", [query, key, value, "", "", bias], domain=RUNTIME, num_heads=HEADS)
        x = norm_of_sum(linear(context, [f"{name}.attended"]), x, f"{name}.attended_norm")
        inner = graph.node("Gelu", [linear(x, [f"{name}.inner"])], domain=RUNTIME)
        x = norm_of_sum(linear(inner, [f"{name}.outer"]), x, f"{name}.outer_norm")

    at_markers = graph.node("Gather", [graph.node("Squeeze", [x, graph.constant(np.array([0], np.int64))]), "markers"])
    dense = graph.node("Add", [graph.node("MatMul", [at_markers, graph.constant(weights["dense.weight"].T)]), graph.constant(weights["dense.bias"])])
    score = graph.node("MatMul", [graph.node("Gelu", [dense], domain=RUNTIME), graph.constant(weights["score.weight"].T)])
    score = graph.node("Add", [score, graph.constant(weights["score.bias"])])
    graph.nodes.append(helper.make_node("Reshape", [score, minus_one], ["scores"], name="scores"))

    tokens = [helper.make_tensor_value_info(n, TensorProto.INT64, [1, "tokens"]) for n in ("input_ids", "position_ids", "block_ids")]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "umpire-mini-stage-b",
            [*tokens, helper.make_tensor_value_info("markers", TensorProto.INT64, ["options"])],
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["options"])],
            graph.initialisers,
        ),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(RUNTIME, 1)],
        ir_version=9,
        producer_name="umpire",
    )
    return model.SerializeToString(deterministic=True)
