#include "sim-node/collective/plan/link_loads.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "lib/base/status.h"
#include "sim-node/collective/schedule/message_routes.h"

namespace tahoma::sim {
namespace {

// The bytes that a step puts on links at one place.
using StepBytes = std::vector<std::pair<LinkId, std::uint64_t>>;

// The time with something on a link, of intervals in the order of their begins: those of scheduled
// steps and of stripes overlap.
struct Busy {
  VirtualDuration length{};
  VirtualTime covered{};

  void Add(VirtualTime begin, VirtualTime end) {
    begin = std::max(begin, covered);
    if (end <= begin) return;
    length += end - begin;
    covered = end;
  }
};

// The domain in which all messages of the step are; nullopt for messages between domains.
std::optional<int> OnlyDomainOf(const Step& step) {
  if (step.empty()) return std::nullopt;
  const int domain = Fabric::DomainOf(step[0].from);
  const bool only = std::ranges::all_of(step, [&](const Send& send) {
    return Fabric::DomainOf(send.from) == domain && Fabric::DomainOf(send.to) == domain;
  });
  return only ? std::optional(domain) : std::nullopt;
}

// The bytes of the steps of one schedule by link, at each place where they are made.
class PlacedSteps {
 public:
  PlacedSteps(const Schedule& schedule, const Fabric& fabric)
      : schedule_(schedule), fabric_(fabric), routes_(schedule, fabric) {
    if (schedule.scheduled.empty()) return;  // only scheduled steps have places
    for (const Step& step : schedule.steps) only_domain_.push_back(OnlyDomainOf(step));
  }

  MessageRoutes& routes() { return routes_; }

  // Calls visit(link, bytes) for each link that the step uses when its chips have numbers that are
  // higher by `chips`.
  template <typename Visit>
  absl::Status ForEachLink(std::uint32_t step, int chips, torus::ChipMask through,
                           const Visit& visit) {
    const std::optional<int> only = only_domain_[step];
    const bool moved_whole = only && chips % Fabric::kChipsPerDomain == 0;
    const int domain = moved_whole ? *only + chips / Fabric::kChipsPerDomain : 0;
    const int like = moved_whole ? FirstLike(domain) : 0;
    const int at = moved_whole ? (like - *only) * Fabric::kChipsPerDomain : chips;
    TAHOMA_ASSIGN_OR_RETURN(const StepBytes* bytes, BytesAt(step, at, through));
    const LinkId from = moved_whole ? fabric_.LinkOf(like, 0) : 0;
    const LinkId to = moved_whole ? fabric_.LinkOf(domain, 0) : 0;
    for (const auto& [link, count] : *bytes) visit(link - from + to, count);
    return absl::OkStatus();
  }

 private:
  // Returns the first domain whose torus and links are as this one's.
  int FirstLike(int domain) {
    const auto [entry, added] = like_.try_emplace(domain, domain);
    if (!added) return entry->second;
    for (const int kind : kinds_) {
      if (fabric_.Alike(domain, kind)) return entry->second = kind;
    }
    kinds_.push_back(domain);
    return domain;
  }

  absl::StatusOr<const StepBytes*> BytesAt(std::uint32_t step, int chips, torus::ChipMask through) {
    const auto [entry, added] = bytes_.try_emplace({step, chips, through});
    if (!added) return &entry->second;
    std::map<LinkId, std::uint64_t> sum;
    for (Send send : schedule_.steps[step]) {
      send.from = torus::ChipIndex(send.from.value() + chips);
      send.to = torus::ChipIndex(send.to.value() + chips);
      TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkId>* route, routes_.Of(send, through));
      for (const LinkId link : *route) sum[link] += send.bytes;
    }
    entry->second.assign(sum.begin(), sum.end());
    return &entry->second;
  }

  const Schedule& schedule_;
  const Fabric& fabric_;
  MessageRoutes routes_;
  std::vector<std::optional<int>> only_domain_;  // of each step
  std::vector<int> kinds_;                       // a domain of each kind
  std::map<int, int> like_;
  std::map<std::tuple<std::uint32_t, int, torus::ChipMask>, StepBytes> bytes_;
};

// Adds up what plans put on the links of one fabric.
class Loads {
 public:
  explicit Loads(const Fabric& fabric)
      : fabric_(fabric),
        bytes_(fabric.id_count()),
        last_(fabric.id_count()),
        busy_(fabric.id_count()) {}

