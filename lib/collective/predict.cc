#include "lib/collective/predict.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/collective/cuts.h"
#include "lib/collective/forms.h"
#include "lib/collective/masks.h"
#include "lib/collective/partition.h"
#include "lib/collective/route_search.h"
#include "lib/collective/routes.h"

namespace tahoma::collective {
namespace {

using torus::ChipIndex;
using torus::ChipMask;

// A rank's exchange with itself reads and writes its buffer.
Picoseconds LoneTime(Operation operation, std::uint64_t bytes, const LinkCosts& costs) {
  if (!IsExchange(operation)) return Picoseconds(0);
  return costs.step + TimeAtMost(static_cast<Wide>(bytes) * 2, 1,
                                 static_cast<std::uint64_t>(hw::kTrainium2.hbm_bytes_per_second));
}

std::vector<std::uint8_t> Ascending(ChipMask chips) {
  std::vector<std::uint8_t> order;
  for (ChipMask left = chips; left != 0; left &= left - 1) {
    order.push_back(static_cast<std::uint8_t>(Lowest(left)));
  }
  return order;
}

// Depth first, so that following ones are close: the emulator's ring of chips that have no better.
std::vector<std::uint8_t> DepthFirst(ChipMask chips, const DomainLinks& links) {
  std::vector<std::uint8_t> order;
  std::vector<std::uint8_t> stack;
  ChipMask seen = 0;
  while (seen != chips) {
    if (stack.empty()) stack.push_back(static_cast<std::uint8_t>(Lowest(chips & ~seen)));
    const int chip = stack.back();
    stack.pop_back();
    if ((seen & Bit(chip)) != 0) continue;
    seen |= Bit(chip);
    order.push_back(static_cast<std::uint8_t>(chip));
    ChipMask onward = 0;
    for (int port = 0; port < kPortsPerChip; ++port) {
      const auto out = static_cast<Arc>(chip * kPortsPerChip + port);
      const auto back = static_cast<Arc>(links.to(out) * kPortsPerChip + (port ^ 1));
      if (links.rate(out) != 0 && links.rate(back) != 0) onward |= Bit(links.to(out));
    }
    for (const std::uint8_t next : Ascending(onward & chips & ~seen)) stack.push_back(next);
  }
  return order;
}

// A ring of neighbours takes as many chips of either colour, the torus being a chessboard, and each
// has two neighbours. A set that passes may still have none.
bool MayHaveRing(ChipMask chips, const DomainLinks& links) {
  const bool lone_pair = CountOf(chips) == 2;
  int balance = 0;
  for (ChipMask left = chips; left != 0; left &= left - 1) {
    const int chip = Lowest(left);
    const torus::Coord at = links.torus().CoordOf(ChipIndex(chip));
    balance += (at.x + at.y + at.z) % 2 == 0 ? 1 : -1;
    ChipMask near = 0;
    for (int port = 0; port < kPortsPerChip; ++port) {
      const auto arc = static_cast<Arc>(chip * kPortsPerChip + port);
      if (links.rate(arc) != 0) near |= Bit(links.to(arc)) & chips;
    }
    if (CountOf(near) < (lone_pair ? 1 : 2)) return false;
  }
  return balance == 0;
}

// The entry of a box in the table.
struct KnownBox {
  const torus::Box* box;
  Form shift;  // send-receive
};

const absl::flat_hash_map<ChipMask, KnownBox>& KnownBoxes() {
  static const auto known = [] {
    absl::flat_hash_map<ChipMask, KnownBox> made;
    const DomainLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
    for (const torus::Box& box : torus::BoxTable::Of(links.torus()).all()) {
      KnownBox& entry = made[box.mask];
      entry.box = &box;
      if (box.size.chip_count() == 1) continue;
      MessageLoad load(links, box.mask);
      TAHOMA_CHECK(load.AddShift(Ascending(box.mask)));
      entry.shift = {.steps = 1,
                     .hops = static_cast<std::int64_t>(load.longest()),
                     .numerator = load.fullest().messages,
                     .denominator = load.fullest().rate};
    }
    return made;
  }();
  return known;
}

Picoseconds Predict(const KnownBox& known, Operation operation, std::uint64_t bytes,
                    const LinkCosts& costs) {
  if (known.box->size.chip_count() == 1) return LoneTime(operation, bytes, costs);
  if (operation == Operation::kSendReceive) return known.shift.Time(bytes, costs);
  return LeastTime(FormsOf(known.box->size, operation), bytes, costs);
}

// A set of which no table knows.
class AnySet {
 public:
  AnySet(ChipMask chips, const DomainLinks& links, std::uint64_t bytes)
      : chips_(chips),
        links_(links),
        bytes_(bytes),
        count_(CountOf(chips)),
        through_(ThroughOf(links, chips)),
        whole_(links.Repaired()) {
    ingress_ = ~std::uint64_t{0};
    for (ChipMask left = through_; left != 0; left &= left - 1) LookAtLinksInto(Lowest(left));
  }

