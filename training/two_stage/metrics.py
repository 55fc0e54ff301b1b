"""Quality of decisions: accuracy, macro-F1, calibration."""

from collections.abc import Sequence

import numpy as np

# Of equal mass, for the calibration error.
BINS = 15


def measure(probabilities: Sequence[np.ndarray], labels: Sequence[int]) -> dict[str, float]:
    """Accuracy, ECE (equal-mass bins), Brier (sum over choices), share of all answers wrong with confidence >= 0.9."""
    chosen = np.array([int(np.argmax(p)) for p in probabilities])
    confidence = np.array([float(p[c]) for p, c in zip(probabilities, chosen, strict=True)])
    right = chosen == np.array(labels)
    order = np.argsort(confidence, kind="stable")
    ece = sum(
        len(part) * abs(confidence[part].mean() - right[part].mean())
        for part in np.array_split(order, BINS)
        if len(part)
    ) / len(order)
    brier = np.mean([float((p**2).sum() - 2 * p[label] + 1) for p, label in zip(probabilities, labels, strict=True)])
    return {
        "accuracy": float(right.mean()),
        "ece": float(ece),
        "brier": float(brier),
        "wrong_and_sure": float((~right & (confidence >= 0.9)).mean()),
    }
