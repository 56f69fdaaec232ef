#!/bin/bash
# The main job, end to end, on this machine (`make demo`): six simulated nodes, AWS's claim templates,
# a matrix product on a NeuronCore, gangs on the torus, an all-reduce whose data moves between processes, a gang that cannot fit, a chip
# that breaks, and the life of a Capacity Block. Every command is printed before it runs, every sentence after "=>"
# is checked before it is printed (checked.sh); nothing stays running at the end.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TAHOMA_BIN:-$PWD/build/release/bin}
state=$(mktemp -d /tmp/tahoma.XXXXXX)
kubectl_path=$(.ci/kubectl)
export KUBECTL=$kubectl_path KUBECONFIG=$state/kubeconfig NODES=$state/n
export PATH="$bin:$(dirname "$kubectl_path"):$PATH"
began=$SECONDS
. examples/local/checked.sh
say_end() { printf '\nDone in %s s; nothing is left running. To keep it running: make up\n' $((SECONDS - began)); }
trap finish EXIT

# Waits, without a word unless it takes too long.
await() { kubectl wait "$@" --timeout=90s >/dev/null; }
finished() { await --for=jsonpath='{.status.phase}'=Succeeded "$@"; }
forget() { kubectl delete "$@" --wait=true --timeout=60s >/dev/null; }
# Where the gang was placed, "us-0123456789abcdef 4x4x4+0,0,0", by its event: a gang whose pods have ended already has no place.
place_of() {
  kubectl get events -o jsonpath='{range .items[*]}{.involvedObject.uid} {.reason} {.message}{"\n"}{end}' |
    sed -n "s/^$(kubectl get gang "$1" -o jsonpath='{.metadata.uid}') GangPlaced Placed on //p"
}
has_place() { place_of "$1" | grep " $2\$"; }
apart() { [ -n "$(place_of "$1")" ] && [ -n "$(place_of "$2")" ] && [ "$(place_of "$1")" != "$(place_of "$2")" ]; }
is_gone() { ! kubectl get "$1"; }
# Whether the nodes of the UltraServer show so many chips.
ultraserver_has() {
  equal "$(ultraserver_chips | wc -l)" "$1"
}
ultraserver_chips() {
  kubectl get resourceslices -o jsonpath='{range .items[*]}{range .spec.devices[*]}{.name}{" "}{end}{.spec.nodeName}{"\n"}{end}' |
    grep ' trn2u-' | grep -oE 'neuron-device-[0-9]+'
}
# The chips that a gang's claims hold, a line each: "trn2u-1 neuron-device-5".
chips_of() {
  kubectl get resourceclaims -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{range .status.allocation.devices.results[*]}{.pool} {.device}{"\n"}{end}{end}' |
    awk -v gang="$1" 'NF == 1 { ours = $1 ~ "^" gang "-[0-9]+-neurons" } NF == 2 && ours' | sort
}
holds_chips() { equal "$(chips_of "$1" | wc -l)" "$2"; }
avoids() { ! chips_of "$1" | grep -x "$2"; }
# neuron-ls prints a line for each chip of a pod.
lists_chips() { equal "$(kubectl logs "$1" | grep -c '96 GB')" "$2"; }
# Whether each chip of the table that neuron-ls has printed has so many others of the table among those that it is connected to.
each_beside() {
  awk -F '|' -v most="$1" '
    /96 GB/ { beside[$2 + 0] = $6 }
    END {
      for (chip in beside) {
        found = 0
        count = split(beside[chip], others, ",")
        for (i = 1; i <= count; ++i) found += (others[i] + 0) in beside
        if (found != most) exit 1
      }
    }' "$state/shown"
}
# nccom-test compares every element with the sum that it must be, and prints how many are wrong if any is.
nothing_wrong() { grep fp32 "$1" && ! grep wrong "$1"; }
same_times() { grep -q fp32 "$1" && diff <(grep fp32 "$1") <(grep fp32 "$2"); }

