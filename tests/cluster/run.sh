#!/bin/bash
# The tests that need real Kubernetes.
#   run.sh cluster   on a control plane: the Helm chart, every scenario, a restore of its etcd, its say in who reads
#                    the admin API, and conformance (the same requests to it and to our own API server); the cases
#                    of kube-scheduler's allocator of devices, given to ours; and, with PROMTOOL=1, the alert rules
#                    on series that promtool is given (its build takes minutes)
#   run.sh node      on nodes with kubelet, containerd and runc beside it: every scenario, what happens to a node in
#                    its life, manifests for AWS's driver (AWS's own where AWS_MANIFESTS names their folder), gangs of
#                    JobSets, MPIJobs and, with KUEUE=1, Jobs that Kueue admits (its build takes minutes), and random
#                    pods (PODS=2000: so many)
#   run.sh kind      on a cluster of kind with the chart that Helm installs: fail-over, drain, reboot, upgrade, hostile
#                    callers, every scenario, uninstall
#   run.sh versions  on older control planes: what nodes show there, some scenarios, and the Helm chart
# Without a Go toolchain (node: root, runc and a network namespace of one's own, too) it says SKIPPED and why, and
# counts nothing as passed.
set -euo pipefail
cd "$(dirname "$0")/../.."
export TAHOMA_BIN=${TAHOMA_BIN:-$PWD/build/release/bin}
status=0

skip() {  # how many, why
  echo "SKIPPED: the tests on real Kubernetes: $2"
  echo "0 passed, 0 failed, $1 skipped"
  exit 0
}

need_kubernetes() {  # how many tests need it
  local built=0
  KUBERNETES_BIN=$(tests/cluster/build_tools.sh) || built=$?
  [ "$built" != 77 ] || skip "$1" "the reason is above"
  [ "$built" = 0 ] || exit "$built"
  export KUBERNETES_BIN
}

run() {  # title, command…
  local ended=0
  echo "== $1"
  "${@:2}" || ended=$?
  [ "$ended" = 0 ] || [ "$ended" = 77 ] || status=1  # 77: skipped, and it has said why
}

judge_allocator() {
  local cases
  cases=$(tests/cluster/allocator_cases.sh) && "$TAHOMA_BIN/allocator-cases" "$cases"
}

case ${1:-} in
  cluster)
    need_kubernetes 6
    run "the cases of Kubernetes' own allocator of devices" judge_allocator
    run "the Helm chart" python3 tests/cluster/chart_test.py
    [ -z "${PROMTOOL:-}" ] || run "the alert rules, by promtool" python3 tests/cluster/rules_test.py
    run "scenarios on etcd, kube-apiserver and kube-controller-manager" python3 tests/scenarios/run.py cluster
    run "etcd restored from a backup under a controller that runs" python3 tests/cluster/restored_etcd.py
    run "the admin API asks the cluster" python3 tests/cluster/admin_access.py
    run "conformance: the same requests to kube-apiserver and to controller --standalone" python3 tests/cluster/conformance.py
    ;;
  node)
    why=$(unshare --net ip link add probe type bridge 2>&1) || skip 5 "nodes need a network namespace with bridges: $why"
    command -v runc >/dev/null || skip 5 "there is no runc"
    need_kubernetes 5
    for name in lws jobset mpi ${KUEUE:+kueue}; do
      built=$(tests/cluster/build_tools.sh "tools-$name")
      export "${name^^}_BIN=$built"
    done
    run "the life of a node" python3 tests/cluster/node_life_test.py
    run "manifests for AWS's driver" python3 tests/cluster/aws_manifests_test.py
    run "gangs of the controllers of others" python3 tests/cluster/controllers_test.py
    run "random pods" python3 tests/cluster/random_pods_test.py
    run "scenarios on real kubelets" python3 tests/scenarios/run.py node
    ;;
  kind)
    why=$(python3 -c 'import sys; sys.path.insert(0, "tests/cluster"); import kind; print(kind.why_not() or "")')
    [ -z "$why" ] || skip 1 "$why"
    need_kubernetes 1
    KIND_BIN=$(tests/cluster/build_tools.sh tools-kind)
    COREDNS_BIN=$(tests/cluster/build_tools.sh tools-coredns)
    HELM_BIN=$(tests/cluster/build_tools.sh tools-helm)
    export KIND_BIN COREDNS_BIN HELM_BIN
    run "the chart and the scenarios on kind" python3 tests/cluster/kind_test.py
    ;;
  versions)
    need_kubernetes 3
    KUBERNETES_1_34_BIN=$(tests/cluster/build_tools.sh tools-1.34)
    KUBERNETES_1_35_BIN=$(tests/cluster/build_tools.sh tools-1.35)
    export KUBERNETES_1_34_BIN KUBERNETES_1_35_BIN
    run "older control planes" python3 tests/cluster/older_servers_test.py
    for servers in "$KUBERNETES_1_34_BIN" "$KUBERNETES_1_35_BIN"; do
      run "the Helm chart on $(basename "$servers")" env SERVERS="$servers" python3 tests/cluster/chart_test.py
    done
    ;;
  *)
    sed -n '2,/^set/s/^# \?//p' "$0" >&2
    exit 2
    ;;
esac
exit "$status"
