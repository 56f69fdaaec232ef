#!/bin/bash
# `make tidy`: the repository's own rules, clang-format on every source, clang-tidy on every source.
set -euo pipefail
cd "$(dirname "$0")/../.."
tests/tidy/tidy.py
tests/tidy/crd_fields.py
tests/tidy/tidy.py --commits
git ls-files -co --exclude-standard '*.h' '*.cc' | xargs clang-format --dry-run --Werror
cmake --preset clang-tidy >/dev/null
# Generated headers must exist before a source that includes them can be read.
cmake --build --preset clang-tidy --target tahoma_generated >/dev/null
tests/tidy/clang_tidy.py build/clang-tidy
echo "tidy: clean"
