#!/bin/bash
# What a program does in a Capacity Block: it counts steps, knows when its hardware is taken back, and on SIGTERM writes
# a checkpoint from which the next run goes on.
#
#     train.sh FOLDER            the checkpoint is FOLDER/rank-N
set -u
file=$1/rank-${TAHOMA_RANK:-0}

milliseconds() { now=${EPOCHREALTIME/[.,]/}; now=${now:0:-3}; }

save() {
  milliseconds
  printf 'step %s\nsaved %s\n' "$step" "$now" >"$file"
  echo "SIGTERM: checkpoint of step $step is in $file"
  exit 0
}
trap save TERM

step=0
[ ! -r "$file" ] || read -r _ step <"$file"
milliseconds
if [ -n "${TAHOMA_CAPACITY_BLOCK_RECLAIM_TIMESTAMP:-}" ]; then
  echo "begins with step $step; the hardware is taken back in $((TAHOMA_CAPACITY_BLOCK_RECLAIM_TIMESTAMP - now)) ms" \
    "(TAHOMA_CAPACITY_BLOCK_RECLAIM_TIMESTAMP=$TAHOMA_CAPACITY_BLOCK_RECLAIM_TIMESTAMP)"
else
  echo "begins with step $step; nobody takes the hardware back"
fi
while :; do
  ((++step))
  sleep 0.1 &
  wait $!
done
