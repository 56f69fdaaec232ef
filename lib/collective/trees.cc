#include "lib/collective/trees.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "lib/base/check.h"
#include "lib/collective/cuts.h"
#include "lib/collective/masks.h"
#include "lib/collective/partition.h"

namespace tahoma::collective {
namespace {

using torus::ChipIndex;
using torus::ChipMask;

ChipMask MaskOfAll(std::span<const ChipIndex> chips) {
  ChipMask mask = 0;
  for (const ChipIndex chip : chips) mask |= MaskOf(chip);
  return mask;
}

// Calls visit(arc) for each link between these chips that is up, in ascending order.
template <typename Visit>
void ForEachInside(std::span<const ChipIndex> chips, const DomainLinks& links, const Visit& visit) {
  const ChipMask mask = MaskOfAll(chips);
  for (int arc = 0; arc < links.arc_count(); ++arc) {
    const auto at = static_cast<Arc>(arc);
    if (links.rate(at) == 0) continue;
    if (((Bit(arc / kPortsPerChip) | Bit(links.to(at))) & ~mask) == 0) visit(at);
  }
}

std::uint64_t FastestLink(std::span<const ChipIndex> chips, const DomainLinks& links) {
  std::uint64_t fastest = 0;
  ForEachInside(chips, links, [&](Arc arc) { fastest = std::max(fastest, links.rate(arc)); });
  return fastest;
}

// The links between members in the direction of an all-gather; reversed for a reduce-scatter. One
// that carries several pieces in a step counts as so many.
std::vector<Edge> EdgesOf(Phase phase, std::span<const ChipIndex> chips, const DomainLinks& links,
                          std::uint64_t fastest, const TreeCut& cut) {
  std::array<std::size_t, kChipsMax> place{};
  for (std::size_t i = 0; i < chips.size(); ++i) {
    place.at(static_cast<std::size_t>(chips[i].value())) = i;
  }
  std::vector<Edge> edges;
  ForEachInside(chips, links, [&](Arc arc) {
    const std::uint64_t rate = links.rate(arc);
    Edge edge{.from = place.at(arc / static_cast<std::size_t>(kPortsPerChip)),
              .to = place.at(static_cast<std::size_t>(links.to(arc)))};
    if (phase == Phase::kReduceScatter) std::swap(edge.from, edge.to);
    if ((fastest + rate - 1) / rate > cut.slowest) return;
    const std::uint64_t carries = rate * cut.bundle;
    edge.steps = static_cast<std::size_t>((fastest * cut.grain + carries - 1) / carries);
    edges.insert(edges.end(), std::max<std::size_t>(carries / fastest, 1), edge);
  });
  return edges;
}

// By step, how many pieces the fastest link could carry while the fullest carries its own.
std::vector<double> LoadsOf(const std::vector<PieceSend>& sends, const std::vector<Edge>& edges,
                            std::size_t steps, std::size_t bundle) {
  // Edges of one link follow one another.
  struct Link {
    std::size_t edges = 0;
    std::vector<const PieceSend*> sends = {};
  };
  std::vector<Link> links;
  std::vector<std::size_t> link_of(edges.size());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const bool same = i > 0 && edges[i].from == edges[i - 1].from && edges[i].to == edges[i - 1].to;
    if (!same) links.emplace_back();
    link_of[i] = links.size() - 1;
    ++links.back().edges;
  }
  for (const PieceSend& one : sends) links[link_of[one.edge]].sends.push_back(&one);
  std::vector<double> loads(steps);
  std::vector<std::size_t> busy(steps);  // of one link at a time
  for (const Link& link : links) {
    const double part = static_cast<double>(bundle) / static_cast<double>(link.edges);
    for (const PieceSend* one : link.sends) {
      for (std::size_t i = 0; i < edges[one->edge].steps; ++i) ++busy[one->begin + i];
    }
    for (const PieceSend* one : link.sends) {
      for (std::size_t i = 0; i < edges[one->edge].steps; ++i) {
        const auto used = static_cast<double>(std::exchange(busy[one->begin + i], 0));
        loads[one->begin + i] = std::max(loads[one->begin + i], used * part);
      }
    }
  }
  return loads;
}

}  // namespace

