#!/bin/sh
# Runs a command beside a service of its own: `sh scripts/with-service.sh COMMAND [ARGUMENT…]`. The service listens on a
# free port, keeps its data in a folder that is removed afterwards, and has one key. The command gets PORT, BASE_URL and
# API_KEY in its environment; its exit status is the script's. The service takes its settings from the environment;
# unless that says otherwise, it has minilm-l6 alone, no limits and no drain delay.
set -eu
root="$(cd "$(dirname "$0")/.." && pwd)"
PATH="$root/node_modules/.bin:$PATH"
work="$(mktemp -d)"
server=
trap 'test -z "$server" || { kill "$server" 2>/dev/null || true; wait "$server" || true; }; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

for limit in RATE CONCURRENCY; do
  for caller in ANONYMOUS KEY; do
    name="UMPIRE_${limit}_$caller"
    if ! printenv "$name" >/dev/null; then export "$name=off"; fi
  done
done
for name in UMPIRE_REQUEST_RATE UMPIRE_BODIES_ANONYMOUS UMPIRE_BODIES_KEY UMPIRE_BODIES_ALL; do
  if ! printenv "$name" >/dev/null; then export "$name=off"; fi
done
# The service has one model, unless others are asked for: requests would wait while an engine process loads another.
if [ -z "${UMPIRE_MODELS_DIR:-}" ]; then
  mkdir "$work/models"
  cp -r "$root/models/minilm-l6" "$work/models/"
  export UMPIRE_MODELS_DIR="$work/models"
fi
export UMPIRE_DATA_DIR="$work/data" UMPIRE_ENGINES="${UMPIRE_ENGINES:-1}" UMPIRE_DRAIN_DELAY="${UMPIRE_DRAIN_DELAY:-0}"
API_KEY="$(node "$root/src/cli.ts" keys create --owner example | tail -n 1)"
: >"$work/log" # The file is read below, perhaps before the server has opened it.
PORT=0 HOST=127.0.0.1 node "$root/src/main.ts" >>"$work/log" 2>&1 &
server=$!

waited=0
until PORT="$(sed -n 's/.*"port":\([0-9]*\).*/\1/p' "$work/log" | head -n 1)" && [ -n "$PORT" ] &&
  curl -fs "http://127.0.0.1:$PORT/health/ready" >/dev/null; do
  waited=$((waited + 1))
  if [ "$waited" -gt 300 ] || ! kill -0 "$server" 2>/dev/null; then
    cat "$work/log" >&2
    exit 1
  fi
  sleep 0.2
done
export PORT API_KEY BASE_URL="http://127.0.0.1:$PORT"
status=0
"$@" || status=$?
# An answer with 500 means that the service found a fault of its own.
if grep '"status":500' "$work/log" >&2; then status=1; fi
exit "$status"
