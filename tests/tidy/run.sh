#!/bin/bash
# `make tidy`: the repository's own rules, clang-format on every source, clang-tidy on every source.
set -euo pipefail
cd "$(dirname "$0")/../.."
tests/tidy/tidy.py
git ls-files -co --exclude-standard '*.h' '*.cc' | xargs clang-format --dry-run --Werror
cmake --preset clang-tidy >/dev/null
# Generated headers must exist before a source that includes them can be read.
cmake --build --preset clang-tidy --target tahoma_generated >/dev/null
git ls-files -co --exclude-standard 'lib/*.cc' 'sim-node/*.cc' 'dra-plugin/*.cc' 'controller/*.cc' |
  xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p build/clang-tidy 2> >(grep -v 'warnings generated' >&2)
echo "tidy: clean"
