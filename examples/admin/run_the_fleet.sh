#!/bin/sh
# Runs a fleet by REST: where a gang would go and when, what is sold when, a chip and a node out of service, a gang's
# priority and its end. Needs curl and python3; TOKEN is one of an admin, or empty where nobody is asked.
#   examples/admin/run_the_fleet.sh http://127.0.0.1:8081 default trn2-0
set -eu
admin=${1:?the address of the admin API} namespace=${2:?a namespace} node=${3:?a node}

call() {  # METHOD PATH [BODY]
  echo "== $1 $2 ${3:-}"
  curl -sS -X "$1" ${TOKEN:+-H "Authorization: Bearer $TOKEN"} -H 'Content-Type: application/json' -H 'If-Match: *' \
    ${3:+-d "$3"} "$admin$2" | python3 -m json.tool --indent 1
}

# Nothing is reserved by asking.
call POST "/v1/placements/$namespace/simulate" '{"shape": "4x4", "maxRuntime": "2h"}'
call POST "/v1/placements/$namespace/simulate" '{"ultraServers": 2}'
call POST "/v1/placements/$namespace/simulate" '{"shape": "4x4x4", "priority": 5, "moves": true}'
call GET "/v1/promises"
call GET "/v1/calendar"

# What runs on the chip stays; a drain of the node ends it, and with it the whole gang.
call POST "/v1/nodes/$node/chips/3/cordon"
call POST "/v1/nodes/$node/chips/3/uncordon"
call POST "/v1/nodes/$node/drain"
call POST "/v1/nodes/$node/uncordon"

# The Gang "train", if there is one: a real writer sends the ETag that it has read, not *.
call PATCH "/v1/gangs/$namespace/train/spec" '{"priority": 10}'
call DELETE "/v1/gangs/$namespace/train"
call GET "/v1/decisions"
