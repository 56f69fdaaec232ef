// Tests several topology domains over EFA: the table of docs/reference/collectives.md#over-efa, and
// properties.

#include "lib/collective/predict_domains.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/base/status.h"

namespace tahoma::collective {
namespace {

using torus::ChipMask;

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr ChipMask kUltraServer = ~ChipMask{0}, kInstance = 0xffff;

std::vector<DomainPart> Domains(std::size_t count, ChipMask chips) {
  return std::vector<DomainPart>(count, {.chips = chips, .faults = {}});
}
double Us(std::span<const DomainPart> domains, Operation operation, std::uint64_t bytes) {
  const auto time = PredictOverDomains(domains, {.operation = operation, .bytes = bytes});
  EXPECT_TRUE(time.ok()) << time.status();
  return time.ok() ? static_cast<double>(time->count()) / 1e6 : 0;
}

TEST(PredictDomainsTest, AllReducesLieBetweenTheReferencesPipelinedBoundAndItsSerialTimes) {
  // docs/reference/collectives.md#over-efa, in microseconds; the bound is what hides one network
  // behind the other.
  struct Row {
    std::size_t domains;
    ChipMask chips;
    std::uint64_t bytes;
    double pipelined, serial;  // the reference rounds to microseconds
  };
  for (const Row& row :
       {Row{2, kUltraServer, 16 * kMiB, 72.9, 113}, Row{8, kUltraServer, 16 * kMiB, 72.9, 181},
        Row{32, kUltraServer, 16 * kMiB, 72.9, 243}, Row{4, kInstance, 16 * kMiB, 123, 196},
        Row{128, kInstance, 16 * kMiB, 123, 367}, Row{2, kUltraServer, 256 * kMiB, 830, 1090},
        Row{8, kUltraServer, 256 * kMiB, 830, 1280}, Row{32, kUltraServer, 256 * kMiB, 830, 1370},
        Row{4, kInstance, 256 * kMiB, 1007, 2060}, Row{128, kInstance, 256 * kMiB, 1332, 2540},
        Row{2, kUltraServer, kGiB, 3303, 4230}, Row{8, kUltraServer, kGiB, 3303, 4800},
        Row{32, kUltraServer, kGiB, 3303, 4980}, Row{4, kInstance, kGiB, 4027, 8030},
        Row{128, kInstance, kGiB, 5327, 9480}}) {
    const double time = Us(Domains(row.domains, row.chips), Operation::kAllReduce, row.bytes);
    EXPECT_LE(time, row.serial * 1.02) << row.domains << " " << row.bytes;
    EXPECT_GE(time, row.pipelined - 0.5) << row.domains << " " << row.bytes;
  }
}

TEST(PredictDomainsTest, ASmallAllReduceTakesTwoMessagesMoreThanItsDomains) {
  // Every chip sends a part of its block to every other domain at once, to be summed up and back.
  const double inside = Us(Domains(1, kInstance), Operation::kAllReduce, kKiB);
  for (const std::size_t domains : {2U, 4U, 18U, 128U}) {
    const double time = Us(Domains(domains, kInstance), Operation::kAllReduce, kKiB);
    const double bytes = 2 * 64 / 25e3;  // us on each NIC
    EXPECT_NEAR(time, inside + 2 * 15 + bytes, 0.01) << domains;
  }
}

TEST(PredictDomainsTest, UltraServersHideEfaAndInstancesAreBoundByIt) {
  const double alone = Us(Domains(1, kUltraServer), Operation::kAllReduce, 4 * kGiB);
  EXPECT_LE(Us(Domains(8, kUltraServer), Operation::kAllReduce, 4 * kGiB), alone * 1.15);
  const double efa = 2.0 * 7 / 8 * 4 * static_cast<double>(kGiB) / 16 / 25e9 * 1e6;
  const double instances = Us(Domains(8, kInstance), Operation::kAllReduce, 4 * kGiB);
  EXPECT_GE(instances, efa);
  EXPECT_LE(instances, efa * 1.15);
  EXPECT_GT(efa, Us(Domains(1, kInstance), Operation::kAllReduce, 4 * kGiB));
}

TEST(PredictDomainsTest, MoreBytesOrMoreDomainsNeverTakeLess) {
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
        Operation::kAllToAll, Operation::kBroadcast, Operation::kSendReceive}) {
    double before = 0;
    for (const std::size_t domains : {1U, 2U, 3U, 4U, 16U, 17U}) {
      const double time = Us(Domains(domains, kInstance), operation, 64 * kMiB);
      // Blocks of unlike lengths, as 17 domains have, go side by side and hide each other's starts.
      EXPECT_GE(time, before * 0.97) << Name(operation) << " " << domains;
      before = time;
    }
    double last = 0;
    for (std::uint64_t bytes = kKiB; bytes <= kGiB; bytes *= 8) {
      const double time = Us(Domains(4, kUltraServer), operation, bytes);
      EXPECT_GT(time, last) << Name(operation) << " " << bytes;
      last = time;
    }
  }
}

TEST(PredictDomainsTest, AMillionChipsTakeNoLongerToPredictThanToCount) {
  const std::vector<DomainPart> fleet = Domains(15'625, kUltraServer);
  EXPECT_GT(Us(fleet, Operation::kAllReduce, kGiB), 3303);
}

TEST(PredictDomainsTest, TheSlowestDomainAndTheFewestNicsDecide) {
  std::vector<DomainPart> domains = Domains(4, kInstance);
  const double healthy = Us(domains, Operation::kAllReduce, 64 * kMiB);
  domains[2].faults.links.push_back(
      {.chip = torus::ChipIndex(3), .axis = torus::Axis::kX, .direction = torus::Direction::kPlus});
  const double damaged = Us(domains, Operation::kAllReduce, 64 * kMiB);
  EXPECT_GT(damaged, healthy);
  domains[1].chips = 0xff;
  EXPECT_GT(Us(domains, Operation::kAllReduce, 64 * kMiB), damaged);
}

TEST(PredictDomainsTest, AnErrorNamesTheDomain) {
  EXPECT_EQ(Message(PredictOverDomains({}, {.bytes = kMiB}).status()),
            "a collective needs at least one domain");
  std::vector<DomainPart> domains = Domains(3, kInstance);
  domains[1].faults.dead = 4;
  EXPECT_EQ(Message(PredictOverDomains(domains, {.bytes = kMiB}).status()),
            "domain 1: chip 2 is dead");
}

}  // namespace
}  // namespace tahoma::collective
