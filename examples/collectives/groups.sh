#!/bin/bash
# nccom-test with ranks in groups, with blocks of different sizes and by pairs, each as a pod with
# an instance of 16 chips (64 logical cores). Writes the three files into the folder given, which
# the pods must see under the same name. Needs a running cluster (make up).
#
#     examples/collectives/groups.sh /tmp
set -euo pipefail
out=$(realpath "${1:-.}")
make_gang=$(dirname "$0")/../gangs/make_gang.py

# Tensor-parallel groups of 16: the ranks of each row of four chips.
python3 -c 'import json
rows = [list(range(row * 16, row * 16 + 16)) for row in range(4)]
print(json.dumps({"replica_groups": [rows]}))' > "$out/groups.json"

# Rank 0 is a hot expert: everybody sends it twelve times what it sends to each other.
python3 -c 'import json
print(json.dumps({"metadata": [{"send_counts": [1536] + 63 * [128]}]}))' > "$out/counts.json"

# Each instance half gives its buffers to the other.
python3 -c 'import json
pairs = [[rank, (rank + 32) % 64] for rank in range(64)]
print(json.dumps({"src_target_pairs": [pairs]}))' > "$out/pairs.json"

gang() {  # NAME COMMAND
  "$make_gang" "$1" 4x4 1 --command "$2 --show-algorithm" | kubectl apply -f -
}
gang rows "nccom-test allr -b 64K -e 4M -f 8 -d bf16 -c --custom-replica-groups $out/groups.json"
gang hot "nccom-test alltoallv -b 256K -e 256K -d bf16 -c --variable-size-op-metadata $out/counts.json"
gang swap "nccom-test permute -b 64K -e 4M -f 8 -d bf16 -c --custom-src-target-pairs $out/pairs.json"
