#!/bin/sh
# Installs the pinned dependencies, unless that was done since the lock file last changed.
set -eu
cd "$(dirname "$0")/.."
if [ node_modules/.package-lock.json -nt package-lock.json ] && [ node_modules/.package-lock.json -nt package.json ]; then
  exit 0
fi
# The runtime's own install script only fetches GPU files, which are not used, and fails where it cannot.
ONNXRUNTIME_NODE_INSTALL=skip npm ci --no-audit --no-fund --loglevel=error
