#!/bin/bash
# A seed is the same world in every process, whatever the addresses by which its hash maps are ordered.
#   same_worlds.sh SIM_TEST
set -euo pipefail
diff <("$1" --seeds=1..20) <("$1" --seeds=1..20)
echo "20 worlds are the same in two processes"
