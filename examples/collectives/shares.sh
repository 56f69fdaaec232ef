#!/bin/bash
# Shows the costs of memory, DMA start and CC-cores for an all-reduce on an instance with four ranks on every
# chip: the time with all costs, then without each. Needs a build, no node.
#
#     examples/collectives/shares.sh 1048576
set -euo pipefail
bytes=${1:-67108864}
bin=$(cd "$(dirname "$0")/../.." && pwd)/build/release/bin
for without in nothing memory dma-start cc-cores; do
  left_out=()
  if [[ $without != nothing ]]; then left_out=(--without "$without"); fi
  printf 'without %-10s ' "$without"
  "$bin/trn-trace" --operation allr --bytes "$bytes" --box 4x4 --ranks 4 "${left_out[@]}" | head -1
done
