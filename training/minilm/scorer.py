"""The package as the service's bi-encoder family reads it, in Python: for fitting, measuring and checking.

Vectors are L2-normalised float32 [384]. premise = normalise((1 - w) * v(input) + w * v(instruction, input)),
logits = premise . v(choice) / temperature, probabilities = softmax.
"""

import json
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

CLS, SEP = 101, 102
# As many positions as the base model has embeddings of.
MAX_TOKENS = 512


def session(model: Path | bytes) -> onnxruntime.InferenceSession:
    """A session as the service opens it: one thread, no arena."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class Encoder:
    """Vectors of texts by one graph and tokenizer."""

    def __init__(self, model: Path | bytes, tokenizer: str) -> None:
        """`tokenizer` is the text of a tokenizer.json."""
        self.session = session(model)
        self.tokenizer = Tokenizer.from_str(tokenizer)

    def tokens(self, *texts: str) -> list[int]:
        """[CLS] text [SEP], or [CLS] instruction [SEP] input [SEP], as ids."""
        ids = [CLS]
        for text in texts:
            ids += [*self.tokenizer.encode(text, add_special_tokens=False).ids, SEP]
        return ids

    def vector(self, *texts: str) -> np.ndarray:
        """The vector of one sequence; over 512 tokens it is cut, where the service refuses the text."""
        return self.outputs(["embedding"], *texts)[0][0]

    def outputs(self, names: list[str], *texts: str) -> list[np.ndarray]:
        """Any outputs of the graph for one sequence."""
        ids = self.tokens(*texts)
        if len(ids) > MAX_TOKENS:
            ids = [*ids[: MAX_TOKENS - 1], SEP]
        return self.session.run(names, {"input_ids": np.array([ids], np.int64)})


def premise(alone: np.ndarray, joint: np.ndarray, weight: float) -> np.ndarray:
    """The premise's vector; both arguments [..., 384]."""
    mixed = (1 - weight) * alone + weight * joint
    return mixed / np.linalg.norm(mixed, axis=-1, keepdims=True)


def temperature_of(option: float | dict, choices: int) -> float:
    """The manifest's `temperature`: a number, or {"points": [[choices, temperature], ...]} in rising order.

    Between points it is linear in the logarithm of the number of choices, beyond them constant.
    """
    if not isinstance(option, dict):
        return option
    return float(np.interp(np.log(choices), [np.log(n) for n, _ in option["points"]], [t for _, t in option["points"]]))


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Softmax over the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def main() -> None:
    """Decides the package's canary and exits with status 1 if the answer is another one."""
    package = Path(__file__).resolve().parents[2] / "models" / "minilm-l6" / "r2"
    manifest = json.loads((package / "model.json").read_text())
    options, canary = manifest["options"], manifest["canary"]
    encoder = Encoder(package / options["graph"], (package / options["tokenizer"]).read_text())
    alone, joint = encoder.vector(canary["input"]), encoder.vector(canary["instruction"], canary["input"])
    cosines = np.array([encoder.vector(c) for c in canary["choices"]]) @ premise(alone, joint, options["joint_weight"])
    answer = probabilities(cosines / temperature_of(options["temperature"], len(cosines)))
    print(dict(zip(canary["choices"], answer.round(6).tolist(), strict=True)))
    raise SystemExit(canary["choices"][int(answer.argmax())] != canary["choice"])


if __name__ == "__main__":
    main()