std::size_t TreeCut::piece_count() const {
  return std::accumulate(pieces.begin(), pieces.end(), std::size_t{0});
}

bool HasLikeDirections(std::span<const ChipIndex> chips, const DomainLinks& links) {
  bool alike = true;
  ForEachInside(chips, links, [&](Arc arc) {
    const int back = links.to(arc) * kPortsPerChip + (arc % kPortsPerChip ^ 1);
    alike = alike && links.rate(arc) == links.rate(static_cast<Arc>(back));
  });
  return alike;
}

std::optional<Trees> Trees::Of(Phase phase, std::span<const ChipIndex> chips,
                               const DomainLinks& links, TreeCut cut) {
  TAHOMA_CHECK(cut.pieces.size() == chips.size());
  std::vector<std::size_t> owners;
  for (std::size_t chip = 0; chip < chips.size(); ++chip) {
    owners.insert(owners.end(), cut.pieces[chip], chip);
  }
  Trees trees;
  trees.chips_ = chips.size();
  trees.fastest_ = FastestLink(chips, links);
  if (trees.fastest_ == 0) return std::nullopt;
  trees.edges_ = EdgesOf(phase, chips, links, trees.fastest_, cut);
  auto sends = Spread(owners, trees.edges_, chips.size());
  if (!sends) return std::nullopt;
  trees.cut_ = std::move(cut);
  trees.sends_ = *std::move(sends);
  std::size_t steps = 0;
  for (const PieceSend& one : trees.sends_) {
    steps = std::max(steps, one.begin + trees.edges_[one.edge].steps);
  }
  trees.loads_ = LoadsOf(trees.sends_, trees.edges_, steps, trees.cut_.bundle);
  return trees;
}

std::uint64_t Trees::Destinations() const {
  std::vector<ChipMask> to(chips_);
  for (const Edge& edge : edges_) to[edge.from] |= Bit(static_cast<int>(edge.to));
  std::uint64_t destinations = 0;
  for (const ChipMask one : to) destinations = std::max(destinations, CountOf(one));
  return destinations;
}

std::vector<double> Trees::Touched(Phase phase, const ChipUse& use) const {
  std::vector<double> touched(loads_.size() * chips_);
  for (const PieceSend& one : sends_) {
    const Edge& edge = edges_[one.edge];
    auto [from, to] = std::pair(edge.from, edge.to);
    if (phase == Phase::kReduceScatter) std::swap(from, to);
    const auto steps = static_cast<double>(edge.steps);
    for (std::size_t step = one.begin; step < one.begin + edge.steps; ++step) {
      touched[step * chips_ + from] += use.reads / steps;
      touched[step * chips_ + to] += use.writes / steps;
    }
  }
  std::vector<double> most;
  for (std::size_t step = 0; step < loads_.size(); ++step) {
    most.push_back(std::ranges::max(std::span(touched).subspan(step * chips_, chips_)));
  }
  return most;
}

Picoseconds Trees::Time(Phase phase, std::uint64_t bytes, int banks, const LinkCosts& costs) const {
  const ChipUse use = NeuronUse(Algorithm::kTree, phase, /*ranks=*/1, banks);
  const Picoseconds start = StepStart(use, Destinations(), costs);
  const auto on_fastest = static_cast<double>(TimeAtMost(bytes / grains(), 1, fastest_).count());
  const auto piece = static_cast<double>(bytes) / static_cast<double>(cut_.piece_count());
  const std::vector<double> touched = Touched(phase, use);
  Picoseconds sum(0);
  for (std::size_t step = 0; step < loads_.size(); ++step) {
    const Picoseconds link(static_cast<Picoseconds::rep>(on_fastest * loads_[step]));
    const auto in_memory = static_cast<std::uint64_t>(piece * touched[step]);
    sum += start + std::max(link + costs.hop, MemoryTime(in_memory, banks, costs));
  }
  return sum;
}

