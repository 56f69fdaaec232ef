#!/bin/bash
# A fleet of 2,000 virtual nodes in a standalone API server: what the controller sees of it, where a gang
# goes, a chip that breaks, and the fleet's removal. Nothing stays running at the end.
#   examples/fleet/demo.sh [NODES]
set -euo pipefail
cd "$(dirname "$0")/../.."

nodes=${1:-2000}
bin=${TAHOMA_BIN:-$PWD/build/release/bin}
state=$(mktemp -d /tmp/tahoma.XXXXXX)
kubectl_path=$(.ci/kubectl)
export KUBECTL=$kubectl_path KUBECONFIG=$state/kubeconfig
export PATH="$bin:$(dirname "$kubectl_path"):$PATH"
fleet=

finish() {
  local status=$?
  [ -z "$fleet" ] || kill "$fleet" 2>/dev/null || true
  examples/local/down.py "$state" || status=1
  [ "$status" != 0 ] || rm -rf "$state"
  exit "$status"
}
trap finish EXIT

title() { printf '\n== %s\n' "$1"; }
# Prints a command, then runs it.
run() { printf '$ %s\n' "$*"; bash -o pipefail -c "$*"; }
# Asks again until the command says the word, for half a minute.
until_says() {
  for _ in $(seq 60); do
    if bash -c "$2" 2>/dev/null | grep -q -- "$1"; then return 0; fi
    sleep 0.5
  done
  echo "it never said $1: $2" >&2
  return 1
}

title "A controller that serves the Kubernetes API itself, without a node"
echo '{"networkLayers": [], "nodes": []}' > "$state/topology.json"
examples/local/up.py "$state" --bin "$bin" --topology "$state/topology.json"

title "A sim-node that keeps $nodes virtual nodes there"
printf '$ %s\n' "sim-node --fleet $nodes --fleet-nodes.kubeconfig \$KUBECONFIG --fleet-nodes.resync-period 10s"
sim-node --fleet "$nodes" --fleet-nodes.kubeconfig "$KUBECONFIG" --fleet-nodes.resync-period 10s 2> "$state/fleet.log" &
fleet=$!
until grep -q "nodes are published" "$state/fleet.log"; do
  kill -0 "$fleet" || { cat "$state/fleet.log" >&2; exit 1; }
  sleep 0.2
done
run "cat $state/fleet.log"
run "kubectl get nodes -l tahoma.dev/fleet=fleet --chunk-size=500 | sed -n 1,5p"
until_says "^all *$nodes " "kubectl tahoma topology"
run "kubectl tahoma topology"

title "A gang of an UltraServer, whose pods tolerate virtual nodes: bound, and never run"
run "examples/gangs/make_gang.py train 4x4x4 4 --tolerate tahoma.dev/virtual-node | kubectl apply -f - >/dev/null"
run "kubectl wait gang/train --for=condition=Bound --timeout=60s"
run "kubectl get pods -o wide | sed -n 1,5p"

title "A chip breaks, and works again"
run "kubectl annotate node fleet-00003 tahoma.dev/broken-chips=5=hbm-uncorrectable"
until_says hbm-uncorrectable "kubectl get resourceslice 00-neuron.aws.com-fleet-00003-0 -o yaml"
run "kubectl get resourceslice 00-neuron.aws.com-fleet-00003-0 -o jsonpath='{.spec.devices[5].taints}{\"\\n\"}'"
run "kubectl annotate node fleet-00003 tahoma.dev/broken-chips-"

title "The end of the fleet: its leases and ResourceSlices go with its nodes"
run "kubectl delete gang,pods --all --wait=false >/dev/null"
kill "$fleet"
wait "$fleet" || true
fleet=
run "tail -n 1 $state/fleet.log"
run "kubectl delete --raw '/api/v1/nodes?labelSelector=tahoma.dev/fleet=fleet' >/dev/null"
until_says '^0$' "kubectl get resourceslices --no-headers 2>/dev/null | wc -l"
run "kubectl get nodes,resourceslices"
