"""What stage B is trained with: how long, how fast, and which of its weights."""

from dataclasses import dataclass

from torch import Tensor

from .stage_b import StageB


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
