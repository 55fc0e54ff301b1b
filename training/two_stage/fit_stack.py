"""Fitting how the stages speak together, on the held-out sets.

1. How much of what a question leans to by itself is taken from stage B's scores, and how the stages share the word
   (`Share`). Every kind of decision weighs the same, and so does answering a question and its opposite differently. A
   shape of the rule is judged by leaving out one kind at a time: its numbers are chosen on the other kinds and tried on
   the one left out.
2. How sure the answer is: log loss over the sets that are decided clearly better than chance and whose labels a person
   could give (`NOISY` are left out: their own notes call them noisy or cryptic). A set at chance only says "be unsure
   of everything", which no scale of logits can know from a request.
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from .everyday import FITTED_KINDS, OPEN
from .held_out import FAR_KINDS, KINDS
from .sheets import KINDS as SHEETS
from .stack import ABOUT, BEST, CLOSENESS, FEATURES, LN_N, RESIDUAL, VERDICTS, Scored, Share, Stack, features, fit
from .tables import FAR as FAR_TABLES
from .tables import KINDS as TABLES

# What is tried for each number of the rule.
LEANS = (0.0, 0.25, 0.5, 0.75, 1.0)
RATIOS = (0.5, 1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64)
BY_LN_N, BY_CLOSENESS, BY_ABOUT, BY_VERDICTS, BY_RESIDUAL = (
    (0.0, 0.5, 1.0, 1.5, 2.0),
    (0.0, 0.5, 1.0),
    (0.0, 0.5, 1.0, 1.5),
    (0.0, 1.0, 2.0),
    (0.0, 1.0, 2.0),
)
# The shapes tried: what of ln n, closeness, about, verdicts and residual the ratio may depend on. The first that is as
# good as the best is taken: stage A cannot know whether a question is answered yes or no, nor whether none of the
# choices fits, and `about` would cost a run of the encoder.
SHAPES = {
    "ln n, verdicts, residual": ("n", "verdicts", "residual"),
    "ln n, verdicts": ("n", "verdicts"),
    "ln n": ("n",),
    "constant": (),
    "about": ("about",),
    "ln n, about": ("n", "about"),
    "ln n, closeness, verdicts": ("n", "closeness", "verdicts"),
}
# What two points or shapes may differ by and still be as good: about two standard errors of the mean over kinds for
# shapes, one for points.
AS_GOOD, RIDGE = 0.01, 0.004
# The features that beta, how sure the answer is, may depend on; those are taken that do best on kinds left out.
SCALES = (
    ("one", "ln_n", "b_spread", "residual"),
    ("one", "ln_n", "a_spread", "b_spread", "verdicts", "residual"),
    ("one", "ln_n", "b_spread", "residual", "steps"),
)
# Sets whose labels a person could not give.
NOISY = ("ms_va", "xed_en")


def grid_of(shape: str) -> list[Share]:
    """Every point of a shape that is tried."""
    free = SHAPES[shape]
    ranges = (
        RATIOS,
        *(
            values if name in free else (0.0,)
            for name, values in (
                ("n", BY_LN_N),
                ("closeness", BY_CLOSENESS),
                ("about", BY_ABOUT),
                ("verdicts", BY_VERDICTS),
                ("residual", BY_RESIDUAL),
            )
        ),
    )
    return [Share(*point) for point in itertools.product(*ranges)]


def heard(share: Share, sets: dict[str, tuple[np.ndarray, ...]]) -> float:
    """How much stage A is listened to where every choice names something: ln(alpha / beta), the mean over such sets."""
    return float(
        np.mean(
            [
                np.mean(np.log(share.ratio) + f @ weights_of(share))
                for _, _, _, f in sets.values()
                if not f[:, -2:].any()
            ]
        )
    )


def chosen_share(means: np.ndarray, grid: list[Share], sets: dict) -> Share:
    """Of the points on the ridge around the best the one that listens most to stage A: on labels that it has never seen
    stage B is the weaker of the two. Verdicts name nothing that a text could be near to, so beside them stage A is then
    heard as little as does no more harm than a ridge.
    """
    ridge = [(share, mean) for share, mean in zip(grid, means, strict=True) if mean >= means.max() - RIDGE]
    taken, reached = max(ridge, key=lambda point: (round(heard(point[0], sets), 6), point[1]))
    deaf = [
        share
        for share, mean in zip(grid, means, strict=True)
        if mean >= reached - RIDGE and replace(share, by_verdicts=taken.by_verdicts) == taken
    ]
    return max(deaf, key=lambda share: share.by_verdicts)


def kinds_of(sets: Collection[str]) -> dict[str, list[str]]:
    """The sets of each kind of decision."""
    every = {
        **KINDS,
        **FAR_KINDS,
        "far_table": FAR_TABLES,
        **{kind: [kind] for kind in (*FITTED_KINDS, *SHEETS, *TABLES)},
    }
    kinds = {kind: [name for name in names if name in sets] for kind, names in every.items()}
    return {kind: names for kind, names in kinds.items() if names}


def best_share(
    scored: dict[str, list[Scored]], opposites: list[Scored], log: Callable[[str], None]
) -> tuple[Share, dict[str, float], float]:
    """The share, for each shape the accuracy on kinds left out, and the accuracy of the shapes' best points on all
    kinds, the mean over shapes. `opposites`: the questions opposite to those of the set "negated"; the share of them
    that are answered the other way counts as one more kind.
    """
    sets = {name: prepared(rows) for name, rows in scored.items() if name not in (*NOISY, OPEN)}
    kinds = kinds_of(sets) | {"opposites": []}
    denied = prepared(opposites)

    def measured(names: list[str], share: Share) -> np.floating:
        if names:
            return np.mean([right(sets[n], share) for n in names])
        return np.mean(answers(sets["negated"], share) != answers(denied, share))

    left_out, picked, reached = {}, {}, []
    for shape in SHAPES:
        grid = grid_of(shape)
        table = np.array([[measured(names, share) for names in kinds.values()] for share in grid])
        places = {share: i for i, share in enumerate(grid)}
        tried = []
        for k in range(len(kinds)):
            rest = [n for i, names in enumerate(kinds.values()) if i != k for n in names]
            share = chosen_share(np.delete(table, k, 1).mean(1), grid, {n: sets[n] for n in rest})
            tried.append(table[places[share], k])
        left_out[shape], means = float(np.mean(tried)), table.mean(1)
        picked[shape] = chosen_share(means, grid, sets)
        reached.append(means.max())
        at = places[picked[shape]]
        log(
            f"{shape}: best {means.max():.4f} {grid[int(means.argmax())]}, kinds left out {left_out[shape]:.4f}, "
            f"taken {picked[shape]} {means[at]:.4f}"
        )
        log("  " + ", ".join(f"{kind} {value:.3f}" for kind, value in zip(kinds, table[at], strict=True)))
    least = max(left_out.values()) - AS_GOOD
    taken = picked[next(shape for shape, value in left_out.items() if value >= least)]
    return taken, left_out, float(np.mean(reached))


def weights_of(share: Share) -> np.ndarray:
    """The weights of the features that `prepared` has."""
    return np.array([share.by_ln_n, -share.by_closeness, -share.by_about, -share.by_verdicts, -share.by_residual])


def prepared(rows: list[Scored]) -> tuple[np.ndarray, ...]:
    """a and b [rows, 32] padded, the label's place (-1: not among the best), and the features of a share [rows]."""
    a, b = np.zeros((len(rows), BEST)), np.full((len(rows), BEST), -1e9)
    for i, s in enumerate(rows):
        a[i, : len(s.best)], b[i, : len(s.best)] = s.a[s.best], s.b
    label = np.array([int(np.flatnonzero(s.best == s.label)[0]) if s.label in s.best else -1 for s in rows])
    f = np.array([features(s)[[LN_N, CLOSENESS, ABOUT, VERDICTS, RESIDUAL]] for s in rows])
    return a, b, label, f


