#!/bin/bash
# The tests that need a real Kubernetes control plane: every scenario on it, a restore of its etcd, its
# say in who reads the admin API, and conformance (the same requests to it and to our own API server).
# Without a Go toolchain it says SKIPPED and why, and counts nothing as passed.
set -euo pipefail
cd "$(dirname "$0")/../.."
export TAHOMA_BIN=${TAHOMA_BIN:-$PWD/build/release/bin}
status=0
KUBERNETES_BIN=$(tests/cluster/build_tools.sh) || status=$?
if [ "$status" = 77 ]; then
  echo "SKIPPED: the tests on a real Kubernetes control plane (the reason is above)"
  echo "0 passed, 0 failed, 4 skipped"
  exit 0
fi
[ "$status" = 0 ]
export KUBERNETES_BIN
echo "== scenarios on etcd, kube-apiserver and kube-controller-manager"
python3 tests/scenarios/run.py cluster || status=1
echo "== etcd restored from a backup under a controller that runs"
python3 tests/cluster/restored_etcd.py || status=1
echo "== the admin API asks the cluster"
python3 tests/cluster/admin_access.py || status=1
echo "== conformance: the same requests to kube-apiserver and to controller --standalone"
python3 tests/cluster/conformance.py || status=1
exit "$status"
