"""How the two stages speak together: order-free features of a request set the weights of a and b.

    b_i = s_i - lean * l_i: stage B's scores, less what the question and the choices say without a text (`leaning`)
    alpha = exp(w_alpha . f), beta = exp(w_beta . f), z_i = alpha a_i + beta b_i over the best k choices
    P(i) = A(i) outside the best k; inside, P(i) = A(K) softmax_K(z)(i)
    A = softmax(a / T_A) over all, ln T_A = t0 + t1 ln n

All are fitted on whole sets that neither stage was trained on, each set weighing the same: lean and alpha / beta by
accuracy, beta by log loss, so the probabilities come out calibrated and no separate temperature is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

# What the rule knows of a request, in the order of `features`.
FEATURES = (
    "one",
    "ln_n",
    "a_spread",
    "a_margin",
    "b_spread",
    "b_margin",
    "agreement",
    "closeness",
    "option_tokens",
    "a_top",
    "about",
    "verdicts",
    "residual",
    "steps",
)
# Of so many choices at most, those that stage A finds best, stage B has a say.
BEST = 32
# Bounds of ln alpha and ln beta, so that no request is answered by a feature that is out of all proportion.
ALPHA_BOUNDS, BETA_BOUNDS = (-5, 4.5), (-5, 2)
# Of a label, for its log loss.
LEAST_PROBABILITY = 1e-12
# ln T_A to begin with: cosines differ by hundredths.
LN_TEMPERATURE = np.log(0.05)
LN_N, CLOSENESS, ABOUT, VERDICTS, RESIDUAL = (
    FEATURES.index(name) for name in ("ln_n", "closeness", "about", "verdicts", "residual")
)


@dataclass(frozen=True)
class Scored:
    """What the stages say about one request: cosines a [choices], indices of the best k, b [k], what they lean to
    without a text [k], how near the best choices' vectors are to each other, their mean tokens, the cosine of input and
    instruction, the share of verdicts among the best choices, whether one of them says that none fits, the share of
    steps of a scale among them, and the label's index.
    """

    a: np.ndarray
    best: np.ndarray
    b: np.ndarray
    leaning: np.ndarray
    closeness: float
    option_tokens: float
    about: float
    verdicts: float
    residual: bool
    steps: float
    label: int
    set: str

    def upright(self, lean: float) -> "Scored":
        """With b less its leaning."""
        return replace(self, b=self.b - lean * self.leaning, leaning=np.zeros_like(self.leaning))


@dataclass(frozen=True)
class Share:
    """How much more stage A is heard than stage B.

    alpha / beta = ratio * exp(by_ln_n * f_ln_n - by_closeness * f_closeness - by_about * f_about
                               - by_verdicts * f_verdicts - by_residual * f_residual)
    """

    ratio: float
    by_ln_n: float
    by_closeness: float
    by_about: float
    by_verdicts: float
    by_residual: float

    @staticmethod
    def of(rule: dict) -> "Share":
        """The share in the `stack` of a `model.json`."""
        tilt = {
            name: one - other
            for name, one, other in zip(*(rule[k] for k in ("features", "alpha", "beta")), strict=True)
        }
        names = ("ln_n", "closeness", "about", "verdicts", "residual")
        ln_n, *others = (tilt.get(name, 0.0) for name in names)
        return Share(float(np.exp(tilt["one"])), ln_n, *(-weight for weight in others))

    def tilt(self) -> dict[int, float]:
        """ln(alpha / beta) as weights by feature."""
        return {
            0: float(np.log(self.ratio)),
            LN_N: self.by_ln_n,
            CLOSENESS: -self.by_closeness,
            ABOUT: -self.by_about,
            VERDICTS: -self.by_verdicts,
            RESIDUAL: -self.by_residual,
        }


def margin(x: np.ndarray) -> float:
    """The highest value less the second highest."""
    top = np.sort(x)[::-1]
    return float(top[0] - top[1])


def features(s: Scored) -> np.ndarray:
    """The features [len(FEATURES)], scaled to about 1; sums over choices, so their order leaves no trace."""
    a, b = s.a[s.best], s.b
    spread_a, spread_b = float(a.std()), float(b.std())
    correlation = float(((a - a.mean()) * (b - b.mean())).mean() / (spread_a * spread_b + 1e-6))
    return np.array(
        [
            1.0,
            np.log(len(s.a)) / 3,
            10 * spread_a,
            10 * margin(a),
            spread_b / 3,
            min(margin(b), 10.0) / 3,
            correlation,
            2 * s.closeness,
            np.log(s.option_tokens) / 2,
            3 * float(a.max()),
            2 * s.about,
            s.verdicts,
            float(s.residual),
            s.steps,
        ]
    )


def leaning(silent: np.ndarray, residual: Sequence[bool]) -> np.ndarray:
    """l [k] of scores for an empty text: how much more a choice is scored than the others are.

    A choice that says that none fits is right then, and has none.
    """
    residual = np.array(residual)
    named = ~residual if not residual.all() else residual
    return np.where(named, silent - silent[named].mean(), 0.0)


def closeness(choices: np.ndarray) -> float:
    """Mean cosine between different choices' vectors [choices, width]."""
    n = len(choices)
    total = choices.sum(0)
    return float((total @ total - n) / (n * (n - 1)))


