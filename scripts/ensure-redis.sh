#!/bin/sh
# Makes sure that there is a redis-server for the tests of the Redis store: they start their own, on free ports, and stop them.
set -eu
command -v redis-server >/dev/null 2>&1 && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  # The package would start a server of its own on the usual port, which nobody here asked for.
  RUNLEVEL=1 apt-get install -y -qq --no-install-recommends redis-server >/dev/null
  command -v redis-server >/dev/null 2>&1 && exit 0
fi
echo 'The tests need redis-server 7 or later. Install it, for example: apt-get install redis-server, brew install redis.' >&2
exit 1
