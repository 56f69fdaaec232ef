// Gangs on small fleets, against an oracle that tries every way (tests/support/gang_oracle.h).
//
//   build/release/tests/gang_oracle_test --cases 100000 --seed 7
//
// Without a seed each run has fresh cases; a failure prints the seed of the case.

#include "tests/support/gang_oracle.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "controller/plan/planner.h"
#include "lib/base/rng.h"

namespace tahoma::controller {
namespace {

std::uint64_t cases_of_run = 3000;
std::uint64_t seed_of_run = 0;

// Failures that are printed in full.
constexpr std::uint64_t kShown = 5;

struct Judged {
  std::uint64_t placed = 0, waiting = 0, repair = 0, never = 0;
  std::uint64_t not_found = 0;  // within the bound
  std::uint64_t wrong_places = 0, wrong_reasons = 0, faults = 0;
};

BlockedReason ReasonFor(const GangCase& one) {
  if (HasPlace(one, OracleFleet::kIdle)) return BlockedReason::kWaitsForCapacity;
  if (HasPlace(one, OracleFleet::kRepaired)) return BlockedReason::kWaitsForRepair;
  return BlockedReason::kNeverFits;
}

void Count(BlockedReason reason, Judged& judged) {
  judged.waiting += reason == BlockedReason::kWaitsForCapacity ? 1U : 0U;
  judged.repair += reason == BlockedReason::kWaitsForRepair ? 1U : 0U;
  judged.never += reason == BlockedReason::kNeverFits ? 1U : 0U;
}

// Returns what is wrong with the decision; empty when nothing is.
std::string Judge(const GangCase& one, const Decision& decision, Judged& judged) {
  const bool exists = HasPlace(one, OracleFleet::kNow);
  if (decision.placement.has_value() != exists) {
    ++judged.wrong_places;
    return exists ? fmt::format("has a place, but {}: {}", ToString(decision.blocked->reason),
                                decision.blocked->message)
                  : "has no place, but is placed on " + decision.placement->ToString();
  }
  if (exists) {
    ++judged.placed;
    const std::string fault = FaultOf(one, *decision.placement);
    if (!fault.empty()) ++judged.faults;
    return fault;
  }
  const BlockedReason reason = ReasonFor(one);
  Count(reason, judged);
  const BlockedReason given = decision.blocked->reason;
  const bool invalid = given == BlockedReason::kInvalid && reason == BlockedReason::kNeverFits;
  if (given == reason || invalid) return "";
  ++judged.wrong_reasons;
  return fmt::format("is {}, but {}: {}", ToString(reason), ToString(given),
                     decision.blocked->message);
}

void JudgeCases(std::uint64_t first_seed, std::uint64_t cases) {
  std::cout << "gang_oracle_test: cases " << first_seed << " to " << first_seed + cases - 1
            << std::endl;
  Judged judged;
  std::uint64_t wrong = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + cases; ++seed) {
    Rng rng(seed);
    const GangCase one = RandomGangCase(rng);
    const Decision decision = Planner().Plan(StateOf(one), {GangOf(one)}, WallTime{})[0];
    const std::string fault = Judge(one, decision, judged);
    if (fault.empty()) continue;
    if (++wrong <= kShown) ADD_FAILURE() << "--seed " << seed << "\n" << one.ToString() << fault;
  }
  std::cout << fmt::format(
      "placed {}, waiting {}, for repair {}, never {}; wrong places {}, wrong reasons {}, faults "
      "{}\n",
      judged.placed, judged.waiting, judged.repair, judged.never, judged.wrong_places,
      judged.wrong_reasons, judged.faults);
  EXPECT_EQ(wrong, 0U) << "of " << cases;
  if (cases < 1000) return;
  EXPECT_GT(judged.placed, cases / 8);
  EXPECT_GT(judged.waiting + judged.never, cases / 8);
}

TEST(GangOracleTest, AGangIsPlacedExactlyWhenSomeWayExistsAndItsReasonIsTheOracles) {
  JudgeCases(seed_of_run, cases_of_run);
}

// On one node, chips for a matchAttribute beside many that can be exchanged.
TEST(GangOracleTest, CasesThatOnceWentBeyondTheBoundOfStepsAreDecided) {
  for (const std::uint64_t seed : {std::uint64_t{172}, std::uint64_t{1320}, std::uint64_t{1013213},
                                   std::uint64_t{5226558152026688279}}) {
    JudgeCases(seed, 1);
  }
}

}  // namespace
}  // namespace tahoma::controller

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  tahoma::controller::seed_of_run = tahoma::SeedFromMachine() >> 1U;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--cases") tahoma::controller::cases_of_run = value;
    if (flag == "--seed") tahoma::controller::seed_of_run = value;
  }
  return RUN_ALL_TESTS();
}