  // Picoseconds::max() when chips are cut off.
  Picoseconds Time(Operation operation) const {
    switch (operation) {
      case Operation::kAllReduce:
        return Gathering(true, true);
      case Operation::kAllGather:
        return Gathering(false, true);
      case Operation::kReduceScatter:
        return Gathering(true, false);
      case Operation::kBroadcast:
        return Broadcast();
      case Operation::kAllToAll:
        return AllToAll();
      case Operation::kSendReceive:
        return Shift(Ascending(chips_));
      case Operation::kPermute:
        return MayHaveRing(chips_, links_)
                   ? links_.costs().step + links_.costs().hop + TimeAtMost(bytes_, 1, slowest_)
                   : Shift(DepthFirst(chips_, links_));
    }
    return Picoseconds::max();
  }

 private:
  void LookAtLinksInto(int chip) {
    std::uint64_t ingress = 0;
    for (int port = 0; port < kPortsPerChip; ++port) {
      // The neighbour on one side sends on its port of the other side.
      const auto out = static_cast<Arc>(chip * kPortsPerChip + port);
      const int neighbour = links_.to(out);
      const auto in = static_cast<Arc>(neighbour * kPortsPerChip + (port ^ 1));
      if (whole_.rate(in) == 0 || (through_ & Bit(neighbour)) == 0) continue;
      damaged_ = damaged_ || links_.rate(in) != whole_.rate(in);
      symmetric_ = symmetric_ && links_.rate(in) == links_.rate(out);
      if (links_.rate(in) == 0) continue;
      ingress += links_.rate(in);
      fastest_ = std::max(fastest_, links_.rate(in));
      slowest_ = std::min(slowest_, whole_.rate(in));
    }
    if ((chips_ & Bit(chip)) != 0) ingress_ = std::min(ingress_, ingress);
  }

  // The wait for the CC-cores of a chip that sends to all others in one step.
  Picoseconds CommandWaits() const {
    return links_.costs().command * static_cast<Picoseconds::rep>((count_ - 2) / kCcCores);
  }

  // Everybody sends a block to everybody, so many times.
  Picoseconds Mesh(int phases) const {
    MessageLoad load(links_, through_);
    if (!load.AddAllPairs(chips_)) return Picoseconds::max();
    return (links_.costs().step + CommandWaits() + load.Time(bytes_, count_)) * phases;
  }

  // Whether the emulator sends every message of an exchange on one route.
  bool HasDirectExchanges() const {
    const auto boxes = torus::BoxTable::Of(links_.torus()).all();
    return !damaged_ && std::any_of(boxes.begin(), boxes.end(),
                                    [&](const torus::Box& box) { return box.mask == chips_; });
  }
  // An exchange on routes of its own, of so many messages and `sends` of one chip: as the emulator
  // chooses the number of parts. The fullest link is 1 % fuller than the bound says, in whole
  // parts; it is one of the slow links where there are some.
  Picoseconds OnBestRoutes(const Cut& bound, std::uint64_t denominator, std::uint64_t messages,
                           std::uint64_t sends, std::size_t hops) const {
    Picoseconds best = Picoseconds::max();
    for (const std::uint32_t parts : kPartsOfMessage) {
      if (parts > 1 && messages * parts > kPartsMax) continue;
      const Wide load = (static_cast<Wide>(bound.blocks) * parts * slowest_ * 101) /
                            (static_cast<Wide>(bound.rate) * 100) +
                        1;
      const auto waits = static_cast<Picoseconds::rep>((sends * parts - 1) / kCcCores);
      const Picoseconds start = links_.costs().step + links_.costs().command * waits +
                                links_.costs().hop * static_cast<Picoseconds::rep>(hops);
      const Picoseconds least =
          TimeAtMost(static_cast<Wide>(bytes_) * bound.blocks, denominator, bound.rate);
      if (best <= start + least) break;
      best = std::min(best, start + TimeAtMost(bytes_ * load, denominator * parts, slowest_));
      if (IsClose(best, start + least)) break;
    }
    return best;
  }

  Picoseconds AllToAll() const {
    MessageLoad load(links_, through_);
    if (!load.AddAllPairs(chips_)) return Picoseconds::max();
    const Picoseconds direct = links_.costs().step + CommandWaits() + load.Time(bytes_, count_);
    if (HasDirectExchanges()) return direct;
    const Cut bound = WorstExchangeCut(links_, chips_, through_);
    return std::min(direct,
                    OnBestRoutes(bound, count_, count_ * (count_ - 1), count_ - 1, load.longest()));
  }

