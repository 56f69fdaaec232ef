#!/bin/bash
# Builds the Go tool dependencies that a module beside this file names, once, into a cache outside the build tree, and
# prints the folder.
#   bin=$(tests/cluster/build_tools.sh)             # tools: etcd with its tools, Kubernetes' control plane and kubelet,
#                                                   # containerd and CNI plugins; about 5 minutes on 2 cores
#   bin=$(tests/cluster/build_tools.sh tools-helm)  # helm, about 90 seconds
#   bin=$(tests/cluster/build_tools.sh tools-lws)   # the controller of LeaderWorkerSets
#   bin=$(tests/cluster/build_tools.sh tools-jobset)  # the controller of JobSets; about 2 minutes
#   bin=$(tests/cluster/build_tools.sh tools-mpi)   # the MPI operator
#   bin=$(tests/cluster/build_tools.sh tools-kueue)  # Kueue
#   bin=$(tests/cluster/build_tools.sh tools-promtool)  # promtool, about 3 minutes
#   bin=$(tests/cluster/build_tools.sh tools-kind)  # kind, and what its nodes have beyond tools: kubeadm, kube-proxy, kubectl
#   bin=$(tests/cluster/build_tools.sh tools-coredns)  # CoreDNS, for those nodes
#   bin=$(tests/cluster/build_tools.sh tools-1.34)  # an older kube-apiserver and kube-controller-manager
# Exit status 77: there is no Go toolchain that can build them; the reason is on stderr.
set -euo pipefail
module=${1:-tools}
cd "$(dirname "$0")/$module"

version_of() { go list -m -f '{{.Version}}' "$1"; }

# What each program says of its version, where it can be told.
flags_of_kubernetes() {
  local version minor
  version=$(version_of k8s.io/kubernetes)
  minor=${version#v1.}
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    echo "-X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
    echo "-X $package.gitTreeState=clean"
  done
}
flags_of_tools() {
  local containerd=github.com/containerd/containerd/v2
  flags_of_kubernetes
  echo "-X $containerd/version.Version=$(version_of $containerd)"
}
flags_of_tools-kind() { flags_of_kubernetes; }
flags_of_tools-1.34() { flags_of_kubernetes; }
flags_of_tools-1.35() { flags_of_kubernetes; }
flags_of_tools-helm() { echo "-X helm.sh/helm/v4/internal/version.version=$(version_of helm.sh/helm/v4)"; }
flags_of_tools-lws() { echo "-X sigs.k8s.io/lws/pkg/version.GitVersion=$(version_of sigs.k8s.io/lws)"; }

# Programs by the names that people know, where Go's are others: it names them after the last folder of their package.
name_tools() {
  mv server etcd  # go.etcd.io/etcd/server/v3
  mkdir cni
  mv bridge host-local loopback cni/
}
name_tools-lws() { mv cmd lws-controller; }  # sigs.k8s.io/lws/cmd
name_tools-jobset() { mv jobset jobset-controller; }
name_tools-mpi() { mv mpi-operator mpi-controller; }
name_tools-kueue() { mv kueue kueue-controller; }

if_defined() { ! declare -F "$1" >/dev/null || "$1"; }

declare -A titles=([tools]=kubernetes [tools-helm]=helm [tools-kind]=kind [tools-coredns]=coredns [tools-lws]=lws [tools-monitoring]=monitoring [tools-jobset]=jobset [tools-mpi]=mpi-operator [tools-kueue]=kueue [tools-promtool]=promtool [tools-1.34]=kubernetes-1.34 [tools-1.35]=kubernetes-1.35)
. ../../support/need_go.sh "builds ${titles[$module]}"
# The tools that the module names, and programs of its own, each a folder in it.
programs() {
  ! grep -q ^tool go.mod || echo tool
  find . -mindepth 2 -name main.go -printf '%h\n'
}

key=$(cat go.mod go.sum $(find . -name '*.go' | sort) | sha256sum | cut -c1-16)
bin=${TAHOMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tahoma}/${titles[$module]}-$key
if [ ! -e "$bin/complete" ]; then
  mkdir -p "$bin"
  echo "building ${titles[$module]} into $bin (minutes, once)" >&2
  flags=$(if_defined "flags_of_$module" | tr '\n' ' ')
  new=$(mktemp -d "$bin/new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  CGO_ENABLED=0 GOFLAGS="-mod=readonly ${GOFLAGS:-}" GOTOOLCHAIN=local \
    go build -trimpath -buildvcs=false -ldflags "-s -w $flags" -o "$new/" $(programs) >&2
  (cd "$new" && if_defined "name_$module")
  cp -r "$new"/* "$bin/"
  touch "$bin/complete"
fi
echo "$bin"
