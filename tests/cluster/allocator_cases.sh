#!/bin/bash
# Writes the cases of Kubernetes' own tests of its allocator of devices as JSON, once, into a cache outside the build
# tree, and prints the folder: what each case gives to the allocator, and what Kubernetes answers.
#   cases=$(tests/cluster/allocator_cases.sh)      # about a minute; allocator-cases judges ours by them
# The tests are a table of a package that only packages beside it may import, so a copy of that module gets one more
# test, tools-allocator/export. Nothing of Kubernetes is kept but the cases.
# Exit status 77: there is no Go toolchain that can build them; the reason is on stderr.
set -euo pipefail
cd "$(dirname "$0")/tools-allocator"
. ../../support/need_go.sh "builds Kubernetes' allocator"

module=k8s.io/dynamic-resource-allocation
key=$(cat go.mod go.sum export/export_test.go ../allocator_cases.sh | sha256sum | cut -c1-16)
cases=${TAHOMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tahoma}/allocator-cases-$key
if [ ! -e "$cases/complete" ]; then
  mkdir -p "$cases"
  echo "writing the cases of Kubernetes' allocator into $cases (a minute, once)" >&2
  new=$(mktemp -d "$cases/new.XXXXXX")
  trap 'chmod -R u+w "$new"; rm -rf "$new"' EXIT
  export CGO_ENABLED=0 GOTOOLCHAIN=local
  go mod download "$module"
  cp -r "$(go list -m -f '{{.Dir}}' "$module")" "$new/module"
  chmod -R u+w "$new/module"
  rm "$new"/module/structured/*_test.go
  cp export/export_test.go "$new/module/structured/"
  mkdir "$new/cases"
  cp go.mod go.sum "$new/"
  go mod edit -replace "$module=$new/module" "$new/go.mod"
  CASES=$new/cases go test -mod=readonly -modfile="$new/go.mod" -count=1 -p 2 -run TestExport "$module/structured" >"$new/log" 2>&1 ||
    { tail -20 "$new/log" >&2; exit 1; }
  mv "$new"/cases/*.json "$cases/"
  touch "$cases/complete"
fi
echo "$cases"
