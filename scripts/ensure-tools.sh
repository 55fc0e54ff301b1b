#!/bin/sh
# Makes sure that the programs are there which the tests run: redis-server and nginx (they start their own, on free ports, and stop them), openssl
# for certificates, curl for the README's commands. Each is the name of its Debian package, too.
set -eu
missing=
for tool in redis-server nginx openssl curl; do
  command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
[ -z "$missing" ] && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  # Their packages would start redis-server and nginx on their usual ports, which nobody here asked for. The names are meant to be split.
  # shellcheck disable=SC2086
  RUNLEVEL=1 apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
  echo "The tests need these programs:$missing. With Debian's packages: apt-get install$missing." >&2
  exit 1
fi
