// The metrics of the process: the text of the kernel, and plausible values of this very process.

#include "lib/rest/process_metrics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace tahoma::rest {
namespace {

std::string StatOf(const std::string& name) {
  return "7 (" + name +
         ") S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 9 0 4242 1048576 300 18446744073709 1 "
         "1 0 0 0 0 0 4096\n";
}

TEST(ProcessStatTest, ReadsTheFieldsAfterAnyName) {
  const ProcessStat wanted{
      .cpu_ticks = 200, .start_ticks = 4242, .virtual_bytes = 1048576, .resident_pages = 300};
  for (const char* name : {"controller", "a b", "x) R 1 2", "()", ""}) {
    EXPECT_EQ(ParseProcessStat(StatOf(name)), wanted) << name;
  }
}

TEST(ProcessStatTest, RefusesATextOfAnotherForm) {
  for (const char* text : {"", "7 (a) S", "7 (a) S 1 2 3", "7 (a) S 1 7 7 0 -1 x 100"}) {
    EXPECT_EQ(ParseProcessStat(text), std::nullopt) << text;
  }
}

std::map<std::string, double> ValuesOf(const Metrics& metrics) {
  std::map<std::string, double> values;
  std::istringstream in(metrics.Text());
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    const std::size_t space = line.rfind(' ');
    values[line.substr(0, space)] = std::stod(line.substr(space + 1));
  }
  return values;
}

TEST(ProcessMetricsTest, GrowWithTheProcess) {
  Metrics metrics;
  AddProcessMetrics(metrics, "probe");
  std::map<std::string, double> before = ValuesOf(metrics);
  EXPECT_EQ(before.size(), 7U);
  constexpr std::size_t kBytes = 64U << 20U;
  std::vector<char> memory(kBytes, 'x');
  const std::ifstream file("/proc/self/stat");
  std::map<std::string, double> after = ValuesOf(metrics);
  EXPECT_GE(after["process_resident_memory_bytes"],
            before["process_resident_memory_bytes"] + kBytes / 2.0);
  EXPECT_GE(after["process_virtual_memory_bytes"], after["process_resident_memory_bytes"]);
  EXPECT_EQ(after["process_open_fds"], before["process_open_fds"] + 1);
  EXPECT_GT(after["process_max_fds"], after["process_open_fds"]);
  EXPECT_GE(after["process_cpu_seconds_total"], before["process_cpu_seconds_total"]);
  EXPECT_EQ(after["process_start_time_seconds"], before["process_start_time_seconds"]);
  EXPECT_GT(after["process_start_time_seconds"], 1.6e9);
  EXPECT_EQ(memory.back(), 'x');
}

}  // namespace
}  // namespace tahoma::rest
