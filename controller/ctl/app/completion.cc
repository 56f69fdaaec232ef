#include "controller/ctl/app/completion.h"

#include <fmt/format.h>

#include "controller/ctl/app/fleet_commands.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kBash =
    R"(# Completes kubectl-tahoma in bash: source <(kubectl-tahoma completion bash)
_kubectl_tahoma() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :*) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <(kubectl-tahoma __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _kubectl_tahoma kubectl-tahoma
)";

constexpr std::string_view kZsh = R"(#compdef kubectl-tahoma
# Completes kubectl-tahoma in zsh: source <(kubectl-tahoma completion zsh)
_kubectl-tahoma() {
  local line
  local -a found
  for line in "${(@f)$(kubectl-tahoma __complete "${(@)words[2,$CURRENT]}" 2>/dev/null)}"; do
    [[ -z $line || $line == :* ]] && continue
    line=${line//:/\\:}
    found+=("${line/$'\t'/:}")
  done
  _describe 'kubectl tahoma' found
}
if [[ $funcstack[1] == _kubectl-tahoma ]]; then
  _kubectl-tahoma "$@"
else
  compdef _kubectl-tahoma kubectl-tahoma
fi
)";

constexpr std::string_view kNoFiles = ":4\n";

}  // namespace

config::Command CompletionCommand(CompletionOptions& options) {
  return {.name = std::string(kCompletion),
          .summary = "Prints a script that completes kubectl-tahoma in a shell.",
          .declare =
              [&options](config::Spec& spec) {
                spec.Word("SHELL", &options.shell, "bash or zsh", config::Spec::Need::kRequired,
                          {"bash", "zsh"});
              },
          .examples =
              "source <(kubectl tahoma completion bash)\n"
              "# `kubectl tahoma` itself: kubectl's own completion asks a program of this "
              "name in PATH\n"
              "ln -s \"$(command -v kubectl-tahoma)\" ~/bin/kubectl_complete-tahoma"};
}

int PrintCompletion(const CompletionOptions& options) {
  const absl::Status printed = Print(options.shell == "bash" ? kBash : kZsh);
  return printed.ok() ? 0 : Fail(printed);
}

int CompleteLine(const config::Commands& commands, CommandTarget& target,
                 const std::vector<std::string>& arguments) {
  const config::Commands::Completion completion = commands.Complete(arguments);
  std::string text;
  for (const auto& [word, description] : completion.words) {
    text += description.empty() ? word + "\n" : fmt::format("{}\t{}\n", word, description);
  }
  if (!completion.wanted.empty()) {
    // The flags before the last word say which cluster is asked; a mistake leaves their defaults.
    std::vector<std::string> before = arguments;
    before.back() = "x";
    commands.Parse(before).IgnoreError();
    if (completion.wanted == "namespace") target.ns.clear();
    for (const std::string& value : ValuesOf(completion, target)) {
      if (value.starts_with(arguments.back())) text += value + "\n";
    }
  }
  const absl::Status printed = Print(text + std::string(kNoFiles));
  return printed.ok() ? 0 : Fail(printed);
}

}  // namespace tahoma::controller
