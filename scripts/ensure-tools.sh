#!/bin/sh
# Ensures that the programs are installed that the tests run: redis-server and nginx (tests start and stop their own, on
# free ports), openssl for certificates, curl for the README's commands. Each is also the name of its Debian package.
set -eu
missing=
for tool in redis-server nginx openssl curl; do
  command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
[ -z "$missing" ] && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  # Without RUNLEVEL=1 the packages would start redis-server and nginx on their usual ports. The list is to be split.
  # shellcheck disable=SC2086
  RUNLEVEL=1 apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
  echo "The tests need these programs:$missing. With Debian's packages: apt-get install$missing." >&2
  exit 1
fi
