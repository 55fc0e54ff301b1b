"""Cases that another implementation of the family is held to: how texts are read, how packs are laid out, what the stages and the
package answer. Written to `test/golden/<model>/`.

`python -m two_stage.golden --package FOLDER --work FOLDER --out FOLDER`
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from .encoder import load_base
from .export import stage_a as graph_of_a
from .export import stage_b as graph_of_b
from .reference import Package, session
from .rounding import set_rounding
from .stage_a import embed, framed
from .stage_b import pack

TEXTS = [
    "hello world",
    "I love it 😀",
    "👍🏽 great",
    "🇫🇷 or 🇺🇸?",
    "price → 5 €",
    "[SEP] is plain text",
    "naïve café",
    "5 ≤ x ≠ 7",
    "a\u200db",
    "☂",
    "東京",
    "snake_case stays here",
]
CHOICES = [
    "play_music",
    "playMusic",
    "PlayMusic",
    "PLAY_MUSIC",
    "play-music",
    "play music",
    "iPhone",
    "HTTPServer",
    "turnOnLights",
    "e-mail support",
    "well-known",
    "__init__",
    "_",
    "😀",
    "😢",
    "👍",
    "👎",
    "24/7",
    "[CLS]",
    "  padded  ",
    "ORDER_STATUS",
    "refundRequest",
    "A-1",
    "naïve_choice",
]
REQUESTS = [
    ("The parcel never arrived and nobody answers my mails.", "Is the customer satisfied?", ["yes", "no"]),
    (
        "I was charged twice for my order",
        "Which team should handle this?",
        ["billing", "shipping", "technical support"],
    ),
    ("What a wonderful evening, thank you all!", "Which emotion is expressed?", ["anger", "joy", "sadness", "fear"]),
    (
        "Put some jazz on in the kitchen",
        "What does the user want?",
        ["playMusic", "set_alarm", "TURN_ON_LIGHTS", "weather forecast", "none of these"],
    ),
    (
        "A man is playing a guitar on stage.",
        'According to the text, is the following statement true? "A person makes music."',
        ["true", "false", "cannot be determined"],
    ),
    ("so good 😀", "Which emoji fits?", ["😀", "😢", "😡"]),
    (
        "The central bank raised interest rates by half a point.",
        "What is this about?",
        ["sports", "the economy", "science", "film", "war", "health", "music", "cooking"],
    ),
    ("Who wrote Faust?", "What kind of answer is wanted?", [f"topic {i}" for i in range(40)]),
]


def layout_cases(package: Package) -> list[dict]:
    """Packs of the requests with one window, by the laid-down order of choices."""
    cases = []
    for text, instruction, choices in REQUESTS:
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


def main() -> None:
    from .recipe import final_stages, minilm_folder

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    package = Package(arguments.package)
    encoder, model = final_stages(arguments.work, load_base(minilm_folder() / "model.safetensors"))
    set_rounding(model, None)  # the fp32 graph has the weights as they are
    reader = package.reader
    texts = {
        "plain": [{"text": t, "read": reader.text.plain(t), "ids": reader.plain(t)} for t in TEXTS],
        "choice": [{"text": t, "read": reader.text.choice(t), "ids": reader.choice(t)} for t in CHOICES],
    }
    layouts = layout_cases(package)
    worst = 0.0
    fp32_a, fp32_b = arguments.work / "stage-a.fp32.onnx", arguments.work / "stage-b.fp32.onnx"
    fp32_a.write_bytes(graph_of_a(encoder, "fp32"))
    fp32_b.write_bytes(graph_of_b(model, "fp32", {}))
    graph_a, graph_b = session(fp32_a), session(fp32_b)
    for case in layouts:
        feed = {name: np.array([case[name]], np.int64) for name in ("input_ids", "position_ids", "block_ids")} | {
            "markers": np.array(case["markers"], np.int64)
        }
        p = pack(
            reader.plain(case["instruction"]), reader.plain(case["input"]), [reader.choice(c) for c in case["choices"]]
        )
        with torch.inference_mode():
            torch_b = model([p])[0].cpu().numpy()
            torch_a = embed(encoder, [framed(reader.plain(case["input"]))])[0].cpu().numpy()
        onnx_b = graph_b.run(None, feed)[0]
        onnx_a = graph_a.run(None, {"input_ids": np.array([framed(reader.plain(case["input"]))], np.int64)})[0][0]
        halves = [
            pack(reader.plain(case["instruction"]), reader.plain(case["input"]), [reader.choice(c) for c in part])
            for part in (case["choices"][:1], case["choices"][1:])
        ]
        split = np.concatenate(
            [
                graph_b.run(
                    None,
                    {
                        "input_ids": np.array([h.ids]),
                        "position_ids": np.array([h.positions]),
                        "block_ids": np.array([h.blocks]),
                        "markers": np.array(h.markers),
                    },
                )[0]
                for h in halves
            ]
        )
        worst = max(
            worst,
            float(np.abs(torch_b - onnx_b).max()),
            float(np.abs(torch_a - onnx_a).max()),
            float(np.abs(split - onnx_b).max()),
        )
        case["pytorch_scores"] = [round(float(x), 6) for x in torch_b]
        case["pytorch_vector_start"] = [round(float(x), 6) for x in torch_a[:8]]
    print(f"fp32 ONNX against PyTorch, and split packs against whole: largest difference {worst:.2e}")
    if worst > 1e-4:
        raise SystemExit("the graphs do not agree with PyTorch")
    filler = " ".join(f"Paragraph {i} of the minutes records what was said about item {i}." for i in range(90))
    long_text = filler + " I want my money back, the kettle is broken. " + filler
    lines = "\n\n".join(
        [
            *(f"{i}. the minutes of meeting number {i} and who was there" for i in range(60)),
            "book me a table for two",
            *(f"{i}. a list of what was bought in week {i}" for i in range(60)),
        ]
    )
    wanted = ["a refund", "a recipe", "a train ticket", "a table in a restaurant"]
    requests = [
        *REQUESTS,
        (long_text, "What does the customer want?", wanted),
        (lines, "What does the user want?", wanted),
    ]
    answers = []
    for text, instruction, choices in requests:
        answer = package.decide(text, instruction, choices)
        answers.append(
            {
                "input": text,
                "instruction": instruction,
                "choices": choices,
                "tokens": answer.tokens,
                "probabilities": [round(float(p), 6) for p in answer.probabilities],
            }
        )
    for name, content in (("texts", texts), ("packs", layouts), ("decisions", answers)):
        (arguments.out / f"{name}.json").write_text(
            json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
