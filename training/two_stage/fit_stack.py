"""Fitting how the stages speak together, on the held-out sets.

1. How they share the word (`Share`). Every kind of decision weighs the same. A shape of the rule is judged by leaving out one kind at a time:
   its numbers are chosen on the other kinds and tried on the one left out.
2. How sure the answer is: log loss over the sets that are decided clearly better than chance and whose labels a person could give
   (`NOISY` are left out: their own notes call them noisy or cryptic). A set at chance only says "be unsure of everything", which no
   scale of logits can know from a request.
3. How windows are joined: held-out texts hidden in filler, a grid over both kappas.
"""

import itertools
import random
from collections.abc import Callable

import numpy as np

from .held_out import KINDS
from .needles import hide
from .records import Decision
from .reference import Package
from .scoring import score, score_long
from .stack import BEST, FEATURES, Scored, Share, Stack, accuracy, fit
from .windows import join

RATIOS = (4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128)
BY_LN_N, BY_CLOSENESS, BY_ABOUT = (0.0, 0.5, 1.0, 1.5), (0.0, 0.5, 1.0), (0.0, 0.5, 1.0, 1.5)
# The shapes tried: which of ln n, closeness and about the ratio may depend on. The first that is as good as the best is taken: that many choices
# want more of stage A is known from elsewhere, and a rule without `about` spares a run of the encoder.
SHAPES = {"ln n": ("n",), "constant": (), "about": ("about",), "ln n, about": ("n", "about"), "ln n, closeness, about": ("n", "closeness", "about")}
AS_GOOD = 0.005
SCALE = ("one", "ln_n", "a_spread", "b_spread")
NOISY = ("ms_va", "xed_en")
KAPPAS_CONFIDENCE = (0.0, 4.0, 8.0, 16.0, 32.0)
KAPPAS_RELEVANCE = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
HIDDEN_ROWS, HIDDEN_IN = 8, 3900
HIDDEN_SETS = ("many_intents", "tweet_polarity", "yes_no", "multidogo_finance", "snips")


def grid_of(shape: str) -> list[Share]:
    free = SHAPES[shape]
    ranges = (RATIOS, BY_LN_N if "n" in free else (0.0,), BY_CLOSENESS if "closeness" in free else (0.0,), BY_ABOUT if "about" in free else (0.0,))
    return [Share(*point) for point in itertools.product(*ranges)]


def heard(share: Share, sets: dict[str, tuple[np.ndarray, ...]]) -> float:
    """How much stage A is listened to: ln(alpha / beta), the mean over sets."""
    return float(np.mean([np.mean(np.log(share.ratio) + f @ weights_of(share)) for _, _, _, f in sets.values()]))


def chosen_share(means: np.ndarray, grid: list[Share], sets: dict) -> Share:
    """The best point, and of equals the one that listens most to stage A. (The one of all within a point of the best lost half a point on kinds
    left out, whatever the shape.)"""
    good = [share for share, mean in zip(grid, means) if mean >= means.max() - 1e-9]
    return max(good, key=lambda share: heard(share, sets))


def best_share(scored: dict[str, list[Scored]], log: Callable[[str], None]) -> tuple[Share, dict[str, float]]:
    """The share, and for each shape the accuracy on kinds left out."""
    sets = {name: prepared(rows) for name, rows in scored.items() if name not in NOISY}
    kinds = {kind: [n for n in names if n in sets] for kind, names in KINDS.items()}
    kinds = {kind: names for kind, names in kinds.items() if names}
    left_out, picked = {}, {}
    for shape in SHAPES:
        grid = grid_of(shape)
        table = np.array([[np.mean([right(sets[n], share) for n in names]) for names in kinds.values()] for share in grid])
        places = {share: i for i, share in enumerate(grid)}
        tried = []
        for k in range(len(kinds)):
            rest = [n for i, names in enumerate(kinds.values()) if i != k for n in names]
            share = chosen_share(np.delete(table, k, 1).mean(1), grid, {n: sets[n] for n in rest})
            tried.append(table[places[share], k])
        left_out[shape], means = float(np.mean(tried)), table.mean(1)
        picked[shape] = chosen_share(means, grid, sets)
        log(f"{shape}: best {means.max():.4f} {grid[int(means.argmax())]}, kinds left out {left_out[shape]:.4f}, taken {picked[shape]} {means[places[picked[shape]]]:.4f}")
        log("  " + ", ".join(f"{kind} {value:.3f}" for kind, value in zip(kinds, table[places[picked[shape]]])))
    return picked[next(shape for shape, value in left_out.items() if value >= max(left_out.values()) - AS_GOOD)], left_out


def weights_of(share: Share) -> np.ndarray:
    return np.array([share.by_ln_n, -share.by_closeness, -share.by_about])


def prepared(rows: list[Scored]) -> tuple[np.ndarray, ...]:
    """a and b [rows, 32] padded, the label's place (-1: not among the best), and the features of a share [rows]."""
    a, b = np.zeros((len(rows), BEST)), np.full((len(rows), BEST), -1e9)
    for i, s in enumerate(rows):
        a[i, : len(s.best)], b[i, : len(s.best)] = s.a[s.best], s.b
    label = np.array([int(np.flatnonzero(s.best == s.label)[0]) if s.label in s.best else -1 for s in rows])
    f = np.array([[np.log(len(s.a)) / 3, 2 * s.closeness, 2 * s.about] for s in rows])
    return a, b, label, f


def right(rows: tuple[np.ndarray, ...], share: Share) -> float:
    """`stack.accuracy` of prepared rows."""
    a, b, label, f = rows
    ratio = share.ratio * np.exp(f @ weights_of(share))
    return float(np.mean(np.argmax(ratio[:, None] * a + b, 1) == label))


def above_chance(rows: list[Scored], share: Share) -> bool:
    """Whether a set is decided clearly better than by chance (a fifth better)."""
    return accuracy(rows, share) > 1.2 * float(np.mean([1 / len(s.a) for s in rows]))


def fit_stack(scored: dict[str, list[Scored]], log: Callable[[str], None]) -> Stack:
    share, _ = best_share(scored, log)
    kept = {name: rows for name, rows in scored.items() if name not in NOISY and above_chance(rows, share)}
    log(f"scale fitted on {sorted(kept)}")
    return fit([s for rows in kept.values() for s in rows], [FEATURES.index(name) for name in SCALE], share)


def fit_windows(package: Package, held: dict[str, list[Decision]], filler: list[str], stack: Stack, log: Callable[[str], None]) -> tuple[float, float]:
    """(kappa_confidence, kappa_relevance) with the most right answers on hidden texts."""
    rows = [row for name in HIDDEN_SETS for row in random.Random(7).sample(held[name], HIDDEN_ROWS)]
    parts = [score_long(package, row) for row in hide(rows, filler, package.reader, HIDDEN_IN, 7)]
    grid = {
        (c, r): float(np.mean([int(np.argmax(join(p, relevance, stack, (c, r)))) == p[0].label for p, relevance in parts]))
        for c in KAPPAS_CONFIDENCE
        for r in KAPPAS_RELEVANCE
    }
    alone = float(np.mean([int(np.argmax(stack.probabilities(s))) == s.label for s in score(package, rows)]))
    log(f"windows: alone {alone:.3f}; " + ", ".join(f"{c}/{r}: {v:.3f}" for (c, r), v in grid.items()))
    return max(grid, key=grid.get)
