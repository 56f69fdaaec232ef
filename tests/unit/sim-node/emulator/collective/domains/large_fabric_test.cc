// Tests collectives over many topology domains against closed forms of what NeuronLinks and NICs
// need, and against the same collectives with every message listed.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "sim-node/emulator/collective/domains/bound_over_domains.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"
#include "tests/unit/sim-node/emulator/collective/domains/support.h"

namespace tahoma::sim {
namespace {

using testing::Everywhere;
using testing::Instance;
using testing::Joined;
using testing::MicrosecondsOf;
using testing::UltraServer;

constexpr double kNic = 25e3;  // bytes in a microsecond
constexpr double kLinks = 4 * 128e3 + 2 * 64e3;

// All chips of the domains, in this order.
std::vector<Member> MembersIn(const Fabric& fabric, const std::vector<int>& domains) {
  std::vector<Member> members;
  for (const int domain : domains) {
    for (int chip = 0; chip < fabric.domain(domain).torus().chip_count(); ++chip) {
      members.push_back({.chip = Fabric::ChipOf(domain, chip)});
    }
  }
  return members;
}

struct Large {
  Operation operation;
  double chip_us;  // what the links and the NIC of a chip need
  double nic_us;   // what the NICs of a domain need
  double most;     // over the larger of both
};

// The defect: a message for each two domains, so that 1,024 UltraServers took 206 s and 8 GiB.
TEST(LargeFabricTest, ThousandUltraServersStayNearWhatTheirLinksAndNicsNeed) {
  constexpr int kDomains = 1024;
  const Fabric fabric = Joined(UltraServer(LinkTiming{}), kDomains);
  const double bytes = kGiB;
  const double others = (kDomains - 1.0) / kDomains;
  for (const Large& large :
       {Large{Operation::kAllReduce, 2 * bytes / (kLinks + kNic), 2 * others * bytes / 64 / kNic,
              1.11},
        Large{Operation::kAllGather, bytes / (kLinks + kNic), others * bytes / 64 / kNic, 1.18},
        Large{Operation::kReduceScatter, bytes / (kLinks + kNic), others * bytes / 64 / kNic, 1.18},
        Large{Operation::kBroadcast, bytes / (kLinks + kNic), bytes / 64 / kNic, 2.21},
        Large{Operation::kAllToAll, 0, others * bytes / kNic, 1.07}}) {
    const Request request{.operation = large.operation, .bytes = kGiB};
    const auto plan = PlanOnFabric(request, Everywhere(fabric), fabric);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const double need = std::max(large.chip_us, large.nic_us);
    EXPECT_GE(MicrosecondsOf(*plan), 0.9999 * need) << Name(large.operation);
    EXPECT_LE(MicrosecondsOf(*plan), large.most * need) << Name(large.operation);
    // What is kept and timed grows with the domains, not with their square.
    std::size_t entries = 0;
    for (const ScheduledStep& scheduled : plan->schedule.scheduled) {
      entries = std::max(entries, scheduled.copies.size() + scheduled.parts.size());
    }
    EXPECT_LE(entries, 2U * kDomains);
    EXPECT_LT(plan->times.steps.size(), 10'000U);
    const auto bound = LowerBoundOnFabric(request, Everywhere(fabric), fabric);
    ASSERT_TRUE(bound.has_value());
    EXPECT_NEAR(Nanoseconds(*bound) / 1e3, need, 0.0001 * need) << Name(large.operation);
  }
}

// Domains in another order are not in a row, so each message is listed. Times may differ by how
// parts of unequal length are dealt out.
TEST(LargeFabricTest, OneMessageForManyTakesAsLongAsAllOfThemListed) {
  const Fabric fabric = Joined(Instance(LinkTiming{}), 7);
  const std::vector<Member> in_a_row = MembersIn(fabric, {0, 1, 2, 3, 4, 5, 6});
  const std::vector<Member> shuffled = MembersIn(fabric, {0, 2, 1, 3, 6, 4, 5});
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kBroadcast, Operation::kAllToAll}) {
    for (const std::uint64_t bytes : {std::uint64_t{448}, 7 * kMiB, 64 * kMiB, 256 * kMiB + 4}) {
      const Request request{.operation = operation, .bytes = bytes};
      const auto one = PlanOnFabric(request, in_a_row, fabric);
      const auto all = PlanOnFabric(request, shuffled, fabric);
      ASSERT_TRUE(one.ok() && all.ok()) << one.status();
      EXPECT_LE(MicrosecondsOf(*one), 1.002 * MicrosecondsOf(*all))
          << Name(operation) << " of " << bytes;
      EXPECT_GE(MicrosecondsOf(*one), 0.98 * MicrosecondsOf(*all))
          << Name(operation) << " of " << bytes;
    }
  }
}

// The defect: more than 512 domains were refused as soon as two of them differed.
TEST(LargeFabricTest, ThousandUltraServersWithFaultsTakeLittleMoreThanWithout) {
  constexpr int kDomains = 1000;
  Fabric fabric = Joined(UltraServer(LinkTiming{}), kDomains);
  for (const int domain : {17, 400, 999}) {
    ASSERT_TRUE(fabric.SetNicPermille(Fabric::ChipOf(domain, 17), 0).ok());
  }
  ASSERT_TRUE(fabric.SetNicPermille(Fabric::ChipOf(123, 5), 500).ok());
  std::vector<int> order;
  for (int domain = kDomains - 1; domain >= 0; --domain) order.push_back(domain);
  const std::vector<Member> members = MembersIn(fabric, order);
  // What a chip without NIC must get over its links, or send.
  const auto bytes = static_cast<double>(members.size() * 4 * 4096);
  for (const auto& [operation, most] : {std::pair(Operation::kAllReduce, 1.22),
                                        {Operation::kAllGather, 1.35},
                                        {Operation::kReduceScatter, 1.35},
                                        {Operation::kBroadcast, 2.27}}) {
    const Request request{.operation = operation, .bytes = members.size() * 4 * 4096};
    const auto plan = PlanOnFabric(request, members, fabric);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const double phases = operation == Operation::kAllReduce ? 2 : 1;
    EXPECT_GE(MicrosecondsOf(*plan), phases * bytes / (kLinks + kNic)) << Name(operation);
    EXPECT_LE(MicrosecondsOf(*plan), most * phases * bytes / kLinks) << Name(operation);
    std::size_t sends = 0;
    for (const Step& step : plan->schedule.steps) sends += step.size();
    EXPECT_LT(sends, 2'000'000U) << Name(operation);
    EXPECT_LT(plan->times.steps.size(), 20'000U) << Name(operation);
  }
}

TEST(LargeFabricTest, DistancesAndSlowUplinksOfManyDomainsAreNotRefused) {
  constexpr int kDomains = 520;
  const Request request{.bytes = kDomains * 16 * 256};
  const Fabric near = Joined(Instance(LinkTiming{}), kDomains);
  const Fabric far = Joined(Instance(LinkTiming{}), kDomains, {.layer = Microseconds(1)},
                            {.domains_under_layer3 = 8, .layer3_under_layer2 = 1000});
  const auto without = PlanOnFabric(request, Everywhere(near), near);
  const auto with = PlanOnFabric(request, Everywhere(far), far);
  ASSERT_TRUE(without.ok() && with.ok());
  // There and back, one layer each.
  EXPECT_NEAR(MicrosecondsOf(*with), MicrosecondsOf(*without) + 2, 0.01);
  const Fabric uneven =
      Joined(Instance(LinkTiming{}), kDomains, {.oversubscription_permille = {1000, 1000, 8000}},
             {.domains_under_layer3 = 48, .layer3_under_layer2 = 1000});
  EXPECT_TRUE(PlanOnFabric(request, Everywhere(uneven), uneven).ok());
}

TEST(LargeFabricTest, WhatWouldTakeAMessageForEachTwoOfManyDomainsIsRefusedInWords) {
  const auto refusal = [](const Request& request, const Fabric& fabric,
                          const HierarchyChoice& choice = {}) {
    return std::string(Message(PlanOnFabric(request, Everywhere(fabric), fabric, choice).status()));
  };
  constexpr int kDomains = 520;
  const Request request{.bytes = kDomains * 16 * 4};
  const std::string so_many = "so many domains (520) are planned only ";
  const std::string otherwise = ": otherwise each two of them have messages of their own";
  const Fabric fabric = Joined(Instance(LinkTiming{}), kDomains);
  EXPECT_EQ(refusal(request, fabric), "");
  EXPECT_EQ(refusal(request, fabric, {.between = InterAlgorithm::kRing}),
            so_many + "in a mesh" + otherwise);
  // A few kinds of lengths are served: of 16 chips there are no more than 17.
  const Fabric large = Joined(UltraServer(LinkTiming{}), kDomains);
  EXPECT_EQ(
      refusal({.operation = Operation::kAllGather, .bytes = 4 * request.bytes + 51'236}, large),
      so_many + "with blocks of one length, here with a multiple of 133120 bytes" + otherwise);
  Fabric damaged = fabric;
  for (int domain = 0; domain < 40; ++domain) {
    for (const int chip : {domain % 16, (domain + 1 + domain / 16) % 16}) {
      ASSERT_TRUE(damaged.SetNicPermille(Fabric::ChipOf(domain, chip), 0).ok());
    }
  }
  EXPECT_EQ(refusal(request, damaged),
            so_many + "with at most 32 kinds of chips, NICs and blocks" + otherwise);
  EXPECT_EQ(refusal({.operation = Operation::kAllToAll, .bytes = request.bytes}, damaged),
            so_many + "with at most 8 kinds of chips, ranks and NICs" + otherwise);
  // Messages to one neighbour each are as many as chips.
  EXPECT_EQ(refusal({.operation = Operation::kSendReceive, .bytes = kMiB}, damaged), "");
}

}  // namespace
}  // namespace tahoma::sim
