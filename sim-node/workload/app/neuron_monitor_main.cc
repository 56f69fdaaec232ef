// The program neuron-monitor: its environment, command line and waiting; the rest is
// sim-node/workload.

#include "sim-node/workload/app/each_period.h"
#include "sim-node/workload/app/pod_main.h"
#include "sim-node/workload/neuron_monitor.h"

int main(int argc, char** argv) {
  using namespace tahoma;
  return sim::PodMain("neuron-monitor", argc, argv, sim::ParseMonitorArguments, sim::MonitorHelp,
                      [](const sim::MonitorOptions& options, const sim::PodEnvironment& pod) {
                        return sim::EachPeriod(
                            pod, options.period, [&](const sim::UsagePeriod& usage) {
                              std::cout << sim::MonitorDocument(usage, options) << std::flush;
                              return std::cout.good();
                            });
                      });
}
