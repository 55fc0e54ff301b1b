#!/bin/sh
# Builds the image of deploy/Dockerfile with buildah, without a container engine, and starts it. Needs root, and buildah
# and debootstrap from Debian. In place of the official Node image, which may not be reachable, it makes one from Debian
# and the pinned Node.
set -eu
cd "$(dirname "$0")/../.."
# If CHECK_FOLDER is set, the images are kept there, and the next check is quicker.
work="${CHECK_FOLDER:-$(mktemp -d)}"
mkdir -p "$work"
export BUILDAH_ISOLATION=chroot
store="--root $work/storage --runroot $work/run"
container=
clean() {
  test -z "$container" || buildah $store rm "$container" >/dev/null || true
  test -n "${CHECK_FOLDER:-}" || rm -rf "$work"
}
trap clean EXIT

if ! buildah $store inspect --type image umpire-node >/dev/null 2>&1; then
  [ -d "$work/debian/usr" ] || debootstrap --variant=minbase --include=ca-certificates,libatomic1 bookworm "$work/debian" >/dev/null
  node_home="$(dirname "$(dirname "$(readlink -f node_modules/node/bin/node)")")"
  npm_home="$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")"
  base="$(buildah $store from scratch)"
  buildah $store copy --quiet "$base" "$work/debian" /
  buildah $store copy --quiet "$base" "$node_home/bin/node" /usr/local/bin/node
  buildah $store copy --quiet "$base" "$npm_home" /usr/local/lib/node_modules/npm
  buildah $store run "$base" -- ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
  # This machine may have a certificate authority of its own for the registry.
  if [ -n "${NODE_EXTRA_CA_CERTS:-}" ]; then
    buildah $store copy --quiet "$base" "$NODE_EXTRA_CA_CERTS" /etc/ssl/extra.pem
    buildah $store config --env NODE_EXTRA_CA_CERTS=/etc/ssl/extra.pem "$base"
  fi
  buildah $store commit --quiet "$base" umpire-node >/dev/null
  buildah $store rm "$base" >/dev/null
fi

buildah $store build --quiet --format docker --layers --network host --pull-never --build-arg NODE_IMAGE=localhost/umpire-node \
  --ignorefile deploy/Dockerfile.dockerignore -f deploy/Dockerfile -t umpire .
echo 'the image is built: ok'
buildah $store inspect --type image --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Cmd}} {{.OCIv1.Config.Volumes}}' umpire

container="$(buildah $store from --pull-never umpire)"
root="$(buildah $store mount "$container")"
du -sh "$root/app" | sed "s|$root||"
ls "$root/app"
for gone in usr/local/bin/npm usr/local/lib/node_modules app/test app/node_modules/typescript app/node_modules/ava; do
  test ! -e "$root/$gone"
done
echo 'nothing is in it that installs or tests: ok'
sh scripts/check-deploy/start-image.sh "$root"
