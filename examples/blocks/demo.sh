#!/bin/bash
# The life of a Capacity Block in two or three minutes: a controller of its own on which a day of blocks takes a minute, one
# UltraServer and one instance. A search that finds nothing, a purchase by kubectl and one by boto3, a gang that waits
# for its block, and a preemptible one that borrows the hours before; the first runs in the block, is warned, writes its
# checkpoint and is gone in time. Every command is printed before it runs, and what the headings say is checked; nothing stays
# running at the end. `make demo` ends with it.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TAHOMA_BIN:-$PWD/build/release/bin}
state=$(mktemp -d /tmp/tahoma.XXXXXX)
kubectl_path=$(.ci/kubectl)
export KUBECTL=$kubectl_path KUBECONFIG=$state/kubeconfig
export PATH="$bin:$(dirname "$kubectl_path"):$PATH"

finish() {
  local status=$?
  examples/local/down.py "$state" || status=1
  if [ "$status" = 0 ]; then
    rm -rf "$state"
  else
    printf '\nThe demo failed; logs are in %s/log\n' "$state" >&2
  fi
  exit "$status"
}
trap finish EXIT

title() { printf '\n\033[1m== %s\033[0m\n' "$1"; }
say() { printf '=> %s\n' "$1"; }
# Prints a command, then runs it.
run() { printf '\033[36m$ %s\033[0m\n' "$*"; bash -o pipefail -c "$*"; }
# Checks, without a word unless it is not so, what a heading has said: holds SENTENCE COMMAND…
holds() {
  local sentence=$1
  shift
  "$@" >/dev/null || { echo "not so: $sentence" >&2; exit 1; }
}
becomes() { kubectl wait "$1" --for=jsonpath="$2"="$3" --timeout=30s; }
has_event() {
  for _ in {1..100}; do
    kubectl get events --field-selector "involvedObject.name=$1,reason=$2" -o name | grep -q . && return
  done
  return 1
}

# Before the clock runs: it may have to be fetched.
python=$(.ci/python 2>"$state/python.why") || python=
title "Capacity Blocks, a day in a minute (--time-scale 1440: a test's clock, and for ever that store's)"
examples/local/up.py "$state" --bin "$bin" --topology examples/blocks/topology.json --time-scale 1440 --quiet
export ADMIN=https://$(sed -n 's/^adminAddress: //p' "$state/ports.yaml")
export ASK="--token-file $state/admin.token --ca $state/tls.crt"
. "$state/aws.env"
# The pods' folder: they have users of their own, who write their checkpoints here.
work=$(cat "$state/pods-folder")/work
install -d -m 1777 "$work"
install -m 755 examples/blocks/train.sh "$work"
export WORK=$work
say "by the clock of blocks it is $(curl -sS --cacert "$state/tls.crt" -H "Authorization: Bearer $(cat "$state/admin.token")" "$ADMIN/v1/clock" | sed -n 's/.*"blockTime": "\([^.]*\)\..*/\1Z/p')"

title "A search that finds nothing says why, and what is nearest"
run 'examples/blocks/search_and_buy.py $ADMIN both $ASK --count 2 || true' | tee "$state/nothing"
holds "the search says why" grep -q "at most 1 of 2 u-trn2x64 are free" "$state/nothing"
holds "the search says what is nearest" grep -qE '^  1 x .* USD$' "$state/nothing"

title "A gang that names a block which nobody has bought yet waits for it"
run 'examples/gangs/make_gang.py pretrain 4x4x4 4 --block pretrain --command "bash $WORK/train.sh $WORK" | kubectl apply -f -'
kubectl wait --for=condition=Placed=False gang/pretrain --timeout=30s >/dev/null
holds "the gang waits for its block" becomes gang/pretrain '{.status.reason}' WaitingForCapacityBlock
run "kubectl tahoma why pretrain"

title "A purchase by kubectl: an object with the id of an offering"
run 'examples/blocks/search_and_buy.py $ADMIN pretrain $ASK --start +16 --manifest | kubectl apply -f -'
kubectl wait --for=jsonpath='{.status.state}'=scheduled capacityblock/pretrain --timeout=30s >/dev/null
run "kubectl get capacityblocks"

