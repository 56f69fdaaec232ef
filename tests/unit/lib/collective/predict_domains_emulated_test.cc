// Compares the scores of gangs over several topology domains with the emulated fabric.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/collective/predict_domains.h"
#include "lib/hw/catalogue.h"
#include "sim-node/emulator/collective/domains/hierarchical.h"

namespace tahoma::collective {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

struct Fleet {
  int domains;
  torus::Shape torus;
};

// Predicted over emulated time.
double Ratio(const Fleet& fleet, Operation operation, std::uint64_t bytes) {
  const sim::Fabric fabric(std::vector<sim::TorusLinks>(static_cast<std::size_t>(fleet.domains),
                                                        {fleet.torus, hw::kTrainium2.links}),
                           hw::kTrainium2.links.efa);
  std::vector<sim::Member> members;
  for (int domain = 0; domain < fleet.domains; ++domain) {
    for (int chip = 0; chip < fleet.torus.chip_count(); ++chip) {
      members.push_back({.chip = sim::Fabric::ChipOf(domain, chip)});
    }
  }
  const auto plan = sim::PlanOnFabric({.operation = operation, .bytes = bytes}, members, fabric);
  EXPECT_TRUE(plan.ok()) << plan.status();
  torus::ChipMask chips = 0;
  for (int chip = 0; chip < fleet.torus.chip_count(); ++chip) {
    chips |= torus::MaskOf(torus::ChipIndex(chip));
  }
  const std::vector<DomainPart> parts(static_cast<std::size_t>(fleet.domains),
                                      DomainPart{.chips = chips, .faults = {}});
  const auto predicted = PredictOverDomains(parts, {.operation = operation, .bytes = bytes});
  EXPECT_TRUE(predicted.ok()) << predicted.status();
  return static_cast<double>(predicted->count()) /
         static_cast<double>((plan->times.end - plan->times.start).count());
}

TEST(PredictDomainsAgainstTheFabricTest, ExchangesAreAtMostTwoPercentShort) {
  for (const Fleet& fleet : {Fleet{2, torus::kUltraServerShape}, Fleet{4, torus::kInstanceShape}}) {
    for (const std::uint64_t bytes : {64 * kKiB, 16 * kMiB, kGiB}) {
      for (const Operation operation : {Operation::kAllToAll, Operation::kSendReceive}) {
        EXPECT_NEAR(Ratio(fleet, operation, bytes), 0.99, 0.011) << Name(operation) << " " << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace tahoma::collective
