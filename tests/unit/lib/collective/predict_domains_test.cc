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
  const auto time = PredictOverDomains(domains, operation, bytes);
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
    double pipelined, serial;
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
    EXPECT_GE(time, row.pipelined) << row.domains << " " << row.bytes;
  }
}

TEST(PredictDomainsTest, ASmallAllReduceTakesOneMessageMoreThanItsDomains) {
  // Every chip sends its block to every other domain at once; a CC-core gives 16 commands at a
  // time.
  const double inside = Us(Domains(1, kInstance), Operation::kAllReduce, kKiB);
  for (const auto& [domains, rounds] :
       {std::pair(2, 0), std::pair(4, 0), std::pair(18, 1), std::pair(128, 7)}) {
    const double time =
        Us(Domains(static_cast<std::size_t>(domains), kInstance), Operation::kAllReduce, kKiB);
    const double bytes = (domains - 1) * 64 / 25e3;  // us on each NIC
    EXPECT_NEAR(time, inside + 15 + 0.6 * rounds + bytes, 0.01) << domains;
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
      EXPECT_GE(time, before) << Name(operation) << " " << domains;
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

// docs/reference/collectives.md#over-efa: the root's links and NIC send 665 GB/s, and the NICs of
// an instance get 400.
TEST(PredictDomainsTest, ALargeBroadcastTakesWhatTheRootCanSendOrADomainCanGet) {
  for (const std::size_t domains : {2U, 8U, 128U}) {
    const double ultra = static_cast<double>(4 * kGiB) / 665e3;
    EXPECT_GE(Us(Domains(domains, kUltraServer), Operation::kBroadcast, 4 * kGiB), ultra);
    EXPECT_LE(Us(Domains(domains, kUltraServer), Operation::kBroadcast, 4 * kGiB), 1.1 * ultra);
    const double instance = static_cast<double>(4 * kGiB) / 400e3;
    EXPECT_GE(Us(Domains(domains, kInstance), Operation::kBroadcast, 4 * kGiB), instance);
    EXPECT_LE(Us(Domains(domains, kInstance), Operation::kBroadcast, 4 * kGiB), 1.05 * instance);
  }
  // A chip without one of its links gets less, whichever domain it is in.
  std::vector<DomainPart> damaged = Domains(3, kUltraServer);
  damaged[1].faults.links.push_back(
      {.chip = torus::ChipIndex(3), .axis = torus::Axis::kX, .direction = torus::Direction::kPlus});
  EXPECT_GE(Us(damaged, Operation::kBroadcast, 4 * kGiB), static_cast<double>(4 * kGiB) / 537e3);
  // Other chips have no twins, and a buffer flows through the root's domain alone.
  std::vector<DomainPart> unlike = Domains(3, kUltraServer);
  unlike[2].chips = kUltraServer >> 1U;
  EXPECT_GT(Us(unlike, Operation::kBroadcast, 4 * kGiB),
            Us(Domains(3, kUltraServer), Operation::kBroadcast, 4 * kGiB));
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
  EXPECT_EQ(Message(PredictOverDomains({}, Operation::kAllReduce, kMiB).status()),
            "a collective needs at least one domain");
  std::vector<DomainPart> domains = Domains(3, kInstance);
  domains[1].faults.dead = 4;
  EXPECT_EQ(Message(PredictOverDomains(domains, Operation::kAllReduce, kMiB).status()),
            "domain 1: chip 2 is dead");
}

}  // namespace
}  // namespace tahoma::collective
