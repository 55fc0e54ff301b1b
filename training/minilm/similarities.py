"""What the encoder says of labelled decisions, before any weight or temperature is chosen.

For one decision: the cosine of each choice with the input alone and with instruction + input, and the cosine of
these two with each other. Any joint weight's cosines follow from the three.
"""

from dataclasses import dataclass

import numpy as np

from decisions import Decision
from scorer import Encoder, probabilities, temperature_of

# The package's limits: as many as fit the model's 512 positions beside three special tokens, rounded down; and of a
# choice what a slow machine encodes 300 of within a deadline (with 128 it took 10.7 s). The longest choice of the
# evaluation sets has 66.
INPUT_TOKENS = 500
CANDIDATE_TOKENS = 96
# As in Guo et al., arXiv 1706.04599, whose figures most others are compared with; of equal mass here.
ECE_BINS = 15
# What a probability that rounds to 0 counts as, so that one row cannot make a mean infinite.
LEAST_PROBABILITY = 1e-12
# An answer that its caller would act upon unseen. A round number, the same in every table of the project's models.
SURE = 0.9


@dataclass(frozen=True)
class Similarities:
    """alone, joint: [choices]; between: the cosine of both premises; label, gold: the right choice's index and text."""

    alone: np.ndarray
    joint: np.ndarray
    between: float
    label: int
    gold: str

    def cosines(self, weight: float) -> np.ndarray:
        """Each choice's cosine with the premise of this joint weight."""
        length = np.sqrt((1 - weight) ** 2 + weight**2 + 2 * weight * (1 - weight) * self.between)
        return ((1 - weight) * self.alone + weight * self.joint) / length


def similarities(encoder: Encoder, rows: list[Decision]) -> list[Similarities]:
    """One entry for each row within the package's token limits; the service refuses the others."""
    vectors: dict[tuple[str, ...], np.ndarray] = {}

    def vector(*texts: str) -> np.ndarray:
        if texts not in vectors:
            vectors[texts] = encoder.vector(*texts)
        return vectors[texts]

    results = []
    for row in rows:
        tokens = sum(len(encoder.tokens(text)) - 2 for text in (row.instruction, row.input))
        if tokens > INPUT_TOKENS or any(len(encoder.tokens(c)) - 2 > CANDIDATE_TOKENS for c in set(row.choices)):
            continue
        choices = np.stack([vector(choice) for choice in row.choices])
        alone, joint = vector(row.input), vector(row.instruction, row.input)
        label = row.choices.index(row.label)
        results.append(Similarities(choices @ alone, choices @ joint, float(alone @ joint), label, row.label))
    return results


def plain_accuracy(rows: list[Similarities], weight: float) -> float:
    """The share of rows whose most similar choice is the right one."""
    return float(np.mean([row.cosines(weight).argmax() == row.label for row in rows]))


def balanced_accuracy(rows: list[Similarities], weight: float) -> float:
    """Mean over the right answers of the accuracy on their rows: always saying the commonest one earns nothing."""
    hits: dict[str, list[bool]] = {}
    for row in rows:
        hits.setdefault(row.gold, []).append(bool(row.cosines(weight).argmax() == row.label))
    return float(np.mean([np.mean(of_label) for of_label in hits.values()]))


@dataclass(frozen=True)
class Scores:
    """Accuracy, mean negative log-likelihood, expected calibration error (15 bins of equal mass) and Brier score."""

    accuracy: float
    nll: float
    ece: float
    brier: float
    sure_and_wrong: float
    """Share of all decisions that are wrong with a confidence of SURE or more."""


def score(rows: list[Similarities], weight: float, temperature: float | dict) -> Scores:
    """The scores of the package's answers under one joint weight and the manifest's `temperature`."""
    answers = [probabilities(row.cosines(weight) / temperature_of(temperature, len(row.alone))) for row in rows]
    confidence = np.array([answer.max() for answer in answers])
    correct = np.array([answer.argmax() == row.label for answer, row in zip(answers, rows, strict=True)], float)
    gold = np.array([answer[row.label] for answer, row in zip(answers, rows, strict=True)])
    brier = [np.square(a).sum() - 2 * a[r.label] + 1 for a, r in zip(answers, rows, strict=True)]
    bins = np.array_split(np.argsort(confidence, kind="stable"), ECE_BINS)
    gaps = [len(b) * abs(confidence[b].mean() - correct[b].mean()) for b in bins if len(b)]
    return Scores(
        accuracy=float(correct.mean()),
        nll=float(-np.log(np.maximum(gold, LEAST_PROBABILITY)).mean()),
        ece=float(sum(gaps) / len(rows)),
        brier=float(np.mean(brier)),
        sure_and_wrong=float(((confidence >= SURE) & (correct == 0)).mean()),
    )
