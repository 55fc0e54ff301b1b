"""Inputs that do not fit one window: cut into segments at the ends of sentences, each of which is a decision of its own; the decisions
are joined.

Stage A encodes every segment. Stage B reads the `READ` segments that matter most: those that are nearer to a choice, or to the
instruction, than the text is elsewhere. r_w = max_i s(a_i^w) + s(cos(segment, instruction)) / 2, where s counts standard deviations from the
mean over the text's segments: what is near everywhere tells nothing. Each read segment gives z^w as a short input would; they are
joined as z = sum_w omega_w z^w with omega = softmax_w(kappa_confidence c_w + kappa_relevance r_w), c_w = max softmax(z^w).
"""

from collections.abc import Sequence

import numpy as np

from .stack import BEST, Scored, Stack, softmax
from .stage_b import PACK_TOKENS

PREMISE, CARRIED_INSTRUCTION = 380, 128
SEGMENT, LEAST, READ = 40, 10, 12
STOPS = (1012, 1029, 999)  # the tokens . ? !
PACKS = 4


def split_premise(instruction: list[int], text: list[int]) -> tuple[list[int], list[list[int]]]:
    """The instruction that every window carries, and the windows of the text. Nothing is lost: an instruction's tokens past
    the carried ones go before the text."""
    carried, text = instruction[:CARRIED_INSTRUCTION], instruction[CARRIED_INSTRUCTION:] + text
    if len(text) <= PREMISE - 3 - len(carried):
        return carried, [text]
    windows, start = [], 0
    for end, token in enumerate(text, start=1):
        if end - start == SEGMENT or (end - start >= LEAST and token in STOPS):
            windows.append(text[start:end])
            start = end
    return carried, windows + ([text[start:]] if start < len(text) else [])


def readable(carried: list[int], options: Sequence[list[int]]) -> int:
    """How many windows stage B reads: READ, or as many as PACKS full packs have room for if the choices are long."""
    longest = sorted((len(option) for option in options), reverse=True)[:BEST]
    return min(READ, max(1, PACKS * PACK_TOKENS // (len(carried) + SEGMENT + 3 + sum(longest) + len(longest))))


def standardised(values: np.ndarray) -> np.ndarray:
    """[segments, ...] in standard deviations from the mean over the segments."""
    return (values - values.mean(0)) / (values.std(0) + 1e-6)


def relevant(segments: np.ndarray, instruction: np.ndarray, choices: np.ndarray, read: int) -> tuple[np.ndarray, np.ndarray]:
    """Relevance [segments] and the indices of the `read` highest, in text order. Rows are vectors."""
    relevance = standardised(segments @ choices.T).max(1) + 0.5 * standardised(segments @ instruction)
    chosen = np.sort(np.argsort(-relevance, kind="stable")[:read])
    return relevance, chosen


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