title "The nodes"
examples/local/up.py "$state" --bin "$bin"
run "kubectl get nodes -L node.kubernetes.io/instance-type"
claim "four trn2u.48xlarge are Ready" shown_times 4 ' Ready .* trn2u\.48xlarge$'
claim "a trn2.48xlarge and a trn2.3xlarge are Ready" shown_times 2 ' Ready .* trn2\.(48|3)xlarge$'
run "kubectl get resourceslices"
claim "the UltraServer shows 64 chips" eventually ultraserver_has 64

title "AWS's claims"
run "kubectl apply -f examples/aws/connected-chips.yaml"
finished pod/four-chips
run "kubectl get pods -o wide"
run "kubectl logs four-chips"
claim "the claim for four chips got four" shown_times 4 '96 GB'
claim "each is connected to two of the others" each_beside 2
forget -f examples/aws/connected-chips.yaml
run "kubectl apply -f examples/aws/all-chips-lnc-1.yaml -f examples/aws/whole-node.yaml"
finished pod/all-chips pod/whole-node
run "kubectl logs all-chips | sed -n 1,12p"
claim "the claim for all chips got sixteen" lists_chips all-chips 16
claim "with LNC 1" shown 'logical-neuroncore-config: 1'
run "kubectl logs whole-node | sed -n 1,8p"
claim "the claim for a whole node got a trn2u.48xlarge" shown 'instance-type: trn2u.48xlarge'
claim "with its sixteen chips" lists_chips whole-node 16
forget -f examples/aws/all-chips-lnc-1.yaml -f examples/aws/whole-node.yaml

title "A matrix product on one NeuronCore"
if python=$(.ci/python --find); then
  export PYTHON=$python PODS
  PODS=$(cat "$state/pods-folder")
  run "cat examples/kernels/matmul.trn"
  run "examples/kernels/matmul.sh \$PODS"
  finished pod/matmul
  run "kubectl logs matmul"
  claim "five instructions ran" shown '^matmul: 5 instructions'
  run "\$PYTHON examples/kernels/matmul.py check \$PODS/matmul"
  claim "numpy agrees with the product" shown '^128 x 512 of float32'
  forget -f examples/kernels/matmul.yaml
else
  echo "left out: numpy, which writes the matrices and checks the product, is not installed (.ci/setup)"
fi

title "A gang of four pods, and an all-reduce between their processes"
run "kubectl apply -f examples/gangs/ultraserver.yaml"
await --for=condition=Bound gang/torus
run "kubectl get gangs,pods,resourceclaims -o wide"
claim "the gang got the whole torus" eventually has_place torus 4x4x4+0,0,0
run "kubectl tahoma topology --all"
finished pod -l tahoma.dev/gang=torus
run "kubectl logs torus-0"
claim "the all-reduce of its four processes moved real data, and no element is wrong" nothing_wrong "$state/shown"
forget -f examples/gangs/ultraserver.yaml

title "Two gangs on disjoint halves"
run "kubectl apply -f examples/gangs/half-left.yaml"
finished pod -l tahoma.dev/gang=left
echo "left, alone:"
kubectl logs left-0 | tee "$state/left.alone"
forget -f examples/gangs/half-left.yaml
run "kubectl apply -f examples/gangs/half-left.yaml -f examples/gangs/half-right.yaml"
await --for=condition=Bound gang/left gang/right
run "kubectl tahoma topology --all"
claim "the gangs got places of their own" eventually apart left right
finished pod -l tahoma.dev/gang
echo "left, beside right:"
kubectl logs left-0 | tee "$state/left.beside"
echo "right, beside left:"
kubectl logs right-0 | tee "$state/right.beside"
claim "equal times: the left half takes beside the right as long as alone" same_times "$state/left.alone" "$state/left.beside"
claim "equal times: the right half takes as long as the left" same_times "$state/left.alone" "$state/right.beside"
forget -f examples/gangs/half-left.yaml -f examples/gangs/half-right.yaml

