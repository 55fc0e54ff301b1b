"""Prints the numbers of the checkpoints of infinity_checkpoints.py without a server, one text at a time: for each line
of standard input, {"texts"} or {"pairs"}, a list of vectors or of logits. The argument is the checkpoints' folder.
"""

import json
import pathlib
import sys

import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForSequenceClassification, AutoTokenizer

folder = pathlib.Path(sys.argv[1])
torch.set_num_threads(1)
encoder = SentenceTransformer(str(folder / "encoder"), device="cpu")
tokenizer = AutoTokenizer.from_pretrained(folder / "reranker")
reranker = AutoModelForSequenceClassification.from_pretrained(folder / "reranker").eval()

for line in sys.stdin:
    asked = json.loads(line)
    with torch.no_grad():
        if "texts" in asked:
            rows = [encoder.encode(text, normalize_embeddings=True).tolist() for text in asked["texts"]]
        else:
            rows = [reranker(**tokenizer(a, b, return_tensors="pt")).logits.item() for a, b in asked["pairs"]]
    print(json.dumps(rows), flush=True)
