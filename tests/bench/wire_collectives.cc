// Collectives over the sockets of real programs: four sim-nodes of one UltraServer, a rank of
// nccom-test on each, every element checked, so that all data moves over the wire.
//
//   TAHOMA_BIN=build/release/bin build/release/bench/wire_collectives
//
// Prints the wall time and the processor time of all-reduces of 64 to 128 KiB, in which messages
// count, and of 1 to 4 MiB, in which bytes do; docs/design/0012-wire-messages.md uses it.

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "tests/integration/ultraserver_nodes.h"
#include "tests/support/child_program.h"

namespace {

using namespace tahoma;
using testing::UltraServerNodes;
constexpr std::chrono::seconds kSoon{60};

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Measure(const std::string& name, const std::vector<std::string>& words) {
  const double before = ProcessorSeconds();
  double wall = 0;
  {
    UltraServerNodes nodes;
    std::vector<std::string> tokens;
    for (int node = 0; node < UltraServerNodes::kCount; ++node) {
      TAHOMA_CHECK(nodes[node].WaitUntil(
          [&] { return std::filesystem::exists(nodes.Path("ports", node)); }, kSoon));
      tokens.push_back(nodes.Claim(node));
    }
    std::vector<std::string> command = {testing::Bin("nccom-test"), "allr", "-d", "fp32", "-c"};
    command.insert(command.end(), words.begin(), words.end());
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<testing::ChildProgram>> ranks;
    for (int node = 0; node < UltraServerNodes::kCount; ++node) {
      ranks.push_back(nodes.RunRank(node, tokens[static_cast<std::size_t>(node)], "job", command));
    }
    for (const auto& rank : ranks) TAHOMA_CHECK(rank->Wait() == 0);
    wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    for (int node = 0; node < UltraServerNodes::kCount; ++node) {
      nodes[node].Kill(SIGTERM);
      (void)nodes[node].Wait();
    }
  }
  std::cout << fmt::format("{}\t{:.3f}\t{:.3f}\n", name, wall, ProcessorSeconds() - before)
            << std::flush;
}

}  // namespace

int main() {
  Measure("small", {"-b", "64K", "-e", "128K", "-i", "1K", "-n", "1"});
  Measure("large", {"-b", "1M", "-e", "4M", "-i", "1M", "-n", "1"});
}
