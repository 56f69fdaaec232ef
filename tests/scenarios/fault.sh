#!/bin/bash
# Injects a fault into a simulated node of the running ground, over the node's own admin API.
#   fault.sh NODE chips/5/break '{"reason": "HBM_UNCORRECTABLE_ERROR"}'
#   fault.sh NODE chips/5/repair
#   fault.sh NODE links/3/x+/down
set -euo pipefail
address=$(sed -n 's/^adminAddress: *//p' "$NODES/$1/ports.yaml" | tr -d '"')
curl -sS --fail-with-body -X POST -H 'Content-Type: application/json' -d "${3:-{\}}" "http://$address/v1/$2"
