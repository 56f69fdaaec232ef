// The flit level against the two above it: max-min fair rates (Transfer) and the closed form.

#include "sim-node/emulator/flit/flit_transfer.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "lib/base/status.h"
#include "lib/torus/path.h"

namespace tahoma::sim {
namespace {

using torus::Axis;
using torus::ChipIndex;
using torus::Coord;
using torus::Direction;
using torus::Shape;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kXRate = 128'000'000'000;
constexpr std::uint64_t kZRate = 64'000'000'000;
constexpr std::uint64_t kFlitBytes = 64;
// A packet that follows another into a new channel is routed while the other's last flits pass, and
// loses what is left of its two cycles once on the whole route.
constexpr std::uint64_t kBubbleCycles = 2;

struct Ended {
  absl::Status status = absl::UnknownError("");
  std::vector<VirtualTime> arrivals;
  VirtualTime at{};
};

template <typename Level>
Ended Finish(EventQueue& queue, Level& level, std::vector<Flow> flows) {
  Ended ended;
  level.Start(std::move(flows), [&](const absl::Status& status, const auto& arrivals) {
    ended = {status, arrivals, queue.now()};
  });
  queue.RunUntilIdle();
  return ended;
}

Ended ByFlits(const TorusLinks& links, std::vector<Flow> flows) {
  EventQueue queue;
  FlitTransfer transfer(queue, links, *FlitConfig::Of(links));
  return Finish(queue, transfer, std::move(flows));
}

Ended ByRates(TorusLinks links, std::vector<Flow> flows) {
  EventQueue queue;
  Fabric fabric(std::move(links));
  Transfer transfer(queue, fabric);
  return Finish(queue, transfer, std::move(flows));
}

VirtualDuration Cycles(std::int64_t cycles) {
  return TransferTime(static_cast<std::uint64_t>(cycles) * kFlitBytes, kXRate);
}

std::array<int, 3> HopsOf(const Shape& torus, const Flow& flow) {
  std::array<int, 3> hops{};
  for (const torus::Hop& hop : torus::Route(torus, flow.from, flow.to)) {
    ++hops.at(static_cast<std::size_t>(hop.axis));
  }
  return hops;
}

class ThreeLevels : public ::testing::Test {
 protected:
  TorusLinks links_{torus::kUltraServerShape, hw::kTrainium2.links};
  FlitConfig config_ = *FlitConfig::Of(links_);

  // Rates within the fill of flits, rates and closed form the same.
  void ExpectFillApart(const std::vector<Flow>& flows) {
    const Ended flits = ByFlits(links_, flows);
    const Ended rates = ByRates(links_, flows);
    ASSERT_TRUE(flits.status.ok());
    for (std::size_t i = 0; i < flows.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} bytes, chip {} to {}", flows[i].bytes, flows[i].from.value(),
                               flows[i].to.value()));
      const auto hops = HopsOf(links_.torus(), flows[i]);
      const VirtualDuration closed = TransferTime(flows[i].bytes, hops[2] != 0 ? kZRate : kXRate) +
                                     links_.timing().hop * (hops[0] + hops[1] + hops[2]);
      EXPECT_EQ(rates.arrivals[i], VirtualTime(closed));
      const VirtualDuration fill = Cycles(config_.FillCycles(hops));
      const std::int64_t less = hops[2] != 0 ? config_.CatchUpCycles() : 0;
      EXPECT_GE(flits.arrivals[i], rates.arrivals[i] + fill - Cycles(less));
      EXPECT_LE(flits.arrivals[i], rates.arrivals[i] + fill + Cycles(kBubbleCycles));
    }
  }
};

TEST_F(ThreeLevels, AgreeOnALoneFlowUpToTheFillOfThePipeline) {
  for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{512}, std::uint64_t{576},
                                    std::uint64_t{4096}, std::uint64_t{65'536}, kMiB}) {
    for (const int to : {1, 2, 5, 10, 16, 32, 21, 42}) {  // one to six links, with and without Z
      ExpectFillApart({{.from = ChipIndex(0), .to = ChipIndex(to), .bytes = bytes}});
    }
  }
}

