// Answers that physics forbids, looked for in random cases: any number of domains, chips, ranks,
// size, and damage. The bounds count bytes over the links, the NICs and the memory of one
// chip or one domain; they share nothing with the code that plans.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/domains/bound_over_domains.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "tests/support/patience.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;

// The seed of the cases and how many times as many there are: sim_collective_sanity_test --seed=S
// --times=N asks for others.
std::uint64_t seed = 1;
int times = 1;

// Sanitizers make planning ten times as slow.
int Cases(int count) { return count * times / (tahoma::testing::kSanitized ? 10 : 1); }

Rng RandomFor(std::uint64_t test) { return Rng(seed * 1000 + test); }

constexpr double kEfaBytesPerSecond = hw::kTrainium2.links.efa;
constexpr double kMemoryBytesPerSecond = 2.9e12;

// One request on one fabric, with all that is needed to ask a like one.
struct Case {
  std::vector<TorusLinks> domains;
  torus::ChipMask chips = 0;  // of each domain
  int ranks = 1;              // of each chip
  std::uint64_t bytes = 0;
  std::vector<std::pair<int, int>> dead_nics;  // domain, chip: in both directions
  std::uint32_t oversubscription = 1000;       // permille, of the layer above pairs of domains

  std::uint64_t chip_count() const {
    return static_cast<std::uint64_t>(std::popcount(chips)) * domains.size();
  }
  Fabric MakeFabric() const {
    Fabric fabric(domains, hw::kTrainium2.links.efa,
                  {.oversubscription_permille = {1000, 1000, oversubscription}},
                  RegularPlaces(static_cast<int>(domains.size()),
                                {.domains_under_layer3 = 2, .layer3_under_layer2 = 8}));
    for (const auto& [domain, chip] : dead_nics) {
      for (const NicDirection direction : {NicDirection::kOut, NicDirection::kIn}) {
        TAHOMA_CHECK_OK(
            fabric.SetPermille(fabric.NicOf(Fabric::ChipOf(domain, chip), direction), 0));
      }
    }
    return fabric;
  }
  std::vector<Member> Members() const {
    std::vector<Member> members;
    for (int domain = 0; domain < static_cast<int>(domains.size()); ++domain) {
      for (const Member& local : MembersOf(chips, ranks)) {
        members.push_back({.chip = Fabric::ChipOf(domain, local.chip.value()), .ranks = ranks});
      }
    }
    return members;
  }
  // Microseconds; -1 when the planner refuses.
  double Time(Operation operation) const {
    const auto plan =
        PlanOnFabric({.operation = operation, .bytes = bytes}, Members(), MakeFabric());
    if (!plan.ok()) return -1;
    return testing::MicrosecondsOf(*plan);
  }
  std::string ToString() const {
    std::string text =
        fmt::format("{} domains of {}, chips {:#x}, {} ranks, {} bytes", domains.size(),
                    domains[0].torus().ToString(), chips, ranks, bytes);
    for (const auto& [domain, chip] : dead_nics) text += fmt::format(", NIC {}/{}", domain, chip);
    if (oversubscription != 1000) text += fmt::format(", uplinks 1000/{}", oversubscription);
    return text;
  }
};

std::uint64_t Between(Rng& rng, std::uint64_t least, std::uint64_t most) {
  return least + rng.Below(most - least + 1);
}

std::uint64_t RandomBytes(Rng& rng, const Case& of) {
  // Every rank has a block of whole elements.
  const std::uint64_t grain = of.chip_count() * static_cast<std::uint64_t>(of.ranks) * 4;
  const std::uint64_t most = std::uint64_t{1} << Between(rng, 12, 30);
  return std::max<std::uint64_t>(1, most / grain) * grain;
}

torus::ChipMask RandomChips(Rng& rng, const torus::Shape& torus) {
  const auto boxes = torus::BoxTable::Of(torus).all();
  if (rng.Below(4) != 0) return boxes[rng.Below(boxes.size())].mask;
  torus::ChipMask chips = 0;
  while (chips == 0) chips = rng.Next() & rng.Next() & 0xffff;
  return chips;
}

