"""Prints the int8 graph's single-run latency and its nearness to fp32, beside ONNX Runtime's own dynamic quantisation.

One sequence a run on one thread, as the service runs it; of 30 rounds in which the graphs take turns, the fastest
and the median. Nearness: the cosine with the fp32 graph's vectors on sentences.json. Run: python measure_graph.py
"""

import json
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic

import base_model
import encoder_graph
from scorer import CLS, SEP, Encoder

# From a choice of a few words to the longest premise that the package takes.
LENGTHS = (8, 16, 64, 128, 256, 500)
# A round number; the fastest of them moves less from run to run than the median, which is printed as well.
ROUNDS = 30


def quantised_by_the_runtime(fp32: bytes) -> bytes:
    """quantize_dynamic of the fp32 graph: int8 weights, one scale a column, whole range."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "fp32.onnx"), Path(folder, "int8.onnx")
        source.write_bytes(fp32)
        # Shape inference does not know the runtime's own operators; all they give is float.
        extra = {"DefaultTensorType": onnx.TensorProto.FLOAT}
        quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True, extra_options=extra)
        return target.read_bytes()


def main() -> None:
    """Prints the table."""
    weights, tokenizer = base_model.weights(), json.dumps(base_model.tokenizer_json())
    fp32 = encoder_graph.build(weights, "fp32")
    graphs = {"fp32": fp32, "quantize_dynamic": quantised_by_the_runtime(fp32), "package": encoder_graph.build(weights)}
    encoders = {name: Encoder(graph, tokenizer) for name, graph in graphs.items()}
    random = np.random.default_rng(0)
    times = {name: {length: [] for length in LENGTHS} for name in graphs}
    for _ in range(ROUNDS):
        for length in LENGTHS:
            ids = np.array([[CLS, *random.integers(1000, 20000, length - 2), SEP]], np.int64)
            for name, encoder in encoders.items():
                start = time.perf_counter()
                encoder.session.run(None, {"input_ids": ids})
                times[name][length].append(1000 * (time.perf_counter() - start))
    texts = json.loads((Path(__file__).resolve().parent / "sentences.json").read_text(encoding="utf-8"))
    exact = [encoders["fp32"].vector(text) for text in texts]
    print("| graph | bytes | " + " | ".join(f"{length} tokens, ms" for length in LENGTHS) + " | cosine: mean, least |")
    print("| --- " + "| ---: " * (len(LENGTHS) + 2) + "|")
    for name, encoder in encoders.items():
        cells = [f"{min(values):.1f} ({np.median(values):.1f})" for values in times[name].values()]
        cosines = [float(encoder.vector(text) @ vector) for text, vector in zip(texts, exact, strict=True)]
        nearness = f"{np.mean(cosines):.4f}, {min(cosines):.4f}"
        print(f"| {name} | {len(graphs[name])} | " + " | ".join(cells) + f" | {nearness} |")


if __name__ == "__main__":
    main()
