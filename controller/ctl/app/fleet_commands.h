// The commands of kubectl-tahoma about the fleet and its gangs: topology, gangs, why, version; and
// the values that complete a command line.
//
// Thread safety: one thread.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/ctl/app/target.h"
#include "lib/config/commands.h"
#include "lib/config/spec.h"

namespace tahoma::controller {

struct FleetCommandOptions {
  std::string name;
  std::string output;
  AdminFlags admin;             // why
  bool all = false;             // topology
  bool all_namespaces = false;  // gangs
  bool watch = false;           // gangs
  bool client = false;          // version
};

// The options and the target must outlive the commands.
std::vector<config::Command> FleetCommands(FleetCommandOptions& options);

// Runs the command of that name; returns the program's exit status.
int RunFleetCommand(std::string_view command, const FleetCommandOptions& options,
                    const CommandTarget& target);

// Returns the namespaces, gangs, pods, queues or nodes that can complete a command line; nothing
// when the cluster cannot be read.
std::vector<std::string> ValuesOf(const config::Commands::Completion& wanted,
                                  const CommandTarget& target);

}  // namespace tahoma::controller