void Damage(Rng& rng, Case& of) {
  for (TorusLinks& links : of.domains) {
    for (std::uint64_t i = rng.Below(3); i > 0; --i) {
      const auto chip = torus::ChipIndex(static_cast<int>(rng.Below(16)));
      const torus::Axis axis = rng.Below(2) == 0 ? torus::Axis::kX : torus::Axis::kY;
      TAHOMA_CHECK_OK(links.SetPermille(TorusLinks::IdOf(chip, axis, torus::Direction::kPlus),
                                        rng.Below(2) == 0 ? 0 : 500));
    }
  }
  if (of.domains.size() > 2 && rng.Below(3) == 0) {
    of.oversubscription = static_cast<std::uint32_t>(1000 * Between(rng, 2, 8));
  }
  if (of.domains.size() > 1 && rng.Below(2) == 0) {
    const auto domain = static_cast<int>(rng.Below(of.domains.size()));
    for (int chip = 0; chip < 16; ++chip) {
      if ((of.chips >> chip & 1U) != 0 && rng.Below(3) == 0)
        of.dead_nics.emplace_back(domain, chip);
    }
  }
}

Case RandomCase(Rng& rng, bool damaged) {
  Case one;
  one.domains.assign(Between(rng, 1, 4), rng.Below(4) == 0 ? UltraServer() : Instance());
  one.chips = RandomChips(rng, one.domains[0].torus());
  one.ranks = 1 << rng.Below(4);
  one.bytes = RandomBytes(rng, one);
  if (damaged) Damage(rng, one);
  return one;
}

// The share of the bytes that must go into (or out of) a part of the chips that holds `share` of
// all, and the first of them if `root`: of a sum everything, of blocks those that are elsewhere (or
// here), of a broadcast everything into the others (or out of the root).
double Into(Operation operation, double share, bool root) {
  switch (operation) {
    case Operation::kAllGather:
      return 1 - share;
    case Operation::kReduceScatter:
      return share < 1 ? share : 0;
    case Operation::kBroadcast:
      return root ? 0 : 1;
    default:
      return share < 1 ? 1 : 0;
  }
}
double OutOf(Operation operation, double share, bool root) {
  switch (operation) {
    case Operation::kAllGather:
      return share < 1 ? share : 0;
    case Operation::kReduceScatter:
      return 1 - share;
    case Operation::kBroadcast:
      return root && share < 1 ? 1 : 0;
    default:
      return share < 1 ? 1 : 0;
  }
}

// Microseconds that no collective beats.
double Bound(const Case& of, Operation operation) {
  const auto bytes = static_cast<double>(of.bytes);
  const int read_and_written = operation == Operation::kAllReduce ? 2 : 1;
  double least = bytes * of.ranks * read_and_written / kMemoryBytesPerSecond;
  if (of.chip_count() * static_cast<std::uint64_t>(of.ranks) == 1) least = 0;
  for (std::size_t domain = 0; domain < of.domains.size(); ++domain) {
    const auto dead = [&](int chip) {
      return std::ranges::count(of.dead_nics, std::pair(static_cast<int>(domain), chip)) > 0;
    };
    double nics = 0;
    for (int chip = 0; chip < 64; ++chip) {
      if ((of.chips >> chip & 1U) != 0 && !dead(chip)) nics += kEfaBytesPerSecond;
    }
    const double share = 1.0 / static_cast<double>(of.domains.size());
    if (nics > 0) least = std::max(least, bytes * Into(operation, share, domain == 0) / nics);
    if (nics > 0) least = std::max(least, bytes * OutOf(operation, share, domain == 0) / nics);
    for (int chip = 0; chip < 64; ++chip) {
      if ((of.chips >> chip & 1U) == 0) continue;
      const TorusLinks& links = of.domains[domain];
      const bool alone = of.domains.size() == 1 || dead(chip);
      double out = alone ? 0 : kEfaBytesPerSecond;
      for (const torus::Axis axis : torus::kAxes) {
        for (const torus::Direction direction :
             {torus::Direction::kPlus, torus::Direction::kMinus}) {
          if (links.torus().extent(axis) < 2) continue;
          out += static_cast<double>(
              links.capacity(TorusLinks::IdOf(torus::ChipIndex(chip), axis, direction)));
        }
      }
      const double part = 1.0 / static_cast<double>(of.chip_count());
      const bool root = domain == 0 && chip == std::countr_zero(of.chips);
      if (out > 0) least = std::max(least, bytes * OutOf(operation, part, root) / out);
    }
  }
  return least * 1e6;
}

constexpr Operation kOperations[] = {Operation::kAllReduce, Operation::kReduceScatter,
                                     Operation::kAllGather, Operation::kBroadcast};
// Broadcasts take the longest to plan: every third case has one.
std::span<const Operation> OperationsOf(int i) {
  return std::span(kOperations).first(i % 3 == 0 ? 4 : 3);
}
// Rounding to whole elements and picoseconds.
constexpr double kRounding = 1.0002;

