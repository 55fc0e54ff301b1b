#!/bin/sh
# Has MLServer score the shipped minilm-l6 and runs Umpire against it: compares its decisions with those of an engine
# process, then kills, freezes and slows the server and records what callers see. Needs Python 3.10 to 3.12; MLServer is
# installed into a folder of its own, .venv/mlserver. Not a part of `npm run verify`; docs/remote-models.md has the last
# results.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
tool=.venv/mlserver
if [ ! -x "$tool/bin/python" ] || ! "$tool/bin/python" -c 'import mlserver, onnxruntime' 2>/dev/null; then
  python3 -m venv "$tool"
  "$tool/bin/pip" install --quiet 'mlserver==1.7.1' 'onnxruntime==1.30.0'
fi
exec node scripts/open-inference/mlserver.ts "$PWD/$tool/bin"
