#!/bin/sh
# Kills learning: `sh scripts/kill-learning.sh [--rounds N] [--store sqlite|redis]`. `umpire learn` runs beside a server
# that makes decisions all the time, and after each of the command's steps in turn the command, the server or Redis is
# killed. Every answer must be wholly that of the old state or of the new one: its digest says which, and its
# probabilities are compared number for number. Takes some minutes; a short round is in the test suite.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH" exec node scripts/kill-learning/main.ts "$@"
