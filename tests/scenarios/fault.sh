#!/bin/bash
# Injects a fault into a simulated node of the running test environment, over the node's own admin API.
#   fault.sh NODE chips/5/break '{"reason": "HBM_UNCORRECTABLE_ERROR"}'
#   fault.sh NODE chips/5/repair
#   fault.sh NODE links/3/x+/down
# Where sim-node is a pod, kubectl forwards a port to it.
set -euo pipefail
if [ -e "$NODES/$1/ports.yaml" ]; then
  address=$(sed -n 's/^adminAddress: *//p' "$NODES/$1/ports.yaml" | tr -d '"')
else
  select=(--selector app.kubernetes.io/component=sim-node --field-selector "spec.nodeName=$1")
  pod=$(kubectl get pods --namespace tahoma-system "${select[@]}" -o name)
  exec 3< <(exec kubectl port-forward --namespace tahoma-system "$pod" :7002)
  trap 'kill $forward' EXIT
  forward=$!
  read -r line <&3  # Forwarding from 127.0.0.1:PORT -> 7002
  address=$(grep -oE '127.0.0.1:[0-9]+' <<<"$line")
fi
token=$(cat "$NODES/$1/admin.token")  # empty: none is asked for
# On a command line everybody could read the token (ps).
curl -sS --fail-with-body -X POST -H @<(printf '%s' "${token:+Authorization: Bearer $token}") \
  -H 'Content-Type: application/json' -d "${3:-{\}}" "http://$address/v1/$2"
