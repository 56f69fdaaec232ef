#include "sim-node/emulator/collective/plan/link_loads.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/schedule/message_routes.h"

namespace tahoma::sim {
namespace {

// The bytes that a step puts on links at one place.
using StepBytes = std::vector<std::pair<LinkId, std::uint64_t>>;

// The time with something on a link, of intervals in the order of their begins: those of scheduled
// steps overlap.
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
    return send.mesh == 0 && Fabric::DomainOf(send.from) == domain &&
           Fabric::DomainOf(send.to) == domain;
  });
  return only ? std::optional(domain) : std::nullopt;
}

// Copies at each place, counted with their parts.
std::map<int, std::uint64_t> PlacesOf(const ScheduledStep& scheduled) {
  std::map<int, std::uint64_t> places;
  for (const Copy& copy : scheduled.copies) places[copy.chips] += scheduled.parts.size();
  return places;
}

bool IsMeshed(const Step& step) {
  return std::ranges::any_of(step, [](const Send& send) { return send.mesh != 0; });
}

// The domains of a mesh in one direction, and those in the other.
using MeshSide = std::tuple<const MeshDomains*, const MeshDomains*, NicDirection>;

// Finds topology domains on whose links the same scheduled steps put the same bytes: one of them is
// then counted for all.
class DomainKinds {
 public:
  DomainKinds(const std::vector<const Plan*>& plans, const Fabric& fabric)
      : roles_(static_cast<std::size_t>(fabric.domain_count())) {
    for (const Plan* plan : plans) {
      for (const ScheduledStep& scheduled : plan->schedule.scheduled) {
        AddRoles(plan->schedule, scheduled);
      }
    }
    const bool damaged = fabric.efa().damaged();
    std::map<std::vector<Role>, std::vector<int>> kinds;
    for (int domain = 0; domain < fabric.domain_count(); ++domain) {
      std::vector<int>& first = kinds[roles_[static_cast<std::size_t>(domain)]];
      const auto like = std::ranges::find_if(first, [&](int one) {
        return !by_itself_.contains(domain) && !by_itself_.contains(one) &&
               fabric.Alike(domain, one) && (!damaged || AlikeNics(fabric, domain, one));
      });
      like_.push_back(like == first.end() ? domain : *like);
      if (like == first.end()) first.push_back(domain);
    }
  }

  // Returns the domain that is counted for this one.
  int LikeOf(int domain) const { return like_[static_cast<std::size_t>(domain)]; }

 private:
  // Scheduled steps that are made by the same domains in the same way.
  struct Key {
    const Schedule* schedule = nullptr;
    int domain = 0;  // in which the step is written
    std::optional<MeshSide> side;
    torus::ChipMask through = 0;
    std::vector<std::pair<int, std::uint64_t>> places;  // copies by chips
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Role = std::pair<std::size_t, std::uint64_t>;  // number of the key, what is done

  static bool AlikeNics(const Fabric& fabric, int domain, int other) {
    const EfaNetwork& network = fabric.efa();
    for (int chip = 0; chip < fabric.domain(domain).torus().chip_count(); ++chip) {
      for (const NicDirection direction : {NicDirection::kOut, NicDirection::kIn}) {
        if (network.permille(network.NicOf({domain, chip}, direction)) !=
            network.permille(network.NicOf({other, chip}, direction))) {
          return false;
        }
      }
    }
    return true;
  }

