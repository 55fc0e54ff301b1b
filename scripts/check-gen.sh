#!/bin/sh
# Generates into a folder of its own and compares: what is committed must be what the protos say.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
buf generate --output "$fresh"
node scripts/openapi.ts "$fresh/gen/openapi.json"
diff -r gen "$fresh/gen"
