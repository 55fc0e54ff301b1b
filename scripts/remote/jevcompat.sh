#!/bin/sh
# Runs Umpire against jevcompat's mock of a System One server: compares its decisions with the mock's own, turns on each
# of the mock's faults, then kills, freezes and slows it and gives it another key, and records what callers see. Needs
# Python 3.10 or later; the mock is installed into a folder of its own, .venv/jevcompat.
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/node_modules/.bin:$PATH"
tool=.venv/jevcompat
if ! "$tool/bin/python" -c 'import jevcompat.mock' 2>/dev/null; then
  python3 -m venv "$tool"
  # Its dependencies are not needed: they are for its checks of other servers.
  "$tool/bin/pip" install --quiet --no-deps 'jevcompat==0.1.1'
fi
exec node scripts/remote/jevcompat.ts "$PWD/$tool/bin" "$@"
