#!/bin/sh
# Runs the example clients of docs/clients against a service of its own, and compares what they print. grpcio is installed into a folder of its own,
# .venv/grpc. Not a part of `npm run verify`.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
tool=.venv/grpc
if [ ! -x "$tool/bin/python" ] || ! "$tool/bin/python" -c 'import grpc_tools' 2>/dev/null; then
  python3 -m venv "$tool"
  "$tool/bin/pip" install --quiet 'grpcio-tools==1.85.1'
fi
generated="$(mktemp -d)"
trap 'rm -rf "$generated"' EXIT
"$tool/bin/python" -m grpc_tools.protoc -I proto --python_out="$generated" --grpc_python_out="$generated" \
  umpire/v1/decision_service.proto google/api/annotations.proto google/api/http.proto
export PYTHONPATH="$generated" PYTHON="$PWD/$tool/bin/python"
sh scripts/with-service.sh sh -euc '
  expect="billing 0.532273 minilm-l6@r1"
  check() { printf "%s: %s\n" "$1" "$2"; test "$2" = "$expect"; }
  check "grpc-js" "$(node docs/clients/decide.ts "127.0.0.1:$PORT")"
  check "grpcio" "$("$PYTHON" docs/clients/decide.py "127.0.0.1:$PORT")"
  check "curl" "$(sh docs/clients/decide.sh "$BASE_URL" | node -p "
    const { decision } = JSON.parse(require(\"node:fs\").readFileSync(0, \"utf8\"));
    [decision.output.choice, decision.output.confidence, decision.model].join(\" \")")"
  # A wrong key is refused, so the key above was looked at.
  if API_KEY=wrong sh docs/clients/decide.sh "$BASE_URL"; then exit 1; fi
'