  // The time of messages from each chip of the order to the next.
  Picoseconds Shift(const std::vector<std::uint8_t>& order) const {
    MessageLoad load(links_, through_);
    if (!load.AddShift(order)) return Picoseconds::max();
    const Picoseconds direct = links_.costs().step + load.Time(bytes_, 1);
    if (HasDirectExchanges()) return direct;
    const Cut goal = ShiftGoal(links_, {&order, 1}, through_);
    return std::min(direct, OnBestRoutes(goal, 1, count_, 1, load.longest()));
  }

  // A lower bound for a mesh: a chip's share must come in over its links.
  Picoseconds MeshAtLeast(int phases) const {
    if (ingress_ == 0) return Picoseconds::max();  // a chip is cut off
    return (links_.costs().step + links_.costs().hop +
            TimeAtLeast(static_cast<Wide>(bytes_) * (count_ - 1), count_, ingress_)) *
           phases;
  }
  // A lower bound for trees: phases take steps of a bundle for each link, and what flows up and
  // back at once has links idle.
  Picoseconds TreesAtLeast(int phases) const {
    const Picoseconds start = links_.costs().step + links_.costs().hop;
    constexpr std::uint64_t kMost = kPortsPerChip * kTreeBundles[std::size(kTreeBundles) - 1];
    const auto steps = static_cast<Picoseconds::rep>((count_ - 2) / kMost + 1) * phases;
    return phases == 1 ? start * steps
                       : start * std::min(steps, static_cast<Picoseconds::rep>(Radius()));
  }

  // One phase after the other.
  Picoseconds Trees(const std::vector<Cut>& cuts) const {
    return TreesTime(cuts, count_, fastest_, bytes_, links_.costs());
  }

  // The links from the chip that is nearest to all others to the farthest of them.
  std::uint64_t Radius() const {
    std::array<ChipMask, kChipsMax> near{};
    for (ChipMask from = chips_; from != 0; from &= from - 1) {
      const int chip = Lowest(from);
      for (int port = 0; port < kPortsPerChip; ++port) {
        const auto arc = static_cast<Arc>(chip * kPortsPerChip + port);
        if (links_.rate(arc) != 0) near.at(static_cast<std::size_t>(chip)) |= Bit(links_.to(arc));
      }
      near.at(static_cast<std::size_t>(chip)) &= chips_;
    }
    std::uint64_t least = count_;
    for (ChipMask left = chips_; left != 0; left &= left - 1) {
      ChipMask seen = left & (~left + 1);
      ChipMask layer = seen;
      std::uint64_t links = 0;
      for (; seen != chips_ && links < least; ++links) {
        ChipMask next = 0;
        for (; layer != 0; layer &= layer - 1) {
          next |= near.at(static_cast<std::size_t>(Lowest(layer)));
        }
        layer = next & ~seen;
        seen |= next;
      }
      least = std::min(least, links);
    }
    return least;
  }

  // Pieces that flow along trees of their own, up and back at the same time. The fullest cable
  // carries 1 % more than its share, and links are idle for as many steps as trees must be high.
  Picoseconds Flow() const {
    const Cut worst = WorstReductionCut(links_, chips_, through_);
    const double share = static_cast<double>(worst.blocks) * static_cast<double>(fastest_) /
                         (static_cast<double>(count_) * static_cast<double>(worst.rate));
    return BestFlow({.pieces = FlowPieces(count_),
                     .on_fastest = TimeAtMost(bytes_, 1, fastest_),
                     .fullest = share * 1.01,
                     .idle_steps = Radius()},
                    kFlowStripesMost, links_.costs())
        .time;
  }

  // Picoseconds::max() when chips are cut off.
  Picoseconds Trees(bool scatters, bool gathers) const {
    std::vector<Cut> cuts;
    if (scatters && gathers) {
      // Chips sum up shares that differ, or packed trees do both at once.
      const Cut phase = BestSumShares(links_, chips_).phase;
      if (phase.rate == 0) return Picoseconds::max();
      const Picoseconds phases = Trees({phase, phase});
      return std::min(phases, Flow());
    }
    if (gathers || symmetric_) cuts.push_back(WorstGatherCut(links_, chips_, through_));
    if (scatters && !symmetric_) cuts.push_back(WorstScatterCut(links_, chips_, through_));
    for (const Cut& cut : cuts) {
      if (cut.rate == 0) return Picoseconds::max();
    }
    return Trees(cuts);
  }

