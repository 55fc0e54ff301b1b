#!/bin/sh
# Format and lint of the Python code, by ruff: `sh scripts/training.sh` checks, `sh scripts/training.sh --fix` mends what can be mended.
# Needs Python 3.11 or later; ruff is installed into a folder of its own, .venv/training. Not a part of `npm run verify`.
set -eu
cd "$(dirname "$0")/.."
tool="$PWD/.venv/training"
# One that was installed for an older pin is replaced.
if ! cmp -s training/requirements-dev.txt "$tool/requirements-dev.txt"; then
  python3 -m venv "$tool"
  "$tool/bin/pip" install --quiet -r training/requirements-dev.txt
  cp training/requirements-dev.txt "$tool/requirements-dev.txt"
fi
case "${1:-}" in
  '') format='format --diff' lint='check' ;;
  --fix) format='format' lint='check --fix' ;;
  *)
    echo "usage: sh scripts/training.sh [--fix]" >&2
    exit 2
    ;;
esac
export RUFF_CACHE_DIR="$tool/cache"
# A configuration that is named is read as if it stood where ruff is run, so each folder has a run of its own: both are run, and either fails.
status=0
for command in "$lint" "$format"; do
  (cd training && "$tool/bin/ruff" $command .) || status=1
  "$tool/bin/ruff" $command --config training/pyproject.toml scripts || status=1
done
exit "$status"
