"""A second reader beside the first: the graph of another package's stage B, whose scores are added to its own.

Both read the same packs, so that they can be one graph, and an engine need not know of it. A large reader that has seen
few rows and a small one that has seen many are right about different kinds of decision.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .stack import Scored

# What the names of the second reader's nodes and constants begin with.
SECOND = "second."


def joined(first: bytes, second: Path, share: float) -> bytes:
    """The graph with `first`'s scores and `share` of those of `second`, whose word embeddings stay in their file: both
    packages must have the same ones.
    """
    model, other = onnx.load_from_string(first), onnx.load(str(second), load_external_data=False)
    if [(o.domain, o.version) for o in model.opset_import] != [(o.domain, o.version) for o in other.opset_import]:
        raise ValueError(f"{second} is of other operators than the first reader")
    shared = {"", *(value.name for value in other.graph.input)}

    def named(name: str) -> str:
        return name if name in shared else SECOND + name

    for node in model.graph.node:
        if node.output[0] == "scores":
            node.output[0] = "first_scores"
    for node in other.graph.node:
        node.name = SECOND + node.name
        node.input[:] = [named(name) for name in node.input]
        node.output[:] = [named(name) for name in node.output]
    for tensor in other.graph.initializer:
        tensor.name = named(tensor.name)
    weight = numpy_helper.from_array(np.array(share, np.float32), f"{SECOND}share")
    model.graph.initializer.extend([*other.graph.initializer, weight])
    model.graph.node.extend(
        [
            *other.graph.node,
            helper.make_node("Mul", [f"{SECOND}scores", weight.name], [f"{SECOND}shared"], name=f"{SECOND}shared"),
            helper.make_node("Add", ["first_scores", f"{SECOND}shared"], ["scores"], name=f"{SECOND}sum"),
        ]
    )
    return model.SerializeToString(deterministic=True)


def alone(both: bytes) -> bytes:
    """The graph of the first reader in one of `joined`."""
    model = onnx.load_from_string(both)
    graph = model.graph
    for kept in (graph.node, graph.initializer):
        first = [part for part in kept if not part.name.startswith(SECOND)]
        del kept[:]
        kept.extend(first)
    for node in graph.node:
        if node.output[0] == "first_scores":
            node.output[0] = "scores"
    return model.SerializeToString(deterministic=True)


def at_share(both: Sequence[Scored], second: Sequence[Scored], share: float, other: float) -> list[Scored]:
    """What two readers in one graph would say of some rows with the share `other` of the second one, by what they say
    with `share` of it (`both`) and what it says alone (`second`): scores are sums, and the stage A is the same.
    """
    result = []
    for one, two in zip(both, second, strict=True):
        if not np.array_equal(one.best, two.best):
            raise ValueError("the readers did not read the same choices")
        more = other - share
        result.append(replace(one, b=one.b + more * two.b, leaning=one.leaning + more * two.leaning))
    return result
