#include "sim-node/workload/core_usage.h"

#include <algorithm>
#include <limits>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/fields.h"

namespace tahoma::sim {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max() / 4;  // sums of two fit
constexpr int kMaxNumber = 127;  // of a chip of a node or of a core of a chip
constexpr std::size_t kMaxChips = 16;
constexpr std::size_t kMaxCores = 8;
constexpr double kNanosecondsPerSecond = 1e9;

// Calls combine(to, from) for each number of two counts.
template <typename Combine>
void ForEach(PhysicalCounts& to, const PhysicalCounts& from, Combine&& combine) {
  for (const auto member :
       {&PhysicalCounts::completed, &PhysicalCounts::program_errors,
        &PhysicalCounts::hardware_errors, &PhysicalCounts::in_use_ns, &PhysicalCounts::time_ps,
        &PhysicalCounts::hbm_bytes, &PhysicalCounts::flops}) {
    combine(to.*member, from.*member);
  }
  for (std::size_t i = 0; i < to.engines_ps.size(); ++i) {
    combine(to.engines_ps.at(i), from.engines_ps.at(i));
  }
}

PhysicalCounts ReadPhysical(const Json& item, wire::Fields& parent) {
  wire::Fields fields(item, parent.Path("physical"));
  PhysicalCounts counts = {.completed = fields.Int("completed", 0, kMaxInt),
                           .program_errors = fields.Int("programErrors", 0, kMaxInt),
                           .hardware_errors = fields.Int("hardwareErrors", 0, kMaxInt),
                           .in_use_ns = fields.Int("inUseNs", 0, kMaxInt),
                           .time_ps = fields.Int("timePs", 0, kMaxInt),
                           .hbm_bytes = fields.Int("hbmBytes", 0, kMaxInt),
                           .flops = fields.Int("flops", 0, kMaxInt)};
  if (const Json* engines = fields.Object("enginesPs")) {
    wire::Fields busy(*engines, fields.Path("enginesPs"));
    for (std::size_t i = 0; i < counts.engines_ps.size(); ++i) {
      counts.engines_ps.at(i) = busy.Int(isa::Name(static_cast<isa::Engine>(i)), 0, kMaxInt);
    }
    fields.Fail(busy.status());
  }
  parent.Fail(fields.status());
  return counts;
}

void ReadChip(const Json& item, wire::Fields& parent, CoreReading& reading) {
  wire::Fields fields(item, parent.Path("chips"));
  const auto chip = static_cast<int>(fields.Int("chip", 0, kMaxNumber));
  reading.chips.push_back({.chip = chip,
                           .capacity_bytes = fields.Int("capacityBytes", 0, kMaxInt),
                           .used_bytes = fields.Int("usedBytes", 0, kMaxInt)});
  for (const Json& core : fields.Array("cores", kMaxCores)) {
    wire::Fields one(core, fields.Path("cores"));
    LogicalCore logical = {.chip = chip,
                           .core = static_cast<int>(one.Int("core", 0, kMaxNumber)),
                           .id = static_cast<int>(one.Int("id", 0, kMaxNumber))};
    for (const Json& physical : one.Array("physical", isa::kCoresMax)) {
      logical.physical.push_back(ReadPhysical(physical, one));
    }
    reading.cores.push_back(std::move(logical));
    fields.Fail(one.status());
  }
  parent.Fail(fields.status());
}

}  // namespace

absl::StatusOr<CoreReading> ParseCoreReading(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(const Json json, wire::ReadJson(text, "coreCounters"));
  wire::Fields fields(json, "coreCounters");
  CoreReading reading = {.clock_ns = fields.Int("clockNs", 0, kMaxInt)};
  for (const Json& chip : fields.Array("chips", kMaxChips)) ReadChip(chip, fields, reading);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return reading;
}

PhysicalCounts CoreUse::Sum() const {
  PhysicalCounts sum;
  for (const PhysicalCounts& one : of.physical) {
    ForEach(sum, one, [](std::int64_t& to, std::int64_t from) { to += from; });
  }
  return sum;
}

double SecondsBetween(const CoreReading& before, const CoreReading& after) {
  return static_cast<double>(after.clock_ns - before.clock_ns) / kNanosecondsPerSecond;
}

std::vector<CoreUse> UsesBetween(const CoreReading& before, const CoreReading& after) {
  const double seconds = SecondsBetween(before, after);
  std::vector<CoreUse> uses;
  for (const LogicalCore& now : after.cores) {
    const auto then = std::ranges::find(before.cores, now.id, &LogicalCore::id);
    if (then == before.cores.end() || then->physical.size() != now.physical.size()) continue;
    CoreUse use = {.of = now};
    for (std::size_t i = 0; i < now.physical.size(); ++i) {
      PhysicalCounts& counts = use.of.physical[i];
      ForEach(counts, then->physical[i], [](std::int64_t& to, std::int64_t from) { to -= from; });
      const double in_use = static_cast<double>(counts.in_use_ns) / kNanosecondsPerSecond;
      const double share = seconds > 0 ? std::clamp(in_use / seconds, 0.0, 1.0) : 0.0;
      use.physical_utilization.push_back(share);
      use.utilization = std::max(use.utilization, share);
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace tahoma::sim
