#!/bin/bash
# Builds the client of a language once, into a cache outside the build tree, and prints the command that runs it.
#   command=$(tests/clients/login/build.sh javascript|java|rust)
# Exit status 77: the language's tools or packages cannot be had; the reason is on stderr.
set -euo pipefail
cd "$(dirname "$0")/$1"

declare -A tools=([javascript]="node npm" [java]="java mvn" [rust]="cargo cc")
for tool in ${tools[$1]}; do
  command -v "$tool" >/dev/null || { echo "no $tool" >&2; exit 77; }
done
key=$(find . -type f | sort | xargs cat | sha256sum | cut -c1-16)
place=${TAHOMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tahoma}/login-$1-$key

make_javascript() { npm ci --silent --no-audit --no-fund; }
make_rust() { cargo build --quiet --locked && mv target/debug/login . && rm -r target; }
make_java() { mvn -q -B package dependency:build-classpath -Dmdep.outputFile=classpath; }

if [ ! -e "$place/complete" ]; then
  rm -rf "$place"
  mkdir -p "$place"
  cp -r . "$place"
  echo "building the client in $1 into $place (once)" >&2
  if ! (cd "$place" && "make_$1" >build.log 2>&1); then
    echo "the client in $1 cannot be built: $(tail -1 "$place/build.log")" >&2
    exit 77
  fi
  touch "$place/complete"
fi
case $1 in
  javascript) echo "node $place/login.mjs" ;;
  rust) echo "$place/login" ;;
  java) echo "java -cp $place/target/classes:$(cat "$place/classpath") Login" ;;
esac
