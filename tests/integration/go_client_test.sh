#!/bin/bash
# Drives the standalone controller with managers and clients written with controller-runtime and
# client-go (tests/clients/go). Status 77 (skipped) where they cannot be built.
#
#   TAHOMA_BIN=build/dev/bin tests/integration/go_client_test.sh [-test.run Name]
set -euo pipefail
program=$(tests/clients/go/build.sh) || exit $?
TAHOMA_CRDS=$PWD/charts/tahoma/crds exec "$program" -test.v -test.timeout 240s "$@"
