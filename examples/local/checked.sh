# What the demos print. A sentence that begins with "=>" was checked when it was printed: `claim` runs its check first, and
# ends the demo when the check fails. Headings name a part of the demo and say nothing that could be wrong.
# Sourced by demo.sh and examples/blocks/demo.sh, which set `state`, a folder of their own.

title() { printf '\n\033[1m== %s\033[0m\n' "$1"; }
# Prints a command, then runs it; what the command printed is in the file $state/shown until the next one.
run() {
  printf '\033[36m$ %s\033[0m\n' "$*"
  bash -o pipefail -c "$*" | tee "$state/shown"
}
# claim SENTENCE COMMAND…: prints the sentence when the command succeeds, and ends the demo when it does not.
claim() {
  local sentence=$1
  shift
  "$@" >"$state/checked" 2>&1 || {
    printf 'not so: %s\nchecked by: %s\n' "$sentence" "$*" >&2
    cat "$state/checked" >&2
    exit 1
  }
  printf '=> %s\n' "$sentence"
}
# Whether the last command printed a line like this (an extended regular expression).
shown() { grep -E -- "$1" "$state/shown"; }
shown_times() { [ "$(grep -cE -- "$2" "$state/shown")" = "$1" ]; }
equal() { [ "$1" = "$2" ] || { printf "'%s' is not '%s'\n" "$1" "$2"; return 1; }; }
# Asks again until the command succeeds, for a minute.
eventually() {
  local end=$((SECONDS + 60))
  until "$@"; do ((SECONDS < end)) || return 1; done
}
# Whether a program runs that was told the folder of this demo.
something_runs() { grep -lsaF -f <(printf '%s/' "$state") /proc/[0-9]*/cmdline; }
# Ends the demo, from a trap: stops its programs, and calls say_end, if the demo has it, when nothing went wrong and none is left.
finish() {
  local status=$?
  examples/local/down.py "$state" || status=1
  if [ "$status" = 0 ] && something_runs; then
    echo "not so: nothing is left running" >&2
    status=1
  fi
  if [ "$status" = 0 ]; then
    rm -rf "$state"
    if declare -F say_end >/dev/null; then say_end; fi
  else
    printf '\nThe demo failed; logs are in %s/log\n' "$state" >&2
  fi
  exit "$status"
}
