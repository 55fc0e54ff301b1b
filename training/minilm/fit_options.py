"""Chooses the package's joint weight and temperatures on the training sets and writes them to fitted.json.

The weight: the largest whose balanced accuracy, averaged over the sources of the sets, is within TOLERANCE of the best;
the curve is flat, and a caller's instruction should count for as much as costs nothing. The temperature: the lowest
negative log-likelihood, once as one constant and once as points over the number of choices, both also measured on
sources that they were not fitted on; the points are what the package takes. The training sets have at most 28
choices, so that some of them are taken a second time with more: labels of the other sets are added up to 32, 64 and
128. Run: python fit_options.py DATA
"""

import json
import random
import sys
from pathlib import Path

import numpy as np

import base_model
import encoder_graph
from decisions import Decision, read_set, set_names
from scorer import Encoder, probabilities
from similarities import LEAST_PROBABILITY, Similarities, balanced_accuracy, plain_accuracy, score, similarities

HERE = Path(__file__).resolve().parent
# A round number that every training set reaches: the accuracy of one set is known to 2.5 points (one standard error),
# its mean over the 23 sources to half a point.
ROWS_PER_SET = 400
# From the input alone to instruction and input together alone, in finer steps at the end where the balanced accuracy is
# greatest.
WEIGHTS = (0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1)
# Sets whose labels can stand among labels of others without becoming right or wrong in a new way.
WIDENED = ("multidogo_", "snips", "ms_va", "goemotions", "xed_en", "sgd_intent")
# Doubled from the 28 choices that the training sets have at most, as far as the 203 labels of WIDENED go.
WIDTHS = (32, 64, 128)
# A round number: sets count alike however many rows they have, and each row stands in three widths.
WIDENED_ROWS = 100
# Below what 400 rows of a set can tell apart (see ROWS_PER_SET).
TOLERANCE = 0.003
# Steps of 5 %, from far below to far above what is fitted (0.07 to 0.21), so that no end of the grid is ever the best.
TEMPERATURES = np.exp(np.linspace(np.log(0.03), np.log(0.6), 61))
# The fewest and the most choices that the rows have: between them, two points make a line in the logarithm of the
# number. Others are not known to have been tried.
POINTS = {"constant": (2,), "points": (2, 128)}


def source(name: str) -> str:
    """Sets of one source share a prefix and count once together."""
    return name.split("_")[0]


def widened(sets: dict[str, list[Decision]], width: int) -> dict[str, list[Decision]]:
    """The sets of WIDENED with labels of each other added, at random, until each row has `width` choices."""
    chosen = {name: rows for name, rows in sets.items() if name.startswith(WIDENED)}
    pool = sorted({choice for rows in chosen.values() for row in rows for choice in row.choices})
    result = {}
    for name, rows in chosen.items():
        draw = random.Random(f"{name} {width}")
        result[f"{name}_{width}"] = [
            Decision(row.input, row.instruction, row.choices + tuple(draw.sample(others, missing)), row.label)
            for row in rows[:WIDENED_ROWS]
            if (missing := width - len(row.choices)) > 0
            and (others := [choice for choice in pool if choice not in row.choices])
        ]
    return result


def mean_over_sources(values: dict[str, np.ndarray | float]) -> np.ndarray:
    """Mean over sources of the mean over their sets."""
    by_source: dict[str, list] = {}
    for name, value in values.items():
        by_source.setdefault(source(name), []).append(value)
    return np.mean([np.mean(of_source, axis=0) for of_source in by_source.values()], axis=0)