  void AddRoles(const Schedule& schedule, const ScheduledStep& scheduled) {
    const Step& step = schedule.steps[scheduled.step];
    if (step.empty()) return;
    if (IsMeshed(step)) return AddSides(schedule, step);
    Key key{.schedule = &schedule,
            .domain = Fabric::DomainOf(step[0].from),
            .side = {},
            .through = scheduled.through,
            .places = {}};
    bool whole = OnlyDomainOf(step).has_value();
    for (const auto& [chips, count] : PlacesOf(scheduled)) {
      key.places.emplace_back(chips, count / scheduled.parts.size());
      whole = whole && chips % Fabric::kChipsPerDomain == 0;
    }
    if (!whole) {
      ForEachSendOf(step, key.places, [&](int from, int to) { by_itself_.insert({from, to}); });
      return;
    }
    const auto [number, added] = numbers_.try_emplace(key, numbers_.size());
    if (!added) return;
    for (const auto& [chips, count] : key.places) {
      RolesOf(key.domain + chips / Fabric::kChipsPerDomain).emplace_back(number->second, count);
    }
  }

  // All domains of a side of a mesh do the same.
  void AddSides(const Schedule& schedule, const Step& step) {
    for (const Send& send : step) {
      if (send.mesh == 0) {
        by_itself_.insert({Fabric::DomainOf(send.from), Fabric::DomainOf(send.to)});
        continue;
      }
      const DomainMesh& mesh = schedule.MeshOf(send);
      AddSide({mesh.senders.get(), mesh.receivers.get(), NicDirection::kOut});
      AddSide({mesh.receivers.get(), mesh.senders.get(), NicDirection::kIn});
    }
  }

  void AddSide(const MeshSide& side) {
    const Key key{.schedule = nullptr, .domain = 0, .side = side, .through = 0, .places = {}};
    const auto [number, added] = numbers_.try_emplace(key, numbers_.size());
    if (!added) return;
    const auto& [domains, others, direction] = side;
    std::map<std::uint64_t, std::uint64_t> among;
    std::set<int> both;
    for (const MeshDomain& one : *others) {
      ++among[one.among];
      both.insert(one.domain);
    }
    for (const MeshDomain& one : *domains) {
      const std::uint64_t itself = both.contains(one.domain) ? 1 : 0;
      RolesOf(one.domain).emplace_back(number->second, 2 * among[one.among] + itself);
    }
  }

  template <typename Visit>
  static void ForEachSendOf(const Step& step,
                            const std::vector<std::pair<int, std::uint64_t>>& places,
                            const Visit& visit) {
    for (const auto& place : places) {
      for (const Send& send : step) {
        visit(Fabric::DomainOf(torus::ChipIndex(send.from.value() + place.first)),
              Fabric::DomainOf(torus::ChipIndex(send.to.value() + place.first)));
      }
    }
  }

  std::vector<Role>& RolesOf(int domain) { return roles_[static_cast<std::size_t>(domain)]; }

  std::map<Key, std::size_t> numbers_;
  std::vector<std::vector<Role>> roles_;  // by domain
  std::set<int> by_itself_;               // domains
  std::vector<int> like_;                 // by domain
};

// The bytes of the steps of one schedule by link, at each place where they are made.
class PlacedSteps {
 public:
  PlacedSteps(const Schedule& schedule, const Fabric& fabric)
      : schedule_(schedule), fabric_(fabric), routes_(fabric) {
    if (schedule.scheduled.empty()) return;  // only scheduled steps have places
    for (const Step& step : schedule.steps) only_domain_.push_back(OnlyDomainOf(step));
  }

  MessageRoutes& routes() { return routes_; }

  // Returns the domain on whose links alone the step is when its chips have numbers that are higher
  // by `chips`.
  std::optional<int> DomainAt(std::uint32_t step, int chips) const {
    if (!only_domain_[step] || chips % Fabric::kChipsPerDomain != 0) return std::nullopt;
    return *only_domain_[step] + chips / Fabric::kChipsPerDomain;
  }

