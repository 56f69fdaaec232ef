#!/bin/bash
# Drives the real kubectl against the standalone Kubernetes API. One line per check; status 1 if any
# failed, 77 (skipped) without a kubectl.
#
#   KUBECTL=/path/to/kubectl tests/integration/kubectl_test.sh
#   API_URL=http://127.0.0.1:8001 …       # an API server that runs already, with our CRDs
set -u
KUBECTL=${KUBECTL:-$(command -v kubectl || true)}
[ -n "$KUBECTL" ] && [ -x "$KUBECTL" ] || { echo "SKIPPED: no kubectl (set KUBECTL)"; exit 77; }

work=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; }
  rm -rf "$work"
}
trap cleanup EXIT

if [ -z "${API_URL:-}" ]; then
  "${TAHOMA_BIN:?folder of the built programs}/tahoma-api-server" --data "$work/store" \
    --crds charts/tahoma/crds --port-file "$work/url" 2>"$work/server.log" &
  server=$!
  while [ ! -s "$work/url" ]; do
    kill -0 "$server" 2>/dev/null || { cat "$work/server.log"; echo "the API server ended"; exit 1; }
    read -rt 0.05 <> <(:) || true
  done
  API_URL=$(cat "$work/url")
fi
export HOME=$work KUBECONFIG=/dev/null KUBE_CACHE_DIR=$work/cache
k() { timeout 60 "$KUBECTL" --server="$API_URL" "$@"; }

failures=0
out=
# check NAME PATTERN COMMAND…: the command succeeds and its output has a line that matches.
check() {
  local name=$1 pattern=$2; shift 2
  if out=$("$@" 2>&1 </dev/null) && grep -qE -- "$pattern" <<<"$out"; then
    echo "ok      $name"
  else
    echo "FAILED  $name: wanted /$pattern/, got:"; sed 's/^/        /' <<<"$out"; failures=$((failures + 1))
  fi
}
# refuse NAME PATTERN COMMAND…: the command fails and says why.
refuse() {
  local name=$1 pattern=$2; shift 2
  if out=$("$@" 2>&1 </dev/null); then
    echo "FAILED  $name: it succeeded:"; sed 's/^/        /' <<<"$out"; failures=$((failures + 1))
  elif grep -qE -- "$pattern" <<<"$out"; then
    echo "ok      $name"
  else
    echo "FAILED  $name: wanted /$pattern/, got:"; sed 's/^/        /' <<<"$out"; failures=$((failures + 1))
  fi
}
# Without a pipe that would hide the status of kubectl.
from() { local file=$1; shift; k "$@" -f "$file"; }

cat >"$work/gang.yaml" <<'YAML'
apiVersion: tahoma.dev/v1alpha1
kind: Gang
metadata: {name: g1, labels: {team: a}}
spec: {members: 4, shape: 4x4x4}
YAML
sed 's/members: 4/members: 2/; s/4x4x4/4x4x2/' "$work/gang.yaml" >"$work/gang2.yaml"
cat >"$work/pod.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: p1, labels: {app: train}}
spec:
  schedulerName: tahoma
  containers:
  - {name: main, image: train, env: [{name: A, value: "1"}]}
YAML
sed 's/p1/p2/; s/value: "1"/value: "2"/' "$work/pod.yaml" >"$work/pod2.yaml"
cat >"$work/node.yaml" <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: n1}
YAML

echo "# discovery and versions"
check "version" 'v1\.36\.0\+tahoma' k version
check "api-resources lists gangs" '^gangs +gg +tahoma.dev/v1alpha1 +true +Gang' k api-resources
check "api-versions" 'resource.k8s.io/v1' k api-versions
check "explain a CRD" 'members' k explain gang.spec
check "explain a built-in kind" 'containers' k explain pod.spec
check "healthz" 'ok' k get --raw /readyz
check "auth can-i" 'yes' k auth can-i create pods
check "auth can-i --list" '\*\.\* ' k auth can-i --list
check "auth whoami" 'system:unsecured' k auth whoami
# The machine takes 0.0.0.0 for itself; the server does not.
refuse "a foreign Host is refused with a Status" 'Error from server \(Forbidden\): the host "0.0.0.0" is not' \
  "$KUBECTL" --server="${API_URL/127.0.0.1/0.0.0.0}" get --raw /api
# As a proxy it is sent the whole URL, which it does not take.
refuse "what it does not take as HTTP, too" 'Error from server \(BadRequest\): the path must begin with a slash' \
  env HTTP_PROXY="$API_URL" "$KUBECTL" --server=http://tahoma.invalid get --raw /api