namespace {

// Trees cut each chip's block into as many parts as these, as long as all chips together have no
// more pieces than kPiecesMax: planning takes as many times longer, and 256 pieces fill the links
// of 64 chips to 96 %.
constexpr std::uint64_t kParts[] = {1, 2, 4, 8, 16, 32};
constexpr std::uint64_t kPiecesMax = 256;
// Where each chip's block is one piece, the fastest link may carry up to so many in a step.
constexpr std::uint64_t kBundleMost = 4;
// The steps that a piece may take over the fastest link, and the part of a link's rate that a
// coarser grain may waste.
constexpr std::uint64_t kGrainMost = 4;
constexpr std::uint64_t kWasteMost = 32;  // a 32nd
// Trees leave links alone that are slower than an eighth of the fastest, or than a sixteenth, and
// so on, if all takes no more than a 32nd longer without them.
constexpr std::uint64_t kMissed = 32;

// The numbers of pieces that chips own when there are about `count`: in proportion to their shares.
std::vector<std::size_t> PiecesOf(const std::vector<std::uint64_t>& shares, std::uint64_t count) {
  const std::uint64_t whole = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  TAHOMA_CHECK(whole > 0);  // somebody owns something
  std::vector<std::size_t> pieces;
  for (const std::uint64_t share : shares) {
    pieces.push_back(
        static_cast<std::size_t>((static_cast<Wide>(share) * count + whole / 2) / whole));
  }
  return pieces;
}

// The parts of a buffer by owner, by place, in proportion; empty: equal parts.
using Shares = std::vector<std::uint64_t>;

// The most chips for which an all-reduce is tried with equal shares, too: equal shares take fewer
// pieces, so fewer steps, and steps count most on few chips.
constexpr std::size_t kEqualSharesMost = 16;

// Finds the fastest of all ways to cut a buffer.
class TreeSearch {
 public:
  TreeSearch(const TreeRequest& request, Shares shares, std::span<const ChipIndex> chips,
             const DomainLinks& links, const LinkCosts& costs)
      : request_(request),
        shares_(std::move(shares)),
        chips_(chips),
        links_(links),
        costs_(costs),
        fastest_(FastestLink(chips, links)),
        alike_(HasLikeDirections(chips, links)) {}

  std::optional<TreePlan> Fastest(Picoseconds limit) {
    if (fastest_ == 0) return std::nullopt;
    TreePlan best{.phases = {}, .time = limit};
    for (const Candidate& one : Candidates()) {
      if (one.least >= best.time) break;  // the others need more
      auto plan = PlanOf(one.cut);
      if (!plan) return std::nullopt;
      if (plan->time < best.time) best = *std::move(plan);
    }
    if (best.phases.empty()) return std::nullopt;
    return best;
  }

 private:
  struct Candidate {
    TreeCut cut;
    Picoseconds least{};  // a lower bound of the time
  };

  // Those with the least bound first.
  std::vector<Candidate> Candidates() const {
    std::vector<Candidate> candidates;
    const std::uint64_t slowest = Slowest();
    const Cut worst = WorstGatherCut(links_, MaskOfAll(chips_), MaskOfAll(chips_));
    if (worst.rate == 0) return {};
    const auto add = [&](TreeCut cut) {
      const Picoseconds least = LeastTimeOf(cut, worst);
      candidates.push_back({.cut = std::move(cut), .least = least});
    };
    for (const std::uint64_t parts : kParts) {
      if (parts > 1 && chips_.size() * parts > kPiecesMax) break;
      TreeCut cut{.pieces = std::vector<std::size_t>(chips_.size(), parts), .slowest = slowest};
      if (!shares_.empty()) cut.pieces = PiecesOf(shares_, chips_.size() * parts);
      if (cut.piece_count() == 0) continue;
      for (cut.bundle = 1; cut.bundle <= kBundleMost && (parts == 1 || cut.bundle == 1);
           cut.bundle *= 2) {
        add(cut);
      }
      cut.bundle = 1;
      for (cut.grain = 2; cut.grain <= kGrainMost && Wastes(cut.grain - 1); ++cut.grain) add(cut);
    }
    std::ranges::stable_sort(candidates, {}, &Candidate::least);
    return candidates;
  }

