#!/bin/bash
# Runs JobSet's and LeaderWorkerSet's own controllers on a standalone controller. Status 77 (skipped)
# where Go cannot build them, or without a kubectl.
#
#   TAHOMA_BIN=build/dev/bin tests/cluster/standalone_controllers.sh [Test.name]
set -euo pipefail
KUBECTL=${KUBECTL:-$(command -v kubectl || true)}
[ -n "$KUBECTL" ] || { echo "SKIPPED: no kubectl (set KUBECTL)"; exit 77; }
export KUBECTL
for name in jobset lws; do
  built=$(tests/cluster/build_tools.sh "tools-$name") || exit $?
  export "${name^^}_BIN=$built"
done
exec python3 tests/cluster/standalone_controllers_test.py "$@"