check "cluster-info" 'control plane.* is running' k cluster-info

echo "# apply, diff, get"
check "diff of a new object" 'members: 4' bash -c "'$KUBECTL' --server='$API_URL' diff -f '$work/gang.yaml'; [ \$? = 1 ]"
refuse "diff stores nothing" 'NotFound' k get gang g1
check "dry run" 'created \(server dry run\)' from "$work/gang.yaml" apply --dry-run=server
refuse "dry run stores nothing" 'NotFound' k get gang g1
check "apply creates" 'gang.tahoma.dev/g1 created' from "$work/gang.yaml" apply
check "apply again changes nothing" 'unchanged' from "$work/gang.yaml" apply
check "apply changes" 'configured' from "$work/gang2.yaml" apply
check "get has our columns" '^NAME +MEMBERS +SHAPE' k get gangs
check "get -o wide" 'CHIPS' k get gangs -o wide
check "get by short name and category" 'g1 +2 +4x4x2' k get gg
check "get tahoma (category)" 'g1' k get tahoma
check "get -o yaml" 'generation: 2' k get gang g1 -o yaml
check "get -o jsonpath" '^4x4x2$' k get gang g1 -o 'jsonpath={.spec.shape}{"\n"}'
check "get --sort-by" 'g1' k get gangs --sort-by=.metadata.name
check "get -l" 'g1' k get gangs -l 'team in (a,b)'
check "get -l without a match" 'No resources found' k get gangs -l team=b
check "get all namespaces" 'default +g1' k get gangs -A
check "field selector" 'g1' k get gangs --field-selector metadata.name=g1
refuse "unknown field selector" 'field label not supported' k get gangs --field-selector spec.x=1
refuse "unknown resource" "doesn't have a resource type" k get unicorns
refuse "strict validation" 'unknown field "spec.sahpe"' bash -c \
  "sed 's/shape/sahpe/' '$work/gang.yaml' | '$KUBECTL' --server='$API_URL' apply -f -"
refuse "schema validation names the field" 'spec.members' bash -c \
  "sed 's/members: 4/members: 0/' '$work/gang.yaml' | '$KUBECTL' --server='$API_URL' apply -f -"

echo "# changes"
check "label" 'labeled' k label gang g1 colour=red
check "label is there" 'colour=red' k get gang g1 --show-labels
check "annotate" 'annotated' k annotate gang g1 note=x
check "merge patch" 'patched' k patch gang g1 --type=merge -p '{"spec":{"members":3}}'
check "json patch" 'patched' k patch gang g1 --type=json -p '[{"op":"replace","path":"/spec/members","value":4}]'
refuse "failing json patch test" 'server rejected|test' k patch gang g1 --type=json -p '[{"op":"test","path":"/spec/members","value":9}]'
refuse "strategic patch of a CRD" 'not supported' k patch gang g1 -p '{"spec":{"members":3}}'
check "scale" 'scaled' k scale gang g1 --replicas=8
check "scale took effect" '^8$' k get gang g1 -o 'jsonpath={.spec.members}{"\n"}'
refuse "scale with a wrong precondition" 'Expected replicas' k scale gang g1 --current-replicas=3 --replicas=9
check "scale with the right one (PUT)" 'scaled' k scale gang g1 --current-replicas=8 --replicas=2
cat >"$work/edit.sh" <<'SH'
#!/bin/bash
sed -i 's/members: 2/members: 6/' "$1"
SH
chmod +x "$work/edit.sh"
check "edit" 'edited' env KUBE_EDITOR="$work/edit.sh" "$KUBECTL" --server="$API_URL" edit gang g1
check "edit took effect" '^6$' k get gang g1 -o 'jsonpath={.spec.members}{"\n"}'
check "replace" 'replaced' from "$work/gang.yaml" replace
check "status subresource" 'patched' k patch gang g1 --subresource=status --type=merge -p '{"status":{"phase":"Running"}}'
check "status is shown" 'Running' k get gang g1
check "describe" 'Members: +4' k describe gang g1
check "server-side apply" 'serverside-applied' from "$work/gang.yaml" apply --server-side --force-conflicts
refuse "server-side apply conflict" 'conflicts? with "kubectl"' bash -c \
  "sed 's/members: 4/members: 5/' '$work/gang.yaml' | '$KUBECTL' --server='$API_URL' apply --server-side --field-manager=other -f -"

