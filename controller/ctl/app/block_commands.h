// The commands of kubectl-tahoma about Capacity Blocks: offerings, book, calendar, usage.
//
// Thread safety: one thread.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lib/config/spec.h"

namespace tahoma::controller {

struct BlockCommandOptions {
  std::string admin;
  std::string admin_ca_file;
  std::string output;
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
  std::string name;
  std::string platform;
  std::string replace;
  std::string binding;
  std::map<std::string, std::string> tags;
  std::string wait = "bought";
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  // calendar
  std::string by = "block";
  std::int64_t days = 0;
  std::int64_t width = 0;
};

// The cluster and the namespace that a command is about.
struct CommandTarget {
  std::string kubeconfig;
  std::string context;
  std::string ns;  // empty: the context's, and for calendar and usage all
};

void DeclareBlockOptions(config::Spec& spec, BlockCommandOptions& options);

bool IsBlockCommand(std::string_view command);

// Returns the mistake in the words of the command line; empty when there is none.
std::string MistakeIn(std::string_view command, const std::string& word,
                      const BlockCommandOptions& options);

// Prints the answer and returns the program's exit status: 0; 1 when the cluster cannot be asked; 3
// when there is no offering, or nothing was bought or kept; 4 when it was not known in time.
int RunBlockCommand(std::string_view command, const std::string& word,
                    const BlockCommandOptions& options, const CommandTarget& target);

}  // namespace tahoma::controller
