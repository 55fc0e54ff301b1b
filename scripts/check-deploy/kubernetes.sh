#!/bin/sh
# Builds both overlays with kustomize and validates the manifests strictly against the schemas of the oldest and the
# newest version of Kubernetes that should run them. Needs kubectl or kustomize; kubernetes-validate is installed into a
# folder of its own, .venv/kubernetes.
set -eu
cd "$(dirname "$0")/../.."
tool=.venv/kubernetes
if [ ! -x "$tool/bin/kubernetes-validate" ]; then
  python3 -m venv "$tool"
  "$tool/bin/pip" install --quiet 'kubernetes-validate==1.37.0'
fi
built="$(mktemp -d)"
trap 'rm -rf "$built"' EXIT
for overlay in embedded redis; do
  if command -v kustomize >/dev/null; then kustomize build "deploy/kubernetes/overlays/$overlay" >"$built/$overlay.yaml"
  else kubectl kustomize "deploy/kubernetes/overlays/$overlay" >"$built/$overlay.yaml"; fi
  for version in 1.30 1.37; do
    "$tool/bin/kubernetes-validate" --strict --no-warn --quiet --kubernetes-version "$version" "$built/$overlay.yaml"
  done
  echo "overlay $overlay: ok"
  # All that the restricted level of pod security requires.
  for line in 'runAsNonRoot: true' 'readOnlyRootFilesystem: true' 'allowPrivilegeEscalation: false' 'type: RuntimeDefault' '- ALL'; do
    grep -q -- "$line" "$built/$overlay.yaml" || { echo "$overlay lacks '$line'" >&2; exit 1; }
  done
done
# With the bridge in each pod.
component="$built/component"
mkdir "$component"
here="$(realpath --relative-to "$component" deploy/kubernetes)"
printf 'resources: [%s/overlays/redis]\ncomponents: [%s/components/bridge]\n' "$here" "$here" >"$component/kustomization.yaml"
if command -v kustomize >/dev/null; then kustomize build "$component" >"$built/bridge.yaml"
else kubectl kustomize "$component" >"$built/bridge.yaml"; fi
for version in 1.30 1.37; do
  "$tool/bin/kubernetes-validate" --strict --no-warn --quiet --kubernetes-version "$version" "$built/bridge.yaml"
done
grep -q 'containerPort: 8090' "$built/bridge.yaml" && grep -q 'containerPort: 8080' "$built/bridge.yaml"
echo 'component bridge: ok'
# The check can fail: a manifest with a field that Kubernetes does not know is refused.
sed 's/readinessProbe/readynessProbe/' "$built/redis.yaml" >"$built/broken.yaml"
if "$tool/bin/kubernetes-validate" --strict --no-warn --quiet "$built/broken.yaml" >/dev/null 2>&1; then
  echo 'a broken manifest was accepted' >&2
  exit 1
fi
