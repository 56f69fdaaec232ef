// Metrics of the process itself, by the names of Prometheus' client libraries, and its version.
//
//   AddProcessMetrics(metrics, "controller");
//   // process_resident_memory_bytes …, tahoma_build_info{program="controller",version="0.2.0"} 1
//
// The metrics are read from /proc at every scrape; where /proc does not tell one, its value is 0.
//
// Thread safety: any thread.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/rest/metrics.h"

namespace tahoma::rest {

// The numbers of /proc/self/stat that the metrics need.
struct ProcessStat {
  std::uint64_t cpu_ticks = 0;    // in user and kernel mode
  std::uint64_t start_ticks = 0;  // since the machine was started
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_pages = 0;

  friend bool operator==(const ProcessStat&, const ProcessStat&) = default;
};

// Returns nullopt for a text of another form.
std::optional<ProcessStat> ParseProcessStat(std::string_view text);

void AddProcessMetrics(Metrics& metrics, const std::string& program);

}  // namespace tahoma::rest
