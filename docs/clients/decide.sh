#!/bin/sh
# A decision with curl over the Connect protocol, which is the same RPC as over gRPC with JSON in its body: `sh docs/clients/decide.sh BASE_URL
# [CA_FILE]`. With UMPIRE_KEY in the environment the call carries the key. An error goes with the request's id, by which the operator finds it.
set -eu
headers="$(mktemp)"
trap 'rm -f "$headers"' EXIT
status=0
base="${1:-http://localhost:8080}"
set -- ${2:+--cacert "$2"} ${UMPIRE_KEY:+--header "Authorization: Bearer $UMPIRE_KEY"}
curl --silent --show-error --fail-with-body --max-time 5 --dump-header "$headers" "$@" "$base/umpire.v1.DecisionService/CreateDecision" \
  --header 'Content-Type: application/json' --header 'Connect-Protocol-Version: 1' --header 'Connect-Timeout-Ms: 5000' \
  --data '{
    "model": "umpire-mini",
    "input": "I was charged twice for my order",
    "instruction": "Which team should handle this?",
    "choices": ["billing: invoices, charges, refunds", "shipping: parcels and delivery", "technical support: errors and crashes"]
  }' || status=$?
echo
if [ "$status" -ne 0 ]; then grep -i '^x-request-id:' "$headers" >&2 || true; fi
exit "$status"
