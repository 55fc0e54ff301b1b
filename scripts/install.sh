#!/bin/sh
# Installs the pinned dependencies, unless that was done since the lock file last changed.
set -eu
cd "$(dirname "$0")/.."
if [ node_modules/.package-lock.json -nt package-lock.json ] && [ node_modules/.package-lock.json -nt package.json ]; then
  exit 0
fi
# .npmrc keeps every install script from running. These two packages need theirs: each puts the program of this platform in its place.
npm ci --no-audit --no-fund --loglevel=error
npm rebuild --ignore-scripts=false --loglevel=error node @bufbuild/buf
