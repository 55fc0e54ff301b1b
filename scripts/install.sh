#!/bin/sh
# Installs the pinned dependencies, unless that was done since the lock file last changed. Also installs their programs,
# which a plain `npm ci` leaves out.
set -eu
cd "$(dirname "$0")/.."
sh bin/run-node
installed() { [ node_modules/.package-lock.json -nt package-lock.json ] && [ node_modules/.package-lock.json -nt package.json ]; }
complete() { node_modules/.bin/node --version && node_modules/.bin/buf --version; }
if installed; then
  if complete >/dev/null 2>&1; then exit 0; fi
else
  npm ci --no-audit --no-fund --loglevel=error
fi
# .npmrc keeps every install script from running. These two packages need theirs, which put this platform's program in
# place.
npm rebuild --ignore-scripts=false --loglevel=error node @bufbuild/buf
