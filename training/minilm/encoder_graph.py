"""The sentence encoder as an ONNX graph, written node by node from the base weights.

Input  `input_ids`  int64   [1, tokens]  CLS and SEP included, at most 512 tokens, no padding
Output `embedding`  float32 [1, 384]     mean over all positions, L2-normalised

One sequence a run and no padding, so the graph has neither an attention mask nor token types; the embedding of
token type 0 is folded into the positions. The operators of domain com.microsoft are ONNX Runtime's own fused
ones. The same weights give the same bytes on every run.
"""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from base_model import HEADS, HIDDEN, LAYER_NORM_EPSILON, LAYERS

RUNTIME = "com.microsoft"

# Weights span [-63, 63], 7 bits: a CPU without VNNI adds two products of a u8 activation and a weight in 16 bits,
# which 8-bit weights overflow (2 * 255 * 127 > 32767) and 7-bit weights cannot (2 * 255 * 63 = 32130).
WEIGHT_LEVELS = 63
# All 8 bits: rows of embeddings are looked up and multiplied back into floats, and enter no integer product.
EMBEDDING_LEVELS = 127


def quantise_columns(matrix: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric int8 of a [rows, columns] matrix with one float32 scale a column: (int8 matrix, scales)."""
    scales = (np.abs(matrix).max(axis=0) / levels).astype(np.float32)
    return np.clip(np.round(matrix / scales), -levels, levels).astype(np.int8), scales


def divisors() -> dict[str, np.ndarray]:
    """For each quantised product with large channels, what each input channel is divided by (see fit_divisors.py)."""
    exponents = json.loads((Path(__file__).resolve().parent / "divisors.json").read_text())
    return {product: np.array([2.0 ** int(e) for e in digits], np.float32) for product, digits in exponents.items()}


def product_inputs(model: onnx.ModelProto) -> dict[str, str]:
    """The input tensor of every linear layer of the fp32 graph, by the layer's name."""
    return {node.name: node.input[0] for node in model.graph.node if node.op_type == "MatMul"}


class GraphWriter:
    """Collects nodes and initialisers, and names them by their order."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initialisers: list[onnx.TensorProto] = []

    def constant(self, value: np.ndarray) -> str:
        """Adds an initialiser and returns its name."""
        name = f"constant_{len(self.initialisers)}"
        self.initialisers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def four_bits(self, values: np.ndarray, scales: np.ndarray) -> str:
        """Adds whole numbers of 4 bits [rows, columns] and, behind them, their scales; returns the numbers' name."""
        name = f"constant_{len(self.initialisers)}"
        codes = (values & 15).astype(np.uint8)
        self.initialisers.append(
            helper.make_tensor(
                name, TensorProto.INT4, values.shape, (codes[:, 0::2] | codes[:, 1::2] << 4).tobytes(), raw=True
            )
        )
        self.constant(scales)
        return name

    def node(self, operator: str, inputs: list[str], outputs: int = 1, name: str = "", **attributes) -> str | list[str]:
        """Adds a node and returns the name of its output, or the list of their names."""
        name = name or f"{operator}_{len(self.nodes)}"
        names = [name] if outputs == 1 else [f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=name, **attributes))
        return names[0] if outputs == 1 else names


def build(weights: dict[str, np.ndarray], precision: str = "int8") -> bytes:
    """The serialised ONNX model: precision `int8` is the one to ship, `fp32` the one to compare it with."""
    quantised = {"int8": True, "fp32": False}[precision]
    large = divisors() if quantised else {}
    graph = GraphWriter()
    axis = {i: graph.constant(np.array([i], np.int64)) for i in (0, 1)}

    def linear(x: str, name: str, parts: tuple[str, ...] = ("",), bias: bool = False) -> str:
        """x times the transposed weight of a layer, or of its parts side by side; a bias may be added later."""
        matrix = np.concatenate([weights[f"{name}{part}.weight"] for part in parts]).T
        offset = graph.constant(np.concatenate([weights[f"{name}{part}.bias"] for part in parts])) if bias else None
        if quantised:
            if name in large:
                x = graph.node("Mul", [x, graph.constant(1 / large[name])])
                matrix = matrix * large[name][:, None]
            values, scales = quantise_columns(matrix, WEIGHT_LEVELS)
            inputs = [x, graph.constant(values), graph.constant(scales), ""] + ([offset] if bias else [])
            return graph.node("DynamicQuantizeMatMul", inputs, domain=RUNTIME, name=name)
        product = graph.node("MatMul", [x, graph.constant(matrix)], name=name)
        return graph.node("Add", [product, offset]) if bias else product

    def add_and_normalise(x: str, residual: str, name: str, bias: list[str]) -> str:
        """Layer norm of x + residual (+ the bias that a linear layer left out)."""
        inputs = [x, residual, *(graph.constant(weights[f"{name}.{part}"]) for part in ("weight", "bias")), *bias]
        return graph.node("SkipLayerNormalization", inputs, domain=RUNTIME, epsilon=LAYER_NORM_EPSILON)

    def word_embeddings() -> str:
        table = weights["embeddings.word_embeddings.weight"]
        if not quantised:
            return graph.node("Gather", [graph.constant(table), "input_ids"])
        values, scales = quantise_columns(table.T, EMBEDDING_LEVELS)
        rows = graph.node("Gather", [graph.constant(values.T), "input_ids"])
        row_scales = graph.node("Gather", [graph.constant(scales[:, None]), "input_ids"])
        return graph.node("Mul", [graph.node("Cast", [rows], to=TensorProto.FLOAT), row_scales])

    def position_embeddings() -> str:
        table = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        tokens = graph.node("Shape", ["input_ids"], start=1)
        rows = graph.node("Slice", [graph.constant(table), axis[0], tokens, axis[0]])
        return graph.node("Unsqueeze", [rows, axis[0]])

    def encoder_layer(x: str, name: str) -> str:
        projections = linear(x, f"{name}.attention.self", (".query", ".key", ".value"), bias=True)
        query_key_value = graph.node("Split", [projections], outputs=3, axis=-1, num_outputs=3)
        context = graph.node("MultiHeadAttention", query_key_value, domain=RUNTIME, num_heads=HEADS)
        dense = f"{name}.attention.output.dense"
        x = add_and_normalise(
            linear(context, dense), x, f"{name}.attention.output.LayerNorm", [graph.constant(weights[f"{dense}.bias"])]
        )
        inner = graph.node("Gelu", [linear(x, f"{name}.intermediate.dense", bias=True)], domain=RUNTIME)
        dense = f"{name}.output.dense"
        return add_and_normalise(
            linear(inner, dense), x, f"{name}.output.LayerNorm", [graph.constant(weights[f"{dense}.bias"])]
        )

    x = add_and_normalise(word_embeddings(), position_embeddings(), "embeddings.LayerNorm", [])
    for layer in range(LAYERS):
        x = encoder_layer(x, f"encoder.layer.{layer}")
    mean = graph.node("ReduceMean", [x, axis[1]], keepdims=0)
    length = graph.node("ReduceL2", [mean, axis[1]], keepdims=1)
    graph.nodes.append(helper.make_node("Div", [mean, length], ["embedding"], name="embedding"))

    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, HIDDEN])],
            graph.initialisers,
        ),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(RUNTIME, 1)],
        ir_version=9,
        producer_name="umpire",
    )
    return model.SerializeToString(deterministic=True)