def verdicts(choices: Sequence[Sequence[int]], known: Sequence[Sequence[int]], negation: Sequence[int]) -> float:
    """Share of choices (token ids) that answer the question instead of naming something: one of the `known` ones (yes,
    no, ...), or a choice that stands beside its own negation ("urgent", "not urgent").
    """
    texts, words = {tuple(c) for c in choices}, {tuple(k) for k in known}
    head = tuple(negation)

    def is_one(c: tuple[int, ...]) -> bool:
        return c in words or head + c in texts or (c[: len(head)] == head and c[len(head) :] in texts)

    return float(np.mean([is_one(tuple(c)) for c in choices]))


def steps(choices: Sequence[Sequence[int]], known: Sequence[Sequence[int]]) -> float:
    """Share of choices (token ids) that have one of the `known` words, which steps of a scale have (low, 3, likely)."""

    def has(choice: Sequence[int], word: Sequence[int]) -> bool:
        return any(list(choice[i : i + len(word)]) == list(word) for i in range(len(choice)))

    return float(np.mean([any(has(choice, word) for word in known) for choice in choices]))


@dataclass(frozen=True)
class Words:
    """Token ids of the choices that name nothing: answers to a question, the word that denies a choice, and the ways to
    say that none fits; and of the words that steps of a scale have.
    """

    verdicts: Sequence[Sequence[int]]
    negation: Sequence[int]
    residuals: Sequence[Sequence[int]]
    steps: Sequence[Sequence[int]]

    def residual(self, choices: Sequence[Sequence[int]]) -> list[bool]:
        """Which choices say that none fits."""
        known = {tuple(ids) for ids in self.residuals}
        return [tuple(choice) in known for choice in choices]

    def of(self, choices: Sequence[Sequence[int]]) -> tuple[float, bool, float]:
        """The share of verdicts among choices, whether one of them says that none fits, and the share of steps."""
        found = verdicts(choices, self.verdicts, self.negation), any(self.residual(choices))
        return *found, steps(choices, self.steps)


@dataclass(frozen=True)
class Stack:
    """Fitted weights over `used` features (indices into FEATURES), and the temperature of A over all choices."""

    used: tuple[int, ...]
    alpha: np.ndarray
    beta: np.ndarray
    a_temperature: tuple[float, float] = (LN_TEMPERATURE, 0.0)
    lean: float = 0.0

    def weights(self, s: Scored) -> tuple[float, float]:
        """alpha and beta of an upright request."""
        f = features(s)[list(self.used)]
        alpha, beta = np.clip(self.alpha @ f, *ALPHA_BOUNDS), np.clip(self.beta @ f, *BETA_BOUNDS)
        return float(np.exp(alpha)), float(np.exp(beta))

    def a_alone(self, a: np.ndarray) -> np.ndarray:
        """A [choices]: the distribution of stage A over all choices."""
        return softmax(a / np.exp(self.a_temperature[0] + self.a_temperature[1] * np.log(len(a))))

    def probabilities(self, s: Scored) -> np.ndarray:
        """P [choices]."""
        s = s.upright(self.lean)
        alpha, beta = self.weights(s)
        whole = self.a_alone(s.a)
        whole[s.best] = whole[s.best].sum() * softmax(alpha * s.a[s.best] + beta * s.b)
        return whole

    def log_loss(self, s: Scored) -> float:
        """-ln P of the label of a request that has one."""
        return float(-np.log(max(self.probabilities(s)[s.label], LEAST_PROBABILITY)))


def softmax(z: np.ndarray) -> np.ndarray:
    """exp(z), normalised over all of z."""
    e = np.exp(z - z.max())
    return e / e.sum()


