#!/bin/bash
# Multiplies two matrices on a NeuronCore: a pod with a core runs matmul.trn. The arrays are in FOLDER/matmul, which
# the pod must see under the same name; the product and the timeline, too, or in OUTPUT where pods may not write in
# FOLDER. Needs a running cluster (make up) and a Python with numpy (PYTHON).
#
#     examples/kernels/matmul.sh FOLDER [OUTPUT]
#
#     PYTHON=$(.ci/python) examples/kernels/matmul.sh /tmp
#     kubectl wait pod/matmul --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s
#     kubectl logs matmul
#     $(.ci/python) examples/kernels/matmul.py check /tmp/matmul
set -euo pipefail
folder=$(realpath "${1:-.}")/matmul
here=$(dirname "$0")
mkdir -p -m 1777 "$folder"
"${PYTHON:-python3}" "$here/matmul.py" make "$folder"
cp "$here/matmul.trn" "$folder"
chmod a+r "$folder"/*
sed "s|FOLDER|$folder|g; s|OUTPUT|${2:-$folder}|g" "$here/matmul.yaml" | kubectl apply -f -
