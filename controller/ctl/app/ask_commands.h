// The commands of kubectl-tahoma that ask what will be: fit, plan.
//
// Thread safety: one thread.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/ctl/app/target.h"
#include "controller/ctl/fit.h"
#include "lib/config/commands.h"

namespace tahoma::controller {

struct AskCommandOptions {
  FitAsked asked;
  std::string output;
  AdminFlags admin;
};

// The options must outlive the commands.
std::vector<config::Command> AskCommands(AskCommandOptions& options);

// Runs the command of that name. Returns the program's exit status: 0; 1 when nobody could be
// asked or nothing be printed; of `fit` 2 for a wrong value and 3 when the gang does not fit now.
int RunAskCommand(std::string_view command, const AskCommandOptions& options,
                  const CommandTarget& target);

}  // namespace tahoma::controller
