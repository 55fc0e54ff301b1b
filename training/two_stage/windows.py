"""Inputs that do not fit one window: cut into overlapping segments, each of which is a decision of its own; the decisions are joined.

Stage A encodes every segment. Stage B reads the `READ` segments that matter most, by relevance
r_w = cos(segment, instruction) + max_i a_i^w, in the order of the text. Each read segment gives z^w as a short input would; they are
joined as z = sum_w omega_w z^w with omega = softmax_w(kappa_confidence c_w + kappa_relevance r_w), c_w = max softmax(z^w).
"""

from collections.abc import Sequence

import numpy as np

from .encoder import Encoder
from .records import Decision
from .stack import BEST, Scored, Stack, closeness, softmax
from .scoring import CARRIED_INSTRUCTION, best_choices
from .scoring import LONGEST_PREMISE as PREMISE
from .stage_a import framed, vectors
from .stage_b import PACK_TOKENS, StageB, pack, scores
from .tokens import Reader

SEGMENT, STRIDE, READ = 24, 12, 12
PACKS = 6


def split_premise(instruction: list[int], text: list[int]) -> tuple[list[int], list[list[int]]]:
    """The instruction that every window carries, and the windows of the text. Nothing is lost: an instruction's tokens past
    the carried ones go before the text."""
    carried, text = instruction[:CARRIED_INSTRUCTION], instruction[CARRIED_INSTRUCTION:] + text
    if len(text) <= PREMISE - 3 - len(carried):
        return carried, [text]
    starts = [*range(0, len(text) - SEGMENT, STRIDE), len(text) - SEGMENT]
    return carried, [text[start : start + SEGMENT] for start in starts]


def readable(carried: list[int], options: Sequence[list[int]]) -> int:
    """How many windows stage B reads: READ, or as many as PACKS full packs have room for if the choices are long."""
    longest = sorted((len(option) for option in options), reverse=True)[:BEST]
    return min(READ, max(1, PACKS * PACK_TOKENS // (len(carried) + SEGMENT + 3 + sum(longest) + len(longest))))


def relevant(segments: np.ndarray, instruction: np.ndarray, choices: np.ndarray, read: int) -> tuple[np.ndarray, np.ndarray]:
    """Relevance [segments] and the indices of the `read` highest, in text order. Rows are vectors."""
    relevance = segments @ instruction + (segments @ choices.T).max(1)
    chosen = np.sort(np.argsort(-relevance, kind="stable")[:read])
    return relevance, chosen


def score_long(encoder: Encoder, model: StageB, row: Decision, reader: Reader) -> tuple[list[Scored], np.ndarray]:
    """One `Scored` a read segment (all with the same best choices), and their relevances."""
    carried, windows = split_premise(reader.plain(row.instruction), reader.plain(row.input))
    options = [reader.choice(c) for c in row.choices]
    found = vectors(encoder, [framed(w, 512) for w in windows] + [framed(carried, 512)] + [framed(o, 512) for o in options])
    segments, instruction, choices = found[: len(windows)], found[len(windows)], found[len(windows) + 1 :]
    relevance, chosen = relevant(segments, instruction, choices, readable(carried, options)) if len(windows) > 1 else (np.zeros(1), np.array([0]))
    a = segments[chosen] @ choices.T
    best = best_choices(a.max(0), row.choices)
    near, size = closeness(choices[best]), float(np.mean([len(options[i]) for i in best]))
    packs = [pack(carried, windows[w], [options[i] for i in best]) for w in chosen]
    label = row.choices.index(row.label)
    return [Scored(a[j], best, b, near, size, float(segments[chosen[j]] @ instruction), label, row.set) for j, b in enumerate(scores(model, packs))], relevance[chosen]


def join(parts: Sequence[Scored], relevance: np.ndarray, stack: Stack, kappa: tuple[float, float]) -> np.ndarray:
    """P [choices] of the read segments together."""
    if len(parts) == 1:
        return stack.probabilities(parts[0])
    logits = []
    for part in parts:
        alpha, beta = stack.weights(part)
        logits.append(alpha * part.a[part.best] + beta * part.b)
    confidence = np.array([softmax(z).max() for z in logits])
    omega = softmax(kappa[0] * confidence + kappa[1] * relevance)
    whole = stack.a_alone(np.max([part.a for part in parts], 0))
    best = parts[0].best
    whole[best] = whole[best].sum() * softmax(np.einsum("w,wk->k", omega, np.array(logits)))
    return whole
