#!/bin/bash
# Injects a fault into a simulated node of the running test environment, over the node's own admin API.
#   fault.sh NODE chips/5/break '{"reason": "HBM_UNCORRECTABLE_ERROR"}'
#   fault.sh NODE chips/5/repair
#   fault.sh NODE links/3/x+/down
set -euo pipefail
address=$(sed -n 's/^adminAddress: *//p' "$NODES/$1/ports.yaml" | tr -d '"')
# On a command line everybody could read the token (ps).
curl -sS --fail-with-body -X POST -H @<(printf 'Authorization: Bearer %s' "$(cat "$NODES/$1/admin.token")") -H 'Content-Type: application/json' -d "${3:-{\}}" "http://$address/v1/$2"
