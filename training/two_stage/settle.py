"""Both stages settled: how much of the newly trained weights is kept beside those that they came from, chosen on the
held-out sets.
"""

import copy
import itertools
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from . import everyday, package
from .encoder import DEVICE, E5_READER, MINILM, Encoder, Shape
from .fit_stack import AS_GOOD, RIDGE, best_lean
from .records import Decision
from .rounding import set_rounding
from .scoring import score_weights
from .stack import Words
from .stage_b import StageB
from .tune_a import average
from .wordings import STEPS
from .workshop import Workshop, load_encoder, log

# Shares of stage B's new weights beside a package's; from the base weights the last alone, since there is nothing to
# average with.
B_SHARES = (0.5, 0.75, 1.0)
# What two of them may differ by at answering opposites differently: a standard error of the 240 pairs.
AS_OPPOSITE = 0.025
# Shares of a stage A that was tuned on from a package, beside the base weights.
BASE_SHARES = (1.0, 0.75, 0.5, 0.25)


@dataclass(frozen=True)
class Trial:
    """How a pair of stages does on the held-out sets.

    `left_out`: accuracy on kinds left out by the best shape of the rule; `opposite`: the share of questions whose
    opposite is answered the other way by stage B alone.
    """

    left_out: float
    opposite: float


def tried(workshop: Workshop, encoder: Encoder, model: StageB, held: dict[str, list[Decision]]) -> Trial:
    """The trial of two stages."""
    ids = workshop.reader.plain
    words = Words(
        [ids(text) for text in package.verdicts(workshop.options.reader)],
        ids(package.NEGATION),
        [ids(text) for text in package.residuals(workshop.options.reader)],
        [ids(text) for text in STEPS],
    )
    scored = {
        name: score_weights(encoder, model, workshop.reader, rows, words)
        for name, rows in held.items()
        if name != everyday.OPEN
    }
    opposites = score_weights(encoder, model, workshop.reader, [row.opposite for row in held["negated"]], words)
    lean, left_out = best_lean(scored, opposites)
    answers = [[s.upright(lean).b.argmax() for s in rows] for rows in (scored["negated"], opposites)]
    return Trial(left_out, float(np.mean([one != other for one, other in zip(*answers, strict=True)])))


def settle_b(workshop: Workshop, held: dict[str, list[Decision]]) -> None:
    """Stage B's trained weights averaged with those it was trained from: the last ones or those kept on the way.

    Of the shares that are as good as the best beside stage A on kinds of decision left out, and as good as those at
    answering questions and their opposites differently, the best one is taken.
    """
    path = workshop.work / "stage_b_settled.pt"
    if path.exists():
        return
    encoder, origin = workshop.stage_a(), workshop.start_b()
    checkpoint = torch.load(workshop.work / "stage_b.pt", map_location=DEVICE)
    found: dict[str, Trial] = {}
    states: dict[str, dict] = {}
    model = copy.deepcopy(origin)
    set_rounding(model, checkpoint["done"]["channels"])
    shares = workshop.options.shares if workshop.start_from else B_SHARES[-1:]
    # Where the last weights are those that were kept they need not be tried twice: it takes minutes.
    done = checkpoint["done"]
    whiches = ("average",) if done["kept_rows"] == done["rows"] else ("average", "kept")
    for which, share in itertools.product(whiches, shares):
        trained = checkpoint[which]
        states[f"{which} {share}"] = {
            key: torch.lerp(value, trained[key], share) for key, value in origin.state_dict().items()
        }
    if len(states) > 1:  # a trial takes minutes: where there is nothing to choose from, none is made
        for name, state in states.items():
            model.load_state_dict(state)
            found[name] = tried(workshop, encoder, model, held)
            log(f"stage B, {name} of new weights: {found[name]}")
    chosen = best_of(found) if found else next(iter(states))
    report = {"share": chosen, "tried": {name: asdict(trial) for name, trial in found.items()}}
    (workshop.work / "stage_b.json").write_text(json.dumps(report))
    settled = {"model": states[chosen], "shape": checkpoint["shape"], "channels": checkpoint["done"]["channels"]}
    torch.save(settled, path)


def best_of(found: dict[str, Trial]) -> str:
    """The name of the best trial."""
    least = max(trial.left_out for trial in found.values()) - AS_GOOD
    good = {name: trial for name, trial in found.items() if trial.left_out >= least}
    least = max(trial.opposite for trial in good.values()) - AS_OPPOSITE
    apart = {name: trial for name, trial in good.items() if trial.opposite >= least}
    return max(apart, key=lambda name: apart[name].left_out)


def settled_b(work: Path, base: Encoder) -> StageB:
    """Stage B of a work folder as it was settled."""
    settled = torch.load(work / "stage_b_settled.pt", map_location=DEVICE)
    shape = Shape(**settled["shape"])
    model = StageB(Encoder(shape))
    model.load_state_dict(settled["model"])
    if shape in (MINILM, E5_READER):
        # Frozen in both stages, so the package can carry it once.
        model.encoder.words.weight.data.copy_(base.words.weight)
    set_rounding(model, settled["channels"])
    return model.eval()


def settle_a(workshop: Workshop, held: dict[str, list[Decision]]) -> None:
    """Stage A, if it went on from a package, averaged with the base weights once more, beside the settled stage B.

    The least share of it that is as good as any is taken: what it was tuned on is near to the held-out sets, nearer
    than what callers bring, and the base weights have seen the most.
    """
    path = workshop.work / "stage_a_settled.pt"
    if path.exists():
        return
    tuned = workshop.stage_a()
    if workshop.keep_a or not workshop.start_from:
        torch.save(tuned.state_dict(), path)
        return
    model = settled_b(workshop.work, workshop.base)
    found = {share: tried(workshop, average(workshop.base, tuned, share), model, held) for share in BASE_SHARES}
    log(f"stage A, by its share beside the base weights: {found}")
    best = max(trial.left_out for trial in found.values())
    share = min(share for share, trial in found.items() if trial.left_out >= best - RIDGE)
    report = json.loads((workshop.work / "stage_a.json").read_text())
    report |= {"beside_base": share, "tried": {str(share): asdict(trial) for share, trial in found.items()}}
    (workshop.work / "stage_a.json").write_text(json.dumps(report))
    torch.save(average(workshop.base, tuned, share).state_dict(), path)


def final_stages(work: Path, base: Encoder) -> tuple[Encoder, StageB]:
    """Both stages of a work folder as they go into the package."""
    return load_encoder(work / "stage_a_settled.pt", base.shape), settled_b(work, base)