title "A purchase by boto3, as from EC2"
if [ -n "$python" ]; then
  printf '\033[36m$ %s\033[0m\n' 'examples/blocks/buy_boto3.py --type trn2.48xlarge'
  "$python" examples/blocks/buy_boto3.py --type trn2.48xlarge
  holds "boto3 has bought an instance" bash -c 'kubectl get cb -o jsonpath="{.items[*].status.instanceType}" | grep -qw trn2.48xlarge'
  run "kubectl get capacityblocks"
else
  say "left out, boto3 cannot be had here: $(tail -1 "$state/python.why")"
fi

title "The gang knows when it begins"
# On a slow machine it may have begun already.
until kubectl tahoma why pretrain | grep -qE 'begins|Bound True'; do :; done
run "kubectl tahoma why pretrain"
say "that is less than two minutes away"

# What else may use the hours until then: gangs that have ended before, by their maxRuntime.
title "Until then its hardware is idle: a gang with a maxRuntime that is over before has a place, one without has not"
run "examples/gangs/make_gang.py short 4x4x2 2 --max-runtime 3s --grace 2 --command 'sleep 1' | kubectl apply -f -"
run "examples/gangs/make_gang.py endless 4x4x2 2 --command 'sleep 600' | kubectl apply -f -"
kubectl wait --for=condition=Placed=False gang/endless --timeout=30s >/dev/null
holds "the short gang has a place" kubectl wait --for=condition=Placed gang/short --timeout=30s
holds "the endless gang has none" becomes gang/endless '{.status.reason}' WaitsForCapacity
run "kubectl tahoma why short; kubectl tahoma why endless"
kubectl delete gang/short gang/endless pod/short-0 pod/short-1 pod/endless-0 pod/endless-1 --wait=false >/dev/null

title "A preemptible gang may borrow these hours: it is ended when the block needs its hardware"
run "examples/gangs/make_gang.py night 4x4x4 4 --preemptible --grace 2 --command 'sleep 600' | kubectl apply -f -"
kubectl wait --for=condition=Bound gang/night --timeout=60s >/dev/null
run "kubectl tahoma why night"

title "The block begins, and the gang with it: AVAIL is what of it nobody uses"
kubectl wait --for=condition=Bound gang/pretrain --timeout=90s >/dev/null
kubectl wait --for=condition=Ready pod/pretrain-0 --timeout=30s >/dev/null
holds "the block is active" becomes capacityblock/pretrain '{.status.state}' active
holds "all of the block is used" becomes capacityblock/pretrain '{.status.availableInstanceCount}' 0
holds "the preemptible gang was ended" has_event night GangPreempted
# Its log ends with the pod, so that it is followed from now on.
kubectl logs -f pretrain-0 >"$state/pretrain-0.log" &
run "kubectl get capacityblock pretrain; kubectl get pods -o wide"
until grep -q begins "$state/pretrain-0.log"; do :; done
run "cat $state/pretrain-0.log"
run "kubectl get events --field-selector involvedObject.name=night -o custom-columns=ABOUT:.involvedObject.name,REASON:.reason,MESSAGE:.message"
say "an UltraServer's block gives its hardware back 60 minutes before its end, which are 2.5 s here"

title "Before the end: a warning, SIGTERM, a checkpoint, and the hardware is free"
kubectl wait --for=delete pod/pretrain-0 pod/pretrain-1 pod/pretrain-2 pod/pretrain-3 --timeout=90s >/dev/null
say "the pods are gone, and the block is still $(kubectl get capacityblock pretrain -o jsonpath='{.status.state}')"
holds "there was a warning" has_event pretrain ReclaimIsNear
holds "the hardware was taken back" has_event pretrain GangReclaimed
holds "the program had SIGTERM" grep -q SIGTERM "$state/pretrain-0.log"
for rank in 0 1 2 3; do holds "rank $rank wrote a checkpoint" grep -q saved "$work/rank-$rank"; done
run "tail -1 $state/pretrain-0.log; head -1 $work/rank-*"
kubectl wait --for=jsonpath='{.status.state}'=expired capacityblock/pretrain --timeout=90s >/dev/null
run "kubectl get events --sort-by=.metadata.creationTimestamp -o custom-columns=ABOUT:.involvedObject.name,REASON:.reason,MESSAGE:.message | grep -E '^(ABOUT|pretrain +(CapacityBlock|Gang|Reclaim))'"
run "kubectl get capacityblocks"
