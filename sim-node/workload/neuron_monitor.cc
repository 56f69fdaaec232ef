#include "sim-node/workload/neuron_monitor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>

#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/config/duration.h"
#include "lib/hw/catalogue.h"
#include "lib/wire/fields.h"
#include "sim-node/workload/arguments.h"

namespace tahoma::sim {
namespace {

using json = Json;

constexpr std::array kMonitorOptions = {
    option{"config-file", required_argument, nullptr, 'c'},
    option{"verbose", required_argument, nullptr, 'v'},
    option{"help", no_argument, nullptr, 'h'},
    option{nullptr, 0, nullptr, 0},
};
constexpr std::array<std::string_view, 4> kRuntimeMetrics = {
    "neuroncore_counters", "memory_used", "neuron_runtime_vcpu_usage", "execution_stats"};
constexpr std::array<std::string_view, 3> kSystemMetrics = {"vcpu_usage", "memory_info",
                                                            "neuron_hw_counters"};
constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20U;
constexpr std::size_t kMaxMetrics = 64;
constexpr std::size_t kMaxText = 256;
constexpr int kMaxVerbose = 4;
constexpr double kPerCent = 100;

void ReadMetrics(wire::Fields& fields, std::string_view key,
                 std::span<const std::string_view> known, std::vector<std::string>& into) {
  for (const json& item : fields.Array(key, kMaxMetrics)) {
    wire::Fields metric(item, fields.Path(key));
    const std::string type = metric.String("type", 1, kMaxText);
    if (metric.status().ok() && std::ranges::find(known, type) == known.end()) {
      metric.Fail(InvalidArgument("{} is \"{}\"; expected one of {}", metric.Path("type"), type,
                                  fmt::join(known, ", ")));
    }
    if (std::ranges::find(into, type) == into.end()) into.push_back(type);
    fields.Fail(metric.status());
  }
}

// A metric group without values.
json Group(double seconds, std::string_view error = "") {
  return {{"period", seconds}, {"error", error}};
}

json CoreCountersOf(const std::vector<CoreUse>& uses, double seconds, std::string_view version) {
  json cores = json::object();
  for (const CoreUse& use : uses) {
    const double flops = seconds > 0 ? static_cast<double>(use.Sum().flops) / seconds : 0.0;
    json core = {{"neuroncore_utilization", kPerCent * use.utilization}, {"flops", flops}};
    if (use.physical_utilization.size() > 1) {
      json physical = json::object();
      for (std::size_t i = 0; i < use.physical_utilization.size(); ++i) {
        const std::size_t number =
            static_cast<std::size_t>(use.of.id) * use.physical_utilization.size() + i;
        physical[fmt::format("nc_{}.{}", version, number)] = {
            {"neuroncore_utilization", kPerCent * use.physical_utilization[i]}};
      }
      core[fmt::format("{}d", version)] = std::move(physical);
    }
    cores[std::to_string(use.of.id)] = std::move(core);
  }
  json group = Group(seconds);
  group["neuroncores_in_use"] = std::move(cores);
  return group;
}

// The used bytes of a chip are the tensors of its cores, in equal parts; the first core has the
// rest.
json MemoryUsedOf(const CoreReading& now, double seconds) {
  std::int64_t used = 0;
  json by_core = json::object();
  for (const ChipMemoryUse& chip : now.chips) {
    used += chip.used_bytes;
    const auto cores = std::ranges::count(now.cores, chip.chip, &LogicalCore::chip);
    std::int64_t rest = cores == 0 ? 0 : chip.used_bytes % cores;
    for (const LogicalCore& core : now.cores) {
      if (core.chip != chip.chip) continue;
      by_core[std::to_string(core.id)] = {{"constants", 0},
                                          {"model_code", 0},
                                          {"model_shared_scratchpad", 0},
                                          {"runtime_memory", 0},
                                          {"tensors", chip.used_bytes / cores + rest}};
      rest = 0;
    }
  }
  const json host = {
      {"application_memory", 0}, {"constants", 0}, {"dma_buffers", 0}, {"tensors", 0}};
  json group = Group(seconds);
  group["neuron_runtime_used_bytes"] = {
      {"host", 0},
      {"neuron_device", used},
      {"usage_breakdown", {{"host", host}, {"neuroncore_memory_usage", std::move(by_core)}}}};
  group["loaded_models"] = json::array();
  return group;
}

json ExecutionStatsOf(const std::vector<CoreUse>& uses, double seconds) {
  // The first physical core of a logical core takes part in each of its programs.
  PhysicalCounts sum;
  for (const CoreUse& use : uses) {
    if (use.of.physical.empty()) continue;
    const PhysicalCounts& first = use.of.physical.front();
    sum.completed += first.completed;
    sum.program_errors += first.program_errors;
    sum.hardware_errors += first.hardware_errors;
  }
  json group = Group(seconds);
  group["error_summary"] = {{"generic", 0},   {"numerical", 0},
                            {"transient", 0}, {"model", sum.program_errors},
                            {"runtime", 0},   {"hardware", sum.hardware_errors}};
  group["execution_summary"] = {{"completed", sum.completed},
                                {"completed_with_err", sum.program_errors + sum.hardware_errors},
                                {"completed_with_num_err", 0},
                                {"timed_out", 0},
                                {"incorrect_input", 0},
                                {"failed_to_queue", 0}};
  group["latency_stats"] = {{"total_latency", nullptr}, {"device_latency", nullptr}};
  return group;
}

// A fault that the node has is one error of its kind.
json HardwareCountersOf(const DeviceList& list, double seconds) {
  json devices = json::array();
  for (const ListedDevice& device : list.devices) {
    devices.push_back({{"neuron_device_index", device.index},
                       {"mem_ecc_corrected", 0},
                       {"mem_ecc_uncorrected", device.reason == "hbm-uncorrectable" ? 1 : 0},
                       {"sram_ecc_corrected", 0},
                       {"sram_ecc_uncorrected", device.reason == "sram-uncorrectable" ? 1 : 0}});
  }
  json group = Group(seconds);
  group["neuron_devices"] = std::move(devices);
  return group;
}

json HardwareInfoOf(const DeviceList& list, const hw::InstanceType* type) {
  if (type == nullptr) {
    return {{"error", fmt::format("instance type {} is unknown here", list.instance_type)}};
  }
  const hw::ChipModel& chip = *type->chip;
  return {{"neuron_device_type", chip.name},
          {"neuroncore_version", fmt::format("{}{}", chip.core_version, list.lnc > 1 ? "d" : "")},
          {"neuron_device_count", list.devices.size()},
          {"neuron_device_memory_size", chip.hbm_bytes},
          {"neuroncore_per_device_count", hw::LogicalCores(chip, list.lnc)},
          {"logical_neuroncore_config", list.lnc},
          {"error", ""}};
}

json InstanceInfoOf(const DeviceList& list) {
  json info = {{"instance_name", list.node_name},
               {"instance_id", list.node_name},
               {"instance_type", list.instance_type},
               {"error", ""}};
  for (const char* key : {"instance_availability_zone", "instance_availability_zone_id",
                          "instance_region", "ami_id", "subnet_id"}) {
    info[key] = "";
  }
  return info;
}

}  // namespace

absl::StatusOr<MonitorOptions> ParseMonitorConfig(std::string_view text) {
  TAHOMA_ASSIGN_OR_RETURN(const json config, wire::ReadJson(text, "config"));
  wire::Fields fields(config, "config");
  MonitorOptions options;
  const std::string period = fields.StringOr("period", kMaxText, "5s");
  const auto duration = config::ParseDuration(period);
  if (!duration.ok()) {
    fields.Fail(Annotate(duration.status(), fields.Path("period")));
  } else if (*duration < std::chrono::milliseconds(100)) {
    fields.Fail(
        InvalidArgument("{} is {}; expected at least 100ms", fields.Path("period"), period));
  } else {
    options.period = *duration;
  }
  for (const json& item : fields.Array("neuron_runtimes", kMaxMetrics)) {
    wire::Fields runtime(item, fields.Path("neuron_runtimes"));
    ReadMetrics(runtime, "metrics", kRuntimeMetrics, options.runtime_metrics);
    fields.Fail(runtime.status());
  }
  ReadMetrics(fields, "system_metrics", kSystemMetrics, options.system_metrics);
  TAHOMA_RETURN_IF_ERROR(fields.status());
  return options;
}

absl::StatusOr<MonitorOptions> ParseMonitorArguments(const std::vector<std::string>& arguments) {
  MonitorOptions options;
  options.runtime_metrics.assign(kRuntimeMetrics.begin(), kRuntimeMetrics.end());
  options.system_metrics.assign(kSystemMetrics.begin(), kSystemMetrics.end());
  bool help = false;
  const auto apply = [&](int choice, std::string_view value) -> absl::Status {
    int verbose = 0;
    switch (choice) {
      case 'c': {
        TAHOMA_ASSIGN_OR_RETURN(const std::string text,
                                ReadFile(std::string(value), kMaxConfigBytes));
        auto read = ParseMonitorConfig(text);
        if (!read.ok()) return Annotate(read.status(), value);
        options = *std::move(read);
        return absl::OkStatus();
      }
      case 'v':
        return ReadNumber("--verbose", value, 0, kMaxVerbose, verbose);
      default:
        help = true;
        return absl::OkStatus();
    }
  };
  TAHOMA_ASSIGN_OR_RETURN(
      const std::vector<std::string> words,
      ReadOptions("neuron-monitor", arguments, ":c:h", kMonitorOptions.data(), apply));
  if (!words.empty()) return InvalidArgument("\"{}\" is no option; try --help", words.front());
  options.help = help;
  return options;
}

std::string MonitorHelp() {
  return R"(Prints what the cores of the pod's claim did, as JSON: one line each period.

  neuron-monitor [-c FILE]

  -c, --config-file FILE   the period and the metric groups, in AWS's form
  --verbose LEVEL          0 to 4; changes nothing here
  -h, --help               this text

Without a file there are all metric groups, every five seconds.
)";
}

