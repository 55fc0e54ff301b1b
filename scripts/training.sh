#!/bin/sh
# Checks the format and the lint rules of the Python code with ruff: `sh scripts/training.sh` checks,
# `sh scripts/training.sh --fix` fixes what ruff can fix. Needs Python 3.11 or later; ruff is installed into a folder of
# its own, .venv/training. Not a part of `npm run verify`.
set -eu
cd "$(dirname "$0")/.."
tool="$PWD/.venv/training"
# A ruff that was installed for another version of the requirements is replaced.
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
# ruff reads a configuration that is named as if it were in the folder in which ruff runs, so each folder has a run of
# its own. Both run, and the script fails if either does.
status=0
for command in "$lint" "$format"; do
  (cd training && "$tool/bin/ruff" $command .) || status=1
  "$tool/bin/ruff" $command --config training/pyproject.toml scripts || status=1
done
exit "$status"