  // No trees are faster: all bytes cross the worst cut, and each step has its start.
  Picoseconds LeastTimeOf(const TreeCut& cut, const Cut& worst) const {
    const Picoseconds start = costs_.step + costs_.hop;
    std::uint64_t steps = 1;
    Picoseconds on_links(0);
    if (shares_.empty()) {
      const auto blocks = static_cast<double>(worst.blocks * cut.piece_count() * cut.grain) /
                          static_cast<double>(chips_.size());
      const double at_once =
          static_cast<double>(worst.rate * cut.bundle) / static_cast<double>(fastest_);
      steps = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(blocks / at_once));
      on_links =
          TimeAtLeast(static_cast<Wide>(request_.bytes) * worst.blocks, chips_.size(), worst.rate);
    }
    return (start * static_cast<Picoseconds::rep>(steps) + on_links) *
           static_cast<Picoseconds::rep>(request_.phases.size());
  }

  std::optional<TreePlan> PlanOf(const TreeCut& cut) const {
    TreePlan plan{.phases = {}, .time = Picoseconds(0)};
    for (const Phase phase : request_.phases) {
      auto trees = !plan.phases.empty() && alike_ ? plan.phases.front().second
                                                  : Trees::Of(phase, chips_, links_, cut);
      if (!trees) return std::nullopt;
      plan.time += trees->Time(phase, request_.bytes, request_.banks, costs_);
      plan.phases.emplace_back(phase, *std::move(trees));
    }
    return plan;
  }

  // Whether a slow link would waste much of its rate: it takes a whole number of steps for a piece.
  bool Wastes(std::uint64_t grain) const {
    bool wastes = false;
    ForEachInside(chips_, links_, [&](Arc arc) {
      const std::uint64_t rate = links_.rate(arc);
      const std::uint64_t steps = (fastest_ * grain + rate - 1) / rate;
      wastes = wastes || (steps * rate - fastest_ * grain) * kWasteMost > fastest_ * grain;
    });
    return wastes;
  }

  // Returns how many steps of the fastest link a link may take for what that carries in one.
  std::uint64_t Slowest() const {
    const auto steps_of = [&](std::uint64_t rate) { return (fastest_ + rate - 1) / rate; };
    std::uint64_t slowest = kSlowestAlways;
    ForEachInside(chips_, links_,
                  [&](Arc arc) { slowest = std::max(slowest, steps_of(links_.rate(arc))); });
    if (slowest == kSlowestAlways) return slowest;
    const auto worst_of = [&](std::uint64_t most) {
      std::vector<std::uint64_t> used;
      for (int arc = 0; arc < links_.arc_count(); ++arc) {
        const std::uint64_t rate = links_.rate(static_cast<Arc>(arc));
        used.push_back(rate > 0 && steps_of(rate) > most ? 0 : rate);
      }
      const ChipMask mask = MaskOfAll(chips_);
      return WorstGatherCut(DomainLinks(links_.torus(), used, {}), mask, mask);
    };
    const Cut worst = worst_of(slowest);
    for (std::uint64_t most = kSlowestAlways; most < slowest; most *= 2) {
      if (worst_of(most).HardlyWorseThan(worst, kMissed)) return most;
    }
    return slowest;
  }

  const TreeRequest& request_;
  const Shares shares_;
  const std::span<const ChipIndex> chips_;
  const DomainLinks& links_;
  const LinkCosts& costs_;
  const std::uint64_t fastest_;
  const bool alike_;
};

}  // namespace

std::optional<TreePlan> FastestTrees(const TreeRequest& request, std::span<const ChipIndex> chips,
                                     const DomainLinks& links, const LinkCosts& costs,
                                     Picoseconds limit) {
  const auto fastest = [&](Shares shares, Picoseconds most) {
    return TreeSearch(request, std::move(shares), chips, links, costs).Fastest(most);
  };
  const ChipMask mask = MaskOfAll(chips);
  if (request.phases.size() == 1 || links.Reach(mask) != mask) return fastest({}, limit);
  const SumShares sums = BestSumShares(links, mask);
  if (sums.phase.rate == 0) return fastest({}, limit);
  Shares shares;
  for (const ChipIndex chip : chips) {
    shares.push_back(sums.of.at(static_cast<std::size_t>(chip.value())));
  }
  auto best = fastest(std::move(shares), limit);
  if (chips.size() > kEqualSharesMost) return best;
  auto equal = fastest({}, best ? best->time : limit);
  return equal ? std::move(equal) : std::move(best);
}

}  // namespace tahoma::collective
