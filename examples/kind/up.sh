#!/bin/bash
# Makes a cluster of kind with Tahoma on it, from the programs of a build tree.
#   examples/kind/up.sh           needs Docker, kind and helm (and `make programs`); kubectl is then set to the cluster
#   kind delete cluster --name tahoma
# The images are not pushed anywhere: they are assembled here and loaded into the nodes.
set -euo pipefail
cd "$(dirname "$0")/../.."
for program in docker kind helm; do
  command -v "$program" >/dev/null || { echo "there is no $program in PATH" >&2; exit 1; }
done
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
images/images.py "$out"
kind create cluster --name tahoma --config examples/kind/cluster.yaml
for image in "$out"/*.tar; do
  kind load image-archive "$image" --name tahoma
done
helm install tahoma charts/tahoma --namespace tahoma-system --create-namespace --values examples/kind/values.yaml \
  --wait --timeout 5m
echo "now: kubectl apply -f examples/gangs/ultraserver.yaml; kubectl get gangs"
