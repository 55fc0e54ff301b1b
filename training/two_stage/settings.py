"""What stage B is trained with: how long, how fast, and which of its weights."""

from dataclasses import dataclass

from torch import Tensor

from .stage_b import StageB

# What a run from the base weights learns with, and one that goes on from a package; a GPU's batches are larger, and so
# are its rates.
RATES = {
    ("minilm", "base", "cpu"): {"learning_rate": 1e-4, "head_rate": 4e-4},
    ("minilm", "package", "cpu"): {"learning_rate": 6e-5, "head_rate": 1.2e-4, "layer_decay": 0.9, "frozen": 0},
    ("minilm", "base", "cuda"): {"learning_rate": 3e-4, "head_rate": 1e-3, "dropout": 0.1, "average": 0.99},
    ("minilm", "package", "cuda"): {
        "learning_rate": 4e-4,
        "head_rate": 8e-4,
        "layer_decay": 0.9,
        "frozen": 0,
        "average": 0.995,
    },
    ("e5", "base", "cpu"): {"learning_rate": 1e-4, "head_rate": 4e-4, "layer_decay": 0.9, "frozen": 3},
    ("e5", "package", "cpu"): {"learning_rate": 6e-5, "head_rate": 1.2e-4, "layer_decay": 0.9, "frozen": 3},
    ("e5", "base", "cuda"): {
        "learning_rate": 2e-4,
        "head_rate": 1e-3,
        "layer_decay": 0.9,
        "dropout": 0.1,
        "average": 0.99,
    },
    ("e5", "package", "cuda"): {
        "learning_rate": 2e-4,
        "head_rate": 3e-4,
        "layer_decay": 0.9,
        "frozen": 2,
        "average": 0.995,
    },
    # What bounds these is the multiplications: half of the layers frozen is 1.4 times the rows of four, dropout would
    # take a sixth of the time (its random numbers), and so does rounding.
    ("mpnet", "base", "cpu"): {
        "learning_rate": 5e-5,
        "head_rate": 2e-4,
        "layer_decay": 0.95,
        "frozen": 2,
        "rounded_from": 0.8,
    },
    ("mpnet", "package", "cpu"): {
        "learning_rate": 4e-5,
        "head_rate": 8e-5,
        "layer_decay": 0.95,
        "frozen": 6,
        "rounded_from": 0.75,
    },
    ("mpnet", "base", "cuda"): {
        "learning_rate": 1e-4,
        "head_rate": 4e-4,
        "frozen": 1,
        "layer_decay": 0.9,
        "dropout": 0.1,
        "average": 0.99,
        "rounded_from": 0.5,
    },
    ("mpnet", "package", "cuda"): {
        "learning_rate": 1.2e-4,
        "head_rate": 2e-4,
        "frozen": 1,
        "layer_decay": 0.95,
        "dropout": 0.05,
        "average": 0.995,
        "rounded_from": 0.3,
    },
}


@dataclass(frozen=True)
class Settings:
    """How long and how fast, and which tasks of the mix are left out."""

    # The learning rate warms up, then falls to 0 by `rows` or `minutes`, whichever comes first.
    rows: int
    minutes: float
    # Of the highest layer, of the head, and what a layer's rate is of that of the layer above.
    learning_rate: float = 1e-4
    head_rate: float = 4e-4
    layer_decay: float = 0.85
    # So many of the lowest layers stay as they are.
    frozen: int = 1
    dropout: float = 0.0
    # The share of the way in which the rates rise.
    warm_up: float = 0.04
    # What the moving average keeps of itself in a step.
    average: float = 0.997
    # The weight of what pairs of questions and twins pay.
    consistency: float = 1.0
    # The progress from which weights are rounded as the package rounds them (1: never).
    rounded_from: float = 1.0
    # The share of rows from the everyday corpus.
    everyday: float = 0.3
    # The share of rows from the tables of ordinary decisions.
    tables: float = 0.0
    # So many draws at first are of the tasks of each phase of mix.FIRST.
    first_rows: tuple[int, ...] = ()
    seed: int = 1
    without: tuple[str, ...] = ()


def groups(model: StageB, settings: Settings) -> list[dict]:
    """Parameter groups: lower layers learn more slowly, the head faster, frozen ones are left out."""
    layers = model.encoder.layers
    result = [{"params": [*model.dense.parameters(), *model.score.parameters()], "rate": settings.head_rate}]
    for index, layer in enumerate(layers):
        if index >= settings.frozen:
            rate = settings.learning_rate * settings.layer_decay ** (len(layers) - 1 - index)
            result.append({"params": list(layer.parameters()), "rate": rate})
    return result


def freeze(model: StageB, settings: Settings) -> None:
    """Embeddings and the lowest layers stay as the base model has them: less to forget, and less work a step."""
    encoder = model.encoder
    for part in (
        encoder.words,
        encoder.positions,
        encoder.types,
        encoder.distances,
        encoder.norm,
        *encoder.layers[: settings.frozen],
    ):
        if part is not None:
            part.requires_grad_(False)


def learned(model: StageB) -> list[Tensor]:
    """The trained weights."""
    return [p for p in model.parameters() if p.requires_grad]