TEST_F(ThreeLevels, AgreeOnFlowsThatShareNoLink) {
  std::vector<Flow> flows;
  for (int chip = 0; chip < 64; ++chip) {
    Coord to = links_.torus().CoordOf(ChipIndex(chip));
    for (const Axis axis : torus::kAxes) to.set(axis, (to.along(axis) + 1) % 4);
    flows.push_back({.from = ChipIndex(chip), .to = links_.torus().IndexOf(to), .bytes = 65'536});
  }
  ExpectFillApart(flows);
}

TEST_F(ThreeLevels, AgreeOnAChipThatSendsOverAllItsLinksAtOnce) {
  std::vector<Flow> flows;
  for (const int to : {1, 3, 4, 12, 16, 48}) {
    flows.push_back({.from = ChipIndex(0), .to = ChipIndex(to), .bytes = 65'536});
  }
  ExpectFillApart(flows);
  for (Flow& flow : flows) std::swap(flow.from, flow.to);  // and that receives over all
  ExpectFillApart(flows);
}

TEST_F(ThreeLevels, AgreeOnFlowsOfOneChipThatShareALink) {
  const std::vector<Flow> flows = {
      {.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB / 4},
      {.from = ChipIndex(0), .to = ChipIndex(5), .bytes = 3 * kMiB / 4},
      {.from = ChipIndex(0), .to = ChipIndex(13), .bytes = kMiB / 8},
  };
  const Ended flits = ByFlits(links_, flows);
  const Ended rates = ByRates(links_, flows);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    EXPECT_NEAR(Nanoseconds(flits.arrivals[i] - rates.arrivals[i]), 0,
                0.01 * Nanoseconds(rates.arrivals[i].time_since_epoch()))
        << i;
  }
}

TEST_F(ThreeLevels, AgreeOnTheEndOfASharedLinkWhoeverGoesFirst) {
  // All go over chip 1 y+, which has work to the end at both levels.
  const std::vector<Flow> flows = {{.from = ChipIndex(0), .to = ChipIndex(5), .bytes = kMiB / 4},
                                   {.from = ChipIndex(1), .to = ChipIndex(5), .bytes = kMiB / 4},
                                   {.from = ChipIndex(2), .to = ChipIndex(5), .bytes = kMiB / 4}};
  const VirtualDuration late = ByFlits(links_, flows).at - ByRates(links_, flows).at;
  EXPECT_GE(late, VirtualDuration::zero());
  EXPECT_LE(late, Cycles(config_.FillCycles({2, 1, 0}) + 2 * config_.packet_flits));
}

TEST_F(ThreeLevels, ALinkRateThatIsNoWholePicosecondsKeepsTimeExactly) {
  const TorusLinks links(torus::kInstanceShape, hw::kTrainium2.links, {.efficiency_permille = 900});
  const std::vector<Flow> flows = {{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = kMiB}};
  const std::int64_t cycles = FlitConfig::Of(links)->FillCycles({1, 0, 0});
  const std::uint64_t bytes = kMiB + static_cast<std::uint64_t>(cycles) * kFlitBytes;
  const VirtualDuration least = TransferTime(bytes, 115'200'000'000) + links.timing().hop;
  const Ended flits = ByFlits(links, flows);
  EXPECT_GE(flits.arrivals[0], VirtualTime(least));
  EXPECT_LE(flits.arrivals[0],
            VirtualTime(least + TransferTime(kBubbleCycles * kFlitBytes, 115'200'000'000)));
}

class FlitTransferTest : public ::testing::Test {
 protected:
  TorusLinks links_{torus::kInstanceShape, hw::kTrainium2.links};
  EventQueue queue_;
  FlitTransfer transfer_{queue_, links_, *FlitConfig::Of(links_)};
};

TEST_F(FlitTransferTest, BytesFillWholeFlitsAndNoneTakeOne) {
  const auto arrival = [&](std::uint64_t bytes) {
    return ByFlits(links_, {{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = bytes}})
        .arrivals[0];
  };
  EXPECT_EQ(arrival(0), arrival(64));
  EXPECT_EQ(arrival(1), arrival(64));
  EXPECT_EQ(arrival(65), arrival(128));
  EXPECT_EQ(arrival(128) - arrival(64), Cycles(1));
}

TEST_F(FlitTransferTest, AFlowToItselfAndABatchOfNoneArriveAtOnce) {
  const Ended self =
      Finish(queue_, transfer_, {{.from = ChipIndex(3), .to = ChipIndex(3), .bytes = kMiB}});
  EXPECT_TRUE(self.status.ok());
  EXPECT_EQ(self.arrivals, std::vector<VirtualTime>{VirtualTime{}});
  const Ended none = Finish(queue_, transfer_, {});
  EXPECT_TRUE(none.status.ok());
  EXPECT_EQ(none.at, VirtualTime{});
}

TEST_F(FlitTransferTest, DoneRunsAtTheLastArrival) {
  const Ended ended = Finish(queue_, transfer_,
                             {{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 4096},
                              {.from = ChipIndex(4), .to = ChipIndex(6), .bytes = 8192}});
  EXPECT_EQ(ended.at, ended.arrivals[1]);
  EXPECT_LT(ended.arrivals[0], ended.arrivals[1]);
}

TEST_F(FlitTransferTest, ABatchThatStartsLaterSharesTheLinkFromThenOn) {
  std::vector<VirtualTime> ends(2);
  const Flow flow{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 2 * 65'536};
  const VirtualDuration alone = TransferTime(65'536, kXRate);
  for (const int batch : {0, 1}) {
    queue_.Schedule(VirtualTime(alone * batch), EventPriority::kStart, [&, batch] {
      transfer_.Start({flow}, [&, batch](const auto&, const auto& arrivals) {
        ends[static_cast<std::size_t>(batch)] = arrivals[0];
      });
    });
  }
  queue_.RunUntilIdle();
  // Half alone, half at half the rate; then the second alone: as max-min.
  const VirtualTime hop(links_.timing().hop);
  EXPECT_NEAR(Nanoseconds(ends[0] - hop), Nanoseconds(3 * alone), 20);
  EXPECT_NEAR(Nanoseconds(ends[1] - hop), Nanoseconds(4 * alone), 20);
}

TEST_F(FlitTransferTest, AnIdleNetworkTakesUpAtAnyInstant) {
  const VirtualTime odd(VirtualDuration(1'234'567));  // no whole cycle
  VirtualTime arrived{};
  queue_.Schedule(odd, EventPriority::kStart, [&] {
    transfer_.Start({{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 64}},
                    [&](const auto&, const auto& arrivals) { arrived = arrivals[0]; });
  });
  queue_.RunUntilIdle();
  EXPECT_EQ(arrived, odd + Cycles(1 + 13 - 0) + links_.timing().hop);
}

TEST_F(FlitTransferTest, AnUnhealthyLinkEndsTheBatchAndIsNamed) {
  ASSERT_TRUE(
      links_.SetPermille(TorusLinks::IdOf(ChipIndex(0), Axis::kX, Direction::kPlus), 500).ok());
  const Ended ended =
      Finish(queue_, transfer_, {{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 64}});
  EXPECT_EQ(ended.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(ended.status),
            "chip 0 x+ is not healthy; the flit level knows only links at full rate");
  const Ended other =
      Finish(queue_, transfer_, {{.from = ChipIndex(1), .to = ChipIndex(0), .bytes = 64}});
  EXPECT_TRUE(other.status.ok());
}

TEST_F(FlitTransferTest, ARouteThatLeavesTheFlowsChipsIsRefused) {
  const Ended ended =
      Finish(queue_, transfer_,
             {{.from = ChipIndex(0), .to = ChipIndex(5), .bytes = 64, .through = 0b110001}});
  EXPECT_EQ(ended.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(ended.status),
            "the route of dimension order from chip 0 to chip 5 leaves the chips of the flow");
}

TEST(FlitTransferDeadlock, EndsEveryBatchWithTheRing) {
  const TorusLinks links(Shape::Of<8, 1, 1>(), hw::kTrainium2.links);
  FlitConfig config = *FlitConfig::Of(links);
  config.dateline = Dateline::kOff;
  config.vcs = 1;
  config.buffer_flits = 4;
  EventQueue queue;
  FlitTransfer transfer(queue, links, config);
  std::vector<Flow> flows;
  for (int chip = 0; chip < 8; ++chip) {
    flows.push_back({.from = ChipIndex(chip), .to = ChipIndex((chip + 3) % 8), .bytes = 4096});
  }
  const Ended first = Finish(queue, transfer, flows);
  EXPECT_EQ(first.status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Message(first.status), transfer.network().deadlock()->ToString());
  const Ended later =
      Finish(queue, transfer, {{.from = ChipIndex(0), .to = ChipIndex(1), .bytes = 64}});
  EXPECT_EQ(later.status.code(), absl::StatusCode::kAborted);
}

TEST(FlitTransferDeterminism, SameFlowsSameTrace) {
  const TorusLinks links(torus::kUltraServerShape, hw::kTrainium2.links);
  const auto trace = [&] {
    EventQueue queue;
    FlitTransfer transfer(queue, links, *FlitConfig::Of(links));
    std::vector<Flow> flows;
    for (int chip = 0; chip < 64; ++chip) {
      flows.push_back(
          {.from = ChipIndex(chip), .to = ChipIndex((chip * 5 + 9) % 64), .bytes = 4096});
    }
    const Ended ended = Finish(queue, transfer, flows);
    return std::pair(ended.arrivals, transfer.network().trace_hash());
  };
  EXPECT_EQ(trace(), trace());
}

}  // namespace
}  // namespace tahoma::sim