echo "# built-in kinds"
check "create namespace" 'namespace/team-a created' k create namespace team-a
check "create configmap" 'configmap/c1 created' k create configmap c1 --from-literal=a=b
check "configmap content" '^b$' k get configmap c1 -o 'jsonpath={.data.a}{"\n"}'
check "create secret" 'secret/s1 created' k create secret generic s1 --from-literal=a=b
refuse "create in a missing namespace" 'namespaces "nowhere" not found' k create configmap c1 -n nowhere
check "apply a node" 'node/n1 created' from "$work/node.yaml" apply
check "taint a node (strategic merge)" 'tainted' k taint node n1 a=b:NoSchedule
check "cordon" 'cordoned' k cordon n1
check "apply pods" 'pod/p1 created' from "$work/pod.yaml" apply
check "apply another pod" 'pod/p2 created' from "$work/pod2.yaml" apply
check "pods table" '^p1 +0/1 +Pending' k get pods
check "label a pod (strategic merge)" 'labeled' k label pod p1 x=y
refuse "immutable pod fields" 'Forbidden|Invalid' k patch pod p1 -p '{"spec":{"schedulerName":"other"}}'
check "bind a pod" 'Success' bash -c "echo '{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p1\",\"annotations\":{\"tahoma.dev/rank\":\"0\"}},\"target\":{\"kind\":\"Node\",\"name\":\"n1\"}}' | '$KUBECTL' --server='$API_URL' create --raw /api/v1/namespaces/default/pods/p1/binding -f -"
refuse "bind it again" 'already assigned' bash -c "echo '{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p1\"},\"target\":{\"kind\":\"Node\",\"name\":\"n1\"}}' | '$KUBECTL' --server='$API_URL' create --raw /api/v1/namespaces/default/pods/p1/binding -f -"
check "field selector of pods" 'p1' k get pods --field-selector spec.nodeName=n1 -o name
check "the binding's annotation" '^0$' k get pod p1 -o 'jsonpath={.metadata.annotations.tahoma\.dev/rank}{"\n"}'
check "wait for a condition" 'condition met' k wait --for=condition=PodScheduled pod/p1 --timeout=10s
check "describe pod" 'Node: +n1' k describe pod p1
check "node address for logs" 'patched' k patch node n1 --subresource=status --type=merge -p '{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}}'
[ -z "$server" ] || check "logs reach the node" '127.0.0.1:10250/containerLogs/default/p1/main\?tailLines=5' k logs p1 --tail=5
refuse "logs of a missing container" 'container nope is not valid' k logs p1 -c nope

echo "# watch"
k get pods -w --output-watch-events >"$work/watch" 2>&1 &
watcher=$!
until grep -q p2 "$work/watch"; do read -rt 0.05 <> <(:) || true; done
check "a change while watched" 'annotated' k annotate pod p2 seen=1
until grep -q MODIFIED "$work/watch" || ! kill -0 $watcher 2>/dev/null; do read -rt 0.05 <> <(:) || true; done
check "watch prints it" 'MODIFIED +p2' cat "$work/watch"
kill $watcher 2>/dev/null; wait $watcher 2>/dev/null

echo "# delete"
check "delete -l deletes unbound pods at once" 'p2. deleted' k delete pods -l app=train --field-selector spec.nodeName= --timeout=20s
refuse "it is gone" 'NotFound' k get pod p2
check "a bound pod is deleted gracefully" 'p1. deleted' k delete pod p1 --wait=false
check "and stays until its node confirms" 'Terminating' k get pods
check "force delete" 'deleted' k delete pod p1 --grace-period=0 --force
check "finalizer" 'patched' k patch gang g1 --type=merge -p '{"metadata":{"finalizers":["tahoma.dev/test"]}}'
check "delete with a finalizer" 'deleted' k delete gang g1 --wait=false
check "it stays marked" 'deletionTimestamp' k get gang g1 -o yaml
check "the finalizer goes" 'patched' k patch gang g1 --type=merge -p '{"metadata":{"finalizers":null}}'
refuse "and with it the object" 'NotFound' k get gang g1
check "delete --ignore-not-found" '^$' k delete gang g1 --ignore-not-found
check "apply several" 'g1 created' from "$work/gang.yaml" apply
check "delete --all waits" 'deleted' k delete gangs --all --timeout=20s
check "delete a CRD" 'deleted' k delete crd gangs.tahoma.dev --timeout=20s
refuse "its kind is gone" "doesn't have a resource type" k get gangs.tahoma.dev

echo
[ $failures = 0 ] && echo "kubectl test: all checks passed" || echo "kubectl test: $failures checks failed"
[ $failures = 0 ]
