"""The family in Python, from a package folder alone: ONNX Runtime and numpy, one choice and one window a run, as an
engine does it.

Slow and plain on purpose: it is what the package is measured with before the service is there, and what golden cases
come from.
"""

import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from . import export
from .export import weights_within
from .finder import Finder
from .stack import FEATURES, Scored, Stack, Words, closeness, leaning
from .stage_b import Pack, in_packs, pack
from .tokens import CLS, SEP, Reader
from .unread import Rule, share_by, tempered
from .windows import FIRST, PREMISE, fits, holds_first, join, readable, split_premise
from .wordings import STEPS

# A character that a reader sees: neither white space nor a control nor without width (Default_Ignorable_Code_Point of
# Unicode); U+2800 is Braille's empty cell.
SEEN = re.compile(
    "[^\\s\\x00-\\x1f\\x7f-\\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def in_fp32(folder: Path) -> "Package":
    """A package whose weights, as its graphs have them, are multiplied in fp32."""
    graphs = json.loads((folder / "model.json").read_text())["options"]["graphs"]
    weights = [folder / name for name in graphs.get("stage_b_weights", [])]
    stages = (weights_within(folder / graphs[name], weights) for name in ("stage_a", "stage_b"))
    return Package(folder, *map(export.in_fp32, stages))


def session(graph: Path | bytes) -> onnxruntime.InferenceSession:
    """One thread, as in an engine."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        graph if isinstance(graph, bytes) else str(graph), options, providers=["CPUExecutionProvider"]
    )


@dataclass(frozen=True)
class Parts:
    """What the stages say of a request's windows, by choices in code-unit order; `order`: their places as asked."""

    scored: list[Scored]
    relevance: np.ndarray
    order: list[int]
    tokens: int


@dataclass(frozen=True)
class Answer:
    """P [choices] in the order asked, the joined scores of a single window (None for several), and the tokens read."""

    probabilities: np.ndarray
    scored: Scored | None
    tokens: int


class Package:
    """A loaded package; `decide` answers one request.

    `stage_a` and `stage_b` may be other graphs (fp32) than the package's own, or files of such, and `unread` another
    rule.
    """

    def __init__(
        self,
        folder: Path,
        stage_a: Path | bytes | None = None,
        stage_b: Path | bytes | None = None,
        unread: Rule | None = None,
    ):
        self.model = json.loads((folder / "model.json").read_text())
        options = self.model["options"]
        self.a = session(stage_a or folder / options["graphs"]["stage_a"])
        weights = options["graphs"].get("stage_b_weights", [])
        own_b = folder / options["graphs"]["stage_b"]
        self.b = session(stage_b or (weights_within(own_b, [folder / name for name in weights]) if weights else own_b))
        tokenizer = Tokenizer.from_file(str(folder / options["tokenizer"]))
        self.reader = Reader(tokenizer, json.loads((folder / options["symbols"]).read_text(encoding="utf-8")))
        rule = options["stack"]
        used = tuple(FEATURES.index(name) for name in rule["features"])
        self.stack = Stack(
            used, np.array(rule["alpha"]), np.array(rule["beta"]), tuple(rule["a_temperature"]), rule["lean"]
        )
        self.best, self.pack_tokens = options["best"], options["pack_tokens"]
        self.kappa = (options["windows"]["kappa_confidence"], options["windows"]["kappa_relevance"])
        self.finder = Finder.load(folder / options["windows"]["finder"])
        self.words = Words(
            [self.reader.plain(text) for text in rule["verdicts"]],
            self.reader.plain(rule["negation"]),
            [self.reader.plain(text) for text in rule["residuals"]],
            [self.reader.plain(text) for text in rule.get("steps", STEPS)],
        )
        self.unread = unread or Rule(**self.model.get("unread", {}))
        self.share = share_by(tokenizer) if self.unread.pull else lambda ids: 0.0
        self.leanings: dict[tuple, np.ndarray] = {}
        self.cache: OrderedDict[tuple[int, ...], np.ndarray] = OrderedDict()

    def vector(self, ids: list[int], keep: bool = False) -> np.ndarray:
        """The vector of one text; kept for choices."""
        key = tuple(ids)
        if key not in self.cache:
            value = self.a.run(None, {"input_ids": np.array([[CLS, *ids, SEP]], np.int64)})[0][0]
            if not keep:
                return value
            self.cache[key] = value
        return self.cache[key]

    def scores(self, carried: list[int], window: list[int], options: list[list[int]]) -> np.ndarray:
        """b of the options, over as many packs as they need."""
        return np.concatenate(
            [
                self.run(pack(carried, window, part))
                for part in in_packs(len(carried) + len(window) + 3, options, self.pack_tokens)
            ]
        )

    def leaning(self, carried: list[int], options: list[list[int]]) -> np.ndarray:
        """What the question and the options lean to without a text; kept, since questions come again."""
        key = (tuple(carried), tuple(map(tuple, options)))
        if key not in self.leanings:
            self.leanings[key] = leaning(self.scores(carried, [], options), self.words.residual(options))
        return self.leanings[key]

    def run(self, packed: Pack) -> np.ndarray:
        """b of one pack's options."""
        feed = {
            "input_ids": [packed.ids],
            "position_ids": [packed.positions],
            "block_ids": [packed.blocks],
            "markers": packed.markers,
        }
        return self.b.run(None, {name: np.array(value, np.int64) for name, value in feed.items()})[0]

    def parts(self, text: str, instruction: str, choices: list[str], longest: int | None = None) -> Parts:
        """What the stages say of every window that is read. `longest`: cut the input to so many tokens."""
        order = sorted(range(len(choices)), key=lambda i: choices[i].encode("utf-16-be"))
        options = [self.reader.choice(choices[i]) for i in order]
        vectors = np.stack([self.vector(o, keep=True) for o in options])
        question, whole = self.reader.plain(instruction), self.reader.plain(text)[:longest]
        lines = [whole] if longest or fits(question, whole) else self.reader.lines(text)
        carried, windows = split_premise(question, lines)
        asked = self.vector(carried, keep=True)
        segments = np.stack([self.vector(w) for w in windows])
        relevance = self.finder.relevance(segments, asked, vectors)
        chosen = np.sort(np.argsort(-relevance, kind="stable")[: readable(carried, options, self.pack_tokens)])
        texts, read_vectors, weights = [windows[w] for w in chosen], segments[chosen], relevance[chosen]
        longest_blocks = sorted(options, key=len)[-self.best :]
        if len(windows) > 1 and holds_first(longest_blocks, self.pack_tokens):
            first = [token for window in windows for token in window][: PREMISE - 3 - len(carried)]
            texts, read_vectors, weights = (
                [*texts, first],
                np.vstack([read_vectors, self.vector(first)]),
                np.append(weights, relevance.mean() + FIRST),
            )
        a = read_vectors @ vectors.T
        best = np.sort(np.argsort(-a.max(0), kind="stable")[: self.best])
        read = [options[i] for i in best]
        lean = self.leaning(carried, read) if len(choices) <= self.best else np.zeros(len(read))
        near, size, given = (
            closeness(vectors[best]),
            float(np.mean([len(option) for option in read])),
            self.words.of(read),
        )
        scored = [
            Scored(
                a[j],
                best,
                self.scores(carried, text, read),
                lean,
                near,
                size,
                float(read_vectors[j] @ asked),
                *given,
                -1,
                "",
            )
            for j, text in enumerate(texts)
        ]
        return Parts(scored, weights, order, len(question) + len(whole))

    def decide(self, text: str, instruction: str, choices: list[str]) -> Answer:
        """Answers one request."""
        parts = self.parts(text, instruction, choices)
        probabilities = np.empty(len(choices))
        probabilities[parts.order] = join(parts.scored, parts.relevance, self.stack, self.kappa)
        ids = self.reader.plain(text)
        probabilities = tempered(probabilities, self.unread.temperature(self.share(ids)))
        if not ids or not SEEN.search(text):
            probabilities = np.full(len(choices), 1 / len(choices))
        return Answer(probabilities, parts.scored[0] if len(parts.scored) == 1 else None, parts.tokens)
