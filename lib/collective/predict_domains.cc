#include "lib/collective/predict_domains.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "lib/base/status.h"
#include "lib/collective/domain_links.h"

namespace tahoma::collective {
namespace {

// The time of the slowest topology domain.
class Inside {
 public:
  explicit Inside(std::span<const DomainPart> domains) {
    absl::flat_hash_set<torus::ChipMask> healthy;
    for (std::size_t i = 0; i < domains.size(); ++i) {
      const DomainPart& domain = domains[i];
      const bool whole = domain.faults.dead == 0 && domain.faults.links.empty();
      if (whole && !healthy.insert(domain.chips).second) continue;
      distinct_.push_back({.number = i, .domain = &domain});
    }
  }

  absl::StatusOr<Picoseconds> Time(Operation operation, std::uint64_t bytes) const {
    Picoseconds slowest(0);
    for (const Numbered& one : distinct_) {
      const auto time = PredictCollective(one.domain->chips, one.domain->faults, operation, bytes);
      if (!time.ok()) return Annotate(time.status(), fmt::format("domain {}", one.number));
      slowest = std::max(slowest, *time);
    }
    return slowest;
  }

 private:
  struct Numbered {
    std::size_t number;
    const DomainPart* domain;
  };
  std::vector<Numbered> distinct_;
};

// A route over the network: the latency of the first byte, and then the bytes.
struct Leg {
  Picoseconds latency{};
  Picoseconds transfer{};
  Picoseconds whole() const { return latency + transfer; }
};

// The time between the topology domains, for the chip whose NIC carries most. Every domain sends to
// every other at once: of the algorithms that AWS names this one has the fewest messages, and all
// send the same bytes.
class Between {
 public:
  Between(std::uint64_t domains, std::uint64_t chips, const EfaCosts& costs)
      : domains_(domains), chips_(chips), costs_(costs) {}

  // Each chip has the part of a buffer that its domain gathers with it, or scatters.
  Leg Phase(std::uint64_t bytes) const {
    return {.latency = Start(domains_ - 1),
            .transfer = TimeAtMost(static_cast<Wide>(bytes) * (domains_ - 1), domains_ * chips_,
                                   costs_.rate)};
  }
  // Two phases, or a single one in which each chip sends all that it answers for to every other
  // domain.
  std::vector<Leg> Phases(std::uint64_t bytes) const {
    const Leg phase = Phase(bytes);
    return {{.latency = phase.latency * 2, .transfer = phase.transfer * 2}, Whole(bytes)};
  }
  // A message from each chip to each that gets some of its buffer in other domains.
  Leg Exchange(std::uint64_t bytes, bool all_domains) const {
    const std::uint64_t share = all_domains ? domains_ : 1;
    return {.latency = Start(all_domains ? domains_ * chips_ - 1 : 1),
            .transfer = TimeAtMost(static_cast<Wide>(bytes) * (all_domains ? domains_ - 1 : 1),
                                   share, costs_.rate)};
  }

 private:
  Picoseconds Start(std::uint64_t destinations) const {
    const auto rounds = (std::max<std::uint64_t>(destinations, 1) - 1) / kCcCores;
    return costs_.message + LinkCosts{}.command * static_cast<Picoseconds::rep>(rounds);
  }
  Leg Whole(std::uint64_t bytes) const {
    return {.latency = Start(domains_ - 1),
            .transfer = TimeAtMost(static_cast<Wide>(bytes) * (domains_ - 1), chips_, costs_.rate)};
  }

  std::uint64_t domains_;
  std::uint64_t chips_;
  const EfaCosts& costs_;
};

// The route of a buffer over both networks.
struct Stages {
  Picoseconds inside;
  std::vector<Leg> between;  // to choose from
};

absl::StatusOr<Stages> StagesOf(const Inside& inside, const Between& between, Operation operation,
                                std::uint64_t bytes) {
  Operation part = operation;
  std::vector<Leg> outside;
  switch (operation) {
    case Operation::kAllReduce:
      outside = between.Phases(bytes);
      break;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
      outside = {between.Phase(bytes)};
      break;
    case Operation::kBroadcast:  // scattered in the root's domain, gathered in all
      part = Operation::kAllReduce;
      outside = between.Phases(bytes);
      break;
    case Operation::kAllToAll:
      outside = {between.Exchange(bytes, /*all_domains=*/true)};
      break;
    case Operation::kSendReceive:
    case Operation::kPermute:
      part = Operation::kSendReceive;
      outside = {between.Exchange(bytes, /*all_domains=*/false)};
      break;
  }
  TAHOMA_ASSIGN_OR_RETURN(const Picoseconds within, inside.Time(part, bytes));
  return Stages{.inside = within, .between = outside};
}

}  // namespace

absl::StatusOr<Picoseconds> PredictOverDomains(std::span<const DomainPart> domains,
                                               Operation operation, std::uint64_t bytes,
                                               const EfaCosts& costs) {
  if (domains.empty()) return InvalidArgument("a collective needs at least one domain");
  const Inside inside(domains);
  if (domains.size() == 1) return inside.Time(operation, bytes);
  std::uint64_t fewest = kChipsMax;
  for (const DomainPart& domain : domains) {
    fewest = std::min(fewest, static_cast<std::uint64_t>(std::popcount(domain.chips)));
  }
  const Between between(domains.size(), std::max<std::uint64_t>(fewest, 1), costs);
  if (IsExchange(operation)) {  // both networks at once
    TAHOMA_ASSIGN_OR_RETURN(const Stages stages, StagesOf(inside, between, operation, bytes));
    return std::max(stages.inside, stages.between.front().whole());
  }
  std::optional<Picoseconds> best;
  Picoseconds in_one(0);  // inside, in one chunk: the first count
  for (const int count : kChunkCounts) {
    const auto chunks = static_cast<std::uint64_t>(count);
    TAHOMA_ASSIGN_OR_RETURN(const Stages stages,
                            StagesOf(inside, between, operation, (bytes + chunks - 1) / chunks));
    if (count == 1) in_one = stages.inside;
    // Two chunks are inside at a time: about half of what one needs to start up hides behind the
    // other's messages.
    const Picoseconds within = (in_one / count + stages.inside) / 2;
    for (const Leg& leg : stages.between) {
      // The time from chunk to chunk: that of the fullest link, or that of the route over EFA, on
      // which there are so many chunks.
      const Picoseconds cycle = std::max({within, leg.transfer, leg.whole() / kChunksBetween});
      const Picoseconds time = stages.inside + leg.whole() + cycle * (count - 1);
      if (!best || time < *best) best = time;
    }
  }
  return *best;
}

}  // namespace tahoma::collective
