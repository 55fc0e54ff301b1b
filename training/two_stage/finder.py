"""Which segments of a long text the question is about: a small bilinear form over stage A's vectors.

    r = near * max_i s(cos(segment, choice_i)) + asked * s(cos(segment, instruction))
        + own . segment + sum_j (segment_j . segment)(instruction_j . instruction)

s counts standard deviations from the mean over the text's segments: what is near everywhere tells nothing. The form
knows what kind of sentence answers what kind of question: someone's request, a judgement, a statement of fact. It is
trained on the recipe's rows, whose input is hidden among segments of other sets; the loss is the log probability of the
hidden one.
"""

import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from .encoder import WIDTH, Encoder
from .mix import Mix
from .pool import INTENT_SETS
from .records import CROSSED, EVEN, TEACHER, Decision
from .stage_a import framed, vectors
from .tokens import Reader
from .windows import CARRIED_INSTRUCTION, sentences

# The rank of the form, and its training: steps, rows a step, learning rate, weight decay, how far vectors are blurred.
RANK, STEPS, BATCH, RATE, DECAY, NOISE = 32, 1500, 32, 5e-3, 0.3, 0.3
# Tasks without a text of their own, and those whose answer is the set that a text is from: any filler would answer
# them.
LEFT_OUT = ("echo", "unrelated", "open_question", "domain", "domain_pair", "title")
# What texts are hidden in: every second row, the others are what is measured with (`needles.py`).
HAYSTACKS = (
    "conjnli",
    "cad_imdb",
    "goemotions",
    "sgd_intent",
    "multidogo_airline",
    "multidogo_insurance",
    "multidogo_fastfood",
    "semeval2010_relation",
    "hate_offensive",
    "vader_nyt",
    "newsmtsc",
    "boolq",
    "openbookqa",
    "mnli",
    "cad_nli",
    "query_wellformed",
    "figqa",
    "csqa2",
    "nlupp_banking",
    "defeasible_nli",
)
# Rows that are drawn, and the segments that one may have at most to be hidden; segments of each haystack, and how many
# of them are around a row.
ROWS, LONGEST, HAY, SIZES = 16_000, 2, 1200, (20, 60, 100)


@dataclass(frozen=True)
class Finder:
    """The form's numbers: own [width], segment and instruction [rank, width]."""

    near: float
    asked: float
    own: np.ndarray
    segment: np.ndarray
    instruction: np.ndarray

    def relevance(self, segments: np.ndarray, instruction: np.ndarray, choices: np.ndarray) -> np.ndarray:
        """[segments]; all arguments are vectors by rows."""
        near, asked = standardised(segments @ choices.T).max(1), standardised(segments @ instruction)
        return (
            self.near * near
            + self.asked * asked
            + segments @ (self.own + self.segment.T @ (self.instruction @ instruction))
        )

    def save(self, path: Path) -> None:
        """Writes the numbers, to five decimals."""

        def short(value: np.ndarray | float) -> list | float:
            return np.round(np.asarray(value, np.float64), 5).tolist()

        path.write_text(
            json.dumps({name: short(value) for name, value in asdict(self).items()}, separators=(",", ":")) + "\n"
        )

    @staticmethod
    def load(path: Path) -> "Finder":
        """Reads what `save` wrote."""
        return Finder(
            **{
                name: value if isinstance(value, float) else np.array(value)
                for name, value in json.loads(path.read_text()).items()
            }
        )


def standardised(values):
    """[segments, ...] in standard deviations from the mean over the segments; arrays or tensors."""
    mean = values.mean(0)
    return (values - mean) / (((values - mean) ** 2).mean(0) ** 0.5 + 1e-6)


@dataclass(frozen=True)
class Needle:
    """A row as vectors: its text's segments, its instruction, its choices; and the set that it is from."""

    set: str
    segments: Tensor
    instruction: Tensor
    choices: Tensor


