// The command of kubectl-tahoma about gangs that move: defragment.
//
// Thread safety: one thread.

#pragma once

#include <string>
#include <vector>

#include "controller/ctl/app/target.h"
#include "controller/ctl/defragmentation.h"
#include "lib/config/commands.h"

namespace tahoma::controller {

struct MoveCommandOptions {
  DefragmentWish wish;
  bool apply = false;
  std::string abort;  // a name
  std::string output;
  AdminFlags admin;
};

inline constexpr const char* kDefragmentCommand = "defragment";

// The options must outlive the commands.
std::vector<config::Command> MoveCommands(MoveCommandOptions& options);

// Runs the command; returns the program's exit status.
int RunDefragment(const MoveCommandOptions& options, const CommandTarget& target);

}  // namespace tahoma::controller
