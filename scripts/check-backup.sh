#!/bin/sh
# Runs the commands of docs/backup.md: backs up both stores while a service writes to them, loses them, restores them,
# and moves from one to the other. Needs redis-server. Not a part of `npm run verify`.
set -eu
cd "$(dirname "$0")/.."
# The service runs with the pinned Node; for the page's commands nothing of Umpire is on PATH.
node="$PWD/node_modules/.bin/node"
work="$(mktemp -d)"
server= redis=
stop() { test -z "$1" || { kill "$1" 2>/dev/null || true; wait "$1" 2>/dev/null || true; }; }
trap 'stop "$server"; stop "$redis"; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Prints a command block of the page by its number.
block() { awk -v wanted="$1" '/^```sh$/ { n += 1; on = 1; next } /^```$/ { on = 0 } on && n == wanted' docs/backup.md; }
run_block() { block "$1" | sed "s#\([a-z-]*\.\(jsonl\|rdb\)\)#$work/\1#g" | sh -eu; }
start() {
  : >"$work/log"
  PORT=0 HOST=127.0.0.1 UMPIRE_ENGINES=1 UMPIRE_DRAIN_DELAY=0 "$node" src/main.ts >"$work/log" 2>&1 &
  server=$!
  tries=0
  until port="$(sed -n 's/.*"port":\([0-9]*\).*/\1/p' "$work/log" | head -n 1)" && [ -n "$port" ] && curl -fs "127.0.0.1:$port/health/ready" >/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || { cat "$work/log"; exit 1; }
    sleep 0.2
  done
}
end() { stop "$server"; server=; }
start_redis() {
  redis-server --port "$redis_port" --dir "$work/redis" --save '' --appendonly "$1" --maxmemory-policy noeviction >/dev/null &
  redis=$!
  tries=0
  until redis-cli -u "$REDIS_URL" PING 2>/dev/null | grep -q PONG; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ]
    sleep 0.1
  done
}
catalogs="http://127.0.0.1"
create() { curl -fsS "$catalogs:$port/v1/catalogs" -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
  -d "{\"id\":\"$1\",\"model\":\"minilm-l6\",\"choices\":[\"a\",\"b\"]}" >/dev/null; }
status() { curl -s -o /dev/null -w '%{http_code}' "$catalogs:$port/v1/catalogs/$1" -H "Authorization: Bearer $key"; }
expect() { test "$2" = "$3" || { echo "$1: $2 instead of $3" >&2; exit 1; }; echo "$1: $2"; }

export UMPIRE_DATA_DIR="$work/data"
key="$(bin/umpire keys create --owner example | tail -n 1)"
start
create first
run_block 1
create second
end
mv "$UMPIRE_DATA_DIR" "$work/lost"
run_block 2
start
expect 'embedded, what was backed up' "$(status first)" 200
expect 'embedded, what came later' "$(status second)" 404
run_block 3
end

redis_port=$((20000 + $$ % 20000))
mkdir "$work/redis"
export REDIS_URL="redis://127.0.0.1:$redis_port"
start_redis yes
run_block 4
start
expect 'Redis, what was moved there' "$(status first)" 200
create third
run_block 1
run_block 5
create fourth
end
lose_redis() { stop "$redis"; rm -r "$work/redis"; mkdir "$work/redis"; }
lose_redis
start_redis yes
run_block 2
start
expect 'Redis, what was backed up' "$(status third)" 200
expect 'Redis, what came later' "$(status fourth)" 404
end
lose_redis
cp "$work/umpire-backup.rdb" "$work/redis/dump.rdb"
start_redis no
run_block 6
stop "$redis"
start_redis yes
start
expect "Redis, by its own copy" "$(status third)" 200
expect 'Redis, what came later' "$(status fourth)" 404