def tensors(rows: Sequence[Scored]) -> tuple[Tensor, ...]:
    """Rows whose label is among the best k, or that have none, padded: f [rows, features], a and b [rows, 32], mask,
    target distributions [rows, 32] (even where there is no label), weight (1 a set).
    """
    rows = [s for s in rows if s.label in s.best or s.label < 0]
    count = {}
    for s in rows:
        count[s.set] = count.get(s.set, 0) + 1
    f = torch.tensor(np.stack([features(s) for s in rows]), dtype=torch.float64)
    a = torch.zeros(len(rows), BEST, dtype=torch.float64)
    b, mask = torch.zeros_like(a), torch.full_like(a, -1e9)
    for i, s in enumerate(rows):
        k = len(s.best)
        a[i, :k], b[i, :k], mask[i, :k] = torch.tensor(s.a[s.best]), torch.tensor(s.b), 0
    target = torch.tensor(
        np.stack(
            [
                np.pad(
                    s.best == s.label if s.label >= 0 else np.full(len(s.best), 1 / len(s.best)),
                    (0, BEST - len(s.best)),
                )
                for s in rows
            ]
        ),
        dtype=torch.float64,
    )
    weight = torch.tensor([1 / count[s.set] for s in rows], dtype=torch.float64)
    return f, a, b, mask, target, weight / weight.sum()


def fit(rows: Sequence[Scored], scale: Sequence[int], share: Share, strength: float = 0.003) -> Stack:
    """The stack of upright rows with ln(alpha / beta) as `share` says, and ln(beta) fitted over the features `scale`.

    Log loss, L-BFGS; `strength` pulls all but the constant to 0. How the stages share the word is a matter of accuracy
    on unseen sets; the log loss would answer it from the sets that resemble the training data. How sure the answer is,
    is fitted here.
    """
    by_feature = {i: weight for i, weight in share.tilt().items() if weight or i == 0}
    used = tuple(dict.fromkeys([*scale, *by_feature]))
    f, a, b, mask, target, weight = tensors(rows)
    f = f[:, list(used)]
    tilt = torch.tensor([by_feature.get(i, 0.0) for i in used], dtype=torch.float64)
    free = torch.tensor([float(i in scale) for i in used], dtype=torch.float64)
    w = torch.zeros(len(used), dtype=torch.float64)
    w[0] = np.log(0.5)
    w.requires_grad_(True)
    optimiser = torch.optim.LBFGS([w], max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        alpha = torch.exp((f @ (w * free + tilt)).clamp(*ALPHA_BOUNDS))[:, None]
        beta = torch.exp((f @ (w * free)).clamp(*BETA_BOUNDS))[:, None]
        logs = torch.log_softmax(alpha * a + beta * b + mask, -1)
        value = -(weight * (target * logs.clamp(min=-1e6)).sum(-1)).sum() + strength * (w[1:] ** 2).sum()
        value.backward()
        return value

    optimiser.step(loss)
    beta = (w.detach() * free).numpy()
    return Stack(used, beta + tilt.numpy(), beta, fit_a_temperature(rows))


def fit_a_temperature(rows: Sequence[Scored]) -> tuple[float, float]:
    """t0, t1 of ln T_A = t0 + t1 ln n by log loss of A over all choices, of rows with a label."""
    rows = [s for s in rows if s.label >= 0]
    t = torch.tensor([LN_TEMPERATURE, 0.0], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([t], max_iter=100, line_search_fn="strong_wolfe")
    count = {}
    for s in rows:
        count[s.set] = count.get(s.set, 0) + 1
    padded = torch.full((len(rows), max(len(s.a) for s in rows)), -1e9, dtype=torch.float64)
    for i, s in enumerate(rows):
        padded[i, : len(s.a)] = torch.tensor(s.a)
    label = torch.tensor([s.label for s in rows])
    ln_n = torch.log(torch.tensor([len(s.a) for s in rows], dtype=torch.float64))
    weight = torch.tensor([1 / count[s.set] / len(count) for s in rows], dtype=torch.float64)

    def loss() -> Tensor:
        optimiser.zero_grad()
        logs = torch.log_softmax(padded / torch.exp(t[0] + t[1] * ln_n)[:, None], -1)
        value = -(weight * logs[torch.arange(len(rows)), label]).sum()
        value.backward()
        return value

    optimiser.step(loss)
    return float(t[0].detach()), float(t[1].detach())
