#!/bin/sh
# Measures several replicas: `sh scripts/replicas.sh [--only 1|2|3] [--rounds N] [--callers N] [--pause MS]
# [--cut SECONDS]`. Three replicas with Redis run behind nginx: spread, limits and a rolling restart (1), failovers of
# Redis (2), a host that is cut off (3, which needs root and iproute2, and is left out where network namespaces are not
# allowed). Prints tables; takes some minutes. Not a part of `npm run verify`.
set -eu
cd "$(dirname "$0")/.."
sh scripts/ensure-tools.sh
PATH="$PWD/node_modules/.bin:$PATH" exec node bench/main.ts replicas "$@"
