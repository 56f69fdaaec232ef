#include "lib/collective/predict_domains.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/masks.h"

namespace tahoma::collective {
namespace {

// The topology domains that differ: the slowest decides what all take inside.
class Inside {
 public:
  static absl::StatusOr<Inside> Of(std::span<const DomainPart> domains, const hw::ChipModel& chip) {
    Inside inside;
    absl::flat_hash_set<torus::ChipMask> healthy;
    for (std::size_t i = 0; i < domains.size(); ++i) {
      const DomainPart& domain = domains[i];
      auto links = std::make_unique<const DomainLinks>(LinksWith(domain.faults, chip));
      const bool whole = (domain.chips & domain.faults.dead) == 0 && links->IsHealthy(domain.chips);
      if (whole && !healthy.insert(domain.chips).second) continue;
      Domain& added = inside.distinct_.emplace_back();
      added.links = std::move(links);
      if (whole) added.loads = LoadsOfBox(domain.chips, *added.links);
      if (added.loads != nullptr) continue;
      // Refuses what cannot be predicted: in an all-reduce every chip must reach every other.
      const auto time = PredictCollective(domain.chips, domain.faults, {.bytes = 1}, chip);
      if (!time.ok()) return Annotate(time.status(), fmt::format("domain {}", i));
      added.own = std::make_unique<const SetLoads>(domain.chips, *added.links,
                                                   torus::ChipIndex(Lowest(domain.chips)));
      added.loads = added.own.get();
    }
    return inside;
  }

  // Calls time(loads, costs) for each of them, or for the root's alone, and returns the longest.
  template <typename Time>
  Picoseconds Longest(const Time& time, bool root_alone = false) const {
    Picoseconds longest(0);
    for (const Domain& domain : distinct_) {
      longest = std::max(longest, time(*domain.loads, domain.links->costs()));
      if (root_alone) break;
    }
    return longest;
  }
  Picoseconds Time(const FormRequest& request) const {
    return Longest([&](const SetLoads& loads, const LinkCosts& costs) {
      return FormTime(request, loads, costs);
    });
  }

 private:
  struct Domain {
    std::unique_ptr<const DomainLinks> links;
    std::unique_ptr<const SetLoads> own;  // nullptr: a table has them
    const SetLoads* loads = nullptr;
  };
  std::vector<Domain> distinct_;
};

// The steps of a chunk between the domains: what the fullest NIC sends in each.
struct Between {
  std::vector<double> on_nic;  // picoseconds
  Picoseconds latency;         // from the end of a step to the first byte's arrival
};

// The times of one chunk.
struct Chunk {
  Picoseconds before{};  // inside: reduced or scattered
  Between between;
  Picoseconds after{};  // inside: gathered
};

// The messages of chunks on the NICs. A step's messages leave when the step before it has ended,
// and behind those of the same step of the chunk before; steps of different kinds share the NICs.
class NicRun {
 public:
  explicit NicRun(const std::vector<Chunk>& chunks)
      : chunks_(chunks), queues_(chunks.front().between.on_nic.size()) {}

  // Returns the time at which each chunk has arrived, when each is ready at its time.
  std::vector<Picoseconds> Run(const std::vector<Picoseconds>& ready) {
    ready_.assign(queues_.size() + 1, std::vector<Picoseconds>(chunks_.size(), kNever));
    ready_[0] = ready;
    Picoseconds now(0);
    while (!Done()) {
      Start(now);
      const Picoseconds next = Next(now);
      Advance(next - now);
      now = next;
      Finish(now);
    }
    return ready_.back();
  }

 private:
  static constexpr Picoseconds kNever = Picoseconds::max();
  // A step of all chunks, one after the other.
  struct Queue {
    std::size_t next = 0;  // chunk
    bool sends = false;
    double left = 0;
  };

