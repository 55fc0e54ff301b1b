#!/bin/sh
# Runs the example clients of docs/clients from a folder to which a caller has copied them, against a service of its
# own, and compares what they print. grpcio is installed into a folder of its own, .venv/grpc. The client for Go runs if
# there is a `go` with the two plugins for protoc. Not a part of `npm run verify`, which runs the clients for Node, curl
# and REST.
set -eu
cd "$(dirname "$0")/.."
tool="$PWD/.venv/grpc"
if [ ! -x "$tool/bin/python" ] || ! "$tool/bin/python" -c 'import grpc_status, grpc_tools' 2>/dev/null; then
  python3 -m venv "$tool"
  "$tool/bin/pip" install --quiet 'grpcio-tools==1.85.1' 'grpcio-status==1.85.1' 'googleapis-common-protos==1.76.0'
fi
copy="$(mktemp -d)"
trap 'rm -rf "$copy"' EXIT
cp -r proto docs/clients/. "$copy"
ln -s "$PWD/node_modules" "$copy/node_modules"
# The package.json is that of `npm init -y`, then changed as the clients' head comments say.
echo '{ "name": "caller", "version": "1.0.0", "main": "index.js", "type": "commonjs" }' >"$copy/package.json"
export COPY="$copy" PYTHON="$tool/bin/python" NODE="$PWD/node_modules/.bin/node"
(cd "$copy" && npm pkg set type=module && "$PYTHON" -m grpc_tools.protoc -I proto --python_out=. --grpc_python_out=. proto/umpire/v1/*.proto proto/buf/validate/*.proto && npx @bufbuild/buf generate)

# Builds the client for Go, with Debian's packages if they are installed, and otherwise with modules.
build_go() {
  for tool in go protoc-gen-go protoc-gen-go-grpc; do
    command -v "$tool" >/dev/null || { echo "grpc-go: not tested, there is no $tool"; return; }
  done
  debian=/usr/share/gocode
  module="$copy/go/src/example.com/your/module"
  mkdir -p "$module"
  cp -r proto docs/clients/decide.go docs/clients/buf.gen.go.yaml "$module"
  ln -s "$PWD/node_modules" "$module/node_modules"
  cd "$module"
  npx @bufbuild/buf generate --template buf.gen.go.yaml
  if [ -d "$debian/src/google.golang.org/grpc" ]; then
    export GO111MODULE=off GOPATH="$copy/go:$debian"
    go build ./gen/...
    if ! grep -q '^func NewClient(' "$debian/src/google.golang.org/grpc/clientconn.go"; then
      echo 'grpc-go: the code that buf generates compiles; the client needs grpc-go 1.63 or later'
      return
    fi
  else
    go mod init example.com/your/module
    go get google.golang.org/grpc google.golang.org/protobuf google.golang.org/genproto/googleapis/api google.golang.org/genproto/googleapis/rpc
  fi
  go build -o "$copy/decide" decide.go
}
(build_go)
UMPIRE_MODELS_DIR="$PWD/models" UMPIRE_MODELS=umpire-mini sh scripts/with-service.sh sh -euc '
  cd "$COPY"
  export UMPIRE_KEY="$API_KEY"
  expect="billing: invoices, charges, refunds 0.95641 umpire-mini@r11"
  check() { printf "%s: %s\n" "$1" "$2"; test "$2" = "$expect"; }
  refuse() {
    if said="$(UMPIRE_KEY=wrong "$@" 2>&1)"; then exit 1; fi
    printf "%s\n" "$said" | grep -i "AUTHENTICATION_REQUIRED"
  }
  check "grpc-js" "$("$NODE" decide.ts "127.0.0.1:$PORT")"
  check "connect" "$("$NODE" connect.ts "$BASE_URL")"
  check "grpcio" "$("$PYTHON" decide.py "127.0.0.1:$PORT")"
  check "REST, JavaScript" "$("$NODE" rest.mjs "$BASE_URL")"
  check "REST, Python" "$("$PYTHON" rest.py "$BASE_URL")"
  if [ -x decide ]; then
    check "grpc-go" "$(./decide "127.0.0.1:$PORT")"
    refuse ./decide "127.0.0.1:$PORT"
  fi
  check "curl" "$(sh decide.sh "$BASE_URL" | "$NODE" -p "
    const { decision } = JSON.parse(require(\"node:fs\").readFileSync(0, \"utf8\"));
    [decision.output.choice, decision.output.confidence, decision.model].join(\" \")")"
  # A wrong key is refused, which shows that the key above was checked, and each client can tell why.
  refuse "$NODE" decide.ts "127.0.0.1:$PORT"
  refuse "$NODE" connect.ts "$BASE_URL"
  refuse "$PYTHON" decide.py "127.0.0.1:$PORT"
  refuse "$NODE" rest.mjs "$BASE_URL"
  refuse "$PYTHON" rest.py "$BASE_URL"
  refuse sh decide.sh "$BASE_URL"
  # The code works beside libraries that use the same protos of Google, which a second, smaller copy would break.
  "$PYTHON" -c "from umpire.v1 import decision_service_pb2; from google.api import service_pb2; from google.rpc import status_pb2"
  "$PYTHON" -c "from google.api import service_pb2; from umpire.v1 import decision_service_pb2"
'
