#!/bin/sh
# Attacks on the port. `sh scripts/attacks.sh [NAME…] [--seconds N] [--checkout DIR]` runs each attack against a service
# of its own with the default limits, on free ports of 127.0.0.1, and prints how a neighbour at another address and the
# probes fared before, during and after it. `fuzz --protocol http1|http2 --seconds N --seed N` sends mutated bytes;
# `fuzz-bodies --kind json|protobuf|systemone|decisions --seconds N --seed N` sends bodies that an independent reader
# reads as well. `--checkout` attacks the service of another checkout, for figures from before a change;
# `--through-nginx` through a real nginx with the configuration of deploy/nginx but for TLS.
set -eu
root="$(cd "$(dirname "$0")/.." && pwd)"
PATH="$root/node_modules/.bin:$PATH"
case "${1:-}" in
  fuzz-bodies) shift && exec node "$root/scripts/attacks/fuzz-bodies.ts" "$@" ;;
  fuzz) shift && exec node "$root/scripts/attacks/fuzz.ts" "$@" ;;
  *) exec node "$root/scripts/attacks/main.ts" "$@" ;;
esac
