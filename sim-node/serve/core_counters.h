// Counts what programs did on each NeuronCore of a node, and shows the counts to Prometheus.
//
// Metrics, with labels chip and core (physical, 0 to 7); a core has no series before its first
// program:
//   tahoma_core_programs_total               ended; label result, as NameOf(ProgramEnd)
//   tahoma_core_in_use_seconds_total         time of the node's clock with a program on the core
//   tahoma_core_program_seconds_total        virtual time of completed programs
//   tahoma_core_engine_busy_seconds_total    virtual time; label engine, as isa::Name(Engine)
//   tahoma_core_hbm_bytes_total              read and written
//   tahoma_core_flops_total                  of products: a multiply-add is two
//
// A program that did not complete adds to the first two only.
//
// Scope: sums since the node began, of whoever's programs. Who may see which core is a matter of
// program_calls.h.
//
// Thread safety: all members may be called from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/isa/program.h"
#include "lib/rest/metrics.h"
#include "lib/torus/shape.h"
#include "sim-node/emulator/core/engines.h"

namespace tahoma::sim {

struct PhysicalCore {
  torus::ChipIndex chip;
  int core = 0;  // of the chip
  friend auto operator<=>(const PhysicalCore&, const PhysicalCore&) = default;
};

enum class ProgramEnd : std::uint8_t { kCompleted, kProgramError, kHardwareError };
inline constexpr std::size_t kProgramEnds = 3;
// "completed", "program_error", "hardware_error".
std::string_view NameOf(ProgramEnd end);
// An aborted run met a fault of the hardware, another failed run a mistake of its program.
ProgramEnd EndOf(const absl::Status& run);

struct CoreCounts {
  std::array<std::uint64_t, kProgramEnds> ended{};
  std::chrono::nanoseconds in_use{};
  VirtualDuration time{};
  std::array<VirtualDuration, isa::kEngines> engines{};
  std::uint64_t hbm_bytes = 0;
  std::uint64_t flops = 0;
};

class CoreCounters {
 public:
  // `clock` must outlive the object.
  explicit CoreCounters(const Clock& clock) : clock_(clock) {}

  // Sets the listener, called after each end with the chip, on the ending thread. Must be called
  // before programs run.
  void Listen(std::function<void(torus::ChipIndex chip)> listener) {
    listener_ = std::move(listener);
  }

  // A program takes so many cores from `first` on, and leaves them. A core has one program at a
  // time.
  void Begin(const PhysicalCore& first, int cores);
  void End(const PhysicalCore& first, int cores, const absl::StatusOr<CoreRun>& run);

  // With the time in use of a program that runs now.
  CoreCounts Of(const PhysicalCore& core) const;

  // Adds the metrics to `metrics`, which asks this object at every scrape.
  void Show(rest::Metrics& metrics) const;

 private:
  struct Counted {
    CoreCounts counts;
    std::optional<MonotonicTime> since = {};  // a program runs
  };
  // The values of one core, each with labels that the core's own are added to.
  using Values = std::function<void(const CoreCounts& counts, rest::Labels& labels,
                                    const std::function<void(double)>& add)>;

  CoreCounts UntilNow(const Counted& counted) const;
  rest::Metrics::ReadAll OfAll(Values values) const;

  const Clock& clock_;
  std::function<void(torus::ChipIndex chip)> listener_;
  mutable Mutex mutex_;
  std::map<PhysicalCore, Counted> cores_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tahoma::sim
