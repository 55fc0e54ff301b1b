#!/bin/sh
# Starts the service in the root file system of an image, as the image's user and with everything read-only but /data
# and /tmp: `start-image.sh ROOT`. Checks its health as the image does, creates a key, asks for a decision, and ends the
# service with SIGTERM. Needs root, unshare and setpriv.
set -eu
root="$1"
port=$((20000 + $$ % 20000))
log="$(mktemp)"
unshare --mount sh -euc '
  root="$0" port="$1"
  mount --bind "$root" "$root"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  mount -t tmpfs -o uid=1000,gid=1000 tmpfs "$root/data"
  mount -t proc proc "$root/proc"
  mount -o remount,bind,ro "$root"
  # Replaces the shell that calls it, so that a signal reaches Node itself.
  in_place() {
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin NODE_ENV=production UMPIRE_DATA_DIR=/data PORT="$port" UMPIRE_ENGINES=1 UMPIRE_DRAIN_DELAY=1 \
      chroot "$root" setpriv --reuid 1000 --regid 1000 --clear-groups --bounding-set -all --no-new-privs sh -c "cd /app && exec $1"
  }
  as_image() { (in_place "$1"); }
  if as_image "touch src/x" 2>/dev/null; then echo "the file system can be written" >&2; exit 1; fi
  in_place "node src/main.ts" &
  server=$!
  trap "kill -KILL $server 2>/dev/null || true" EXIT
  tries=0
  until as_image "node deploy/health-check.ts"; do
    tries=$((tries + 1))
    test "$tries" -lt 60 || exit 1
    sleep 0.5
  done
  echo "ready, by the image'"'"'s own health check: ok" >&2
  as_image "bin/umpire keys create --owner acme" | grep -q "^ump_live_"
  echo "a key made inside: ok" >&2
  curl -fs "http://127.0.0.1:$port/v1/decisions" -H "Content-Type: application/json" \
    -d "{\"model\":\"minilm-l6\",\"input\":\"I was charged twice\",\"instruction\":\"Which team?\",\"choices\":[\"billing\",\"shipping\"]}" >&2
  echo >&2
  kill -TERM "$server"
  sleep 0.3
  if as_image "node deploy/health-check.ts"; then echo "healthy while it drains" >&2; exit 1; fi
  wait "$server"
  echo "drained, exit 0: ok" >&2
' "$root" "$port" >"$log" || { cat "$log"; exit 1; }
rm -f "$log"
