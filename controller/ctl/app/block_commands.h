// The commands of kubectl-tahoma about Capacity Blocks: offerings, book, calendar, usage.
//
// Thread safety: one thread.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controller/ctl/app/target.h"
#include "lib/config/commands.h"

namespace tahoma::controller {

struct BlockCommandOptions {
  AdminFlags admin;
  std::string output;
  bool all_namespaces = false;  // calendar, usage: as without --namespace
  // offerings
  std::string type;
  std::int64_t count = 1;
  std::int64_t hours = 24;
  std::int64_t flexible_hours = 0;
  std::int64_t segments = 1;
  std::string from;
  std::string to;
  std::string zone;
  bool any_cell = false;
  std::string order;
  std::int64_t most = 6;
  // book
  std::string offering;
  std::string name;
  std::string platform;
  std::string replace;
  std::string binding;
  std::map<std::string, std::string> tags;
  std::string wait = "bought";
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  // calendar
  std::string by = "block";
  std::string usage_by = "both";
  std::int64_t days = 0;
  std::int64_t width = 0;
};

// The options must outlive the commands.
std::vector<config::Command> BlockCommands(BlockCommandOptions& options);

// Runs the command of that name. Returns the program's exit status: 0; 1 when the cluster cannot be
// asked or nothing be printed; 2 for a wrong value; 3 when there is no offering, or nothing was
// bought or kept; 4 when the outcome was not known in time.
int RunBlockCommand(std::string_view command, const BlockCommandOptions& options,
                    const CommandTarget& target);

}  // namespace tahoma::controller
