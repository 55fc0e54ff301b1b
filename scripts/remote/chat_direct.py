"""Prints what a language model makes of prompts, computed by the library alone: for each line {"primer", "system",
"user", "letters"} of standard input, the logarithm of the probability of each letter as the first token, over the whole
vocabulary and all tokens that are the letter, and the text of the likeliest token. The primer is a prompt that is read
first; of it the common beginning is kept, as by the server. The argument is the model's file.
"""

import json
import re
import sys

import llama_cpp
import numpy

model = llama_cpp.Llama(sys.argv[1], n_ctx=512, n_threads=1, n_threads_batch=1, verbose=False)
texts = [model.detokenize([token], special=True).decode("utf-8", "replace") for token in range(model.n_vocab())]
# A blank, a mark or a bracket may stand on either side.
letters = [re.sub(r'^[\s"*(\[{]+|[\s"*)\]}.:,]+$', "", text).upper() for text in texts]
known = {}
for token, letter in enumerate(letters):
    if len(letter) == 1 and "A" <= letter <= "Z" and len(texts[token]) <= 16:
        known.setdefault(letter, []).append(token)


def tokens_of(asked):
    """Returns the tokens of a prompt as the model was trained on them."""
    parts = [f"<|im_start|>{role}\n{asked[role]}<|im_end|>\n" for role in ("system", "user")]
    return model.tokenize(("".join(parts) + "<|im_start|>assistant\n").encode(), add_bos=False, special=True)


for line in sys.stdin:
    asked = json.loads(line)
    primer, tokens = tokens_of(asked["primer"]), tokens_of(asked)
    model.reset()
    model.eval(primer)
    model.n_tokens = next(i for i, (a, b) in enumerate(zip(primer, tokens, strict=False)) if a != b)
    model.eval(tokens[model.n_tokens :])
    logits = numpy.ctypeslib.as_array(llama_cpp.llama_get_logits(model.ctx), (model.n_vocab(),)).astype(numpy.float64)
    probabilities = numpy.exp(logits - logits.max())
    probabilities /= probabilities.sum()
    masses = [float(probabilities[known[letter]].sum()) for letter in asked["letters"]]
    answer = {"logprobs": numpy.log(masses).tolist(), "likeliest": texts[int(logits.argmax())]}
    print(json.dumps(answer), flush=True)