  // Computes first the algorithm that may be faster; the other only if it can be faster still.
  Picoseconds Gathering(bool scatters, bool gathers) const {
    const int phases = (scatters ? 1 : 0) + (gathers ? 1 : 0);
    if (through_ != chips_) return std::min(Mesh(phases), Ring(phases));
    if (MeshAtLeast(phases) < TreesAtLeast(phases)) {
      const Picoseconds mesh = Mesh(phases);
      return mesh <= TreesAtLeast(phases) ? mesh : std::min(mesh, Trees(scatters, gathers));
    }
    const Picoseconds trees = Trees(scatters, gathers);
    return trees <= MeshAtLeast(phases) ? trees : std::min(trees, Mesh(phases));
  }

  // Blocks go round in both directions, so many times.
  Picoseconds Ring(int phases) const {
    MessageLoad load(links_, through_);
    std::vector<std::uint8_t> order = DepthFirst(chips_, links_);
    if (!load.AddShift(order)) return Picoseconds::max();
    std::reverse(order.begin(), order.end());
    if (!load.AddShift(order)) return Picoseconds::max();
    const auto steps = static_cast<Picoseconds::rep>(count_ - 1) * phases;
    return (links_.costs().step + load.Time(bytes_, 2 * count_)) * steps;
  }

  Picoseconds Broadcast() const {
    const int root = Lowest(chips_);
    MessageLoad load(links_, through_);
    if (!load.Add(root, chips_)) return Picoseconds::max();
    const Picoseconds direct = links_.costs().step + CommandWaits() + load.Time(bytes_, 1);
    if (through_ != chips_) {
      const Picoseconds scatter = links_.costs().step + load.Time(bytes_, count_);
      return std::min(direct, scatter + std::min(Ring(1), Mesh(1)));
    }
    const Cut worst = WorstBroadcastCut(links_, chips_, through_, root);
    if (worst.rate == 0) return direct;
    const Picoseconds best = std::min(
        direct, BroadcastTime(worst, load.longest(), count_, fastest_, bytes_, links_.costs()));
    // Branchings, each of about the rate of a link, and hardly higher than they must be.
    const std::uint64_t trees = (worst.rate - 1) / slowest_ + 1;
    return std::min(best, PipelineTime(TimeAtMost(bytes_, 1, worst.rate), load.longest(),
                                       (count_ - 1) * trees, links_.costs()));
  }

  const ChipMask chips_;
  const DomainLinks& links_;
  const std::uint64_t bytes_;
  const std::uint64_t count_;
  const ChipMask through_;
  const DomainLinks whole_;  // the torus in full health
  std::uint64_t fastest_ = 0;
  std::uint64_t slowest_ = ~std::uint64_t{0};  // of the links in full health that are up
  bool damaged_ = false;
  std::uint64_t ingress_ = 0;  // of the chip with the least
  bool symmetric_ = true;
};

}  // namespace

Picoseconds PredictCollective(const torus::Box& box, Operation operation, std::uint64_t bytes,
                              const LinkCosts& costs) {
  const auto known = KnownBoxes().find(box.mask);
  TAHOMA_CHECK(known != KnownBoxes().end());
  return Predict(known->second, operation, bytes, costs);
}

absl::StatusOr<Picoseconds> PredictCollective(ChipMask chips, const DomainLinks& links,
                                              Operation operation, std::uint64_t bytes) {
  if (chips == 0) return InvalidArgument("a collective needs at least one chip");
  if ((chips & ~links.chips()) != 0) {
    return InvalidArgument("chip {} is not in a torus of {}", Lowest(chips & ~links.chips()),
                           links.torus().ToString());
  }
  if (std::has_single_bit(chips)) return LoneTime(operation, bytes, links.costs());
  const bool tabled =
      links.torus() == torus::kUltraServerShape || links.torus() == torus::kInstanceShape;
  if (tabled && links.IsHealthyTrainium2(chips)) {
    const auto known = KnownBoxes().find(chips);
    if (known != KnownBoxes().end()) return Predict(known->second, operation, bytes, links.costs());
  }
  const Picoseconds time = AnySet(chips, links, bytes).Time(operation);
  if (time == Picoseconds::max()) {
    return FailedPrecondition("links that are down cut some of the {} chips off", CountOf(chips));
  }
  return time;
}

DomainLinks LinksWith(const Faults& faults, const LinkCosts& costs) {
  DomainLinks links(torus::kUltraServerShape, hw::kTrainium2.links, costs);
  links.Kill(faults.dead);
  for (const LinkFault& fault : faults.links) links.SetPermille(fault);
  return links;
}

absl::StatusOr<Picoseconds> PredictCollective(ChipMask chips, const Faults& faults,
                                              Operation operation, std::uint64_t bytes,
                                              const LinkCosts& costs) {
  if ((chips & faults.dead) != 0) {
    return FailedPrecondition("chip {} is dead", Lowest(chips & faults.dead));
  }
  return PredictCollective(chips, LinksWith(faults, costs), operation, bytes);
}

}  // namespace tahoma::collective
