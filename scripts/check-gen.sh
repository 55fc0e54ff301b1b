#!/bin/sh
# Checks the generated code: generates it into a temporary folder and compares it with what is committed.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT
buf generate --output "$fresh"
node scripts/openapi.ts "$fresh/gen/openapi.json"
diff -r gen "$fresh/gen"
node scripts/settings.ts "$fresh/settings.md"
diff docs/settings.md "$fresh/settings.md"