def answers(rows: tuple[np.ndarray, ...], share: Share) -> np.ndarray:
    """The places of the answers to prepared rows."""
    a, b, _, f = rows
    return np.argmax((share.ratio * np.exp(f @ weights_of(share)))[:, None] * a + b, 1)


def right(rows: tuple[np.ndarray, ...], share: Share) -> float:
    """Share of right answers to prepared rows."""
    return float(np.mean(answers(rows, share) == rows[2]))


def above_chance(rows: list[Scored], share: Share) -> bool:
    """Whether a set is decided clearly better than by chance (a fifth better)."""
    return right(prepared(rows), share) > 1.2 * float(np.mean([1 / len(s.a) for s in rows]))


def best_lean(scored: dict[str, list[Scored]], opposites: list[Scored]) -> tuple[float, float]:
    """The lean whose shapes reach the most, and the accuracy on kinds left out beside it.

    It is one number, and so chosen on all kinds.
    """
    found = {lean: best_share(*upright(scored, opposites, lean), lambda line: None) for lean in LEANS}
    lean = max(found, key=lambda lean: found[lean][2])
    return lean, max(found[lean][1].values())


def upright(
    scored: dict[str, list[Scored]], opposites: list[Scored], lean: float
) -> tuple[dict[str, list[Scored]], list[Scored]]:
    """All scores less this much of their leaning."""
    sets = {name: [s.upright(lean) for s in rows] for name, rows in scored.items()}
    return sets, [s.upright(lean) for s in opposites]


def fit_stack(scored: dict[str, list[Scored]], opposites: list[Scored], log: Callable[[str], None]) -> Stack:
    """The whole rule, fitted on held-out sets by name; `opposites`: those of the questions of the set "negated"."""
    lean, left_out = best_lean(scored, opposites)
    log(f"lean {lean}: kinds left out {left_out:.4f}")
    scored, opposites = upright(scored, opposites, lean)
    share, *_ = best_share(scored, opposites, log)
    return replace(fit_scale(scored, share, log), lean=lean)


def fit_scale(scored: dict[str, list[Scored]], share: Share, log: Callable[[str], None]) -> Stack:
    """The rule with this share, its scale fitted on upright scores of held-out sets by name."""
    kept = {
        name: rows for name, rows in scored.items() if name == OPEN or (name not in NOISY and above_chance(rows, share))
    }
    log(f"scale fitted on {sorted(kept)}")
    losses = {names: scale_left_out(kept, share, names) for names in SCALES}
    for names, loss in losses.items():
        log(f"scale by {', '.join(names)}: log loss of kinds left out {loss:.4f}")
    return scaled(kept.values(), share, min(losses, key=losses.get))


def scaled(sets: Iterable[list[Scored]], share: Share, names: Sequence[str]) -> Stack:
    """The rule whose scale is fitted over the features `names` on these sets."""
    return fit([s for rows in sets for s in rows], [FEATURES.index(name) for name in names], share)


def scale_left_out(sets: dict[str, list[Scored]], share: Share, names: Sequence[str]) -> float:
    """The log loss of kinds left out, each by the rule whose scale is fitted on the others; the mean over kinds."""
    losses = []
    for kind in kinds_of(sets).values():
        stack = scaled([rows for name, rows in sets.items() if name not in kind], share, names)
        losses.append(np.mean([np.mean([stack.log_loss(s) for s in sets[name]]) for name in kind]))
    return float(np.mean(losses))
