"""The last steps of the recipe: the package is written, its rules are fitted on its own graphs, and `training.json`
tells how it was made.
"""

import json
import pickle
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from . import everyday, finder, fit_stack, package
from .chunks import packed
from .compensated import compensated
from .encoder import Encoder
from .fit_unread import fit_unread
from .joined import at_share
from .metrics import measure
from .outliers import divisors
from .records import Decision
from .scoring import score
from .settle import final_stages, settle_a, settle_b
from .stack import Scored, Share, Stack
from .stage_a import framed, vectors
from .stage_b import StageB, scores
from .workshop import A_ROWS, SEED, Workshop, log

# Of each held-out set, the rows that stand for what is typical.
TYPICAL_ROWS = 6


def finish(workshop: Workshop, folder: Path) -> None:
    """Writes the package, fits the stack on its int8 graphs, and writes `training.json` beside it."""
    held = workshop.held(workshop.options.held_rows, 5)
    settle_b(workshop, held)
    settle_a(workshop, held)
    encoder, model = final_stages(workshop.work, workshop.base)
    typical = [row for rows in held.values() for row in rows[:TYPICAL_ROWS]]
    scored, others, share = settled(
        workshop, folder, held, lambda share: write(workshop, folder, encoder, model, typical, share)
    )
    with open(workshop.work / "held_out_scores.pickle", "wb") as file:
        pickle.dump((scored, others), file)
    log("held-out sets are scored")
    stack = fit_stack.fit_stack(scored, others, log)
    manifest = package.describe(folder, stack, workshop.options.reader)
    measured = quality(stack, scored, others)
    fit_unread(folder, workshop.data, log)
    (folder / "training.json").write_text(json.dumps(report(workshop, measured, share), indent=1) + "\n")
    size = sum(f["bytes"] for f in manifest["files"].values()) / 1e6
    accuracies = ", ".join(f"{n} {q.get('accuracy', q.get('confidence')):.3f}" for n, q in measured.items())
    log(f"package of {size:.1f} MB; held out: {accuracies}")


def settled(
    workshop: Workshop, folder: Path, held: dict[str, list[Decision]], written: Callable[[float], None]
) -> tuple[dict[str, list[Scored]], list[Scored], float]:
    """The package's scores of the held-out rows and of the opposites, and the share of a second reader; `written`
    writes the package with a share.
    """
    beside, shares = workshop.options.beside, workshop.options.beside_shares
    rows = [row for rows in held.values() for row in rows] + [row.opposite for row in held["negated"]]
    written(shares[0])
    found, share = score(folder, rows), shares[0]
    if beside and len(shares) > 1:
        share, found = settle_share(held, found, score(beside, rows), shares)
        if share != shares[0]:
            written(share)
    return *by_set(held, found), share


def refit(workshop: Workshop, before: Path, folder: Path) -> None:
    """Writes a package with the graphs of the package `before`, and its share of the stages; only how sure it is, is
    fitted again. So it gives the same answers, with other probabilities.

    With a reader beside it, that one takes the place of the second reader, and the whole rule is fitted again.
    """
    made = json.loads((before / "training.json").read_text())
    manifest = json.loads((before / "model.json").read_text())
    rule, beside = manifest["options"]["stack"], workshop.options.beside
    held = workshop.held(workshop.options.held_rows, 5)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("model.json", *manifest["files"]):
        shutil.copy(before / name, folder / name)

    def written(share: float) -> None:
        if beside:
            package.rejoin(folder, beside, share)

    scored, others, share = settled(workshop, folder, held, written)
    if beside:
        stack = fit_stack.fit_stack(scored, others, log)
        made["beside"] = {"package": f"{beside.parent.name}@{beside.name}", "share": share}
    else:
        upright, _ = fit_stack.upright(scored, others, rule["lean"])
        stack = replace(fit_stack.fit_scale(upright, Share.of(rule), log), lean=rule["lean"])
    manifest |= package.describe(folder, stack, workshop.options.reader)
    (folder / "model.json").write_text(json.dumps(manifest, indent=2) + "\n")
    made |= {"refitted_from": before.name, "held_out": quality(stack, scored, others)}
    (folder / "training.json").write_text(json.dumps(made, indent=1) + "\n")


