// Times are compared with closed forms; faults in the middle of a transfer with arithmetic by hand.

#include "sim-node/emulator/link/transfer.h"

#include <gtest/gtest.h>

#include <memory>

#include "lib/base/status.h"
#include "sim-node/emulator/engine/fault_plan.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Direction;

constexpr std::uint64_t kMiB = 1 << 20;

class TransferTest : public ::testing::Test {
 protected:
  // Runs to the end and returns the last arrival.
  VirtualTime Run(std::vector<Flow> flows) {
    transfer_.Start(std::move(flows),
                    [this](const absl::Status& status, const std::vector<VirtualTime>& arrivals) {
                      status_ = status;
                      arrivals_ = arrivals;
                      end_ = queue_.now();
                    });
    queue_.RunUntilIdle();
    return end_;
  }
  void BreakAt(VirtualDuration after, LinkId link, std::uint16_t permille) {
    queue_.Schedule(queue_.now() + after, EventPriority::kFault, [this, link, permille] {
      ASSERT_TRUE(transfer_.SetPermille(link, permille).ok());
    });
  }

  Fabric links_{TorusLinks(torus::kInstanceShape, hw::kTrainium2.links)};
  EventQueue queue_;
  Transfer transfer_{queue_, links_};
  absl::Status status_ = absl::UnknownError("");
  std::vector<VirtualTime> arrivals_;
  VirtualTime end_{};
};

