// The program neuron-top: its environment, command line, waiting and terminal; the rest is
// sim-node/workload.

#include <unistd.h>

#include <chrono>

#include "sim-node/workload/app/each_period.h"
#include "sim-node/workload/app/pod_main.h"
#include "sim-node/workload/neuron_top.h"

int main(int argc, char** argv) {
  using namespace tahoma;
  return sim::PodMain(
      "neuron-top", argc, argv, sim::ParseTopArguments, sim::TopHelp,
      [](const sim::TopOptions& options, const sim::PodEnvironment& pod) {
        constexpr std::string_view kClear = "\x1b[H\x1b[2J";
        const bool once = options.once || isatty(STDOUT_FILENO) == 0;
        return sim::EachPeriod(pod, std::chrono::seconds(1), [&](const sim::UsagePeriod& usage) {
          std::cout << (once ? "" : kClear) << sim::TopTable(usage) << std::flush;
          return !once && std::cout.good();
        });
      });
}
