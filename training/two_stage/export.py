"""Both stages as ONNX graphs, with what is large in files of their own.

Stages of one shape hold their word table [vocabulary, ...] and the scales of its rows as external data in one file, so
that a package carries it once. A larger stage B keeps all of its larger constants in files of their own, in an entropy
code. The encoder graph of stage A is the one of `minilm-l6`; see `training/minilm/encoder_graph.py`.
"""

import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "minilm"))

import encoder_graph

from . import stage_b_graph
from .encoder import MINILM, Encoder
from .stage_b import StageB

WORDS_FILE, WEIGHTS_FILE = "words.bin", "stage-b.{}.bits"
# In bytes, of a constant that stands in such a file, and of all in one before they are coded.
LEAST_APART, MOST_A_FILE = 65_536, 70_000_000
BERT_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "attended_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "outer_norm": "output.LayerNorm",
}


def bert_names(encoder: Encoder) -> dict[str, np.ndarray]:
    """The encoder's weights under BERT's names."""
    ours = {name: value.detach().float().cpu().numpy() for name, value in encoder.state_dict().items()}
    theirs = {
        "embeddings.word_embeddings.weight": ours["words.weight"],
        "embeddings.position_embeddings.weight": ours["positions.weight"],
        "embeddings.token_type_embeddings.weight": ours["types.weight"],
        "embeddings.LayerNorm.weight": ours["norm.weight"],
        "embeddings.LayerNorm.bias": ours["norm.bias"],
    }
    for index in range(encoder.shape.layers):
        for part, name in BERT_LAYER.items():
            for kind in ("weight", "bias"):
                theirs[f"encoder.layer.{index}.{name}.{kind}"] = ours[f"layers.{index}.{part}.{kind}"]
    return theirs


def stage_a(encoder: Encoder, precision: str, large: dict | None = None) -> bytes:
    """Graph `input_ids` [1, tokens] -> `embedding` [1, 384].

    `large`: of an encoder with a prefix, what its products' channels are divided by.
    """
    if encoder.shape.prefix:
        return stage_b_graph.build(
            {f"encoder.{name}": value.detach().float().cpu().numpy() for name, value in encoder.state_dict().items()},
            encoder.shape,
            precision,
            large or {},
            sentence=True,
        )
    return encoder_graph.build(bert_names(encoder), precision)


def stage_b(model: StageB, precision: str, large: dict) -> bytes:
    """Graph of `stage_b_graph`."""
    return stage_b_graph.build(
        {name: value.detach().float().cpu().numpy() for name, value in model.state_dict().items()},
        model.encoder.shape,
        precision,
        large,
    )


def outside(tensor: onnx.TensorProto, file: str, offset: int, length: int) -> None:
    """Makes the tensor one whose data is elsewhere."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", file), ("offset", str(offset)), ("length", str(length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def weights_apart(graph: bytes) -> tuple[bytes, dict[str, bytes]]:
    """A graph with its larger constants as external data, and the files of these by name.

    Each file has eight bytes with the length of its constants, and these one after another in an entropy code: weights
    of five bits, kept in bytes, take 4.3 bits so.
    """
    model = onnx.load_from_string(graph)
    parts: list[bytearray] = []
    for tensor in model.graph.initializer:
        data = b"" if tensor.data_location == TensorProto.EXTERNAL else content_of(tensor)
        if len(data) >= LEAST_APART:
            if not parts or len(parts[-1]) + len(data) > MOST_A_FILE:
                parts.append(bytearray())
            outside(tensor, WEIGHTS_FILE.format(len(parts)), len(parts[-1]), len(data))
            parts[-1] += data
    files = {WEIGHTS_FILE.format(number): coded(bytes(part)) for number, part in enumerate(parts, start=1)}
    return model.SerializeToString(deterministic=True), files


def coded(data: bytes) -> bytes:
    """A file of coded weights."""
    # Matches of weights are chance, and looking for them would take minutes.
    coder = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_HUFFMAN_ONLY)
    return len(data).to_bytes(8, "little") + coder.compress(data) + coder.flush()


def content_of(tensor: TensorProto) -> bytes:
    """The bytes of a constant; four bits as they are packed."""
    return tensor.raw_data or numpy_helper.to_array(tensor).tobytes()


def weights_within(graph: Path, weights: Sequence[Path]) -> bytes:
    """The graph of `weights_apart` with all that it has of other files inside again."""
    model = onnx.load(str(graph), load_external_data=False)
    files = {path.name: zlib.decompress(path.read_bytes()[8:]) for path in weights if path.suffix == ".bits"}
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            place = {entry.key: entry.value for entry in tensor.external_data}
            name, start = place["location"], int(place["offset"])
            if name not in files:
                files[name] = (graph.parent / name).read_bytes()
            tensor.ClearField("external_data")
            tensor.data_location = TensorProto.DEFAULT
            tensor.raw_data = files[name][start : start + int(place["length"])]
    return model.SerializeToString()


def in_fp32(graph: bytes) -> bytes:
    """The graph with products of the same weights in fp32 in the place of those in int8."""
    model = onnx.load_from_string(graph)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type != "DynamicQuantizeMatMul":
            nodes.append(node)
            continue
        value, weights, scales, _, *bias = node.input
        exact = numpy_helper.to_array(constants[weights]) * numpy_helper.to_array(constants[scales])
        constants[weights].CopyFrom(numpy_helper.from_array(exact.astype(np.float32), weights))
        product = [f"{node.output[0]}.exact"] if bias and bias[0] else list(node.output)
        nodes.append(helper.make_node("MatMul", [value, weights], product))
        if bias and bias[0]:
            nodes.append(helper.make_node("Add", [*product, bias[0]], list(node.output)))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString(deterministic=True)


def without_words(graph: bytes, file: str = WORDS_FILE, vocabulary: int = MINILM.vocabulary) -> tuple[bytes, bytes]:
    """The graph with its word table and their scales moved out, and the bytes of `file`: table, then scales."""
    model = onnx.load_from_string(graph)
    by_rows = [t for t in model.graph.initializer if list(t.dims)[:1] == [vocabulary]]
    parts, offset = [], 0
    for tensor in sorted(by_rows, key=lambda t: -t.dims[1]):
        data = content_of(tensor)
        outside(tensor, file, offset, len(data))
        parts.append(data)
        offset += len(data)
    return model.SerializeToString(deterministic=True), b"".join(parts)
