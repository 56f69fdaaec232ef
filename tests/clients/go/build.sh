#!/bin/bash
# Builds the test of clients in Go once, into a cache outside the build tree, and prints the program.
#   program=$(tests/clients/go/build.sh)
# Exit status 77: there is no Go that can build it, or the modules cannot be had; the reason is on stderr.
set -euo pipefail
cd "$(dirname "$0")"

. ../../support/need_go.sh "builds the test"
key=$(cat go.mod go.sum manager/*.go | sha256sum | cut -c1-16)
cache=${TAHOMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tahoma}
program=$cache/go-clients-$key
if [ ! -x "$program" ]; then
  mkdir -p "$cache"
  export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local
  if ! go mod download >&2; then
    echo "the Go modules of $PWD/go.mod cannot be had" >&2
    exit 77
  fi
  echo "building the test of clients in Go into $cache (minutes, once)" >&2
  new=$(mktemp "$cache/new.XXXXXX")
  trap 'rm -f "$new"' EXIT
  go test -c -trimpath -buildvcs=false -ldflags '-s -w' -o "$new" ./manager >&2
  chmod 0755 "$new"
  mv "$new" "$program"
fi
echo "$program"
