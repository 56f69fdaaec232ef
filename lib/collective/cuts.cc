#include "lib/collective/cuts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/collective/flow.h"
#include "lib/collective/masks.h"
#include "lib/collective/partition.h"

namespace tahoma::collective {
namespace {

using torus::ChipMask;

// The part that most members are outside of, for the rate of the links that enter it.
//
// Let q blocks of a guess cross rate p. Were the guess the worst cut, then from an outside that
// feeds p into every member, n * p could flow into any of the n members over links of q times their
// rates: the cut around a part costs p for each member in it and q times the rate that enters it.
// A sink into which less flows shows a worse cut, which is the next guess. Cuts that keep a sink
// apart are done with once it has been filled, so it becomes a source, and what flows stays.
Cut WorstCutInto(const Graph& graph, ChipMask members) {
  const std::uint64_t n = CountOf(members);
  Cut worst{.blocks = n - 1, .rate = graph.RateInto(Bit(Lowest(members)))};
  for (ChipMask left = members; left != 0; left &= left - 1) {
    const Cut lone{.blocks = n - 1, .rate = graph.RateInto(left & (~left + 1))};
    if (lone.WorseThan(worst)) worst = lone;
  }
  ChipMask open = members;
  while (open != 0 && worst.rate != 0) {
    Flow flow(graph, worst.blocks, members & ~open, members, worst.rate);
    while (open != 0) {
      const int sink = Lowest(open);
      if (flow.Fill(sink, n * worst.rate) < n * worst.rate) break;
      flow.AddSource(sink);
      open &= ~Bit(sink);
    }
    if (open == 0) break;
    const Cut next{.blocks = CountOf(members & ~flow.reaching()),
                   .rate = graph.RateInto(flow.reaching())};
    TAHOMA_CHECK(next.WorseThan(worst));
    worst = next;
  }
  return worst;
}

// Messages that must enter a part: one between each two members.
class AllPairs {
 public:
  explicit AllPairs(ChipMask members) : members_(members), count_(CountOf(members)) {}

  std::uint64_t Into(ChipMask part) const {
    const std::uint64_t inside = CountOf(members_ & part);
    return inside * (count_ - inside);
  }
  // The messages into the part after `chip` has changed sides; `before` entered it until then.
  std::uint64_t IntoAfter(ChipMask part, std::uint64_t /*before*/, int chip) const {
    return Into(part ^ Bit(chip));
  }

 private:
  ChipMask members_;
  std::uint64_t count_;
};

// The same of one from each chip of an order to the next.
class Shift {
 public:
  explicit Shift(std::span<const std::uint8_t> order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint8_t next = order[(i + 1) % order.size()];
      next_[order[i]] = next;
      before_[next] = order[i];
      members_ |= Bit(order[i]);
    }
  }

  std::uint64_t Into(ChipMask part) const {
    std::uint64_t messages = 0;
    for (ChipMask left = part & members_; left != 0; left &= left - 1) {
      messages += Enters(part, Lowest(left)) ? 1U : 0U;
    }
    return messages;
  }
  std::uint64_t IntoAfter(ChipMask part, std::uint64_t before, int chip) const {
    if ((members_ & Bit(chip)) == 0) return before;
    const int next = next_[static_cast<std::size_t>(chip)];
    const auto near = [&](ChipMask now) {
      return (Enters(now, chip) ? 1U : 0U) + (Enters(now, next) ? 1U : 0U);
    };
    return before - near(part) + near(part ^ Bit(chip));
  }

 private:
  // Whether the message to the chip does.
  bool Enters(ChipMask part, int chip) const {
    const int from = before_[static_cast<std::size_t>(chip)];
    return (part & Bit(chip)) != 0 && (part & Bit(from)) == 0;
  }

