#!/bin/sh
# Runs a compiler after removing what it made before.
#   compile_anew.sh COMMAND… -o FILE …
# ccache takes a precompiled header that lies beside the header for part of what is compiled: a second build of it would
# have a name in the cache that no other checkout has, and so would all that is compiled with it.
previous=
for word in "$@"; do
  [ "$previous" != -o ] || rm -f "$word"
  previous=$word
done
exec "$@"
