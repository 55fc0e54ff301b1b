"""Both stages as ONNX graphs, with their word embeddings in files of their own.

Each graph holds its word table [vocabulary, ...] and the scales of its rows as external data. Where stage B is of stage A's shape both are the same file,
so the package carries it once. The encoder graph of stage A is the one of `minilm-l6`; see `training/minilm/encoder_graph.py`.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "minilm"))

import encoder_graph  # noqa: E402

from . import stage_b_graph  # noqa: E402
from .encoder import MINILM, Encoder  # noqa: E402
from .stage_b import StageB  # noqa: E402

WORDS_FILE, READER_WORDS_FILE = "words.bin", "words-b.bin"
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


def stage_a(encoder: Encoder, precision: str) -> bytes:
    """Graph `input_ids` [1, tokens] -> `embedding` [1, 384]."""
    return encoder_graph.build(bert_names(encoder), precision)


def stage_b(model: StageB, precision: str, large: dict) -> bytes:
    """Graph of `stage_b_graph`."""
    return stage_b_graph.build({name: value.detach().float().cpu().numpy() for name, value in model.state_dict().items()}, model.encoder.shape, precision, large)


def without_words(graph: bytes, file: str = WORDS_FILE) -> tuple[bytes, bytes]:
    """The graph with its word table and their scales moved out, and the bytes of `file`: table, then scales."""
    model = onnx.load_from_string(graph)
    by_rows = [t for t in model.graph.initializer if list(t.dims)[:1] == [MINILM.vocabulary]]
    parts, offset = [], 0
    for tensor in sorted(by_rows, key=lambda t: -t.dims[1]):
        data = numpy_helper.to_array(tensor).tobytes()
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", file), ("offset", str(offset)), ("length", str(len(data)))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        parts.append(data)
        offset += len(data)
    return model.SerializeToString(deterministic=True), b"".join(parts)
