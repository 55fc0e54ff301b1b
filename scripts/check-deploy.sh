#!/bin/sh
# Checks what deploy/ holds without a container engine: `sh scripts/check-deploy.sh [image] [compose] [kubernetes] [nginx] [envoy] [monitoring]`, all without an
# argument. Needs what each part's script names, from Debian, npm and PyPI. Not a part of `npm run verify`.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
[ $# -gt 0 ] || set -- image compose kubernetes nginx envoy monitoring
for part in "$@"; do
  printf '\n== %s\n' "$part"
  case "$part" in
    image) sh scripts/check-deploy/image.sh ;;
    compose)
      # docker-compose 1.29, the last that needs no engine for this, does not know `name` yet.
      sed '/^name:/d' deploy/compose.yaml | docker-compose --project-directory deploy -f - config --quiet
      echo 'compose.yaml: ok'
      ;;
    kubernetes) sh scripts/check-deploy/kubernetes.sh ;;
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