class TemperatureFit:
    """Negative log-likelihoods of all rows at all TEMPERATURES, and the search over points in that table."""

    def __init__(self, sets: dict[str, list[Similarities]], weight: float) -> None:
        self.counts = {name: np.array([len(row.alone) for row in rows]) for name, rows in sets.items()}
        self.tables = {
            name: np.array(
                [
                    -np.log(
                        np.maximum(
                            LEAST_PROBABILITY, probabilities(row.cosines(weight) / TEMPERATURES[:, None])[:, row.label]
                        )
                    )
                    for row in rows
                ]
            )
            for name, rows in sets.items()
        }

    def nll(self, name: str, knots: tuple[int, ...], values: list[float]) -> float:
        """Mean negative log-likelihood of a set, by the nearest of TEMPERATURES for each row."""
        wanted = np.interp(np.log(self.counts[name]), np.log(knots), values)
        nearest = np.abs(np.log(TEMPERATURES)[None] - np.log(wanted)[:, None]).argmin(axis=1)
        return float(self.tables[name][np.arange(len(nearest)), nearest].mean())

    def fit(self, knots: tuple[int, ...], names: list[str]) -> list[float]:
        """The temperature at each knot: coordinate descent over TEMPERATURES until nothing improves."""
        values, best = [0.1] * len(knots), np.inf
        while True:
            before = best
            for knot in range(len(knots)):
                for candidate in TEMPERATURES:
                    trial = [*values[:knot], float(candidate), *values[knot + 1 :]]
                    loss = float(mean_over_sources({name: self.nll(name, knots, trial) for name in names}))
                    # A gain within the rounding of the mean is none.
                    if loss < best - 1e-9:
                        values, best = trial, loss
            if best == before:
                return values


def choose_weight(sets: dict[str, list[Similarities]]) -> float:
    """Prints accuracy and balanced accuracy for each of WEIGHTS and returns the one to use."""

    def curve(measure) -> np.ndarray:
        return mean_over_sources({n: np.array([measure(rows, w) for w in WEIGHTS]) for n, rows in sets.items()})

    accuracy, balanced = curve(plain_accuracy), curve(balanced_accuracy)
    for weight, plain, fair in zip(WEIGHTS, accuracy, balanced, strict=True):
        print(f"joint weight {weight:<5} accuracy {plain:.4f}  balanced {fair:.4f}")
    return max(weight for weight, fair in zip(WEIGHTS, balanced, strict=True) if fair >= balanced.max() - TOLERANCE)


def main() -> None:
    """Prints what was tried, and writes fitted.json."""
    data = Path(sys.argv[1])
    encoder = Encoder(encoder_graph.build(base_model.weights()), json.dumps(base_model.tokenizer_json()))
    sets = {name: read_set(data, "train", name, ROWS_PER_SET) for name in set_names(data, "train")}
    plain = {name: similarities(encoder, rows) for name, rows in sets.items()}
    weight = choose_weight(plain)
    wide = {n: similarities(encoder, rows) for width in WIDTHS for n, rows in widened(sets, width).items()}
    everything = plain | wide
    search = TemperatureFit(everything, weight)
    fitted = {}
    for kind, knots in POINTS.items():
        values = search.fit(knots, list(everything))
        fitted[kind] = [[n, float(f"{t:.3g}")] for n, t in zip(knots, values, strict=True)]
        unseen = {}
        for held_out in sorted({source(name) for name in everything}):
            points = search.fit(knots, [name for name in everything if source(name) != held_out])
            for name in everything:
                if source(name) == held_out:
                    unseen[name] = score(everything[name], weight, {"points": list(zip(knots, points, strict=True))})
        groups = {"as they are": list(plain)}
        groups |= {f"{width} choices": [n for n in wide if n.endswith(f"_{width}")] for width in WIDTHS}
        for label, group in groups.items():
            nll = mean_over_sources({n: unseen[n].nll for n in group})
            ece = mean_over_sources({n: unseen[n].ece for n in group})
            print(f"{kind} {fitted[kind]}: unseen sources, {label}: NLL {nll:.3f}, ECE {ece:.3f}")
    path = HERE / "fitted.json"
    # The rule for unread texts stays, but should be fitted again: fit_unread.py.
    kept = json.loads(path.read_text())
    path.write_text(
        json.dumps({**kept, "joint_weight": weight, "temperature": {"points": fitted["points"]}}, indent=2) + "\n"
    )


if __name__ == "__main__":
    main()
