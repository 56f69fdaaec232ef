# For sourcing, in a folder with a go.mod: goes on with a Go toolchain that is new enough for it, else
# ends with status 77 (skipped) and the reason on stderr.
#   . need_go.sh "builds Kubernetes"          # what it is needed for
need=$(sed -n 's/^go //p' go.mod)
if ! command -v go >/dev/null; then
  echo "no Go toolchain: 'go' is not in PATH; Go $need or newer $1" >&2
  exit 77
fi
have=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed 's/^go//')
if [ "$(printf '%s\n%s\n' "$need" "$have" | sort -V | head -1)" != "$need" ]; then
  echo "Go $have is too old: Go $need or newer $1" >&2
  exit 77
fi
