#!/bin/bash
# Every scenario on real kubelets, each with containerd and runc, beside a real control plane.
# Without a Go toolchain, root, runc or a network namespace of one's own it says SKIPPED and why, and counts
# nothing as passed.
set -euo pipefail
cd "$(dirname "$0")/../.."
export TAHOMA_BIN=${TAHOMA_BIN:-$PWD/build/release/bin}
skip() {
  echo "SKIPPED: the tests on real kubelets: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}
why=$(unshare --net ip link add probe type bridge 2>&1) || skip "they need a network namespace with bridges: $why"
command -v runc >/dev/null || skip "there is no runc"
status=0
KUBERNETES_BIN=$(tests/cluster/build_tools.sh) || status=$?
[ "$status" != 77 ] || skip "the reason is above"
[ "$status" = 0 ]
export KUBERNETES_BIN
exec python3 tests/scenarios/run.py node
