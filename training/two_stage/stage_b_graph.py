"""Stage B as an ONNX graph, written node by node from the weights.

Inputs  `input_ids`     int64 [1, tokens]  the packed sequence
        `position_ids`  int64 [1, tokens]  restart after the premise in every block
        `block_ids`     int64 [1, tokens]  0 for the premise, 1 ... options for the blocks
        `markers`       int64 [options]    where each block opens
Output  `scores`        float32 [options]  b, in the order of the markers

The mask is built inside: a token attends to block 0 and to its own block. The head is in fp32.

Precisions: `fp32`; `int8`, whose weights have 7 bits; `packed`, whose weights have 5 bits (see rounding.py), so that a package keeps them in a file of codes
(`export.weights_apart`), and whose words are kept in 4 bits. Both multiply in int8.
"""

import numpy as np
import torch
from encoder_graph import EMBEDDING_LEVELS, RUNTIME, WEIGHT_LEVELS, GraphWriter, quantise_columns
from onnx import TensorProto, helper

from .encoder import BLOCKED, Shape, bucket_of
from .rounding import LAYER_BITS, WORD_BITS, WORD_GROUP, codes_of, scales_of, without


def build(weights: dict[str, np.ndarray], shape: Shape, precision: str, large: dict, sentence: bool = False) -> bytes:
    """The serialised model from the state of a `StageB` by name; or, for `sentence`, of a stage A whose encoder has a prefix: `input_ids` -> `embedding` [1, width]. `large`: for `int8` what the input channels of a product are divided by before it is
    quantised (outliers.py), by the name of its first layer; for `packed` the input channels that are kept out of it."""
    graph = GraphWriter()
    constant = lambda *values: graph.constant(np.array(values, np.int64))
    zero, minus_one = graph.constant(np.array(0, np.int64)), constant(-1)
    first, second = constant(1), constant(2)
    byte = lambda *values: graph.constant(np.array(values, np.uint8))

    def quantised(x: str, matrix: np.ndarray, offset: str, channels: np.ndarray | None) -> str:
        if channels is not None:
            x = graph.node("Mul", [x, graph.constant(1 / channels)])
            matrix = matrix * channels[:, None]
        values, scales = quantise_columns(matrix, WEIGHT_LEVELS)
        return graph.node(
            "DynamicQuantizeMatMul", [x, graph.constant(values), graph.constant(scales), "", offset], domain=RUNTIME
        )

    def packed(x: str, matrix: np.ndarray, offset: str, kept: list[int]) -> str:
        inputs, outputs = matrix.shape
        rows = without(torch.from_numpy(matrix.T.copy()), kept)
        scales = scales_of(rows, LAYER_BITS)
        numbers = (2 * codes_of(rows, scales, LAYER_BITS) - (2**LAYER_BITS - 1)).numpy().astype(np.int8).T
        found = x
        if kept:
            there = np.ones(inputs, np.float32)
            there[kept] = 0
            found = graph.node("Mul", [x, graph.constant(there)])
        found = graph.node(
            "DynamicQuantizeMatMul",
            [found, graph.constant(numbers), graph.constant(scales[:, 0].numpy()), "", offset],
            domain=RUNTIME,
        )
        if kept:
            beside = graph.node("MatMul", [graph.node("Gather", [x, constant(*kept)], axis=-1), half(matrix[kept])])
            found = graph.node("Add", [found, beside])
        return found

    def half(value: np.ndarray) -> str:
        """A constant that is kept in 16 bits by packed graphs."""
        if precision != "packed":
            return graph.constant(value)
        return graph.node("Cast", [graph.constant(value.astype(np.float16))], to=TensorProto.FLOAT)

    def linear(x: str, names: list[str]) -> str:
        matrix = np.concatenate([weights[f"{n}.weight"] for n in names]).T
        offset = graph.constant(np.concatenate([weights[f"{n}.bias"] for n in names]))
        if precision == "int8":
            return quantised(x, matrix, offset, large.get(names[0]))
        if precision == "packed":
            return packed(x, matrix, offset, large.get(names[0], []))
        return graph.node("Add", [graph.node("MatMul", [x, graph.constant(matrix)]), offset])

    def norm_of_sum(x: str, residual: str, name: str) -> str:
        parts = [graph.constant(weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        return graph.node("SkipLayerNormalization", [x, residual, *parts], domain=RUNTIME, epsilon=shape.epsilon)

    def words(ids: str) -> str:
        table = weights["encoder.words.weight"]
        if shape.word_block and precision != "fp32":
            rows = graph.node(
                "GatherBlockQuantized",
                [graph.four_bits(*four_bits(table, shape.word_block)), ids, graph.initialisers[-1].name],
                domain=RUNTIME,
                block_size=shape.word_block,
                gather_axis=0,
                quantize_axis=1,
            )
            return graph.node("Cast", [rows], to=TensorProto.FLOAT)
        if precision == "fp32":
            return graph.node("Gather", [graph.constant(table), ids])
        if precision == "int8":
            values, scales = quantise_columns(table.T, EMBEDDING_LEVELS)
            rows = graph.node("Gather", [graph.constant(values.T), "input_ids"])
            row_scales = graph.node("Gather", [graph.constant(scales[:, None]), "input_ids"])
            return graph.node("Mul", [graph.node("Cast", [rows], to=TensorProto.FLOAT), row_scales])
        groups = torch.from_numpy(table).reshape(-1, WORD_GROUP)
        scales = scales_of(groups, WORD_BITS).half()
        codes = codes_of(groups, scales.float(), WORD_BITS).numpy().astype(np.uint8).reshape(table.shape)
        rows = graph.node(
            "Unsqueeze",
            [graph.node("Gather", [graph.constant(codes[:, 0::2] | codes[:, 1::2] << 4), "input_ids"]), constant(-1)],
        )
        pair = graph.node(
            "Concat",
            [graph.node("BitwiseAnd", [rows, byte(15)]), graph.node("BitShift", [rows, byte(4)], direction="RIGHT")],
            axis=-1,
        )
        two, top = (graph.constant(np.array(value, np.float32)) for value in (2, 2**WORD_BITS - 1))
        codes = graph.node(
            "Cast",
            [graph.node("Reshape", [pair, constant(1, -1, shape.width // WORD_GROUP, WORD_GROUP)])],
            to=TensorProto.FLOAT,
        )
        numbers = graph.node("Sub", [graph.node("Mul", [codes, two]), top])
        group_scales = graph.node("Gather", [graph.constant(scales.numpy().reshape(len(table), -1)), "input_ids"])
        scaled = graph.node(
            "Mul",
            [
                numbers,
                graph.node("Unsqueeze", [graph.node("Cast", [group_scales], to=TensorProto.FLOAT), constant(-1)]),
            ],
        )
        return graph.node("Reshape", [scaled, constant(1, -1, shape.width)])

    def visibility() -> str:
        """What is added to the scores of two tokens."""
        theirs, ours = graph.node("Unsqueeze", ["block_ids", first]), graph.node("Unsqueeze", ["block_ids", second])
        visible = graph.node("Or", [graph.node("Equal", [theirs, zero]), graph.node("Equal", [theirs, ours])])
        bias = graph.node(
            "Where", [visible, graph.constant(np.array(0, np.float32)), graph.constant(np.array(BLOCKED, np.float32))]
        )
        bias = graph.node("Unsqueeze", [bias, first])
        if shape.buckets:
            buckets = bucket_of(torch.arange(1 - shape.positions, shape.positions), shape.buckets).numpy()
            apart = graph.node(
                "Sub",
                [graph.node("Unsqueeze", ["position_ids", first]), graph.node("Unsqueeze", ["position_ids", second])],
            )
            index = graph.node("Add", [apart, graph.constant(np.array(shape.positions - 1, np.int64))])
            of_distance = graph.node("Gather", [graph.constant(weights["encoder.distances.weight"][buckets]), index])
            bias = graph.node("Add", [bias, graph.node("Transpose", [of_distance], perm=[0, 3, 1, 2])])
        return bias

    ids = "input_ids"
    if sentence:
        parts = [
            graph.node("Slice", [ids, constant(start), constant(end), constant(1)])
            for start, end in ((0, 1), (1, 2**62))
        ]
        ids = graph.node("Concat", [parts[0], graph.constant(np.array([shape.prefix], np.int64)), parts[1]], axis=1)
        table = weights["encoder.positions.weight"] + weights["encoder.types.weight"][0]
        added = graph.node(
            "Unsqueeze",
            [
                graph.node(
                    "Slice", [graph.constant(table), constant(0), graph.node("Shape", [ids], start=1), constant(0)]
                ),
                constant(0),
            ],
        )
    else:
        added = graph.node("Gather", [half(weights["encoder.positions.weight"]), "position_ids"])
    if shape.types and not sentence:
        in_option = graph.node("Cast", [graph.node("Greater", ["block_ids", zero])], to=TensorProto.INT64)
        added = graph.node(
            "Add", [added, graph.node("Gather", [graph.constant(weights["encoder.types.weight"]), in_option])]
        )
    x = norm_of_sum(words(ids), added, "encoder.norm")

    bias = None if sentence else visibility()
    for index in range(shape.layers):
        name = f"encoder.layers.{index}"
        projected = linear(x, [f"{name}.{part}" for part in ("query", "key", "value")])
        query, key, value = graph.node("Split", [projected], outputs=3, axis=-1, num_outputs=3)
        context = graph.node(
            "MultiHeadAttention",
            [query, key, value] + ([] if bias is None else ["", "", bias]),
            domain=RUNTIME,
            num_heads=shape.heads,
        )
        x = norm_of_sum(linear(context, [f"{name}.attended"]), x, f"{name}.attended_norm")
        inner = graph.node("Gelu", [linear(x, [f"{name}.inner"])], domain=RUNTIME)
        x = norm_of_sum(linear(inner, [f"{name}.outer"]), x, f"{name}.outer_norm")

    if sentence:
        mean = graph.node("ReduceMean", [x, constant(1)], keepdims=0)
        away = graph.node(
            "Sub",
            [
                graph.node("Div", [mean, graph.node("ReduceL2", [mean, constant(1)], keepdims=1)]),
                graph.constant(weights["encoder.centre"]),
            ],
        )
        graph.nodes.append(
            helper.make_node(
                "Div", [away, graph.node("ReduceL2", [away, constant(1)], keepdims=1)], ["embedding"], name="embedding"
            )
        )
        return serialised(
            graph,
            shape,
            ["input_ids"],
            [],
            helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, shape.width]),
        )

    at_markers = graph.node("Gather", [graph.node("Squeeze", [x, constant(0)]), "markers"])
    dense = graph.node(
        "Add",
        [graph.node("MatMul", [at_markers, half(weights["dense.weight"].T)]), graph.constant(weights["dense.bias"])],
    )
    score = graph.node(
        "MatMul", [graph.node("Gelu", [dense], domain=RUNTIME), graph.constant(weights["score.weight"].T)]
    )
    score = graph.node("Add", [score, graph.constant(weights["score.bias"])])
    graph.nodes.append(helper.make_node("Reshape", [score, minus_one], ["scores"], name="scores"))

    markers = helper.make_tensor_value_info("markers", TensorProto.INT64, ["options"])
    return serialised(
        graph,
        shape,
        ["input_ids", "position_ids", "block_ids"],
        [markers],
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["options"]),
    )


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


def four_bits(table: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Words that came as (code - 8) * scale in blocks, whose greatest is -8 scales: the whole numbers [rows, width] and the scales [rows, blocks]."""
    blocks = table.reshape(len(table), -1, block)
    greatest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)
    scales = (greatest / -8).astype(np.float16)
    return np.clip(np.round(blocks / np.where(scales == 0, 1, scales).astype(np.float32)), -8, 7).astype(
        np.int8
    ).reshape(table.shape), scales[..., 0]
