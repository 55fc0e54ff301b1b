"""Both stages read back from a package's graphs, to train on from them: `--start-from models/umpire-mini/<revision>`.

The nodes of a graph stand in the order in which `export` wrote them: the norm of the embeddings, then for each layer
query, key and value together, the attention's output, a norm, the two products of the feed-forward part, a norm. The
word embeddings come from the base model, whose table both graphs share; the rest is as exact as seven bits a weight
are, or five in a package whose stage B is larger. Of that one the layers that training leaves as they are come from the
weights that it grows from, as do its words and positions.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, numpy_helper

from .encoder import DEVICE, MINILM, WIDTH, Encoder, Shape
from .export import weights_within
from .stage_b import StageB

# The operators that tell where a layer's parts stand.
NORM, PRODUCT = "SkipLayerNormalization", "DynamicQuantizeMatMul"


class Graph:
    """The nodes of one kind in order, and the constants by name."""

    def __init__(self, source: Path | bytes):
        graph = (
            onnx.load_from_string(source)
            if isinstance(source, bytes)
            else onnx.load(str(source), load_external_data=False)
        ).graph
        self.nodes = list(graph.node)
        self.by_output = {name: node for node in self.nodes for name in node.output}
        self.constants = {
            t.name: numpy_helper.to_array(t) for t in graph.initializer if t.data_location != TensorProto.EXTERNAL
        }
        # Constants that are kept in 16 bits stand under the name of what they are cast to.
        self.constants |= {
            n.output[0]: self.constants[n.input[0]].astype(np.float32)
            for n in self.of("Cast")
            if n.input[0] in self.constants and self.constants[n.input[0]].dtype == np.float16
        }

    def of(self, operator: str) -> list[onnx.NodeProto]:
        """The nodes of one kind."""
        return [node for node in self.nodes if node.op_type == operator]

    def product(self, node: onnx.NodeProto) -> tuple[np.ndarray, np.ndarray | None]:
        """Weight [out, in] and bias of a quantised product; channels that were divided before it are put back, and
        those that were kept out of it.
        """
        matrix = self.constants[node.input[1]].astype(np.float32) * self.constants[node.input[2]]
        before = self.by_output.get(node.input[0])
        if before is not None and before.op_type == "Mul" and before.input[1] in self.constants:
            matrix = matrix * self.constants[before.input[1]][:, None]
        for added in self.of("Add"):
            beside = self.by_output.get(added.input[1]) if added.input[0] == node.output[0] else None
            if beside is not None and beside.op_type == "MatMul":
                matrix[self.constants[self.by_output[beside.input[0]].input[1]]] = self.constants[beside.input[1]]
        return matrix.T, self.constants[node.input[4]] if len(node.input) > 4 and node.input[4] else None

    def norm(self, node: onnx.NodeProto) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Scale and offset of a norm, and the bias of the product before it where that left it to the norm."""
        return (
            self.constants[node.input[2]],
            self.constants[node.input[3]],
            self.constants[node.input[4]] if len(node.input) > 4 else None,
        )


def layers(graph: Graph, shape: Shape = MINILM) -> dict[str, np.ndarray]:
    """The weights of the norm of the embeddings and of all layers by the names of `Encoder`."""
    norms, products = [graph.norm(n) for n in graph.of(NORM)], [graph.product(n) for n in graph.of(PRODUCT)]
    found = {"norm.weight": norms[0][0], "norm.bias": norms[0][1]}
    width = shape.width
    for index in range(shape.layers):
        (qkv, qkv_bias), (attended, attended_bias), inner, (outer, outer_bias) = products[4 * index : 4 * index + 4]
        first, second = norms[2 * index + 1], norms[2 * index + 2]
        parts = {
            **{
                part: (qkv[i * width : (i + 1) * width], qkv_bias[i * width : (i + 1) * width])
                for i, part in enumerate(("query", "key", "value"))
            },
            "attended": (attended, attended_bias if attended_bias is not None else first[2]),
            "attended_norm": first[:2],
            "inner": inner,
            "outer": (outer, outer_bias if outer_bias is not None else second[2]),
            "outer_norm": second[:2],
        }
        for part, (weight, bias) in parts.items():
            found |= {f"layers.{index}.{part}.weight": weight, f"layers.{index}.{part}.bias": bias}
    return found


def tables(graph: Graph) -> list[np.ndarray]:
    """The position and type embeddings that the graph holds, the longest first."""
    return sorted(
        (
            c
            for c in graph.constants.values()
            if c.ndim == 2
            and c.shape[1] == WIDTH
            and c.dtype == np.float32
            and len(c) not in (MINILM.vocabulary, WIDTH)
        ),
        key=len,
        reverse=True,
    )


def into(encoder: Encoder, state: dict[str, np.ndarray]) -> None:
    """Puts weights into an encoder; only the words and types may be missing, which it has already."""
    missing, unknown = encoder.load_state_dict(
        {k: torch.from_numpy(np.array(v, np.float32)) for k, v in state.items()}, strict=False
    )
    if unknown or set(missing) - {"words.weight", "types.weight"}:
        raise ValueError(f"the graph lacks {missing} or has {unknown}")


def stage_a(path: Path, base: Encoder) -> Encoder:
    """Stage A of a package; its graph has the embedding of type 0 folded into the positions."""
    graph = Graph(path)
    encoder = Encoder()
    encoder.load_state_dict(base.state_dict())
    into(encoder, {**layers(graph), "positions.weight": tables(graph)[0] - base.types.weight[0].detach().cpu().numpy()})
    return encoder.to(DEVICE).eval()


def stage_b(package: Path, base: Encoder) -> StageB:
    """Stage B of a package, grown from `base`."""
    options = json.loads((package / "model.json").read_text())["options"]["graphs"]
    path, apart = package / options["stage_b"], options.get("stage_b_weights")
    graph = Graph(weights_within(path, package / apart) if apart else path)
    encoder = Encoder(base.shape)
    encoder.load_state_dict(base.state_dict())
    if apart:
        into(encoder, {**encoder.state_dict(), **layers(graph, base.shape)})
    else:
        positions, types = tables(graph)[:2]
        into(encoder, {**layers(graph), "positions.weight": positions, "types.weight": types})
    model = StageB(encoder)
    (dense, score), (dense_bias, score_bias) = (
        [
            [graph.constants[i] for n in graph.of(kind) for i in n.input if i in graph.constants and i != ""]
            for kind in ("MatMul", "Add")
        ][k][-2:]
        for k in (0, 1)
    )
    with torch.no_grad():
        for part, weight, bias in ((model.dense, dense, dense_bias), (model.score, score, score_bias)):
            part.weight.copy_(torch.from_numpy(weight.T.copy()))
            part.bias.copy_(torch.from_numpy(bias.copy()))
    return model.to(DEVICE).eval()
