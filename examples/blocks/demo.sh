#!/bin/bash
# The life of a Capacity Block in three minutes: a controller of its own on which a day of blocks takes a minute, one
# UltraServer and one instance. A search that finds nothing, a purchase by kubectl and one by boto3, a gang that waits
# for its block, and a preemptible one that borrows the hours before; the first runs in the block, is warned, writes its
# checkpoint and is gone in time. Every command is printed before it runs, every sentence after "=>" is checked before it
# is printed (examples/local/checked.sh); nothing stays running at the end. `make demo` ends with it.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TAHOMA_BIN:-$PWD/build/release/bin}
state=$(mktemp -d /tmp/tahoma.XXXXXX)
kubectl_path=$(.ci/kubectl)
export KUBECTL=$kubectl_path KUBECONFIG=$state/kubeconfig
export PATH="$bin:$(dirname "$kubectl_path"):$PATH"
. examples/local/checked.sh

trap finish EXIT

becomes() { kubectl wait "$1" --for=jsonpath="$2"="$3" --timeout=30s; }
field() { kubectl get "$1" -o jsonpath="{.$2}"; }
has_event() { kubectl get events --field-selector "involvedObject.name=$1,reason=$2" -o name | grep .; }
clock() { curl -sS --cacert "$state/tls.crt" -H "Authorization: Bearer $(cat "$state/admin.token")" "$ADMIN/v1/clock" | sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"; }
# Seconds since 1970 of a time of blocks.
seconds() { date -d "$1" +%s; }
# The seconds of this machine until a time of blocks; a day of theirs takes a minute.
seconds_until() { echo $((($(seconds "$1") - $(seconds "$(clock blockTime)")) / 1440)); }
ends_first() { [ "$(seconds "$1")" -lt "$(seconds "$2")" ]; }
any_is() { kubectl get "$1" -o jsonpath="{.items[*].$2}" | grep -w "$3"; }
all_saved() { for rank in 0 1 2 3; do grep saved "$work/rank-$rank" || return 1; done; }
# No gang holds a chip of the UltraServer.
all_free() { equal "$(kubectl get ultraservers -o jsonpath='{.items[0].status.chips.busy}')" 0; }

# Before the clock runs: it may have to be fetched.
python=$(.ci/python 2>"$state/python.why") || python=
title "Capacity Blocks, by a test's clock (--time-scale 1440, for ever that store's)"
examples/local/up.py "$state" --bin "$bin" --topology examples/blocks/topology.json --time-scale 1440 --quiet
export ADMIN=https://$(sed -n 's/^adminAddress: //p' "$state/ports.yaml")
export ASK="--token-file $state/admin.token --ca $state/tls.crt"
. "$state/aws.env"
# The pods' folder: they have users of their own, who write their checkpoints here.
work=$(cat "$state/pods-folder")/work
install -d -m 1777 "$work"
install -m 755 examples/blocks/train.sh "$work"
export WORK=$work
claim "a day of blocks takes a minute: their clock is $(clock timeScale) times as fast as this machine's" equal "$(clock timeScale)" 1440

title "A search that finds nothing"
run 'examples/blocks/search_and_buy.py $ADMIN both $ASK --count 2 || true'
claim "the search says why" shown "at most 1 of 2 u-trn2x64 are free"
claim "the search says what is nearest" shown '^  1 x .* USD$'

title "A gang that names a block which nobody has bought yet"
run 'examples/gangs/make_gang.py pretrain 4x4x4 4 --block pretrain --command "bash $WORK/train.sh $WORK" | kubectl apply -f -'
claim "the gang waits for its block" becomes gang/pretrain '{.status.reason}' WaitingForCapacityBlock
run "kubectl tahoma why pretrain"

title "A purchase by kubectl: an object with the id of an offering"
run 'examples/blocks/search_and_buy.py $ADMIN pretrain $ASK --start +20 --manifest | kubectl apply -f -'
claim "the block is bought" becomes capacityblock/pretrain '{.status.state}' scheduled
run "kubectl get capacityblocks"

title "A purchase by boto3, as from EC2"
if [ -n "$python" ]; then
  printf '\033[36m$ %s\033[0m\n' 'examples/blocks/buy_boto3.py --type trn2.48xlarge'
  "$python" examples/blocks/buy_boto3.py --type trn2.48xlarge
  claim "boto3 has bought an instance" any_is capacityblocks status.instanceType trn2.48xlarge
  run "kubectl get capacityblocks"
else
  echo "left out, boto3 cannot be had here: $(tail -1 "$state/python.why")"
fi

title "The gang and its block"
knows_when() { kubectl tahoma why pretrain | grep -E 'begins'; }
claim "the gang knows when its block begins" eventually knows_when
run "kubectl tahoma why pretrain"
start=$(field capacityblock/pretrain status.startDate)
left=$(seconds_until "$start")
claim "that is $left seconds away" test "$left" -gt 0

# What else may use the hours until then: gangs that have ended before, by their maxRuntime. The first runs longer than the
# question takes.
title "Until then its hardware is idle: a gang with a maxRuntime that is over before, and one without"
run "examples/gangs/make_gang.py short 4x4x2 2 --max-runtime 15s --grace 2 --command 'sleep 600' | kubectl apply -f -"
kubectl wait --for=condition=Placed gang/short --timeout=30s >/dev/null
run "kubectl tahoma why short"
claim "the gang whose maxRuntime is over before has a place" shown '^  Placed True'
run "examples/gangs/make_gang.py endless 4x4x2 2 --command 'sleep 600' | kubectl apply -f -"
kubectl wait --for=jsonpath='{.status.reason}'=WaitsForCapacity gang/endless --timeout=30s >/dev/null
run "kubectl tahoma why endless"
claim "the endless gang has none" shown '^  Placed False \(WaitsForCapacity\)'
kubectl delete gang/short gang/endless pod/short-0 pod/short-1 pod/endless-0 pod/endless-1 --wait=false >/dev/null

title "A preemptible gang that borrows these hours"
run "examples/gangs/make_gang.py night 4x4x4 4 --preemptible --grace 2 --command 'sleep 600' | kubectl apply -f -"
kubectl wait --for=condition=Bound gang/night --timeout=60s >/dev/null
run "kubectl tahoma why night"
claim "it has the hardware of the block, which has not begun" shown '^  Bound True'

title "The block begins: AVAIL is what of it nobody uses"
kubectl wait --for=condition=Bound gang/pretrain --timeout=120s >/dev/null
kubectl wait --for=condition=Ready pod/pretrain-0 --timeout=30s >/dev/null
# Its log ends with the pod, so that it is followed from now on.
kubectl logs -f pretrain-0 >"$state/pretrain-0.log" &
run "kubectl get capacityblock pretrain; kubectl get pods -o wide"
claim "the block is active, and its gang uses all of it" shown '^pretrain +active .*Z +0 '
claim "the preemptible gang was ended for it" eventually has_event night GangPreempted
claim "the gang's program began" eventually grep begins "$state/pretrain-0.log"
run "cat $state/pretrain-0.log"
run "kubectl get events --field-selector involvedObject.name=night -o custom-columns=ABOUT:.involvedObject.name,REASON:.reason,MESSAGE:.message"
end=$(field capacityblock/pretrain status.endDate)
reclaim=$(field capacityblock/pretrain status.reclaimDate)
claim "an UltraServer's block gives its hardware back 60 minutes before its end, which are 2.5 s here" \
  equal $(($(seconds "$end") - $(seconds "$reclaim"))) 3600

title "Before the end"
kubectl wait --for=delete pod/pretrain-0 pod/pretrain-1 pod/pretrain-2 pod/pretrain-3 --timeout=90s >/dev/null
# A machine with much to do may see that too late.
block=$(field capacityblock/pretrain status.state)
if [ "$block" = active ]; then echo "=> the pods are gone, and the block is still active"; fi
claim "there was a warning" eventually has_event pretrain ReclaimIsNear
claim "the hardware was taken back from the gang" eventually has_event pretrain GangReclaimed
claim "its program had SIGTERM" eventually grep SIGTERM "$state/pretrain-0.log"
claim "each of its four ranks wrote a checkpoint" all_saved
run "tail -1 $state/pretrain-0.log; head -1 $work/rank-*"
claim "the hardware is free" eventually all_free
kubectl wait --for=jsonpath='{.status.state}'=expired capacityblock/pretrain --timeout=90s >/dev/null
run "kubectl get events --sort-by=.metadata.creationTimestamp -o custom-columns=ABOUT:.involvedObject.name,REASON:.reason,MESSAGE:.message | grep -E '^(ABOUT|pretrain +(CapacityBlock|Gang|Reclaim))'"
run "kubectl get capacityblocks"
claim "the block has expired" shown '^pretrain +expired'