def by_set(held: dict[str, list[Decision]], found: Sequence[Scored]) -> tuple[dict[str, list[Scored]], list[Scored]]:
    """Scores of the held-out rows by their sets, and those of the opposites, which stand behind them."""
    rest = iter(found)
    return {name: [next(rest) for _ in rows] for name, rows in held.items()}, list(rest)


def settle_share(
    held: dict[str, list[Decision]], both: Sequence[Scored], second: Sequence[Scored], shares: Sequence[float]
) -> tuple[float, Sequence[Scored]]:
    """The share of the second reader that is the most accurate on kinds left out, and the scores with it.

    `both`: with the first of the shares; `second`: of the second reader alone.
    """
    tried = {}
    for share in shares:
        found = at_share(both, second, shares[0], share)
        lean, left_out = fit_stack.best_lean(*by_set(held, found))
        log(f"share {share} of the second reader: lean {lean}, kinds left out {left_out:.4f}")
        tried[share] = left_out, found
    share = max(tried, key=lambda share: tried[share][0])
    return share, tried[share][1]


def write(
    workshop: Workshop, folder: Path, encoder: Encoder, model: StageB, typical: Sequence[Decision], share: float
) -> None:
    """Writes the package with a rule that is still to be fitted; its large channels are those of the typical rows.

    `share`: of the scores of a second reader, if there is one.
    """
    reader, plain = workshop.options.reader, workshop.reader.plain
    given = workshop.options.stage_a_of or (workshop.start_from if workshop.keep_a else None)
    if given:  # the finder reads stage A's vectors alone, so it stays as well
        kept_a, segments = given / "stage-a.onnx", finder.Finder.load(given / "finder.json")
    else:
        kept_a, segments = None, finder.train(workshop.mix, encoder, workshop.reader, SEED, log)
    large_a = None
    if workshop.many:
        large_a = divisors(encoder, lambda: vectors(encoder, [framed(plain(row.input)) for row in typical]))
    if reader in ("minilm", "e5"):
        packs = [packed(row, workshop.reader) for row in typical]
        large = divisors(model.encoder, lambda: scores(model, packs))
        model = compensated(model, large, lambda: scores(model, packs))
    else:
        large = torch.load(workshop.work / "stage_b_settled.pt", map_location="cpu")["channels"]
    texts = package.Texts(workshop.tokenizer_json, workshop.reader.symbols)
    beside = workshop.options.beside
    stages = package.Stages(
        encoder, model, large, large_a, kept_a, (beside / "stage-b.onnx", share) if beside and share else None
    )
    package.write(folder, stages, texts, segments)
    package.describe(folder, package.UNFITTED, reader)


def quality(stack: Stack, scored: dict[str, list[Scored]], opposites: Sequence[Scored]) -> dict[str, dict[str, float]]:
    """What the fitted rule reaches on each held-out set; `opposites`: those of the set "negated"."""
    found = {
        name: measure([stack.probabilities(s) for s in rows], [s.label for s in rows])
        for name, rows in scored.items()
        if name != everyday.OPEN
    }
    found[everyday.OPEN] = {
        "confidence": float(np.mean([stack.probabilities(s).max() for s in scored[everyday.OPEN]])),
        "even": float(np.mean([1 / len(s.a) for s in scored[everyday.OPEN]])),
    }

    def answer(s: Scored) -> int:
        return int(np.argmax(stack.probabilities(s)))

    found["negated"]["opposite"] = float(
        np.mean([answer(one) != answer(other) for one, other in zip(scored["negated"], opposites, strict=True)])
    )
    return found


def report(workshop: Workshop, measured: dict[str, dict[str, float]], share: float) -> dict:
    """`training.json`: what the stages came from, what they were trained with, and what they reach; `share`: of the
    second reader, if there is one.
    """
    work, teacher = workshop.work, workshop.options.teacher
    beside = workshop.options.beside

    def kept(name: str) -> dict:
        return json.loads((work / name).read_text())

    done = torch.load(work / "stage_b.pt", map_location="cpu")["done"]
    stage_a = {"rows": A_ROWS, "minutes": workshop.options.stage_a_minutes, "seed": SEED, **kept("stage_a.json")}
    return {
        "reader": workshop.options.reader,
        "started_from": workshop.started_from(),
        "teacher": teacher and teacher.name,
        "beside": beside and {"package": f"{beside.parent.name}@{beside.name}", "share": share},
        "stage_a": stage_a,
        "stage_b": {**kept("settings.json"), **kept("stage_b.json"), "done": done},
        "held_out": measured,
    }