  bool Done() const { return ready_.back().back() != kNever; }
  double Sharing() const {
    return static_cast<double>(std::ranges::count(queues_, true, &Queue::sends));
  }
  void Start(Picoseconds now) {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      Queue& queue = queues_[i];
      if (queue.sends || queue.next == chunks_.size() || ready_[i][queue.next] > now) continue;
      queue.sends = true;
      queue.left = chunks_[queue.next].between.on_nic[i];
    }
  }
  Picoseconds Next(Picoseconds now) const {
    Picoseconds next = kNever;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      const Queue& queue = queues_[i];
      if (queue.sends) {
        const auto takes = static_cast<Picoseconds::rep>(queue.left * Sharing()) + 1;
        next = std::min(next, now + Picoseconds(takes));
      } else if (queue.next < chunks_.size()) {
        next = std::min(next, ready_[i][queue.next]);
      }
    }
    TAHOMA_CHECK(next != kNever);  // something is ready as long as something is left
    return next;
  }
  void Advance(Picoseconds elapsed) {
    const double sharing = Sharing();
    for (Queue& queue : queues_) {
      if (queue.sends) queue.left -= static_cast<double>(elapsed.count()) / sharing;
    }
  }
  void Finish(Picoseconds now) {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      Queue& queue = queues_[i];
      if (!queue.sends || queue.left > 0) continue;
      ready_[i + 1][queue.next] = now + chunks_[queue.next].between.latency;
      ++queue.next;
      queue.sends = false;
    }
  }

  const std::vector<Chunk>& chunks_;
  std::vector<Queue> queues_;                    // by step
  std::vector<std::vector<Picoseconds>> ready_;  // by step and chunk; the last: has arrived
};

// Returns the time of chunks, one phase of one chunk at a time inside each domain.
Picoseconds PipelineTime(const std::vector<Chunk>& chunks) {
  std::vector<Picoseconds> ready;
  Picoseconds inside(0);
  for (const Chunk& chunk : chunks) {
    inside += chunk.before;
    ready.push_back(inside);
  }
  Picoseconds end = inside;
  const std::vector<Picoseconds> arrived = NicRun(chunks).Run(ready);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    inside = std::max(inside, arrived[i]) + chunks[i].after;
    end = std::max(end, inside);
  }
  return end;
}

// The parts of the whole in which chunks are: those of an all-gather begin small, those of a
// reduce-scatter end so, for one of the networks is idle there.
std::vector<double> ChunkShares(Operation operation, int count) {
  constexpr double kWhole = 6;
  std::vector<double> shares;
  double sum = 0;
  for (int chunk = 0; chunk < count; ++chunk) {
    const int left = count - 1 - chunk;
    double share = kWhole;
    if (operation == Operation::kAllGather && chunk < 2) share = 2.0 * (chunk + 1);
    if (operation == Operation::kReduceScatter && chunk == 0) share = kWhole / 2;
    if (operation == Operation::kReduceScatter && left < 2) share = 2.0 * (left + 1);
    shares.push_back(share);
    sum += share;
  }
  for (double& share : shares) share /= sum;
  return shares;
}

class OverDomains {
 public:
  OverDomains(const Inside& inside, std::uint64_t domains, std::uint64_t chips,
              const FormRequest& request, const hw::ChipModel& chip)
      : inside_(inside), domains_(domains), chips_(chips), request_(request), chip_(chip) {}

  Picoseconds Time() const {
    if (IsExchange(request_.operation)) return Exchange();
    Picoseconds best = Picoseconds::max();
    for (const int count : kChunkCounts) {
      if (count > 1 && request_.bytes / static_cast<std::uint64_t>(count) < kChunkBytesMin) break;
      std::vector<Chunk> chunks;
      for (const double share : ChunkShares(request_.operation, count)) {
        chunks.push_back(ChunkOf(share * static_cast<double>(request_.bytes)));
      }
      best = std::min(best, PipelineTime(chunks));
    }
    return best;
  }

 private:
  // Picoseconds that a NIC takes for so many bytes.
  double OnNic(double bytes) const { return bytes * 1e12 / static_cast<double>(chip_.links.efa); }

