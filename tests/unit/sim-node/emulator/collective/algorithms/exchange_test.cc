// All-to-all, send-receive and permute around damage: what they cost, against the cuts of what is
// left, and that bytes still go where they belong.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <set>

#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "sim-node/emulator/collective/plan/bound.h"
#include "sim-node/emulator/collective/plan/plan.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::ChipMask;
using torus::Direction;

constexpr ChipMask kHalf = 0xffff'ffff;

struct Cable {
  int chip;
  Axis axis;
};

TorusLinks Without(const std::vector<Cable>& cables) {
  TorusLinks links = testing::UltraServer(LinkTiming{});
  for (const Cable& cable : cables) {
    const LinkId link = TorusLinks::IdOf(ChipIndex(cable.chip), cable.axis, Direction::kPlus);
    EXPECT_TRUE(links.SetCablePermille(link, 0).ok());
  }
  return links;
}

absl::StatusOr<Plan> PlanOf(Operation operation, ChipMask chips, std::uint64_t bytes,
                            const TorusLinks& links, const PlanOptions& options = {}) {
  return PlanCollective({.operation = operation, .bytes = bytes}, MembersOf(chips), links, options);
}

VirtualDuration TimeOf(const absl::StatusOr<Plan>& plan) {
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? plan->times.end - plan->times.start : VirtualDuration::max();
}

// Every rank's buffer of noise arrives where the operation says.
void ExpectBytesArrive(const Request& request, const std::vector<Member>& members, const Plan& plan,
                       std::uint64_t seed) {
  Rng rng(seed);
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::span<std::byte>> sent;
  std::vector<std::span<std::byte>> got;
  std::vector<ChipBuffer> views;
  for (const Member& member : members) {
    auto& chip = memory.emplace_back(ChipBufferBytes(request, member.ranks));
    for (std::byte& one : chip) one = static_cast<std::byte>(rng.Below(256));
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    views.push_back({.chip = members[i].chip, .bytes = memory[i]});
    const auto ranks = static_cast<std::size_t>(members[i].ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      sent.push_back(std::span(memory[i]).subspan(rank * request.bytes, request.bytes));
      got.push_back(std::span(memory[i]).subspan((ranks + rank) * request.bytes, request.bytes));
    }
  }
  Execute(plan.schedule, request.type, ReduceOp::kSum, views);
  const std::size_t block = request.bytes / Size(request.type) / sent.size() * Size(request.type);
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    if (request.operation != Operation::kAllToAll) {
      const auto source = static_cast<std::size_t>(plan.sources.at(rank));
      EXPECT_TRUE(std::ranges::equal(got[rank], sent[source])) << "seed " << seed;
      continue;
    }
    for (std::size_t from = 0; from < sent.size(); ++from) {
      EXPECT_TRUE(std::ranges::equal(got[rank].subspan(from * block, block),
                                     sent[from].subspan(rank * block, block)))
          << "seed " << seed << ", from " << from << " to " << rank;
    }
  }
}

TEST(ExchangeTest, EveryBlockArrivesWhateverIsDownAndHowManyRanksThereAre) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    std::vector<Cable> cables;
    for (std::uint64_t i = 1 + rng.Below(3); i > 0; --i) {
      cables.push_back(
          {.chip = static_cast<int>(rng.Below(16)), .axis = torus::kAxes.at(rng.Below(2))});
    }
    const TorusLinks links = Without(cables);
    const ChipMask chips = seed % 2 == 0 ? 0xffff : rng.Next() & 0xffff;
    if (std::popcount(chips) < 2) continue;
    for (const Operation operation : kExchanges) {
      std::vector<Member> members = MembersOf(chips, 1 + static_cast<int>(rng.Below(4)));
      if (operation != Operation::kPermute) members[0].ranks = 3;
      std::rotate(members.begin(), members.begin() + 1, members.end());
      const Request request{
          .operation = operation, .bytes = 2 * (8192 + rng.Below(500)), .type = ElementType::kBf16};
      const auto plan = PlanCollective(request, members, links);
      if (!plan.ok()) {
        EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
        continue;
      }
      ExpectBytesArrive(request, members, *plan, seed);
    }
  }
}

TEST(ExchangeTest, ABrokenCableMakesNothingFasterAtAnySize) {
  const TorusLinks links = Without({{5, Axis::kX}});
  for (const Operation operation : kExchanges) {
    for (std::uint64_t bytes = 256; bytes <= kGiB; bytes *= 16) {
      EXPECT_GE(TimeOf(PlanOf(operation, 0xffff, bytes, links)),
                TimeOf(PlanOf(operation, 0xffff, bytes, testing::UltraServer(LinkTiming{}))))
          << Name(operation) << " of " << bytes;
    }
  }
}

TEST(ExchangeTest, TheSamePlanComesOutEveryTime) {
  const TorusLinks links = Without({{5, Axis::kZ}, {9, Axis::kX}});
  const auto one = PlanOf(Operation::kAllToAll, kHalf, 16 * kMiB, links);
  const auto other = PlanOf(Operation::kAllToAll, kHalf, 16 * kMiB, links);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->schedule.steps, other->schedule.steps);
  EXPECT_EQ(one->times.end, other->times.end);
}

TEST(ExchangeTest, WhoIsCutOffIsNamed) {
  TorusLinks links = testing::UltraServer(LinkTiming{});
  for (const Axis axis : torus::kAxes) {
    for (const Direction direction : torus::kDirections) {
      ASSERT_TRUE(links.SetCablePermille(TorusLinks::IdOf(ChipIndex(5), axis, direction), 0).ok());
    }
  }
  for (const Operation operation : kExchanges) {
    const auto plan = PlanOf(operation, 0xffff, kMiB, links);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(Message(plan.status()).find("chip 5"), std::string::npos) << plan.status();
  }
}

}  // namespace
}  // namespace tahoma::sim