  ChipMask members_ = 0;
  std::array<std::uint8_t, kChipsMax> next_{};
  std::array<std::uint8_t, kChipsMax> before_{};
};

// The rate into the part once the chip has changed sides.
std::uint64_t RateAfter(const Graph& graph, ChipMask part, std::uint64_t rate, int chip) {
  const bool leaves = (part & Bit(chip)) != 0;
  part &= ~Bit(chip);
  std::uint64_t from_outside = 0;
  std::uint64_t to_inside = 0;
  for (ChipMask left = graph.Into(chip) & ~part; left != 0; left &= left - 1) {
    from_outside += graph.Rate(Lowest(left), chip);
  }
  for (ChipMask left = graph.OutOf(chip) & part; left != 0; left &= left - 1) {
    to_inside += graph.Rate(chip, Lowest(left));
  }
  return leaves ? rate - from_outside + to_inside : rate + from_outside - to_inside;
}

// A part that an exchange may have to be slow for.
struct Start {
  ChipMask part = 0;
  Cut cut;
};
// The number of worst starts that are worth a climb; more find no worse parts.
constexpr std::size_t kClimbs = 12;

// Moves chips over the border of the part, one by one, as long as that makes the cut worse.
template <typename Messages>
Cut ClimbFrom(const Graph& graph, const Messages& messages, const Start& start) {
  ChipMask part = start.part;
  Cut worst = start.cut;
  for (bool better = true; better;) {
    better = false;
    for (ChipMask left = graph.chips(); left != 0; left &= left - 1) {
      const int chip = Lowest(left);
      const Cut cut{.blocks = messages.IntoAfter(part, worst.blocks, chip),
                    .rate = RateAfter(graph, part, worst.rate, chip)};
      if (cut.blocks == 0 || !cut.WorseThan(worst)) continue;
      worst = cut;
      part ^= Bit(chip);
      better = true;
    }
  }
  return worst;
}

template <typename Messages>
Cut WorstCutOf(const Graph& graph, const Messages& messages, std::span<const ChipMask> slabs) {
  std::vector<Start> starts;
  const auto look = [&](ChipMask part) {
    part &= graph.chips();
    const Cut cut{.blocks = messages.Into(part), .rate = graph.RateInto(part)};
    if (cut.blocks != 0) starts.push_back({.part = part, .cut = cut});
  };
  for (ChipMask left = graph.chips(); left != 0; left &= left - 1) {
    const ChipMask chip = left & (~left + 1);
    look(chip);
    look(~chip);
  }
  for (const ChipMask slab : slabs) look(slab);
  const auto climbs = static_cast<std::ptrdiff_t>(std::min(starts.size(), kClimbs));
  std::partial_sort(starts.begin(), starts.begin() + climbs, starts.end(),
                    [](const Start& a, const Start& b) { return a.cut.WorseThan(b.cut); });
  Cut worst{.blocks = 0, .rate = 1};
  for (auto start = starts.begin(); start != starts.begin() + climbs; ++start) {
    const Cut cut = ClimbFrom(graph, messages, *start);
    if (cut.WorseThan(worst)) worst = cut;
  }
  return worst;
}

// Links that the messages of an all-to-all take at least, over all pairs.
std::uint64_t HopsOfAllPairs(const Graph& graph, ChipMask members) {
  std::uint64_t hops = 0;
  for (ChipMask left = members; left != 0; left &= left - 1) {
    ChipMask seen = left & (~left + 1);
    std::uint64_t distance = 0;
    for (ChipMask frontier = seen; frontier != 0; ++distance) {
      hops += distance * CountOf(frontier & members);
      ChipMask next = 0;
      for (; frontier != 0; frontier &= frontier - 1) next |= graph.Into(Lowest(frontier));
      frontier = next & ~seen;
      seen |= frontier;
    }
  }
  return hops;
}

}  // namespace

ChipMask ThroughOf(const DomainLinks& links, ChipMask members) {
  return links.Reach(members) == members ? members : links.chips();
}

Cut WorstGatherCut(const DomainLinks& links, ChipMask members, ChipMask through) {
  return WorstCutInto(Graph(links, through, /*backwards=*/false), members);
}

// Scattering is gathering with every link reversed.
Cut WorstScatterCut(const DomainLinks& links, ChipMask members, ChipMask through) {
  return WorstCutInto(Graph(links, through, /*backwards=*/true), members);
}

Cut WorstBroadcastCut(const DomainLinks& links, ChipMask members, ChipMask through, int root) {
  return {.blocks = CountOf(members),
          .rate = LeastRateFrom(Graph(links, through, /*backwards=*/false), members, root)};
}

