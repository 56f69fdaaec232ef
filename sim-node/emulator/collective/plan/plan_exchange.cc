#include "sim-node/emulator/collective/plan/plan_exchange.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/cuts.h"
#include "lib/collective/route_search.h"
#include "sim-node/emulator/collective/algorithms/moves.h"
#include "sim-node/emulator/collective/plan/bound.h"

namespace tahoma::sim {
namespace {

using collective::Cut;
using torus::ChipIndex;
using torus::ChipMask;

// Returns the worst cut of an exchange of one block per pair of ranks. Route search stops there: no
// set of routes is faster, or needs to be.
Cut GoalOf(const Question& asked, const Exchange& exchange, const collective::DomainLinks& links) {
  const ChipMask through = asked.set.through() & links.chips();
  if (asked.request.operation == Operation::kAllToAll) {
    Cut goal = collective::WorstExchangeCut(links, asked.set.mask(), through);
    const auto fewest = static_cast<std::uint64_t>(
        std::ranges::min_element(asked.members, {}, &Member::ranks)->ranks);
    goal.blocks *= fewest * fewest;
    return goal;
  }
  std::vector<std::vector<std::uint8_t>> orders;
  for (const std::vector<ChipIndex>& chips : exchange.orders) {
    std::vector<std::uint8_t>& order = orders.emplace_back();
    for (const ChipIndex chip : chips) order.push_back(static_cast<std::uint8_t>(chip.value()));
  }
  return collective::ShiftGoal(links, orders, through);
}

// Ranks on one chip copy beside the messages. Each part has a command of its own.
StepWork WorkInParts(const Question& asked, const Exchange& exchange, std::uint32_t parts) {
  return WorkOf(exchange.step, {.commands = static_cast<int>(parts)}, asked.options.costs,
                asked.links.timing());
}

Plan PlanOfOneStep(const Question& asked, const Exchange& exchange, std::uint32_t parts) {
  Plan plan{.algorithm = Algorithm::kMesh, .schedule = {}, .times = {}};
  plan.schedule.through = asked.set.through();
  plan.schedule.work.push_back(WorkInParts(asked, exchange, parts));
  plan.sources = exchange.sources;
  return plan;
}

// Every message whole, on one route.
absl::StatusOr<Plan> DirectPlan(const Question& asked, const Exchange& exchange) {
  Plan plan = PlanOfOneStep(asked, exchange, 1);
  plan.schedule.steps.push_back(exchange.step);
  return Timed(std::move(plan), asked.links);
}

// An exchange whose messages go whole on one route each, or in parts on routes of their own.
class RoutedExchange {
 public:
  RoutedExchange(const Question& asked, const Exchange& exchange)
      : asked_(asked),
        exchange_(exchange),
        block_(exchange.step[0].bytes),
        through_(asked.set.through()),
        links_(DomainLinksOf(asked.links, asked.options.costs)),
        goal_(GoalOf(asked, exchange, links_)),
        demands_(DemandsOf(exchange.step)) {}

  absl::StatusOr<Plan> Fastest() const {
    TAHOMA_ASSIGN_OR_RETURN(const VirtualDuration direct, DirectTime());
    if (collective::IsClose(direct, LeastTime(1))) return DirectPlan(asked_, exchange_);
    const auto [routes, time] = BestRoutes();
    TAHOMA_ASSIGN_OR_RETURN(Plan split, Timed(Split(routes), asked_.links));
    if (collective::IsClose(time, direct)) {  // the times of a formula say no more
      TAHOMA_ASSIGN_OR_RETURN(Plan whole, DirectPlan(asked_, exchange_));
      if (whole.times.end <= split.times.end) return whole;
    }
    return split;
  }

 private:
  // The time of messages on their routes, by the load of the fullest link.
  absl::StatusOr<VirtualDuration> DirectTime() const {
    std::vector<std::vector<collective::Arc>> routes;
    for (const collective::Demand& demand : demands_) {
      TAHOMA_ASSIGN_OR_RETURN(
          const std::vector<LinkId> route,
          asked_.links.FindRoute(ChipIndex(demand.from), ChipIndex(demand.to), through_));
      routes.emplace_back(route.begin(), route.end());
    }
    return TimeOf(collective::Routes(links_, demands_, 1, std::move(routes)));
  }

  std::pair<collective::Routes, VirtualDuration> BestRoutes() const {
    std::optional<collective::Routes> routes;
    std::optional<collective::Routes> best;
    VirtualDuration least = VirtualDuration::max();
    for (const std::uint32_t parts : collective::kPartsOfMessage) {
      const bool many = demands_.size() * parts > collective::kPartsMax ||
                        parts > block_ / Size(asked_.request.type);
      if (parts > 1 && (many || least <= LeastTime(parts))) continue;
      const bool finer = routes.has_value() && parts % routes->parts() == 0;
      routes = collective::FindRoutes(
          links_, through_ & links_.chips(), demands_,
          {.parts = parts, .goal = goal_, .begin = finer ? &*routes : nullptr});
      TAHOMA_CHECK(routes.has_value());  // as there are routes
      const VirtualDuration time = TimeOf(*routes);
      if (time < least) {
        least = time;
        best = routes;
      }
      if (collective::IsClose(least, LeastTime(parts))) break;
    }
    return {*std::move(best), least};
  }

  Plan Split(const collective::Routes& routes) const {
    Plan plan = PlanOfOneStep(asked_, exchange_, routes.parts());
    plan.schedule.steps.push_back(SplitOver(exchange_.step, demands_, routes,
                                            Size(asked_.request.type), plan.schedule.routes));
    return plan;
  }

  // Returns the time when the fullest link carries that load.
  VirtualDuration TimeFor(const Cut& fullest, std::uint32_t parts, std::size_t hops) const {
    const LinkTiming& timing = asked_.links.timing();
    const StepWork work = WorkInParts(asked_, exchange_, parts);
    const VirtualDuration flight =
        collective::TimeAtMost(static_cast<Wide>(block_) * fullest.blocks, 1, fullest.rate) +
        timing.hop * static_cast<VirtualDuration::rep>(hops);
    return timing.step + work.start + std::max(flight, work.memory);
  }
  VirtualDuration LeastTime(std::uint32_t parts) const { return TimeFor(goal_, parts, 1); }
  VirtualDuration TimeOf(const collective::Routes& routes) const {
    Cut fullest = routes.fullest();
    fullest.rate *= routes.parts();
    return TimeFor(fullest, routes.parts(), routes.longest());
  }

  const Question& asked_;
  const Exchange& exchange_;
  const std::uint64_t block_;
  const ChipMask through_;
  const collective::DomainLinks links_;
  const Cut goal_;
  const std::vector<collective::Demand> demands_;
};

}  // namespace

absl::StatusOr<Plan> PlanExchange(const Question& asked) {
  TAHOMA_ASSIGN_OR_RETURN(const Exchange exchange,
                          ExchangeOf(asked.request, asked.members, asked.set, asked.links));
  const bool healthy_box =
      asked.set.box() != nullptr && !asked.links.IsDamaged(asked.set.through());
  // Listed blocks differ in size: equal parts of them would not end together.
  const bool direct = healthy_box || asked.set.size() == 1 || asked.options.one_route ||
                      asked.request.blocks != nullptr || asked.options.mode == PlanMode::kAws;
  return direct ? DirectPlan(asked, exchange) : RoutedExchange(asked, exchange).Fastest();
}

}  // namespace tahoma::sim