std::string MonitorDocument(const UsagePeriod& period, const MonitorOptions& options) {
  constexpr std::string_view kUnknown = "not known of an emulated node";
  const hw::InstanceType* type = hw::FindInstanceType(period.devices.instance_type);
  const std::string_view version = type == nullptr ? "v3" : type->chip->core_version;
  const std::vector<CoreUse> uses = UsesBetween(period.before, period.after);
  const double seconds = SecondsBetween(period.before, period.after);
  json report = json::object();
  for (const std::string& metric : options.runtime_metrics) {
    if (metric == "neuroncore_counters") {
      report[metric] = CoreCountersOf(uses, seconds, version);
    } else if (metric == "memory_used") {
      report[metric] = MemoryUsedOf(period.after, seconds);
    } else if (metric == "execution_stats") {
      report[metric] = ExecutionStatsOf(uses, seconds);
    } else {
      report[metric] = Group(seconds, kUnknown);
    }
  }
  json system = json::object();
  for (const std::string& metric : options.system_metrics) {
    system[metric] = metric == "neuron_hw_counters" ? HardwareCountersOf(period.devices, seconds)
                                                    : Group(seconds, kUnknown);
  }
  const json document = {{"neuron_runtime_data",
                          {{{"pid", 0},
                            {"address", ""},
                            {"neuron_runtime_tag", "claim"},
                            {"error", ""},
                            {"report", std::move(report)}}}},
                         {"system_data", std::move(system)},
                         {"instance_info", InstanceInfoOf(period.devices)},
                         {"neuron_hardware_info", HardwareInfoOf(period.devices, type)}};
  return document.dump() + "\n";
}

}  // namespace tahoma::sim