  absl::Status Add(const std::vector<const Plan*>& plans) {
    // All scheduled steps in the order in which they depart.
    std::vector<std::pair<std::size_t, std::size_t>> order;  // plan, step
    std::vector<PlacedSteps> placed;
    for (std::size_t plan = 0; plan < plans.size(); ++plan) {
      placed.emplace_back(plans[plan]->schedule, fabric_);
      for (std::size_t index = 0; index < plans[plan]->schedule.scheduled_count(); ++index) {
        order.emplace_back(plan, index);
      }
    }
    std::ranges::stable_sort(order, {}, [&](const auto& one) {
      return plans[one.first]->times.steps[one.second].departure;
    });
    for (const auto& [plan, index] : order) {
      TAHOMA_RETURN_IF_ERROR(plans[plan]->schedule.scheduled.empty()
                                 ? AddStep(*plans[plan], index, placed[plan].routes())
                                 : AddScheduled(*plans[plan], index, placed[plan]));
    }
    return absl::OkStatus();
  }

  std::vector<LinkLoad> Take() const {
    std::vector<LinkLoad> loads;
    for (LinkId link = 0; link < bytes_.size(); ++link) {
      if (bytes_[link] == 0) continue;
      loads.push_back({.link = link, .bytes = bytes_[link], .busy = busy_[link].length});
    }
    return loads;
  }

 private:
  absl::Status AddScheduled(const Plan& plan, std::size_t index, PlacedSteps& placed) {
    const ScheduledStep& scheduled = plan.schedule.scheduled[index];
    const StepTimes& times = plan.times.steps[index];
    std::map<int, std::uint64_t> copies;  // by place
    for (const Copy& copy : scheduled.copies) ++copies[copy.chips];
    for (const auto& place : copies) {
      const std::uint64_t count = place.second;
      TAHOMA_RETURN_IF_ERROR(placed.ForEachLink(scheduled.step, place.first, scheduled.through,
                                                [&](LinkId link, std::uint64_t bytes) {
                                                  bytes_[link] += bytes * count;
                                                  busy_[link].Add(times.departure, times.end);
                                                }));
    }
    return absl::OkStatus();
  }

  // Each message of a step by itself has a time of arrival.
  absl::Status AddStep(const Plan& plan, std::size_t index, MessageRoutes& routes) {
    const StepTimes& times = plan.times.steps[index];
    std::vector<LinkId> used;
    std::size_t place = 0;
    for (const Send& send : plan.schedule.steps[index]) {
      const VirtualTime arrival = times.ArrivalOf(place++);
      TAHOMA_ASSIGN_OR_RETURN(const std::vector<LinkId>* route,
                              routes.Of(send, plan.schedule.through));
      for (const LinkId link : *route) {
        bytes_[link] += send.bytes;
        if (last_[link] == VirtualTime{}) used.push_back(link);
        last_[link] = std::max(last_[link], arrival);
      }
    }
    for (const LinkId link : used) {
      busy_[link].Add(times.departure, std::exchange(last_[link], VirtualTime{}));
    }
    return absl::OkStatus();
  }

  const Fabric& fabric_;
  std::vector<std::uint64_t> bytes_;  // by link
  std::vector<VirtualTime> last_;     // arrival in the step; 0 = none
  std::vector<Busy> busy_;
};

}  // namespace

absl::StatusOr<std::vector<LinkLoad>> LoadsOf(const Plan& plan, const Fabric& fabric) {
  return LoadsOf(std::vector<const Plan*>{&plan}, fabric);
}

absl::StatusOr<std::vector<LinkLoad>> LoadsOf(const std::vector<const Plan*>& plans,
                                              const Fabric& fabric) {
  Loads loads(fabric);
  TAHOMA_RETURN_IF_ERROR(loads.Add(plans));
  return loads.Take();
}

}  // namespace tahoma::sim