def needles(mix: Mix, encoder: Encoder, reader: Reader, seed: int) -> list[Needle]:
    """Rows of the recipe's tasks whose text is one or two segments."""
    weights = {name: task.weight for name, task in mix.tasks.items() if name not in LEFT_OUT}
    rows = [
        (row, sentences(reader.plain(row.input)))
        for _, row in mix.rows(ROWS, seed, weights)
        if row.label not in (TEACHER, EVEN, CROSSED)
    ]
    rows = [(row, segments) for row, segments in rows if 0 < len(segments) <= LONGEST]

    def encoded(texts: list[tuple[int, ...]]) -> dict[tuple[int, ...], np.ndarray]:
        return dict(zip(texts, vectors(encoder, [framed(list(text)) for text in texts]), strict=True))

    def asked(row: Decision) -> tuple[int, ...]:
        return tuple(reader.plain(row.instruction)[:CARRIED_INSTRUCTION])

    known = encoded(
        sorted(
            {tuple(s) for _, segments in rows for s in segments}
            | {asked(row) for row, _ in rows}
            | {tuple(reader.choice(c)) for row, _ in rows for c in row.choices}
        )
    )

    def stack(texts: list) -> Tensor:
        return torch.from_numpy(np.stack([known[tuple(text)] for text in texts])).float()

    return [
        Needle(row.set, stack(segments), stack([asked(row)])[0], stack([reader.choice(c) for c in row.choices]))
        for row, segments in rows
    ]


def haystacks(mix: Mix, encoder: Encoder, reader: Reader, rng: random.Random) -> dict[str, Tensor]:
    """Vectors of segments [HAY, width] by set."""
    result = {}
    for name in HAYSTACKS:
        known = mix.pool.sets[name][::2]
        rows = rng.sample(known, min(len(known), HAY))
        segments = [segment for row in rows for segment in sentences(reader.plain(row.input))[:4]]
        rng.shuffle(segments)
        result[name] = torch.from_numpy(
            np.stack(vectors(encoder, [framed(segment) for segment in segments[:HAY]]))
        ).float()
    return result


def others(name: str) -> list[str]:
    """The sets that a row of this one is hidden in: messages to services are not hidden in one another."""
    return [other for other in HAYSTACKS if other != name and not (name in INTENT_SETS and other in INTENT_SETS)]


class Form(nn.Module):
    """The form while it is trained."""

    def __init__(self):
        super().__init__()
        self.scales = nn.Parameter(torch.tensor([0.5, 0.25]))
        self.own = nn.Parameter(torch.zeros(WIDTH))
        self.segment = nn.Parameter(torch.randn(RANK, WIDTH) * 0.05)
        self.instruction = nn.Parameter(torch.randn(RANK, WIDTH) * 0.05)

    def forward(self, segments: Tensor, instruction: Tensor, choices: Tensor) -> Tensor:
        """Relevance [segments].

        Both kinds of vectors are blurred: instructions are few, and would be learned by heart.
        """
        fixed = self.scales @ torch.stack(
            [standardised(segments @ choices.T).max(1).values, standardised(segments @ instruction)]
        )

        def blur(x: Tensor) -> Tensor:
            return nn.functional.normalize(x + NOISE * torch.randn_like(x) / WIDTH**0.5, dim=-1)

        segments, instruction = blur(segments), blur(instruction)
        return fixed + segments @ self.own + (segments @ self.segment.T) @ (self.instruction @ instruction)


def train(mix: Mix, encoder: Encoder, reader: Reader, seed: int, log) -> Finder:
    """The finder of a stage A."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    rows, hay, form = needles(mix, encoder, reader, seed), haystacks(mix, encoder, reader, rng), Form()
    optimiser = torch.optim.AdamW(
        [
            {"params": [form.scales], "weight_decay": 0.0},
            {"params": [form.own, form.segment, form.instruction], "weight_decay": DECAY},
        ],
        lr=RATE,
    )

    def lost(needle: Needle) -> Tensor:
        stacks = [hay[name] for name in rng.sample(others(needle.set), rng.choice((1, 1, 2)))]
        around = rng.choice(SIZES) // len(stacks)
        picked = [stack[torch.tensor([rng.randrange(len(stack)) for _ in range(around)])] for stack in stacks]
        relevance = form(torch.cat([needle.segments, *picked]), needle.instruction, needle.choices)
        return -torch.log_softmax(relevance, 0)[: len(needle.segments)].logsumexp(0)

    losses = []
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - step / STEPS)
        loss = torch.stack([lost(needle) for needle in rng.sample(rows, BATCH)]).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    log(f"finder: {len(rows)} rows, loss {np.mean(losses[:20]):.2f} at first, {np.mean(losses[-50:]):.2f} at last")
    near, asked = form.scales.tolist()

    def plain(parameter: nn.Parameter) -> np.ndarray:
        return parameter.detach().numpy()

    return Finder(near, asked, plain(form.own), plain(form.segment), plain(form.instruction))
