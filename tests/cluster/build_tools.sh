#!/bin/bash
# Builds etcd with its tools, Kubernetes' control plane and kubelet, containerd and CNI plugins from the Go
# tool dependencies that tools/go.mod names, once, into a cache outside the build tree, and prints the folder.
#   bin=$(tests/cluster/build_tools.sh)        # about 5 minutes on 2 cores with an empty Go cache
# Exit status 77: there is no Go toolchain that can build them; the reason is on stderr.
set -euo pipefail
cd "$(dirname "$0")/tools"

. ../../support/need_go.sh "builds Kubernetes"
key=$(cat go.mod go.sum | sha256sum | cut -c1-16)
bin=${TAHOMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tahoma}/kubernetes-$key
if [ ! -e "$bin/complete" ]; then
  mkdir -p "$bin"
  echo "building etcd, Kubernetes and containerd into $bin (minutes, once)" >&2
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  minor=${version#v1.}
  flags="-s -w"
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
    flags+=" -X $package.gitTreeState=clean"
  done
  containerd=github.com/containerd/containerd/v2
  flags+=" -X $containerd/version.Version=$(go list -m -f '{{.Version}}' $containerd)"
  new=$(mktemp -d "$bin/new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local \
    go build -trimpath -buildvcs=false -ldflags "$flags" -o "$new/" tool >&2
  mv "$new/server" "$new/etcd"  # the package is go.etcd.io/etcd/server/v3
  mkdir -p "$bin/cni"
  mv "$new/bridge" "$new/host-local" "$new/loopback" "$bin/cni/"
  mv "$new"/* "$bin/"
  touch "$bin/complete"
fi
echo "$bin"
