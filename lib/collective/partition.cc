#include "lib/collective/partition.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "lib/base/check.h"
#include "lib/collective/masks.h"

namespace tahoma::collective {
namespace {

using torus::ChipMask;
using Rate = std::int64_t;  // in units of the greatest common divisor of all links' rates

std::size_t Place(int chip) { return static_cast<std::size_t>(chip); }

// The rates of the cables among some chips, both directions together.
class Cables {
 public:
  enum class Count { kBothDirections, kSlowerTwice };

  Cables(const DomainLinks& links, ChipMask chips, Count count) : chips_(chips) {
    std::uint64_t unit = 0;
    for (ChipMask left = chips; left != 0; left &= left - 1) {
      for (int port = 0; port < kPortsPerChip; ++port) {
        unit = std::gcd(unit, RateAt(links, Lowest(left), port, count));
      }
    }
    unit_ = std::max<std::uint64_t>(unit, 1);
    for (ChipMask left = chips; left != 0; left &= left - 1) {
      const int from = Lowest(left);
      for (int port = 0; port < kPortsPerChip; ++port) {
        const std::uint64_t rate = RateAt(links, from, port, count);
        if (rate == 0) continue;
        const int to = links.to(static_cast<Arc>(from * kPortsPerChip + port));
        between_[Place(from)][Place(to)] += static_cast<Rate>(rate / unit_);
        near_[Place(from)] |= Bit(to);
      }
    }
  }

  ChipMask chips() const { return chips_; }
  std::uint64_t unit() const { return unit_; }
  ChipMask Near(int chip) const { return near_[Place(chip)]; }
  Rate Between(int one, int other) const { return between_[Place(one)][Place(other)]; }
  // Over the cables from the chip to these.
  Rate To(int chip, ChipMask others) const {
    Rate sum = 0;
    for (ChipMask left = Near(chip) & others; left != 0; left &= left - 1) {
      sum += Between(chip, Lowest(left));
    }
    return sum;
  }
  // Over the border of a part.
  Rate Border(ChipMask part) const {
    Rate sum = 0;
    for (ChipMask left = part; left != 0; left &= left - 1) sum += To(Lowest(left), ~part);
    return sum;
  }

 private:
  // Zero unless the port has a neighbour among the chips.
  std::uint64_t RateAt(const DomainLinks& links, int chip, int port, Count count) const {
    const auto out = static_cast<Arc>(chip * kPortsPerChip + port);
    if (links.topology().torus.extent(torus::kAxes[Place(port / 2)]) == 1) return 0;
    const int neighbour = links.to(out);
    if ((chips_ & Bit(neighbour)) == 0 || neighbour == chip) return 0;
    const auto back = static_cast<Arc>(neighbour * kPortsPerChip + (port ^ 1));
    return count == Count::kBothDirections ? links.rate(out) + links.rate(back)
                                           : 2 * std::min(links.rate(out), links.rate(back));
  }

  ChipMask chips_;
  std::uint64_t unit_ = 1;
  std::array<std::array<Rate, kChipsMax>, kChipsMax> between_{};
  std::array<ChipMask, kChipsMax> near_{};
};

// The part around a chip with the least sum of its border, taken `times` times, and its chips'
// weights: a minimum cut.
class LeastPart {
 public:
  LeastPart(const Cables& cables, Rate times) : cables_(cables), times_(times) {}

  // Begins anew, with parts of these chips, which weigh nothing yet.
  void Within(ChipMask chips) {
    takers_ = givers_ = 0;
    for (ChipMask left = chips; left != 0; left &= left - 1) {
      const int chip = Lowest(left);
      weight_[Place(chip)] = 0;
      open_[Place(chip)] = cables_.Near(chip) & chips;
      for (ChipMask to = open_[Place(chip)]; to != 0; to &= to - 1) {
        left_[Place(chip)][Place(Lowest(to))] = times_ * cables_.Between(chip, Lowest(to));
      }
    }
  }
  // A chip of positive weight would rather stay outside.
  void Weigh(int chip, Rate weight) {
    weight_[Place(chip)] = weight;
    if (weight > 0) takers_ |= Bit(chip);
    if (weight < 0) givers_ |= Bit(chip);
  }

  ChipMask Around(int centre) {
    centre_ = Bit(centre);
    for (;;) {
      const int end = FindPath();
      if (end < 0) return seen_;
      Push(end);
    }
  }

 private:
  // From the centre or another giver to a chip that takes; -1 if there is none.
  int FindPath() {
    seen_ = centre_ | givers_;
    begins_ = seen_;
    for (ChipMask frontier = seen_; frontier != 0;) {
      if (const ChipMask ends = frontier & takers_; ends != 0) return Lowest(ends);
      ChipMask next = 0;
      for (; frontier != 0; frontier &= frontier - 1) {
        const int from = Lowest(frontier);
        const ChipMask fresh = open_[Place(from)] & ~seen_;
        seen_ |= fresh;
        next |= fresh;
        for (ChipMask left = fresh; left != 0; left &= left - 1) {
          before_[Place(Lowest(left))] = static_cast<std::uint8_t>(from);
        }
      }
      frontier = next;
    }
    return -1;
  }

  void Push(int end) {
    Rate amount = weight_[Place(end)];
    int begin = end;
    for (; (begins_ & Bit(begin)) == 0; begin = before_[Place(begin)]) {
      amount = std::min(amount, left_[before_[Place(begin)]][Place(begin)]);
    }
    const bool endless = Bit(begin) == centre_;
    if (!endless) amount = std::min(amount, -weight_[Place(begin)]);
    for (int at = end; at != begin; at = before_[Place(at)]) {
      const int from = before_[Place(at)];
      if ((left_[Place(from)][Place(at)] -= amount) == 0) open_[Place(from)] &= ~Bit(at);
      left_[Place(at)][Place(from)] += amount;
      open_[Place(at)] |= Bit(from);
    }
    if ((weight_[Place(end)] -= amount) == 0) takers_ &= ~Bit(end);
    if (!endless && (weight_[Place(begin)] += amount) == 0) givers_ &= ~Bit(begin);
  }