title "A gang that cannot fit, and why"
run "examples/gangs/make_gang.py holder 4x4x2 2 --command 'sleep 600' | kubectl apply -f -"
await --for=condition=Bound gang/holder
run "examples/gangs/make_gang.py late 4x4x4 4 | kubectl apply -f -"
await --for=condition=Placed=False gang/late
run "kubectl describe gang late | sed -n '/Conditions/,\$p'"
run "kubectl tahoma why late"
claim "the gang waits for chips that another gang holds" shown 'Placed False \(WaitsForCapacity\): .*4x4x4'
forget gang/holder pod/holder-0 pod/holder-1
await --for=condition=Bound gang/late
run "kubectl get gang late"
claim "the holder is gone" is_gone gang/holder
claim "the gang got its place" eventually has_place late 4x4x4+0,0,0
finished pod -l tahoma.dev/gang=late
forget gang/late pod/late-0 pod/late-1 pod/late-2 pod/late-3

title "Two queues, one fleet"
run "kubectl apply -f examples/queues/lent.yaml"
run "examples/gangs/make_gang.py visit 4x4x4 4 --preemptible --grace 5 --command 'sleep 600' | sed 's/^  shape:/  queue: guest\\n&/' | kubectl apply -f -"
await --for=condition=Bound gang/visit
holds() { equal "$(kubectl get queue "$1" -o jsonpath='{.status.held[*].chips}')" "$2"; }
claim "a guest has borrowed the whole UltraServer" eventually holds guest 64
run "kubectl annotate gang visit tahoma.dev/last-checkpoint=$(date -u +%Y-%m-%dT%H:%M:%SZ)"
run "examples/gangs/make_gang.py own 4x4x1 1 --command 'sleep 600' | sed 's/^  shape:/  queue: owner\\n&/' | kubectl apply -f -"
await --for=condition=Bound gang/own
run "kubectl get queues"
claim "the owner has the node that is guaranteed" eventually holds owner 16
claim "the guest's gang ended as a whole" eventually holds guest ""
forget gang/visit gang/own pod/own-0 queue/owner queue/guest

title "A chip that breaks"
# Prints only the chip's part of the node's answer, which is its whole state.
chip5="grep -oE '\{\"chip\":5,[^{]*\{[^}]*\}[^}]*\}'"
run "tests/scenarios/fault.sh trn2u-1 chips/5/break '{\"reason\": \"HBM_UNCORRECTABLE_ERROR\"}' | $chip5"
claim "the chip is broken" shown HBM_UNCORRECTABLE_ERROR
# The plugin publishes the chip's taint a moment later; a gang that came before it would still be placed.
tainted() { kubectl get resourceslices -o yaml | grep tahoma.dev/unhealthy; }
claim "its node says so in a ResourceSlice" eventually tainted
run "kubectl apply -f examples/gangs/ultraserver.yaml"
await --for=condition=Placed=False gang/torus
run "kubectl tahoma why torus"
claim "a gang that needs the chip waits for its repair" shown 'Placed False \(WaitsForRepair\)'
run "examples/gangs/make_gang.py around 4x4x2 2 --command 'sleep 600' | kubectl apply -f -"
await --for=condition=Bound gang/around
run "kubectl tahoma topology --all"
claim "a gang that needs less is placed on 32 chips" holds_chips around 32
claim "the broken chip is not among them" avoids around "trn2u-1 neuron-device-5"
forget gang/around pod/around-0 pod/around-1
run "tests/scenarios/fault.sh trn2u-1 chips/5/repair | $chip5"
await --for=condition=Bound gang/torus
run "kubectl get gang torus"
claim "the chip is repaired and used again" eventually has_place torus 4x4x4+0,0,0
finished pod -l tahoma.dev/gang=torus
forget -f examples/gangs/ultraserver.yaml

# Capacity Blocks have a controller of their own, whose clock runs 1440 times as fast.
examples/local/down.py "$state"
examples/blocks/demo.sh
