#!/bin/bash
# Builds etcd with its tools, kube-apiserver and kube-controller-manager from the Go tool dependencies
# that tools/go.mod names, once, into a cache outside the build tree, and prints the folder.
#   bin=$(tests/cluster/build_tools.sh)        # about 4 minutes on 2 cores with an empty Go cache
# Exit status 77: there is no Go toolchain that can build them; the reason is on stderr.
set -euo pipefail
cd "$(dirname "$0")/tools"

. ../../support/need_go.sh "builds Kubernetes"
key=$(cat go.mod go.sum | sha256sum | cut -c1-16)
bin=${TAHOMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tahoma}/kubernetes-$key
if [ ! -x "$bin/kube-controller-manager" ]; then
  mkdir -p "$bin"
  echo "building etcd, kube-apiserver and kube-controller-manager into $bin (minutes, once)" >&2
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  minor=${version#v1.}
  flags="-s -w"
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
    flags+=" -X $package.gitTreeState=clean"
  done
  new=$(mktemp -d "$bin/new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local \
    go build -trimpath -buildvcs=false -ldflags "$flags" -o "$new/" tool >&2
  mv "$new/server" "$bin/etcd"  # the package is go.etcd.io/etcd/server/v3
  mv "$new/etcdctl" "$new/etcdutl" "$bin/"
  mv "$new/kube-apiserver" "$bin/"
  mv "$new/kube-controller-manager" "$bin/"  # last: it marks the folder as complete
fi
echo "$bin"
