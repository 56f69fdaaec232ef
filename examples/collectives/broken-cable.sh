#!/bin/bash
# Shows the cost of a broken cable for an all-reduce and an all-to-all on an instance: before and
# after, with pictures and timelines in the folder given (default: the current one). Needs a
# build, no node.
#
#     examples/collectives/broken-cable.sh /tmp
set -euo pipefail
out=${1:-.}
bin=$(cd "$(dirname "$0")/../.." && pwd)/build/release/bin
for operation in allr alltoall; do
  for down in none 5:x+; do
    broken=()
    if [[ $down != none ]]; then broken=(--down "$down"); fi
    "$bin/trn-trace" --operation "$operation" --bytes 64M --box 4x4 "${broken[@]}" \
      --trace-file "$out/$operation-$down.json" --svg-file "$out/$operation-$down.svg"
    echo
  done
done
