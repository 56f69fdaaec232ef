#include "lib/collective/predict_domains.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "lib/base/status.h"
#include "lib/collective/domain_links.h"
#include "lib/collective/masks.h"

namespace tahoma::collective {
namespace {

// The time of the slowest topology domain.
class Inside {
 public:
  explicit Inside(std::span<const DomainPart> domains) : domains_(domains.size()) {
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
    // Chunks overlap over several domains instead of stripes, but for a broadcast in the root's.
    const bool chunked = domains_ > 1 && operation != Operation::kBroadcast;
    const LinkCosts costs = chunked ? LinkCosts{.stripes = 1} : LinkCosts{};
    for (const Numbered& one : distinct_) {
      const auto time =
          PredictCollective(one.domain->chips, one.domain->faults, operation, bytes, costs);
      if (!time.ok()) return Annotate(time.status(), fmt::format("domain {}", one.number));
      slowest = std::max(slowest, *time);
    }
    return slowest;
  }

  // Each link of all domains but the first as it is where it is slowest.
  DomainLinks SlowestLinks() const {
    DomainLinks slowest = LinksWith({});
    for (const Numbered& one : distinct_) {
      if (one.number != 0) slowest = slowest.SlowerOf(LinksWith(one.domain->faults));
    }
    return slowest;
  }

 private:
  struct Numbered {
    std::size_t number;
    const DomainPart* domain;
  };
  const std::size_t domains_;
  std::vector<Numbered> distinct_;
};

// A route over the network: the latency of the first byte, and then the bytes, in one or two steps.
struct Leg {
  Picoseconds latency{};
  Picoseconds transfer{};  // of all steps
  Picoseconds busy{};      // of the fullest NIC in one direction
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
    return OneStep(
        TimeAtMost(static_cast<Wide>(bytes) * (domains_ - 1), domains_ * chips_, costs_.rate));
  }
  // Two phases, or a single one in which each chip sends all that it answers for to every other
  // domain.
  std::vector<Leg> Phases(std::uint64_t bytes) const {
    const Leg phase = Phase(bytes);
    return {{.latency = phase.latency * 2, .transfer = phase.transfer * 2, .busy = phase.busy * 2},
            Whole(bytes)};
  }
  // Each part goes from the root's domain to another, and from there to all others, unless there is
  // none; or from the root's domain to all.
  std::vector<Leg> Broadcasts(std::uint64_t bytes) const {
    Leg parts = OneStep(TimeAtMost(bytes, chips_, costs_.rate));
    if (domains_ > 2) {
      parts.latency *= 2;
      parts.transfer += TimeAtMost(static_cast<Wide>(bytes) * (domains_ - 2),
                                   (domains_ - 1) * chips_, costs_.rate);
    }
    return {parts, Whole(bytes)};
  }
  // A message from each chip to each that gets some of its buffer in other domains.
  Leg Exchange(std::uint64_t bytes, bool all_domains) const {
    const std::uint64_t share = all_domains ? domains_ : 1;
    const Picoseconds transfer =
        TimeAtMost(static_cast<Wide>(bytes) * (all_domains ? domains_ - 1 : 1), share, costs_.rate);
    return {.latency = Start(all_domains ? domains_ * chips_ - 1 : 1),
            .transfer = transfer,
            .busy = transfer};
  }

 private:
  Picoseconds Start(std::uint64_t destinations) const {
    const auto rounds = (std::max<std::uint64_t>(destinations, 1) - 1) / kCcCores;
    return costs_.message + LinkCosts{}.command * static_cast<Picoseconds::rep>(rounds);
  }
  Leg OneStep(Picoseconds transfer) const {
    return {.latency = Start(domains_ - 1), .transfer = transfer, .busy = transfer};
  }
  Leg Whole(std::uint64_t bytes) const {
    return OneStep(TimeAtMost(static_cast<Wide>(bytes) * (domains_ - 1), chips_, costs_.rate));
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
      outside = between.Broadcasts(bytes);
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

// The time of the fullest link inside for one of `count` chunks, which takes `chunk` alone, when so
// many are in flight: the others' messages hide what one needs to start up.
Picoseconds BusyInside(Picoseconds whole, Picoseconds chunk, int count, int in_flight) {
  return (whole / count * (in_flight - 1) + chunk) / in_flight;
}

std::uint64_t ChunkOf(std::uint64_t bytes, int count) {
  const auto chunks = static_cast<std::uint64_t>(count);
  return (bytes + chunks - 1) / chunks;
}

// The least time of the phases of some chunks one after the other. From chunk to chunk it takes
// what the fullest link or NIC needs.
absl::StatusOr<Picoseconds> TimeOfPhases(const Inside& inside, const Between& between,
                                         Operation operation, std::uint64_t bytes) {
  Picoseconds best = Picoseconds::max();
  Picoseconds whole(0);  // inside, in one chunk: the first count
  for (const int count : kChunkCounts) {
    TAHOMA_ASSIGN_OR_RETURN(const Stages stages,
                            StagesOf(inside, between, operation, ChunkOf(bytes, count)));
    if (count == 1) whole = stages.inside;
    const Picoseconds busy = BusyInside(whole, stages.inside, count, /*in_flight=*/2);
    for (const Leg& leg : stages.between) {
      best = std::min(best, stages.inside + leg.whole() + std::max(busy, leg.busy) * (count - 1));
    }
  }
  return best;
}

// The least time of a broadcast whose chunks flow through the root's domain, over EFA, and are
// gathered in the rest.
absl::StatusOr<Picoseconds> TimeOfFlow(const Inside& inside, const Between& between,
                                       std::uint64_t bytes) {
  TAHOMA_ASSIGN_OR_RETURN(const Picoseconds root, inside.Time(Operation::kBroadcast, bytes));
  Picoseconds best = Picoseconds::max();
  Picoseconds whole(0);  // gathered in one chunk: the first count
  for (const int count : kChunkCounts) {
    const std::uint64_t chunk = ChunkOf(bytes, count);
    TAHOMA_ASSIGN_OR_RETURN(const Picoseconds gather, inside.Time(Operation::kAllGather, chunk));
    if (count == 1) whole = gather;
    const Picoseconds busy =
        std::max(root / count, BusyInside(whole, gather, count, /*in_flight=*/3));
    for (const Leg& leg : between.Broadcasts(chunk)) {
      best = std::min(best,
                      root / count + leg.whole() + gather + std::max(busy, leg.busy) * (count - 1));
    }
  }
  return best;
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
  TAHOMA_ASSIGN_OR_RETURN(const Picoseconds phases,
                          TimeOfPhases(inside, between, operation, bytes));
  if (operation != Operation::kBroadcast) return phases;
  TAHOMA_ASSIGN_OR_RETURN(const Picoseconds flow, TimeOfFlow(inside, between, bytes));
  return std::min(phases, flow);
}

}  // namespace tahoma::collective