Cut WorstExchangeCut(const DomainLinks& links, ChipMask members, ChipMask through) {
  const Graph graph(links, through, /*backwards=*/false);
  const Cut worst = WorstCutOf(graph, AllPairs(members), links.topology().slabs);
  std::uint64_t all_links = 0;
  for (ChipMask left = through; left != 0; left &= left - 1) {
    const int to = Lowest(left);
    for (ChipMask from = graph.Into(to); from != 0; from &= from - 1) {
      all_links += graph.Rate(Lowest(from), to);
    }
  }
  const Cut volume{.blocks = HopsOfAllPairs(graph, members), .rate = all_links};
  return volume.WorseThan(worst) ? volume : worst;
}

Cut WorstShiftCut(const DomainLinks& links, std::span<const std::uint8_t> order, ChipMask through) {
  const Graph graph(links, through, /*backwards=*/false);
  return WorstCutOf(graph, Shift(order), links.topology().slabs);
}

namespace {

// The members one by one, and all others that are crossed as one part that sums up nothing.
Cut LonePartition(const DomainLinks& links, ChipMask members, ChipMask through) {
  const Graph graph(links, through, /*backwards=*/false);
  Cut cut{.blocks = 2 * (CountOf(members) - 1) * CountOf(members), .rate = 0};
  for (ChipMask left = members; left != 0; left &= left - 1) {
    const ChipMask chip = left & (~left + 1);
    cut.rate += graph.RateInto(chip);
    for (ChipMask to = graph.OutOf(Lowest(chip)) & ~members; to != 0; to &= to - 1) {
      cut.rate += graph.Rate(Lowest(chip), Lowest(to));
    }
  }
  return cut;
}

}  // namespace

Cut WorstReductionCut(const DomainLinks& links, ChipMask members, ChipMask through) {
  // What a part contributes leaves it, and the result enters it.
  Cut worst = WorstBroadcastCut(links, members, through, Lowest(members));
  worst.rate = std::min(worst.rate, LeastRateFrom(Graph(links, through, /*backwards=*/true),
                                                  members, Lowest(members)));
  const Cut partition =
      through == members ? WorstPartition(links, members) : LonePartition(links, members, through);
  return partition.WorseThan(worst) ? partition : worst;
}

namespace {

Picoseconds TimeOf(const Cut& cut, std::uint64_t bytes, std::uint64_t chips) {
  return TimeAtLeast(static_cast<Wide>(bytes) * cut.blocks, chips, cut.rate);
}

}  // namespace

Picoseconds LowerBound(Operation operation, ChipMask members, torus::ChipIndex root,
                       std::uint64_t bytes, const DomainLinks& links) {
  const std::uint64_t chips = CountOf(members);
  if (chips <= 1) return Picoseconds(0);
  const ChipMask through = ThroughOf(links, members);
  const auto time = [&](const Cut& cut) { return TimeOf(cut, bytes, chips); };
  switch (operation) {
    case Operation::kAllGather:
      return time(WorstGatherCut(links, members, through));
    case Operation::kReduceScatter:
      return time(WorstScatterCut(links, members, through));
    case Operation::kAllReduce:
      return time(WorstReductionCut(links, members, through));
    case Operation::kBroadcast:
      return time(WorstBroadcastCut(links, members, through, root.value()));
    case Operation::kAllToAll: {
      // A chip that is cut off makes the gathering impossible, and the exchange with it.
      const Cut gather = WorstGatherCut(links, members, through);
      return gather.rate == 0 ? Picoseconds::max()
                              : time(WorstExchangeCut(links, members, through));
    }
    case Operation::kSendReceive:
    case Operation::kPermute:
      break;
  }
  const Graph graph(links, through, /*backwards=*/false);
  Picoseconds bound(0);
  for (ChipMask left = members; left != 0; left &= left - 1) {
    const Cut into{.blocks = 1, .rate = graph.RateInto(left & (~left + 1))};
    bound = std::max(bound, TimeOf(into, bytes, 1));
  }
  return bound;
}

}  // namespace tahoma::collective
