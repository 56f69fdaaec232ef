#include "sim-node/serve/core_counters.h"

#include <utility>

#include "lib/base/check.h"

namespace tahoma::sim {
namespace {

double Seconds(VirtualDuration time) {
  return static_cast<double>(time.count()) / static_cast<double>(kPicosecondsPerSecond);
}

}  // namespace

std::string_view NameOf(ProgramEnd end) {
  switch (end) {
    case ProgramEnd::kCompleted:
      return "completed";
    case ProgramEnd::kProgramError:
      return "program_error";
    case ProgramEnd::kHardwareError:
      break;
  }
  return "hardware_error";
}

ProgramEnd EndOf(const absl::Status& run) {
  if (run.ok()) return ProgramEnd::kCompleted;
  return absl::IsAborted(run) ? ProgramEnd::kHardwareError : ProgramEnd::kProgramError;
}

void CoreCounters::Begin(const PhysicalCore& first, int cores) {
  const MonotonicTime now = clock_.MonotonicNow();
  const MutexLock lock(mutex_);
  for (int i = 0; i < cores; ++i) {
    std::optional<MonotonicTime>& since =
        cores_[{.chip = first.chip, .core = first.core + i}].since;
    TAHOMA_CHECK(!since.has_value());
    since = now;
  }
}

void CoreCounters::End(const PhysicalCore& first, int cores, const absl::StatusOr<CoreRun>& run) {
  const MonotonicTime now = clock_.MonotonicNow();
  MutexLock lock(mutex_);
  for (int i = 0; i < cores; ++i) {
    auto& [counts, since] = cores_.at({.chip = first.chip, .core = first.core + i});
    TAHOMA_CHECK(since.has_value());
    counts.in_use += now - *std::exchange(since, std::nullopt);
    ++counts.ended.at(static_cast<std::size_t>(EndOf(run.status())));
    if (!run.ok()) continue;
    counts.time += run->time;
    const auto index = static_cast<std::size_t>(i);
    for (std::size_t engine = 0; engine < counts.engines.size(); ++engine) {
      counts.engines.at(engine) += run->resources.at(index * kCoreResources + engine).busy;
    }
    counts.hbm_bytes += run->work.at(index).hbm_bytes;
    counts.flops += run->work.at(index).flops;
  }
  lock.Unlock();
  if (listener_) listener_(first.chip);
}

CoreCounts CoreCounters::UntilNow(const Counted& counted) const {
  CoreCounts counts = counted.counts;
  if (counted.since) counts.in_use += clock_.MonotonicNow() - *counted.since;
  return counts;
}

CoreCounts CoreCounters::Of(const PhysicalCore& core) const {
  const MutexLock lock(mutex_);
  const auto found = cores_.find(core);
  return found == cores_.end() ? CoreCounts{} : UntilNow(found->second);
}

rest::Metrics::ReadAll CoreCounters::OfAll(Values values) const {
  return [this, values = std::move(values)] {
    std::vector<std::pair<rest::Labels, double>> all;
    const MutexLock lock(mutex_);
    for (const auto& [core, counted] : cores_) {
      rest::Labels labels = {{"chip", std::to_string(core.chip.value())},
                             {"core", std::to_string(core.core)}};
      values(UntilNow(counted), labels, [&](double value) { all.emplace_back(labels, value); });
    }
    return all;
  };
}

void CoreCounters::Show(rest::Metrics& metrics) const {
  const auto add = [&](const std::string& name, const std::string& help,
                       std::function<double(const CoreCounts&)> value) {
    metrics.AddCounterFamily(
        name, help,
        OfAll([value = std::move(value)](const CoreCounts& counts, rest::Labels&,
                                         const auto& add_one) { add_one(value(counts)); }));
  };
  metrics.AddCounterFamily(
      "tahoma_core_programs_total", "Programs that ended on a core.",
      OfAll([](const CoreCounts& counts, rest::Labels& labels, const auto& add_one) {
        for (std::size_t end = 0; end < counts.ended.size(); ++end) {
          labels["result"] = NameOf(static_cast<ProgramEnd>(end));
          add_one(static_cast<double>(counts.ended.at(end)));
        }
      }));
  add("tahoma_core_in_use_seconds_total", "Time with a program on the core.",
      [](const CoreCounts& counts) {
        return std::chrono::duration<double>(counts.in_use).count();
      });
  add("tahoma_core_program_seconds_total", "Virtual time of a core's completed programs.",
      [](const CoreCounts& counts) { return Seconds(counts.time); });
  metrics.AddCounterFamily(
      "tahoma_core_engine_busy_seconds_total", "Virtual time in which an engine worked.",
      OfAll([](const CoreCounts& counts, rest::Labels& labels, const auto& add_one) {
        for (std::size_t engine = 0; engine < counts.engines.size(); ++engine) {
          labels["engine"] = isa::Name(static_cast<isa::Engine>(engine));
          add_one(Seconds(counts.engines.at(engine)));
        }
      }));
  add("tahoma_core_hbm_bytes_total", "Bytes that a core has read and written in HBM.",
      [](const CoreCounts& counts) { return static_cast<double>(counts.hbm_bytes); });
  add("tahoma_core_flops_total", "Floating point operations of products.",
      [](const CoreCounts& counts) { return static_cast<double>(counts.flops); });
}

}  // namespace tahoma::sim
