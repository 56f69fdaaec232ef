// Tests the choice of an algorithm: Neuron's published crossovers, and always the fastest that is
// offered.

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "lib/base/status.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::MicrosecondsOf;
using testing::UltraServer;
using torus::ChipMask;

// Returns the fastest algorithm for both phases, as Neuron chooses. PlanCollective may take one for
// each phase between the sizes where they cross.
Algorithm NeuronsChoice(std::uint64_t bytes, const PlanOptions& options = {}) {
  std::optional<Plan> best;
  for (const Algorithm algorithm :
       {Algorithm::kMesh, Algorithm::kRdh, Algorithm::kKangaRing, Algorithm::kRing}) {
    auto plan = PlanWith(algorithm, {.bytes = bytes, .type = ElementType::kUint8},
                         MembersOf(0xffff, 4), Instance(LinkTiming{}), options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!best || plan->times.end < best->times.end) best = *std::move(plan);
  }
  return best->algorithm;
}

// The least size in [low, high] at which the choice is no longer `algorithm`, by bisection.
std::uint64_t LastOf(Algorithm algorithm, std::uint64_t low, std::uint64_t high,
                     const PlanOptions& options = {}) {
  EXPECT_EQ(NeuronsChoice(low, options), algorithm);
  EXPECT_NE(NeuronsChoice(high, options), algorithm);
  while (high - low > 1000) {
    const std::uint64_t middle = low + (high - low) / 2;
    (NeuronsChoice(middle, options) == algorithm ? low : high) = middle;
  }
  return high;
}

// docs/reference/collectives.md#mesh-and-where-aws-changes: mesh below 1 MB, RDH from 1 to 56 MB,
// KangaRing beyond.
TEST(ModeTest, NeuronsAlgorithmsCrossWhereAwsSaysOn16Chips) {
  const std::uint64_t rdh = LastOf(Algorithm::kMesh, 4 * kKiB, 16'000'000);
  EXPECT_GE(rdh, 500'000u);
  EXPECT_LE(rdh, 2'000'000u);
  EXPECT_EQ(NeuronsChoice(rdh), Algorithm::kRdh);
  const std::uint64_t kangaring = LastOf(Algorithm::kRdh, 4'000'000, kGiB);
  EXPECT_GE(kangaring, 28'000'000u);
  EXPECT_LE(kangaring, 112'000'000u);
  EXPECT_EQ(NeuronsChoice(kangaring), Algorithm::kKangaRing);
}

// Without the costs of memory rdh has nothing to lose, without CC-cores mesh has not.
TEST(ModeTest, TheCrossoversComeFromTheCostsOfTheChips) {
  PlanOptions options;
  options.costs.cc_cores = false;
  EXPECT_GT(LastOf(Algorithm::kMesh, 4 * kKiB, 16'000'000, options), 2'000'000u);
  options = {};
  options.costs.memory = false;
  EXPECT_EQ(NeuronsChoice(kGiB, options), Algorithm::kRdh);
}

TEST(ModeTest, KangaRingBeatsRingAtAllSizes) {
  for (std::uint64_t bytes = kKiB; bytes <= kGiB; bytes *= 8) {
    const auto time = [&](Algorithm algorithm) {
      return MicrosecondsOf(
          *PlanWith(algorithm, {.bytes = bytes}, MembersOf(0xffff, 4), Instance(LinkTiming{})));
    };
    EXPECT_LT(time(Algorithm::kKangaRing), time(Algorithm::kRing)) << bytes;
  }
}

// Every algorithm on every class of box, from 1 KiB to 1 GiB.
TEST(ModeTest, NoAlgorithmOfNeuronIsMoreThanAPercentFasterThanTheChosenOne) {
  const TorusLinks links = UltraServer(LinkTiming{});
  for (const char* shape : {"2x1x1", "2x2x1", "4x1x1", "4x2x1", "4x4x1", "1x1x2", "1x1x4", "2x1x2",
                            "2x2x2", "4x2x2", "4x1x4", "4x4x2", "4x4x4"}) {
    for (const torus::Box& box : torus::BoxTable::Of(links.torus()).all()) {
      if (box.ToString() != std::string(shape) + "+0,0,0") continue;
      for (const int ranks : {1, 4}) {
        const auto members = MembersOf(box.mask, ranks);
        for (const Operation operation : {Operation::kAllReduce, Operation::kAllGather}) {
          for (std::uint64_t bytes = kKiB; bytes <= kGiB; bytes *= 32) {
            const Request request{.operation = operation, .bytes = bytes};
            const auto chosen = PlanCollective(request, members, links);
            ASSERT_TRUE(chosen.ok()) << chosen.status();
            for (const Algorithm algorithm : kAllAlgorithms) {
              if (algorithm == Algorithm::kTree) continue;  // no box needs trees
              const auto plan = PlanWith(algorithm, request, members, links);
              if (!plan.ok()) continue;
              EXPECT_LE(MicrosecondsOf(*chosen), 1.01 * MicrosecondsOf(*plan))
                  << Name(operation) << " of " << bytes << " on " << shape << ", "
                  << Name(chosen->algorithm) << " instead of " << Name(algorithm);
            }
          }
        }
      }
    }
  }
}

TEST(ModeTest, TreesServeChipsThatFormNoBox) {
  const auto chosen = [](std::uint64_t bytes, ChipMask mask) {
    return PlanCollective({.bytes = bytes}, MembersOf(mask), UltraServer(LinkTiming{}))->algorithm;
  };
  EXPECT_EQ(chosen(64 * kKiB, 0xffff), Algorithm::kMesh);
  EXPECT_EQ(chosen(64 * kMiB, 0xffff), Algorithm::kRdh);
  EXPECT_EQ(chosen(kGiB, kAllChips), Algorithm::kRing);
  EXPECT_EQ(chosen(64 * kMiB, 0x0777), Algorithm::kTree);
}

TEST(ModeTest, AnAlgorithmThatTheChipsDoNotAllowIsRefusedWithTheReason) {
  const TorusLinks links = UltraServer();
  const auto refusal = [&](Algorithm algorithm, const std::vector<Member>& members) {
    return std::string(Message(PlanWith(algorithm, {.bytes = 64}, members, links).status()));
  };
  EXPECT_EQ(refusal(Algorithm::kKangaRing, MembersOf(0xff, 2)),
            "kangaring needs all ranks of each chip, 4 or 8; chip 0 has 2, chip 0 2");
  EXPECT_EQ(refusal(Algorithm::kKangaRing, {{.chip = torus::ChipIndex(0), .ranks = 4},
                                            {.chip = torus::ChipIndex(1), .ranks = 8}}),
            "kangaring needs all ranks of each chip, 4 or 8; chip 0 has 4, chip 1 8");
  EXPECT_EQ(Message(ParseAlgorithm("butterfly").status()),
            "unknown algorithm \"butterfly\"; expected one of mesh, rdh, ring, kangaring, tree");
  EXPECT_EQ(*ParseAlgorithm("kangaring"), Algorithm::kKangaRing);
}

}  // namespace
}  // namespace tahoma::sim
