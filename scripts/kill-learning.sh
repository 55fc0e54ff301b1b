#!/bin/sh
# Learning that is killed: `sh scripts/kill-learning.sh [--rounds N] [--store sqlite|redis]`. `umpire learn` runs beside a server that decides all the while,
# and the command, the server or Redis is killed after each of its steps in turn. Every answer must be that of the old state or of the new one, whole: its
# digest says which, and its probabilities are compared number for number. Takes some minutes; a short round is in the test suite.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH" exec node scripts/kill-learning/main.ts "$@"
