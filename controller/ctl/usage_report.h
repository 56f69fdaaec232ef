// The cost and use of Capacity Blocks: a line for each block, and sums by namespace.
//
//   std::vector<UsageLine> lines;                                    // UsageLineOf each object
//   fmt::print("{}", UsageTable(lines));
//   fmt::print("{}", UsageCsv(lines));                               // for a spreadsheet
//
// Scope: the objects' status, as of its last record. The admin API counts up to now.
//
// Thread safety: pure functions.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/reserve/money.h"
#include "controller/reserve/usage.h"
#include "lib/base/json_fwd.h"

namespace tahoma::controller {

struct UsageLine {
  std::string ns = {};
  std::string name = {};
  std::string state = {};
  std::string type = {};
  std::int64_t count = 0;
  std::string start = {};
  std::string end = {};
  Money fee = {};
  std::int64_t bought = 0;  // chip-milliseconds
  ChipTally chip_ms = {};   // until now
};

// nullopt for an object that is no block, and for a block that was not paid for or never delivered.
std::optional<UsageLine> UsageLineOf(const Json& object);

// Makes a table by namespace and start. The sum of a namespace with several blocks follows its
// blocks; with several namespaces the total is at the end.
std::string UsageTable(std::vector<UsageLine> lines);
// Comma-separated values with a header (RFC 4180), without sums.
std::string UsageCsv(std::vector<UsageLine> lines);
// {"capacityBlocks": […], "total": {…}}
Json UsageJson(std::vector<UsageLine> lines);

}  // namespace tahoma::controller