TEST(SanityTest, NoAnswerIsFasterThanMemoryLinksOrNicsAllow) {
  Rng rng = RandomFor(1);
  for (int i = 0; i < Cases(600); ++i) {
    const Case one = RandomCase(rng, /*damaged=*/i % 2 == 1);
    for (const Operation operation : OperationsOf(i)) {
      const double time = one.Time(operation);
      if (time < 0) continue;
      EXPECT_GE(time * kRounding, Bound(one, operation))
          << Name(operation) << ", " << one.ToString();
    }
  }
}

TEST(SanityTest, AnAllReduceIsNotFasterThanItsFirstHalfNorSlowerThanBoth) {
  Rng rng = RandomFor(2);
  for (int i = 0; i < Cases(600); ++i) {
    const Case one = RandomCase(rng, /*damaged=*/i % 2 == 1);
    const double all = one.Time(Operation::kAllReduce);
    const double scatter = one.Time(Operation::kReduceScatter);
    const double gather = one.Time(Operation::kAllGather);
    if (all < 0 || scatter < 0 || gather < 0) continue;
    EXPECT_GE(all * kRounding, scatter) << one.ToString();
    // Over several domains the first chunk's reduction and the last one's gathering hide nothing.
    EXPECT_LE(all, (scatter + gather) * (one.domains.size() > 1 ? 1.05 : 1.01) + 3)
        << one.ToString();
  }
}

TEST(SanityTest, MoreDomainsAreNotFasterForTheSameBytesOfARank) {
  Rng rng = RandomFor(3);
  for (int i = 0; i < Cases(300); ++i) {
    Case one = RandomCase(rng, /*damaged=*/false);
    for (const Operation operation : OperationsOf(i)) {
      Case more = one;
      more.domains.push_back(one.domains[0]);
      if (operation == Operation::kAllGather || operation == Operation::kReduceScatter) {
        // The buffer of all grows with the blocks.
        more.bytes = one.bytes / one.chip_count() * more.chip_count();
      }
      const double time = one.Time(operation);
      EXPECT_GE(more.Time(operation) * kRounding, time)
          << Name(operation) << ", " << one.ToString();
    }
  }
}

TEST(SanityTest, DamageMakesNothingFaster) {
  Rng rng = RandomFor(4);
  for (int i = 0; i < Cases(200); ++i) {
    const Case healthy = RandomCase(rng, /*damaged=*/false);
    Case damaged = healthy;
    Damage(rng, damaged);
    for (const Operation operation : OperationsOf(i)) {
      const double time = damaged.Time(operation);
      if (time < 0) continue;
      EXPECT_GE(time * kRounding, healthy.Time(operation))
          << Name(operation) << ", " << damaged.ToString();
    }
  }
}

TEST(SanityTest, MoreBytesTakeNoLessTime) {
  Rng rng = RandomFor(5);
  for (int i = 0; i < Cases(200); ++i) {
    const Case one = RandomCase(rng, /*damaged=*/i % 2 == 1);
    Case more = one;
    more.bytes = one.bytes * Between(rng, 2, 5);
    for (const Operation operation : OperationsOf(i)) {
      const double time = one.Time(operation);
      if (time < 0) continue;
      EXPECT_GE(more.Time(operation) * kRounding, time)
          << Name(operation) << ", " << one.ToString();
    }
  }
}

// The bounds that tools print beside times.
TEST(SanityTest, NoTimeIsBelowTheBoundThatIsPrintedBesideIt) {
  Rng rng = RandomFor(6);
  for (int i = 0; i < Cases(200); ++i) {
    const Case one = RandomCase(rng, /*damaged=*/i % 2 == 1);
    for (const Operation operation :
         {Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
          Operation::kBroadcast, Operation::kAllToAll, Operation::kPermute}) {
      const double time = one.Time(operation);
      if (time < 0) continue;
      const Request request{.operation = operation, .bytes = one.bytes};
      const Fabric fabric = one.MakeFabric();
      const auto bound = one.domains.size() > 1
                             ? LowerBoundOnFabric(request, one.Members(), fabric)
                             : LowerBound(request, one.Members(), one.domains[0]);
      if (!bound) continue;
      EXPECT_GE(time * kRounding, Nanoseconds(*bound) / 1e3)
          << Name(operation) << ", " << one.ToString();
    }
  }
}

}  // namespace
}  // namespace tahoma::sim

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto number = [&](std::string_view flag) {
      return std::stoull(std::string(word.substr(flag.size())));
    };
    if (word.starts_with("--seed=")) tahoma::sim::seed = number("--seed=");
    if (word.starts_with("--times=")) tahoma::sim::times = static_cast<int>(number("--times="));
  }
  return RUN_ALL_TESTS();
}