  // Calls visit(link, bytes) for each link that the step uses when its chips have numbers that are
  // higher by `chips`.
  template <typename Visit>
  absl::Status ForEachLink(std::uint32_t step, int chips, torus::ChipMask through,
                           const Visit& visit) {
    const std::optional<int> domain = DomainAt(step, chips);
    const int like = domain ? FirstLike(*domain) : 0;
    const int at = domain ? (like - *only_domain_[step]) * Fabric::kChipsPerDomain : chips;
    TAHOMA_ASSIGN_OR_RETURN(const StepBytes* bytes, BytesAt(step, at, through));
    const LinkId from = domain ? fabric_.LinkOf(like, 0) : 0;
    const LinkId to = domain ? fabric_.LinkOf(*domain, 0) : 0;
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
  Loads(const std::vector<const Plan*>& plans, const Fabric& fabric)
      : fabric_(fabric),
        kinds_(plans, fabric),
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
    for (int domain = 0; domain < fabric_.domain_count(); ++domain) {
      if (kinds_.LikeOf(domain) != domain) CopyLoads(kinds_.LikeOf(domain), domain);
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
    if (IsMeshed(plan.schedule.steps[scheduled.step])) {
      return AddMeshes(plan.schedule, scheduled, times);
    }
    for (const auto& place : PlacesOf(scheduled)) {
      const std::uint64_t count = place.second;
      const std::optional<int> domain = placed.DomainAt(scheduled.step, place.first);
      if (domain && kinds_.LikeOf(*domain) != *domain) continue;
      TAHOMA_RETURN_IF_ERROR(placed.ForEachLink(
          scheduled.step, place.first, scheduled.through, [&](LinkId link, std::uint64_t bytes) {
            AddTo(link, bytes * count, times.departure, times.end);
          }));
    }
    return absl::OkStatus();
  }

  void AddTo(LinkId link, std::uint64_t bytes, VirtualTime begin, VirtualTime end) {
    if (bytes == 0) return;
    bytes_[link] += bytes;
    busy_[link].Add(begin, end);
  }

  // Sends of the step that are in no mesh must be in none at all: such steps are all of meshes.
  absl::Status AddMeshes(const Schedule& schedule, const ScheduledStep& scheduled,
                         const StepTimes& times) {
    std::map<Sides, std::uint64_t> between;  // from each domain to each other
    for (const auto& [chips, count] : PlacesOf(scheduled)) {
      for (const Send& send : schedule.steps[scheduled.step]) {
        TAHOMA_CHECK(send.mesh != 0);
        const DomainMesh& mesh = schedule.MeshOf(send);
        const Sides sides(mesh.senders.get(), mesh.receivers.get());
        between[sides] += send.bytes * count;
        const int from = Fabric::LocalOf(send.from).value() + chips;
        const int to = Fabric::LocalOf(send.to).value() + chips;
        TAHOMA_RETURN_IF_ERROR(AddNics(NicDirection::kOut, from,
                                       OthersOf(*sides.first, *sides.second), send.bytes * count,
                                       times));
        TAHOMA_RETURN_IF_ERROR(AddNics(NicDirection::kIn, to, OthersOf(*sides.second, *sides.first),
                                       send.bytes * count, times));
      }
    }
    for (const auto& [sides, bytes] : between) {
      for (const Crossing& crossing : CrossingsOf(sides)) {
        AddTo(crossing.uplink, bytes * crossing.pairs, times.departure, times.end);
      }
    }
    return absl::OkStatus();
  }

  // The domains that are counted for themselves, and with how many others each has messages.
  using Others = std::vector<std::pair<int, std::uint64_t>>;
  const Others& OthersOf(const MeshDomains& domains, const MeshDomains& with) {
    const auto [entry, added] = others_.try_emplace({&domains, &with});
    if (!added) return entry->second;
    std::map<std::uint64_t, std::set<int>> among;
    for (const MeshDomain& one : with) among[one.among].insert(one.domain);
    for (const MeshDomain& one : domains) {
      const auto others = among.find(one.among);
      if (kinds_.LikeOf(one.domain) != one.domain || others == among.end()) continue;
      const std::uint64_t itself = others->second.contains(one.domain) ? 1 : 0;
      const std::uint64_t count = others->second.size() - itself;
      if (count > 0) entry->second.emplace_back(one.domain, count);
    }
    return entry->second;
  }

  // The NIC of the chip in each of the domains carries so much for each of the others.
  absl::Status AddNics(NicDirection direction, int chip, const Others& domains, std::uint64_t bytes,
                       const StepTimes& times) {
    for (const auto& [domain, others] : domains) {
      const LinkId nic = fabric_.NicOf(Fabric::ChipOf(domain, chip), direction);
      if (fabric_.capacity(nic) == 0) {
        return FailedPrecondition("no EFA route: {} is down", fabric_.Name(nic));
      }
      AddTo(nic, bytes * others, times.departure, times.end);
    }
    return absl::OkStatus();
  }

  // An uplink, and how many pairs of a sender and a receiver it is between.
  struct Crossing {
    LinkId uplink = 0;
    std::uint64_t pairs = 0;
  };
  using Sides = std::pair<const MeshDomains*, const MeshDomains*>;  // senders, receivers
  const std::vector<Crossing>& CrossingsOf(const Sides& sides) {
    const auto [entry, added] = crossings_.try_emplace(sides);
    if (!added) return entry->second;
    const auto& [senders, receivers] = sides;
    struct Below {
      int domain = 0;
      std::map<std::uint64_t, std::uint64_t> senders;  // by those among which they are
      std::map<std::uint64_t, std::uint64_t> receivers;
    };
    Below all;
    for (const MeshDomain& one : *senders) ++all.senders[one.among];
    for (const MeshDomain& one : *receivers) ++all.receivers[one.among];
    for (int layer = 1; layer <= static_cast<int>(kNetworkLayers); ++layer) {
      std::map<LinkId, Below> nodes;
      const auto node = [&](int domain) -> Below& {
        Below& below = nodes[fabric_.UplinkOf(domain, layer, NicDirection::kOut)];
        below.domain = domain;
        return below;
      };
      for (const MeshDomain& one : *senders) ++node(one.domain).senders[one.among];
      for (const MeshDomain& one : *receivers) ++node(one.domain).receivers[one.among];
      for (auto& [up, below] : nodes) {
        const LinkId down = fabric_.UplinkOf(below.domain, layer, NicDirection::kIn);
        std::uint64_t pairs_up = 0;
        for (const auto& [among, count] : below.senders) {
          pairs_up += count * (all.receivers[among] - below.receivers[among]);
        }
        std::uint64_t pairs_down = 0;
        for (const auto& [among, count] : below.receivers) {
          pairs_down += count * (all.senders[among] - below.senders[among]);
        }
        entry->second.push_back({up, pairs_up});
        entry->second.push_back({down, pairs_down});
      }
    }
    return entry->second;
  }

  void CopyLoads(int from, int to) {
    const auto copy = [this](LinkId source, LinkId target) {
      bytes_[target] = bytes_[source];
      busy_[target] = busy_[source];
    };
    for (LinkId link = 0; link < fabric_.domain(from).id_count(); ++link) {
      copy(fabric_.LinkOf(from, link), fabric_.LinkOf(to, link));
    }
    if (fabric_.efa().id_count() == 0) return;
    for (int chip = 0; chip < fabric_.domain(from).torus().chip_count(); ++chip) {
      for (const NicDirection direction : {NicDirection::kOut, NicDirection::kIn}) {
        copy(fabric_.NicOf(Fabric::ChipOf(from, chip), direction),
             fabric_.NicOf(Fabric::ChipOf(to, chip), direction));
      }
    }
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
  const DomainKinds kinds_;
  std::map<Sides, std::vector<Crossing>> crossings_;
  std::map<Sides, Others> others_;    // of the first with the second
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
  Loads loads(plans, fabric);
  TAHOMA_RETURN_IF_ERROR(loads.Add(plans));
  return loads.Take();
}

}  // namespace tahoma::sim