  Chunk ChunkOf(double bytes) const {
    const Operation operation = request_.operation;
    const auto whole = static_cast<std::uint64_t>(bytes);
    const auto inside = [&](Operation phase) {
      return inside_.Time({.operation = phase, .bytes = whole, .ranks = request_.ranks});
    };
    const double block = bytes / static_cast<double>(chips_);
    const auto among = static_cast<double>(domains_);
    Chunk chunk;
    chunk.between.latency = chip_.costs.efa;
    if (operation == Operation::kBroadcast) {
      chunk.before = inside_.Longest(
          [&](const SetLoads& loads, const LinkCosts& costs) {
            return ScatterTime({.bytes = whole, .ranks = request_.ranks}, loads, costs);
          },
          /*root_alone=*/true);
      // To another domain each, and from there to all others but the root's.
      chunk.between.on_nic.push_back(OnNic(block));
      if (domains_ > 2) {
        chunk.between.on_nic.push_back(OnNic(block * (among - 2) / (among - 1)));
      }
      chunk.after = inside(Operation::kAllGather);
      return chunk;
    }
    const double phase = OnNic(block * (among - 1) / among);
    if (Combines(operation)) {
      chunk.before = inside(Operation::kReduceScatter);
      chunk.between.on_nic.push_back(phase);
    }
    if (operation != Operation::kReduceScatter) {
      chunk.between.on_nic.push_back(phase);
      chunk.after = inside(Operation::kAllGather);
    }
    return chunk;
  }

  // Messages inside and between the domains, all at once.
  Picoseconds Exchange() const {
    const bool all = request_.operation == Operation::kAllToAll;
    const auto among = static_cast<double>(domains_);
    const auto ranks = static_cast<std::uint64_t>(request_.ranks);
    const std::uint64_t destinations = all ? domains_ * chips_ - 1 : 1;
    const double share = all ? (among - 1) / among : 1 / static_cast<double>(ranks);
    const double sent = static_cast<double>(request_.bytes * ranks) * share;
    const Picoseconds inside = inside_.Longest([&](const SetLoads& loads, const LinkCosts& costs) {
      auto step = loads.Exchange(request_.operation, request_.ranks);
      TAHOMA_CHECK(step.has_value());  // Inside has refused chips that are cut off
      if (all) {
        step->link /= among;
        step->far_link /= among;
      }
      step->destinations = destinations;
      return StepTime(*step, {}, request_.bytes, costs);
    });
    const LinkCosts costs = CostsOf(chip_);
    const Picoseconds start = StepStart({}, destinations, costs) - chip_.costs.step;
    const Picoseconds between =
        start + chip_.costs.efa + Picoseconds(static_cast<Picoseconds::rep>(OnNic(sent)) + 1);
    return std::max(inside, between);
  }

  const Inside& inside_;
  const std::uint64_t domains_;
  const std::uint64_t chips_;
  const FormRequest& request_;
  const hw::ChipModel& chip_;
};

}  // namespace

absl::StatusOr<Picoseconds> PredictOverDomains(std::span<const DomainPart> domains,
                                               const FormRequest& request,
                                               const hw::ChipModel& chip) {
  if (domains.empty()) return InvalidArgument("a collective needs at least one domain");
  if (domains.size() == 1) {
    const auto time = PredictCollective(domains[0].chips, domains[0].faults, request, chip);
    if (!time.ok()) return Annotate(time.status(), "domain 0");
    return *time;
  }
  TAHOMA_ASSIGN_OR_RETURN(const Inside inside, Inside::Of(domains, chip));
  std::uint64_t fewest = kChipsMax;
  for (const DomainPart& domain : domains) fewest = std::min(fewest, CountOf(domain.chips));
  return OverDomains(inside, domains.size(), std::max<std::uint64_t>(fewest, 1), request, chip)
      .Time();
}

}  // namespace tahoma::collective
