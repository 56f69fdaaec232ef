// The commands of kubectl-tahoma about queues: queues, queue.
//
// Thread safety: one thread.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/ctl/app/target.h"
#include "lib/config/commands.h"

namespace tahoma::controller {

struct QueueCommandOptions {
  std::string name;
  std::string output;
  AdminFlags admin;
};

// The options must outlive the commands.
std::vector<config::Command> QueueCommands(QueueCommandOptions& options);

// Runs the command of that name; returns the program's exit status.
int RunQueueCommand(std::string_view command, const QueueCommandOptions& options,
                    const CommandTarget& target);

}  // namespace tahoma::controller