  const Cables& cables_;
  const Rate times_;
  std::array<std::array<Rate, kChipsMax>, kChipsMax> left_{};
  std::array<ChipMask, kChipsMax> open_{};
  std::array<Rate, kChipsMax> weight_{};
  ChipMask centre_ = 0;
  ChipMask takers_ = 0;
  ChipMask givers_ = 0;
  ChipMask seen_ = 0;
  ChipMask begins_ = 0;
  std::array<std::uint8_t, kChipsMax> before_{};
};

// Whether all chips are in some part, or only those of parts that are worth it.
enum class Parts { kOfAll, kOfSome };

// The least sum of A * border - B over disjoint parts, as values of chips that add up to it.
struct Truncation {
  std::array<Rate, kChipsMax> value{};
  Rate sum = 0;
  std::vector<ChipMask> parts;  // of the sum
};

Truncation Truncate(const Cables& cables, Rate a, Rate b, Parts which) {
  Truncation found;
  LeastPart cut(cables, a);
  ChipMask done = 0;
  for (ChipMask left = cables.chips(); left != 0; left &= left - 1) {
    const int chip = Lowest(left);
    const ChipMask later = cables.chips() & ~done & ~Bit(chip);
    cut.Within(done | Bit(chip));
    for (ChipMask others = done; others != 0; others &= others - 1) {
      const int other = Lowest(others);
      cut.Weigh(other, a * cables.To(other, later) - found.value[Place(other)]);
    }
    ChipMask part = cut.Around(chip);
    Rate value = a * cables.Border(part) - b;
    for (ChipMask inside = part & ~Bit(chip); inside != 0; inside &= inside - 1) {
      value -= found.value[Place(Lowest(inside))];
    }
    done |= Bit(chip);
    if (which == Parts::kOfSome && value >= 0) continue;
    found.value[Place(chip)] = value;
    found.sum += value;
    // Parts whose sum is least stay so when they have chips in common and become one.
    std::erase_if(found.parts, [&](ChipMask one) {
      if ((one & part) == 0) return false;
      part |= one;
      return true;
    });
    found.parts.push_back(part);
  }
  return found;
}

// A partition as the numbers A and B of its truncation.
struct Ratio {
  Rate a = 0;  // parts less one
  Rate b = 1;  // the sum of their borders
};

Ratio RatioOf(const Cables& cables, const std::vector<ChipMask>& parts) {
  Ratio ratio{.a = static_cast<Rate>(parts.size()) - 1, .b = 0};
  for (const ChipMask part : parts) ratio.b += cables.Border(part);
  return ratio;
}

std::vector<ChipMask> LoneParts(ChipMask chips) {
  std::vector<ChipMask> parts;
  for (; chips != 0; chips &= chips - 1) parts.push_back(chips & (~chips + 1));
  return parts;
}

// The cut of a partition of all chips.
Cut CutOf(const Cables& cables, const Ratio& ratio) {
  // The border of each part counts what crosses it, so the sum has every cable twice.
  return {.blocks = static_cast<std::uint64_t>(4 * ratio.a) *
                    static_cast<std::uint64_t>(std::popcount(cables.chips())),
          .rate = static_cast<std::uint64_t>(ratio.b) * cables.unit()};
}

// The worst partition, and the truncation that shows that none is worse.
struct Worst {
  Ratio ratio;
  Truncation truncation;
};

// b of the ratio is 0 when chips are cut off.
Worst WorstOf(const Cables& cables, Parts which) {
  Worst worst{.ratio = RatioOf(cables, LoneParts(cables.chips())), .truncation = {}};
  while (worst.ratio.b != 0) {
    worst.truncation = Truncate(cables, worst.ratio.a, worst.ratio.b, which);
    if (worst.truncation.sum >= -worst.ratio.b) break;
    worst.ratio = RatioOf(cables, worst.truncation.parts);
  }
  return worst;
}

}  // namespace

Cut WorstPartition(const DomainLinks& links, ChipMask members) {
  TAHOMA_CHECK(std::popcount(members) > 1);
  const Cables cables(links, members, Cables::Count::kBothDirections);
  return CutOf(cables, WorstOf(cables, Parts::kOfAll).ratio);
}

SumShares BestSumShares(const DomainLinks& links, ChipMask members) {
  TAHOMA_CHECK(std::popcount(members) > 1);
  const Cables cables(links, members, Cables::Count::kSlowerTwice);
  const Worst worst = WorstOf(cables, Parts::kOfSome);
  SumShares shares;
  shares.phase = {.blocks = static_cast<std::uint64_t>(2 * worst.ratio.a) *
                            static_cast<std::uint64_t>(std::popcount(members)),
                  .rate = static_cast<std::uint64_t>(worst.ratio.b) * cables.unit()};
  if (worst.ratio.b == 0) return shares;
  // In the time T = 2 A / B a part can send T * border / 2 of the whole, so it must own the rest.
  shares.whole = static_cast<std::uint64_t>(worst.ratio.b);
  std::uint64_t sum = 0;
  for (ChipMask left = members; left != 0; left &= left - 1) {
    const Rate value = worst.truncation.value[Place(Lowest(left))];
    sum += shares.of[Place(Lowest(left))] = static_cast<std::uint64_t>(-value);
  }
  TAHOMA_CHECK(sum == shares.whole);
  return shares;
}

}  // namespace tahoma::collective
