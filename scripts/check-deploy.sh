#!/bin/sh
# Checks the files of deploy/ without a container engine: `sh scripts/check-deploy.sh [image] [compose] [kubernetes]
# [systemd] [nginx] [envoy] [monitoring]`; without an argument, all of them. Needs what each part's script names, from
# Debian, npm and PyPI. Not a part of `npm run verify`.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
[ $# -gt 0 ] || set -- image compose kubernetes systemd nginx envoy monitoring
for part in "$@"; do
  printf '\n== %s\n' "$part"
  case "$part" in
    image) sh scripts/check-deploy/image.sh ;;
    compose)
      # docker-compose 1.29, the last version that needs no engine for this, does not know `name`.
      sed '/^name:/d' deploy/compose.yaml | docker-compose --project-directory deploy -f - config --quiet
      echo 'compose.yaml: ok'
      ;;
    kubernetes) sh scripts/check-deploy/kubernetes.sh ;;
    systemd)
      # The units are checked with this repository's path in place of the path of an installation.
      units="$(mktemp -d)"
      for unit in umpire umpire-bridge; do sed "s|/opt/umpire|$PWD|g" "deploy/systemd/$unit.service" >"$units/$unit.service"; done
      systemd-analyze verify "$units"/*.service
      echo 'umpire.service, umpire-bridge.service: ok'
      ;;
    nginx) UMPIRE_TRUSTED_PROXIES=127.0.0.1 sh scripts/with-service.sh sh -c 'node scripts/check-deploy/nginx.ts "$PORT"' ;;
    envoy)
      tool=.venv/envoy
      if [ ! -x "$tool/bin/python" ] || ! "$tool/bin/python" -c 'import envoy_data_plane, yaml' 2>/dev/null; then
        python3 -m venv "$tool"
        "$tool/bin/pip" install --quiet 'envoy-data-plane==2.2.0' pyyaml
      fi
      "$tool/bin/python" scripts/check-deploy/envoy.py deploy/envoy/envoy.yaml
      ;;
    monitoring)
      node scripts/check-deploy/grafana.ts
      node scripts/check-deploy/monitoring.ts
      ;;
    *)
      echo "there is no part '$part'" >&2
      exit 2
      ;;
  esac
done
