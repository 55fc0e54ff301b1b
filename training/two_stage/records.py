"""Reading labelled decisions.

A data set is a file of JSON lines, which may be gzip'd: the first line is `{"meta": {set, labels, licence, ...}}`,
every other line a row `{"input", "instruction", "choices", "label"}` where `choices: null` stands for the set's own
labels. A set of one kind of question names it in `meta.kind`.
"""

import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

# Targets other than a label: stage A's own distribution, every choice alike, and what another stage B says.
TEACHER, EVEN, CROSSED = "\0teacher", "\0even", "\0crossed"


@dataclass(frozen=True)
class Decision:
    """One labelled decision.

    `label` is one of `choices`; `choices` is a tuple so that label sets can be shared and hashed.

    `opposite` is the same text and choices with the opposite question, which a training row may carry with it; or, of a
    row that nobody labelled, the same question and choices with the text in another language. `ranks` are the choices'
    places on a scale, if they are its steps.
    """

    input: str
    instruction: str
    choices: tuple[str, ...]
    label: str
    set: str
    task: str = ""
    opposite: "Decision | None" = None
    ranks: tuple[int, ...] = ()


def read_set(path: Path) -> list[Decision]:
    """All rows of one data set, in file order."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        meta = json.loads(next(lines))["meta"]
        own = tuple(meta["labels"]) if meta["labels"] else None
        kind = meta.get("kind", "")
        rows = []
        for line in lines:
            row = json.loads(line)
            choices = tuple(row["choices"]) if row["choices"] else own
            rows.append(
                Decision(row["input"], row["instruction"], choices, row["label"], meta["set"], row.get("task", kind))
            )
    return rows


def read_folder(folder: Path, names: list[str] | None = None) -> dict[str, list[Decision]]:
    """The sets of a folder by name (all of them, or those in `names`)."""
    paths = sorted(path for path in folder.glob("*.jsonl*"))
    found = {path.name.removesuffix(".gz").removesuffix(".jsonl"): path for path in paths}
    missing = set(names or []) - set(found)
    if missing:
        raise FileNotFoundError(f"{folder} lacks the sets {sorted(missing)}")
    return {name: read_set(path) for name, path in found.items() if names is None or name in names}


def file_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every set of a folder, to be written beside the weights."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(p for end in ("*.jsonl.gz", "*.jsonl", "*.txt") for p in folder.glob(end))
    }