TEST_F(TransferTest, AFlowTakesBytesOverRatePlusAHopLatencyPerLink) {
  EXPECT_EQ(Run({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB}}),
            VirtualTime(TransferTime(kMiB, 128'000'000'000) + Microseconds(0.5)));
  EXPECT_TRUE(status_.ok());
}

TEST_F(TransferTest, ABatchIsSentWhenItsLastFlowHasLeftAndArrivesAHopLater) {
  VirtualTime sent;
  transfer_.Start(
      {{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB},
       {.from = ChipIndex(2), .to = ChipIndex(3), .bytes = kMiB / 2}},
      [this](const absl::Status&, const std::vector<VirtualTime>&) { end_ = queue_.now(); },
      [&] { sent = queue_.now(); });
  queue_.RunUntilIdle();
  EXPECT_EQ(sent, VirtualTime(TransferTime(kMiB, 128'000'000'000)));
  EXPECT_EQ(end_, sent + Microseconds(0.5));
}

TEST_F(TransferTest, TwoHopsCostOneMoreLatencyNotOneMoreTransfer) {
  EXPECT_EQ(Run({{.from = ChipIndex(0), .to = ChipIndex(5), .bytes = kMiB}}),
            VirtualTime(TransferTime(kMiB, 128'000'000'000) + Microseconds(1.0)));
}

TEST_F(TransferTest, ALossyLinkCostsItsRepetitionsInRateAndInLatency) {
  ASSERT_TRUE(
      links_.SetLoss(TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus), 200'000).ok());
  EXPECT_EQ(Run({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB}}),
            VirtualTime(TransferTime(kMiB, 102'400'000'000) + Microseconds(0.75)));
}

TEST_F(TransferTest, FlowsShareALinkAndTheLongerFlowSpeedsUpWhenTheShorterEnds) {
  Run({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB},
       {.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 3 * kMiB}});
  EXPECT_EQ(arrivals_[0], VirtualTime(TransferTime(kMiB, 64'000'000'000) + Microseconds(0.5)));
  EXPECT_EQ(arrivals_[1], VirtualTime(TransferTime(4 * kMiB, 128'000'000'000) + Microseconds(0.5)));
}

TEST_F(TransferTest, AFlowToItselfAndABatchOfNoneArriveAtOnce) {
  EXPECT_EQ(Run({{.from = ChipIndex(3), .to = ChipIndex(3), .bytes = kMiB}}), VirtualTime{});
  EXPECT_EQ(Run({}), VirtualTime{});
  EXPECT_TRUE(status_.ok());
}

TEST_F(TransferTest, ALinkThatDegradesHalfwaySlowsTheSecondHalf) {
  const VirtualDuration half = TransferTime(kMiB, 128'000'000'000);
  BreakAt(half, TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus), 500);
  EXPECT_EQ(Run({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 2 * kMiB}}),
            VirtualTime(half + 2 * half + Microseconds(0.5)));
}

TEST_F(TransferTest, ALinkThatBreaksHalfwaySendsTheRestAround) {
  const VirtualDuration half = TransferTime(kMiB, 128'000'000'000);
  BreakAt(half, TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus), 0);
  EXPECT_EQ(Run({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 2 * kMiB}}),
            VirtualTime(2 * half + Microseconds(1.5)));  // three hops now
  EXPECT_TRUE(status_.ok());
}

TEST_F(TransferTest, ALostLastRouteEndsTheBatchAndNamesTheChips) {
  BreakAt(Microseconds(2), TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus), 0);
  Run({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB, .through = 0b11}});
  EXPECT_EQ(end_, VirtualTime(Microseconds(2)));
  EXPECT_EQ(Message(status_), "no NeuronLink route from chip 0 to chip 1: links are down");
}

TEST_F(TransferTest, TwoBatchesShareALinkOnlyWhileBothRun) {
  const VirtualDuration alone = TransferTime(kMiB, 128'000'000'000);
  std::vector<VirtualTime> ends(2);
  const Flow flow{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 2 * kMiB};
  for (const std::size_t batch : {0u, 1u}) {
    queue_.Schedule(VirtualTime(alone * static_cast<int>(batch)), EventPriority::kStart,
                    [this, flow, batch, &ends] {
                      transfer_.Start({flow}, [&ends, batch, this](const auto&, const auto&) {
                        ends[batch] = queue_.now();
                      });
                    });
  }
  queue_.RunUntilIdle();
  // The first sends half alone and half at half the rate; then the second has the link to itself.
  EXPECT_EQ(ends[0], VirtualTime(3 * alone + Microseconds(0.5)));
  EXPECT_EQ(ends[1], VirtualTime(4 * alone + Microseconds(0.5)));
}

// Half of the first flow is left when the third begins; the end of the second has nothing to do
// with either.
TEST_F(TransferTest, AFlowSharesItsLinkAlsoAfterTheEndOfAFlowElsewhere) {
  VirtualTime first;
  VirtualTime third;
  const auto at = [this](VirtualTime& end) {
    return
        [this, &end](const absl::Status&, const std::vector<VirtualTime>&) { end = queue_.now(); };
  };
  transfer_.Start({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB}}, at(first));
  transfer_.Start({{.from = ChipIndex(2), .to = ChipIndex(3), .bytes = kMiB / 4}}, at(end_));
  queue_.Schedule(VirtualTime(Microseconds(4.096)), EventPriority::kStart, [&] {
    transfer_.Start({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB / 4}}, at(third));
  });
  queue_.RunUntilIdle();
  EXPECT_EQ(end_, VirtualTime(Microseconds(2.048 + 0.5)));
  EXPECT_EQ(third, VirtualTime(Microseconds(8.192 + 0.5)));
  EXPECT_EQ(first, VirtualTime(Microseconds(10.24 + 0.5)));
}

TEST_F(TransferTest, ABatchThatLosesItsRouteLeavesOtherBatchesRunning) {
  absl::Status first, second = absl::UnknownError("");
  BreakAt(Microseconds(1), TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus), 0);
  transfer_.Start({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB, .through = 0b11}},
                  [&](const absl::Status& status, const auto&) { first = status; });
  transfer_.Start({{.from = ChipIndex(8), .to = ChipIndex(9), .bytes = kMiB}},
                  [&](const absl::Status& status, const auto&) { second = status; });
  queue_.RunUntilIdle();
  EXPECT_FALSE(first.ok());
  EXPECT_TRUE(second.ok());
}

// Down for 4 us of every 20: bytes not sent yet go around; the link is taken again only by messages
// that start while it is up.
TEST_F(TransferTest, AFlappingLinkDivertsTheMessageItCutsOffAndTakesTheNext) {
  const LinkId link = TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus);
  const FaultPlan plan = FaultPlan::Flapping({.target = link,
                                              .from = VirtualTime(Microseconds(4)),
                                              .until = VirtualTime(Microseconds(100)),
                                              .period = Microseconds(20),
                                              .down = Microseconds(4)});
  for (const Fault& fault : plan.faults()) {
    BreakAt(fault.at - queue_.now(), fault.target, fault.permille);
  }
  std::vector<VirtualTime> ends;
  const auto start = [&] {
    transfer_.Start({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB}},
                    [&](const absl::Status& status, const std::vector<VirtualTime>&) {
                      EXPECT_TRUE(status.ok()) << status;
                      ends.push_back(queue_.now());
                    });
  };
  queue_.Schedule(VirtualTime{}, EventPriority::kStart, start);
  queue_.Schedule(VirtualTime(Microseconds(10)), EventPriority::kStart, start);
  queue_.RunUntilIdle();
  const VirtualDuration whole = TransferTime(kMiB, 128'000'000'000);
  EXPECT_EQ(ends,
            (std::vector<VirtualTime>{VirtualTime(whole + 3 * Microseconds(0.5)),
                                      VirtualTime(Microseconds(10) + whole + Microseconds(0.5))}));
}

TEST_F(TransferTest, AFaultPlanReplaysToThePicosecond) {
  std::vector<VirtualTime> ends;
  for (int run = 0; run < 2; ++run) {
    Rng rng(42);
    Fabric links(TorusLinks(torus::kInstanceShape, hw::kTrainium2.links));
    EventQueue queue;
    Transfer transfer(queue, links);
    const FaultPlan plan = FaultPlan::Draw(
        rng, {.targets = links.id_count(), .count = 20, .horizon = Microseconds(60)});
    for (const Fault& fault : plan.faults()) {
      if (!links.Exists(fault.target)) continue;
      queue.Schedule(fault.at, EventPriority::kFault, [&transfer, fault] {
        ASSERT_TRUE(transfer.SetPermille(fault.target, fault.permille).ok());
      });
    }
    std::vector<Flow> flows;
    for (int chip = 0; chip < 16; ++chip) {
      flows.push_back({.from = ChipIndex(chip), .to = ChipIndex((chip + 5) % 16), .bytes = kMiB});
    }
    transfer.Start(flows, [&](const absl::Status& status, const std::vector<VirtualTime>&) {
      EXPECT_TRUE(status.ok());
      ends.push_back(queue.now());
    });
    queue.RunUntilIdle();
  }
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0], ends[1]);
}

}  // namespace
}  // namespace tahoma::sim
