#include "sim-node/podrunner/usage.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "sim-node/podrunner/spawner.h"

namespace tahoma::sim {
namespace {

constexpr std::chrono::seconds kWindowLeast{1};
constexpr std::chrono::seconds kWindowMost{60};
constexpr std::int64_t kMillis = 1000;

std::string TextOf(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the value of TAHOMA_CONTAINER_ID in a text of "NAME=value" with zero bytes between.
std::string ContainerIn(std::string_view environment) {
  const std::string marker = std::string(kContainerIdVariable) + "=";
  for (std::string_view rest = environment; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    if (entry.starts_with(marker)) return std::string(entry.substr(marker.size()));
  }
  return "";
}

struct ProcessStat {
  std::int64_t ticks = 0;  // of processor time, with that of children that have ended
  std::int64_t start = 0;  // in ticks since the machine's start
  std::int64_t pages = 0;
};

// Fields 14 to 17, 22 and 24 of proc_pid_stat(5). The second, in parentheses, may hold anything,
// the third is a letter, and all fields up to the 24th fit.
std::optional<ProcessStat> StatIn(const std::string& text) {
  constexpr std::size_t kFirst = 4;
  constexpr std::size_t kLast = 24;
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  rest >> state;
  std::array<std::int64_t, kLast + 1> fields{};
  for (std::size_t number = kFirst; number <= kLast; ++number) {
    if (!(rest >> fields[number])) return std::nullopt;
  }
  return ProcessStat{.ticks = fields[14] + fields[15] + fields[16] + fields[17],
                     .start = fields[22],
                     .pages = fields[24]};
}

}  // namespace

ContainerUsage::Sums ContainerUsage::Read() const {
  static const std::int64_t ticks_a_second = sysconf(_SC_CLK_TCK);
  static const std::int64_t page_bytes = sysconf(_SC_PAGESIZE);
  double up_seconds = 0;
  std::istringstream(TextOf(proc_ / "uptime")) >> up_seconds;
  const auto up_millis = static_cast<std::int64_t>(up_seconds * kMillis);
  Sums sums;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(proc_, error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string id = ContainerIn(TextOf(entry.path() / "environ"));
    if (id.empty()) continue;
    const auto stat = StatIn(TextOf(entry.path() / "stat"));
    if (!stat) continue;
    Sum& sum = sums[id];
    sum.cpu_millis += stat->ticks * kMillis / ticks_a_second;
    sum.memory_bytes += stat->pages * page_bytes;
    sum.age_millis = std::max(sum.age_millis, up_millis - stat->start * kMillis / ticks_a_second);
  }
  return sums;
}

std::map<std::string, ContainerUse> ContainerUsage::Look(MonotonicTime now) {
  constexpr double kNanoCores = 1e9;
  const MutexLock lock(mutex_);
  const auto since = now - before_at_;
  if (looked_ && since < kWindowLeast) return uses_;
  Sums sums = Read();
  const bool recent = looked_ && since <= kWindowMost;
  uses_.clear();
  for (const auto& [id, sum] : sums) {
    const auto before = before_.find(id);
    const bool known =
        recent && before != before_.end() && before->second.cpu_millis <= sum.cpu_millis;
    const std::int64_t used = sum.cpu_millis - (known ? before->second.cpu_millis : 0);
    const std::int64_t window =
        known ? std::chrono::duration_cast<std::chrono::milliseconds>(since).count()
              : sum.age_millis;
    const double cores = static_cast<double>(used) / static_cast<double>(std::max(window, kMillis));
    uses_[id] = {.nano_cores = static_cast<std::int64_t>(cores * kNanoCores),
                 .memory_bytes = sum.memory_bytes,
                 .window = std::chrono::milliseconds(std::max<std::int64_t>(window, 1))};
  }
  looked_ = true;
  before_at_ = now;
  before_ = std::move(sums);
  return uses_;
}

namespace {

Json ContainersJson(const std::map<std::string, ContainerUse>& uses, const LogFolder& pods) {
  Json containers = Json::array();
  const auto names = pods.Names();
  for (const auto& [id, use] : uses) {
    // "<pod uid>_<container>_<attempt>"; neither uids nor container names have an underscore.
    const std::size_t first = id.find('_');
    const std::size_t last = id.rfind('_');
    const auto pod = names.find(id.substr(0, first));
    if (pod == names.end() || first == last) continue;
    containers.push_back({{"namespace", pod->second.first},
                          {"pod", pod->second.second},
                          {"container", id.substr(first + 1, last - first - 1)},
                          {"cpuNanoCores", use.nano_cores},
                          {"memoryBytes", use.memory_bytes},
                          {"windowMillis", use.window.count()}});
  }
  return {{"containers", std::move(containers)}};
}

}  // namespace

void InstallUsageRoute(rest::Server& server, std::shared_ptr<const LogFolder> pods,
                       const Clock& clock) {
  server.Route("GET", "/stats/containers",
               [pods = std::move(pods), &clock,
                usage = std::make_shared<ContainerUsage>("/proc")](const rest::Request&) {
                 return rest::Response::Json(
                     200, ContainersJson(usage->Look(clock.MonotonicNow()), *pods).dump());
               });
}

}  // namespace tahoma::sim
