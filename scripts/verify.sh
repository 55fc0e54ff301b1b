#!/bin/sh
# Installs what the checks need, then runs every check, until one fails.
set -eu
cd "$(dirname "$0")/.."
sh scripts/install.sh
PATH="$PWD/node_modules/.bin:$PATH"
# All steps read the same sources, so the compiled code of one serves the next.
export NODE_COMPILE_CACHE="$PWD/node_modules/.cache/compile"
step() { printf '\n== %s\n' "$1"; }

step 'tools of the tests'
sh scripts/ensure-tools.sh

step 'format and lint'
biome ci .

step 'types'
tsc --noEmit

step 'protos: lint, format, breaking changes'
buf lint
buf format --diff --exit-code proto
buf breaking proto --against test/golden/contract-1.0.0.binpb

step 'generated code is up to date'
sh scripts/check-gen.sh

step 'a generated client'
sh scripts/check-sdk.sh

step 'tests'
# Interrupted, AVA names the tests that have not ended. Its own timeout never ends a run that hangs before the longest
# `t.timeout` of a test is over. In the foreground, so that Ctrl-C still reaches it.
timeout --foreground --signal=INT --kill-after=1m 15m ava "$@"
