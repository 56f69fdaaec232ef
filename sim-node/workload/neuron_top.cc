#include "sim-node/workload/neuron_top.h"

#include <array>

#include "lib/base/status.h"
#include "sim-node/workload/arguments.h"

namespace tahoma::sim {
namespace {

constexpr std::array kTopOptions = {
    option{"once", no_argument, nullptr, 'o'},
    option{"help", no_argument, nullptr, 'h'},
    option{nullptr, 0, nullptr, 0},
};
constexpr double kHundred = 100;

// The virtual times of the physical cores of a core are equal where a program used both; so the
// time of the first is that of the programs.
std::string Row(const CoreUse& use) {
  const PhysicalCounts sum = use.Sum();
  const PhysicalCounts& first = use.of.physical.front();
  const auto time_ps = static_cast<double>(first.time_ps);
  std::string row = fmt::format("{:>5}{:>6}{:>9.1f}{:>10}{:>8}{:>12.1f}", use.of.chip, use.of.core,
                                kHundred * use.utilization, first.completed,
                                first.program_errors + first.hardware_errors, time_ps / 1e6);
  for (const std::int64_t busy : sum.engines_ps) {
    const auto of_all = static_cast<double>(sum.time_ps);
    row +=
        fmt::format("{:>9.1f}", of_all > 0 ? kHundred * static_cast<double>(busy) / of_all : 0.0);
  }
  // Bytes and operations in a picosecond are TB/s and teraflops.
  const auto rate = [&](std::int64_t amount) {
    return time_ps > 0 ? static_cast<double>(amount) / time_ps : 0.0;
  };
  return row + fmt::format("{:>10.1f}{:>9.2f}\n", 1e3 * rate(sum.hbm_bytes), rate(sum.flops));
}

}  // namespace

absl::StatusOr<TopOptions> ParseTopArguments(const std::vector<std::string>& arguments) {
  TopOptions options;
  TAHOMA_ASSIGN_OR_RETURN(
      const std::vector<std::string> words,
      ReadOptions("neuron-top", arguments, ":h", kTopOptions.data(), [&](int choice, auto) {
        (choice == 'o' ? options.once : options.help) = true;
        return absl::OkStatus();
      }));
  if (!words.empty()) return InvalidArgument("\"{}\" is no option; try --help", words.front());
  return options;
}

std::string TopHelp() {
  return R"(Shows what the cores of the pod's claim did in the last second.

  neuron-top [--once]

  --once      one table, as where the output is no terminal
  -h, --help  this text

util(%) is the part of the second in which a program ran on the core. The other columns are of the
programs that completed in the second, in virtual time: how long they took, how much of that each
engine worked, bytes of HBM and floating point operations of products in that time.
)";
}

std::string TopTable(const UsagePeriod& period) {
  std::string text = fmt::format("neuron-top: {}, {}, LNC {}, {:.2f} s\n\n",
                                 period.devices.node_name, period.devices.instance_type,
                                 period.devices.lnc, SecondsBetween(period.before, period.after));
  text += fmt::format("{:>5}{:>6}{:>9}{:>10}{:>8}{:>12}", "chip", "core", "util(%)", "programs",
                      "failed", "time(us)");
  for (int engine = 0; engine < isa::kEngines; ++engine) {
    text += fmt::format("{:>9}", isa::Name(static_cast<isa::Engine>(engine)));
  }
  text += fmt::format("{:>10}{:>9}\n", "HBM(GB/s)", "TFLOPS");
  for (const CoreUse& use : UsesBetween(period.before, period.after)) {
    if (!use.of.physical.empty()) text += Row(use);
  }
  text += fmt::format("\n{:>5}{:>20}{:>20}\n", "chip", "memory used(MiB)", "of the claim(MiB)");
  for (const ChipMemoryUse& chip : period.after.chips) {
    constexpr int kMebibyte = 20;
    text += fmt::format("{:>5}{:>20.1f}{:>20}\n", chip.chip,
                        static_cast<double>(chip.used_bytes) / (1 << kMebibyte),
                        chip.capacity_bytes >> kMebibyte);
  }
  return text;
}

}  // namespace tahoma::sim
