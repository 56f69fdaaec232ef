#!/bin/bash
# Shows the cost of narrow uplinks for an all-reduce over eight instances, four of them attached to
# each node of the nearest network layer: the time by oversubscription of that layer, with each of
# the algorithms between topology domains that AWS names: mesh, ring and rdh. Needs a build, no node.
#
#     examples/collectives/oversubscribed.sh 268435456
set -euo pipefail
bytes=${1:-268435456}
bin=$(cd "$(dirname "$0")/../.." && pwd)/build/release/bin
for over in 1 2 4 8; do
  for between in auto mesh ring rdh; do
    printf 'oversubscription %s, between domains %-6s ' "$over" "$between"
    "$bin/trn-trace" --operation allr --bytes "$bytes" --box 4x4 --domain-torus 4x4 --domains 8 \
      --domains-under-layer3 4 --efa.layer3-oversubscription "$over" --between "$between" |
      sed -n '1s/.*hier: //p'
  done
done
