#include "lib/rest/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <system_error>

#include "lib/base/files.h"
#include "lib/base/version.h"

namespace tahoma::rest {
namespace {

// Places of fields after the program's name and its state (proc_pid_stat(5)).
constexpr std::size_t kUserTicks = 11;
constexpr std::size_t kSystemTicks = 12;
constexpr std::size_t kStartTicks = 19;
constexpr std::size_t kVirtualBytes = 20;
constexpr std::size_t kResidentPages = 21;
constexpr std::size_t kFields = 21;

ProcessStat ReadStat() {
  const auto text = ReadFile("/proc/self/stat");
  return text.ok() ? ParseProcessStat(*text).value_or(ProcessStat()) : ProcessStat();
}

double TicksInSeconds(std::uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Returns when the machine was started, in seconds since 1970.
double BootSeconds() {
  const auto text = ReadFile("/proc/stat");
  if (!text.ok()) return 0;
  std::istringstream words(*text);
  double seconds = 0;
  for (std::string word; words >> word;) {
    if (word == "btime" && words >> seconds) return seconds;
  }
  return 0;
}

// The descriptor with which the folder is read is not counted.
double CountOpenFiles() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return 0;
  return static_cast<double>(std::distance(begin(files), end(files)) - 1);
}

double OpenFilesMost() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  // The program's name may contain spaces and brackets; no later field does.
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string_view::npos) return std::nullopt;
  std::istringstream fields{std::string(text.substr(name_end + 2))};
  std::string state;  // a letter; all others are numbers, some below 0
  fields >> state;
  std::array<std::int64_t, kFields> numbers{};
  for (std::int64_t& number : numbers) fields >> number;
  if (!fields) return std::nullopt;
  const auto at = [&](std::size_t field) { return static_cast<std::uint64_t>(numbers[field - 1]); };
  return ProcessStat{.cpu_ticks = at(kUserTicks) + at(kSystemTicks),
                     .start_ticks = at(kStartTicks),
                     .virtual_bytes = at(kVirtualBytes),
                     .resident_pages = at(kResidentPages)};
}

void AddProcessMetrics(Metrics& metrics, const std::string& program) {
  metrics
      .AddGauge("tahoma_build_info", "Always 1; the labels are the program and its version.",
                {{"program", program}, {"version", std::string(kVersion)}})
      .Set(1);
  const double started = BootSeconds() + TicksInSeconds(ReadStat().start_ticks);
  metrics.AddGaugeCallback("process_start_time_seconds",
                           "When the process was started, in seconds since 1970.",
                           [started] { return started; });
  metrics.AddCounterCallback("process_cpu_seconds_total",
                             "Processor time of the process, in user and kernel mode.",
                             [] { return TicksInSeconds(ReadStat().cpu_ticks); });
  metrics.AddGaugeCallback("process_virtual_memory_bytes", "Virtual memory of the process.",
                           [] { return static_cast<double>(ReadStat().virtual_bytes); });
  metrics.AddGaugeCallback("process_resident_memory_bytes", "Resident memory of the process.", [] {
    return static_cast<double>(ReadStat().resident_pages) *
           static_cast<double>(sysconf(_SC_PAGESIZE));
  });
  metrics.AddGaugeCallback("process_open_fds", "Open file descriptors of the process.",
                           CountOpenFiles);
  metrics.AddGaugeCallback("process_max_fds", "How many file descriptors the process may open.",
                           OpenFilesMost);
}

}  // namespace tahoma::rest
