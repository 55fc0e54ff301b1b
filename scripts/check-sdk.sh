#!/bin/sh
# Generates a TypeScript client from the OpenAPI document with openapi-typescript, compiles it strictly, and calls a
# service of its own with it. The generator is installed from npm into its own folder, once for each lock file. For
# clients of other generators see scripts/check-generators.sh.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
folder=scripts/sdk/typescript
if [ ! "$folder/node_modules/.package-lock.json" -nt "$folder/package-lock.json" ]; then
  npm ci --prefix "$folder" --no-audit --no-fund --loglevel=error
fi
cd "$folder"
rm -rf generated
node node_modules/openapi-typescript/bin/cli.js ../../../gen/openapi.json --output generated/schema.ts >/dev/null
tsc --project tsconfig.json
sh ../../with-service.sh sh -c 'node call.ts "$BASE_URL"'
