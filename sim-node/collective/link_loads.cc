#include "sim-node/collective/link_loads.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/status.h"

namespace tahoma::sim {

absl::StatusOr<std::vector<LinkLoad>> LoadsOf(const Plan& plan, const TorusLinks& links) {
  std::map<std::pair<torus::ChipIndex, torus::ChipIndex>, std::vector<LinkId>> routes;
  std::vector<LinkLoad> loads(links.id_count());
  std::vector<VirtualTime> last(links.id_count());  // arrival in the step; 0 = none
  for (std::size_t step = 0; step < plan.schedule.steps.size(); ++step) {
    const Step& sends = plan.schedule.steps[step];
    const StepTimes& times = plan.times.steps[step];
    std::vector<LinkId> used;
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const auto [route, added] = routes.try_emplace({sends[i].from, sends[i].to});
      if (added) {
        TAHOMA_ASSIGN_OR_RETURN(route->second,
                                links.FindRoute(sends[i].from, sends[i].to, plan.schedule.through));
      }
      for (const LinkId link : route->second) {
        loads[link].bytes += sends[i].bytes;
        if (last[link] == VirtualTime{}) used.push_back(link);
        last[link] = std::max(last[link], times.arrivals[i]);
      }
    }
    for (const LinkId link : used) {
      loads[link].busy += last[link] - times.departure;
      last[link] = VirtualTime{};
    }
  }
  for (LinkId link = 0; link < links.id_count(); ++link) loads[link].link = link;
  std::erase_if(loads, [](const LinkLoad& load) { return load.bytes == 0; });
  return loads;
}

}  // namespace tahoma::sim
