#!/bin/sh
# Generates clients from the OpenAPI document with openapi-python-client and openapi-generator (Python, Java, Go),
# compiles them, and calls a service of its own with them, as it is and with one field more in each answer. Needs
# Python, JDK 17 and PyPI; the client for Go is called if there is a `go`, and otherwise only searched for its fields.
# The generators are installed into a folder of their own, .venv/generators. Not a part of `npm run verify`, which has
# openapi-typescript (scripts/check-sdk.sh).
set -eu
cd "$(dirname "$0")/.."
tool="$PWD/.venv/generators"
if [ ! -x "$tool/bin/openapi-python-client" ] || [ ! -x "$tool/bin/openapi-generator-cli" ]; then
  python3 -m venv "$tool"
  "$tool/bin/pip" install --quiet 'openapi-python-client==0.29.1' 'openapi-generator-cli==7.26.0' pydantic urllib3 python-dateutil
fi
PATH="$tool/bin:$PATH"
made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT
generate() { openapi-generator-cli generate -i gen/openapi.json -g "$1" -o "$made/$1" "$2" "$3" >"$made/log" 2>&1 || { cat "$made/log" >&2; exit 1; }; }

openapi-python-client generate --path gen/openapi.json --output-path "$made/opc/umpire_openapi" --meta none
generate python --package-name umpire_client
# With disallowAdditionalPropertiesIfNotPresent, which is on by default, clients refuse a field that is added later.
# Without containerDefaultToNull a list that is not set is sent as an empty one, beside the catalog that was meant.
generate java --additional-properties library=native,openApiNullable=false,containerDefaultToNull=true,disallowAdditionalPropertiesIfNotPresent=false
generate go --additional-properties packageName=umpire,disallowAdditionalPropertiesIfNotPresent=false

# The client is compiled with the generator's own jar, which contains Jackson. So nothing of Maven is needed but one
# annotation that Java 11 removed.
jar="$(find "$tool" -name openapi-generator.jar)"
mkdir -p "$made/classes" "$made/java/src/main/java/javax/annotation"
echo 'package javax.annotation; public @interface Generated { String[] value(); String date() default ""; String comments() default ""; }' \
  >"$made/java/src/main/java/javax/annotation/Generated.java"
cp scripts/sdk/java/Call.java "$made/java/src/main/java/"
find "$made/java/src/main/java" -name '*.java' >"$made/sources"
javac -nowarn -d "$made/classes" -cp "$jar" "@$made/sources" 2>"$made/log" || { cat "$made/log" >&2; exit 1; }
if command -v go >/dev/null; then
  mkdir "$made/go/cmd"
  cp scripts/sdk/go/main.go "$made/go/cmd/"
  (cd "$made/go" && GOFLAGS=-mod=mod go build -o "$made/call-go" ./cmd)
else
  grep -q 'json:"choices,omitempty"' "$made/go/model_decision_request.go"
  grep -q 'this.Model = model' "$made/go/model_decision_request.go"
  echo 'openapi-generator, Go: generated, with its fields; not compiled, since there is no go'
fi
export MADE="$made" JAR="$jar"
call='
  PYTHONPATH="$MADE/opc" python scripts/sdk/python/call_openapi_python_client.py "$BASE_URL"
  PYTHONPATH="$MADE/python" python scripts/sdk/python/call_openapi_generator.py "$BASE_URL"
  java -cp "$MADE/classes:$JAR" Call "$BASE_URL"
  if [ -x "$MADE/call-go" ]; then "$MADE/call-go" "$BASE_URL"; fi
'
sh scripts/with-service.sh sh -euc "$call"
echo 'with one field more in each answer:'
sh scripts/with-service.sh node scripts/sdk/with-added-field.ts sh -euc "$call"
