#!/bin/sh
# Runs schemathesis against a service of its own, by the OpenAPI document: `sh scripts/schemathesis.sh [OPTION…]`, with
# the options of `st run`. Needs Python 3.10 or later; schemathesis is installed into a folder of its own,
# .venv/schemathesis. Not a part of `npm run verify`.
set -eu
cd "$(dirname "$0")/.."
tool=.venv/schemathesis
if [ ! -x "$tool/bin/st" ]; then
  python3 -m venv "$tool"
  "$tool/bin/pip" install --quiet 'schemathesis==4.32.5'
fi
# No schema lists the models. If they were not added here, most requests would fail for an unknown model.
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
node -e '
  const document = JSON.parse(require("node:fs").readFileSync("gen/openapi.json", "utf8"));
  for (const name of ["DecisionRequest", "CatalogRequest"]) {
    document.components.schemas[name].properties.model.enum = name === "DecisionRequest" ? ["minilm-l6", "minilm-l6@r2"] : ["minilm-l6"];
  }
  require("node:fs").writeFileSync(process.argv[1], JSON.stringify(document));
' "$work/openapi.json"
# One check is left out: a request that fits its schema need not be accepted, since a catalog may not exist and a text
# may have too many tokens.
sh scripts/with-service.sh sh -c '
  tool="$1"
  # schemathesis leaves files in the folder in which it runs.
  cd "$2"
  shift 2
  exec "$tool" run openapi.json --url "$BASE_URL" --header "Authorization: Bearer $API_KEY" \
    --exclude-checks positive_data_acceptance --continue-on-failure --seed 1 --max-examples 50 "$@"
' sh "$PWD/$tool/bin/st" "$work" "$@"
