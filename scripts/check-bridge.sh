#!/bin/sh
# Runs the recipes of docs/bridge.md as they are printed, but for the ports, against a service of its own with
# umpire-mini; then jevcompat's conformance suite against the bridge, its proxy in between, and Umpire's own client of
# System One against it. Needs Python 3.10 or later. What others have made is installed into .venv/bridge, from PyPI and
# npm. Not a part of `npm run verify`.
set -eu
cd "$(dirname "$0")/.."
tool="$PWD/.venv/bridge"
install() {
  "$tool/$1/bin/python" -c "import $2" 2>/dev/null && return
  python3 -m venv "$tool/$1"
  shift 2
  "$tool/$folder/bin/pip" install --quiet "$@"
}
mkdir -p "$tool"
folder=python install python litellm,jevcompat 'jevcompat==0.1.1' 'openai==3.57.0' 'litellm[proxy]==1.108.7' \
  'langchain-openai==1.7.4' 'pydantic-ai-slim==2.68.0'
# By itself: it and the others ask for different versions of some packages.
folder=fastmcp install fastmcp fastmcp 'fastmcp==4.2.3'
if [ ! -d "$tool/npm/node_modules/openai" ]; then
  npm install --no-audit --no-fund --loglevel=error --prefix "$tool/npm" openai@7.57.0 @modelcontextprotocol/inspector@2.12.0
fi
export TOOLS="$tool" UMPIRE_MODELS_DIR="$PWD/models" UMPIRE_MODELS=umpire-mini
exec sh scripts/with-service.sh node scripts/bridge/main.ts
