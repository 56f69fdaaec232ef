#!/bin/bash
# The main job, end to end, on this machine (`make demo`): six simulated nodes, AWS's claim templates,
# gangs on the torus, an all-reduce whose data moves between processes, a gang that cannot fit, a chip
# that breaks, and the life of a Capacity Block. Every command is printed before it runs; nothing stays running at the end.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TAHOMA_BIN:-$PWD/build/release/bin}
state=$(mktemp -d /tmp/tahoma.XXXXXX)
kubectl_path=$(.ci/kubectl)
export KUBECTL=$kubectl_path KUBECONFIG=$state/kubeconfig NODES=$state/n
export PATH="$bin:$(dirname "$kubectl_path"):$PATH"
began=$SECONDS
asked=0

finish() {
  local status=$?
  examples/local/down.py "$state" || status=1
  if [ "$status" = 0 ]; then
    rm -rf "$state"
    printf '\nDone in %s s; nothing is left running. To keep it running: make up\n' $((SECONDS - began))
  else
    printf '\nThe demo failed; logs are in %s/log\n' "$state" >&2
  fi
  exit "$status"
}
trap finish EXIT

title() { printf '\n\033[1m== %s\033[0m\n' "$1"; }
# Prints a command, then runs it.
run() { printf '\033[36m$ %s\033[0m\n' "$*"; bash -o pipefail -c "$*"; }
# Waits, without a word unless it takes too long.
await() { kubectl wait "$@" --timeout=90s >/dev/null; }
finished() { await --for=jsonpath='{.status.phase}'=Succeeded "$@"; }
forget() { kubectl delete "$@" --wait=true --timeout=60s >/dev/null; }

title "One UltraServer (4 x trn2u.48xlarge, 64 chips), one trn2.48xlarge, one trn2.3xlarge"
examples/local/up.py "$state" --bin "$bin"
run "kubectl get nodes -L node.kubernetes.io/instance-type"
run "kubectl get resourceslices"

title "AWS's claims: four connected chips, all chips with LNC 1, a whole node"
run "kubectl apply -f examples/aws/connected-chips.yaml"
finished pod/four-chips
run "kubectl get pods -o wide"
run "kubectl logs four-chips"
forget -f examples/aws/connected-chips.yaml
run "kubectl apply -f examples/aws/all-chips-lnc-1.yaml -f examples/aws/whole-node.yaml"
finished pod/all-chips pod/whole-node
run "kubectl logs all-chips | sed -n 1,12p"
run "kubectl logs whole-node | sed -n 1,8p"
forget -f examples/aws/all-chips-lnc-1.yaml -f examples/aws/whole-node.yaml

title "A gang of four pods on the 4x4x4 torus: all-reduce over 64 chips in four processes"
run "kubectl apply -f examples/gangs/ultraserver.yaml"
await --for=condition=Bound gang/torus
run "kubectl get gangs,pods,resourceclaims -o wide"
run "kubectl tahoma topology --all"
finished pod -l tahoma.dev/gang=torus
run "kubectl logs torus-0"
forget -f examples/gangs/ultraserver.yaml

title "Two gangs on disjoint halves: the same times alone and side by side"
run "kubectl apply -f examples/gangs/half-left.yaml"
finished pod -l tahoma.dev/gang=left
echo "left, alone:"
kubectl logs left-0 | tee "$state/left.alone"
forget -f examples/gangs/half-left.yaml
run "kubectl apply -f examples/gangs/half-left.yaml -f examples/gangs/half-right.yaml"
await --for=condition=Bound gang/left gang/right
run "kubectl tahoma topology --all"
finished pod -l tahoma.dev/gang
echo "left, beside right:"
kubectl logs left-0 | tee "$state/left.beside"
echo "right, beside left:"
kubectl logs right-0 | tee "$state/right.beside"
for half in left.beside right.beside; do
  grep -q fp32 "$state/$half" && diff <(grep fp32 "$state/left.alone") <(grep fp32 "$state/$half") >/dev/null ||
    { echo "the times differ: NeuronLink isolation is broken" >&2; exit 1; }
done
echo "=> equal times: disjoint boxes share no link."
forget -f examples/gangs/half-left.yaml -f examples/gangs/half-right.yaml

title "A gang that cannot fit, and why"
run "examples/gangs/make_gang.py holder 4x4x2 2 --command 'sleep 600' | kubectl apply -f -"
await --for=condition=Bound gang/holder
run "examples/gangs/make_gang.py late 4x4x4 4 | kubectl apply -f -"
await --for=condition=Placed=False gang/late
run "kubectl describe gang late | sed -n '/Conditions/,\$p'"
run "kubectl tahoma why late"
forget gang/holder pod/holder-0 pod/holder-1
echo "room is free again:"
await --for=condition=Bound gang/late
run "kubectl get gang late"
finished pod -l tahoma.dev/gang=late
forget gang/late pod/late-0 pod/late-1 pod/late-2 pod/late-3

title "A chip breaks: gangs avoid it until it is repaired"
# Prints only the chip's part of the node's answer, which is its whole state.
chip5="grep -oE '\{\"chip\":5,[^{]*\{[^}]*\}[^}]*\}'"
run "tests/scenarios/fault.sh trn2u-1 chips/5/break '{\"reason\": \"HBM_UNCORRECTABLE_ERROR\"}' | $chip5"
# The plugin publishes the chip's taint a moment later; a gang that came before it would still be placed.
until kubectl get resourceslices -o yaml | grep tahoma.dev/unhealthy >/dev/null; do
  ((++asked <= 600)) || { echo "no ResourceSlice shows the broken chip" >&2; exit 1; }
done
run "kubectl apply -f examples/gangs/ultraserver.yaml"
await --for=condition=Placed=False gang/torus
run "kubectl tahoma why torus"
run "examples/gangs/make_gang.py around 4x4x2 2 --command 'sleep 600' | kubectl apply -f -"
await --for=condition=Bound gang/around
run "kubectl tahoma topology --all"
forget gang/around pod/around-0 pod/around-1
run "tests/scenarios/fault.sh trn2u-1 chips/5/repair | $chip5"
await --for=condition=Bound gang/torus
run "kubectl get gang torus"
finished pod -l tahoma.dev/gang=torus
forget -f examples/gangs/ultraserver.yaml

# Capacity Blocks have a controller of their own, whose clock runs 1440 times as fast.
examples/local/down.py "$state"
examples/blocks/demo.sh
