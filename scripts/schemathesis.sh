#!/bin/sh
# Lets schemathesis loose on a service of its own, by the OpenAPI document: `sh scripts/schemathesis.sh [OPTION…]`, options as of `st run`.
# Needs Python 3.10 or later; schemathesis is installed into a folder of its own, .venv/schemathesis. Not a part of `npm run verify`.
set -eu
cd "$(dirname "$0")/.."
tool=.venv/schemathesis
if [ ! -x "$tool/bin/st" ]; then
  python3 -m venv "$tool"
  "$tool/bin/pip" install --quiet 'schemathesis==4.32.5'
fi
# Which models there are stands in no schema; were they not named here, most requests would end at an unknown one.
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
node -e '
  const document = JSON.parse(require("node:fs").readFileSync("gen/openapi.json", "utf8"));
  for (const name of ["DecisionRequest", "CatalogRequest"]) {
    document.components.schemas[name].properties.model.enum = name === "DecisionRequest" ? ["minilm-l6", "minilm-l6@r1"] : ["minilm-l6"];
  }
  require("node:fs").writeFileSync(process.argv[1], JSON.stringify(document));
' "$work/openapi.json"
# Left out: that every request which fits its schema is accepted, since a catalog may not exist and a text may have too many tokens.
sh scripts/with-service.sh sh -c '
  tool="$1"
  # It leaves notes of its own where it runs.
  cd "$2"
  shift 2
  exec "$tool" run openapi.json --url "$BASE_URL" --header "Authorization: Bearer $API_KEY" \
    --exclude-checks positive_data_acceptance --continue-on-failure --seed 1 --max-examples 50 "$@"
' sh "$PWD/$tool/bin/st" "$work" "$@"
