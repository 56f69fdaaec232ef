// Completes command lines of kubectl-tahoma in shells, and by kubectl.
//
// Thread safety: one thread.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/ctl/app/target.h"
#include "lib/config/commands.h"

namespace tahoma::controller {

inline constexpr std::string_view kCompletion = "completion";
// Called by the scripts with the words of the line; not for people.
inline constexpr std::string_view kCompleteCommand = "__complete";

struct CompletionOptions {
  std::string shell;
};

config::Command CompletionCommand(CompletionOptions& options);

// Prints the script of the shell; returns the exit status.
int PrintCompletion(const CompletionOptions& options);

// Prints the words that complete the last argument, a line for each, with a tab before the
// description, and the line ":4" at the end: no names of files. That is how kubectl asks its
// plugins. Returns the exit status.
int CompleteLine(const config::Commands& commands, CommandTarget& target,
                 const std::vector<std::string>& arguments);

}  // namespace tahoma::controller
