// Closed forms against the plans that are timed message by message.

#include "sim-node/emulator/collective/plan/estimate.h"

#include <gtest/gtest.h>

#include "lib/base/rng.h"
#include "sim-node/emulator/collective/plan/chip_cost.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::UltraServer;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Each step as it really flows, without start-up.
std::vector<double> TimedSteps(const std::vector<Step>& steps, const TorusLinks& links) {
  Schedule schedule;
  schedule.steps = steps;
  const auto times = TimeSchedules({&schedule}, links);
  EXPECT_TRUE(times.ok());
  std::vector<double> timed;
  for (const StepTimes& step : (*times)[0].steps) {
    timed.push_back(Nanoseconds(step.end - step.departure));
  }
  return timed;
}

void ExpectSame(const std::vector<StepOutline>& outline, const std::vector<Step>& steps,
                const TorusLinks& links, const std::string& what) {
  const std::vector<double> timed = TimedSteps(steps, links);
  ASSERT_EQ(outline.size(), timed.size()) << what;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    const VirtualDuration expected = outline[i].link + links.timing().hop * outline[i].links;
    EXPECT_NEAR(Nanoseconds(expected), timed[i], timed[i] * 1e-3 + 1) << what << " step " << i;
    std::vector<std::uint64_t> sent(64);
    for (const Send& send : steps[i])
      sent[static_cast<std::size_t>(send.from.value())] += send.bytes;
    const std::uint64_t most = *std::max_element(sent.begin(), sent.end());
    EXPECT_NEAR(static_cast<double>(outline[i].bytes), static_cast<double>(most),
                static_cast<double>(most) * 1e-3)
        << what << " step " << i;
    // The work of the chips follows from the outline as from the messages.
    EXPECT_EQ(WorkOf(0, outline[i].destinations, {}, {}, links.timing()).start,
              WorkOf(steps[i], {}, {}, links.timing()).start)
        << what << " step " << i;
  }
}

TEST(EstimateTest, OutlinesHaveTheTimesAndBytesOfTheStepsOnEveryBoxAtTheCorner) {
  const TorusLinks links = UltraServer({.step = {}, .hop = Microseconds(0.5)});
  int boxes = 0;
  for (const torus::Box& box : torus::BoxTable::Of(links.torus()).all()) {
    if (box.origin != torus::Coord{} || box.size.chip_count() == 1) continue;
    ++boxes;
    const ChipSet set = SetOf(MembersOf(box.mask), links);
    const Layout layout = Layout::Weighted(std::vector<int>(set.size(), 1), kGiB, 1);
    const Phase phase = Phase::kReduceScatter;
    const std::string at = " on " + box.ToString();
    ExpectSame(MeshOutline(box, links, kGiB), Steps(Algorithm::kMesh, phase, set, links, layout),
               links, "mesh" + at);
    ExpectSame(RingOutline(set, links, kGiB), Steps(Algorithm::kRing, phase, set, links, layout),
               links, "ring" + at);
    const auto channels = BalancedChannels(box, links.torus());
    ExpectSame(HalvingOutline(channels, box, links, kGiB),
               HalvingSteps(phase, set, links.torus(), layout, channels), links, "rdh" + at);
  }
  EXPECT_EQ(boxes, 26);
}

// The recurrence against the event-driven one, with random steps and work.
TEST(EstimateTest, TheTimeOfStepsIsThatOfTheirSchedule) {
  const TorusLinks links = UltraServer(LinkTiming{});
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    std::vector<PlannedStep> outline;
    Schedule schedule;
    for (std::size_t step = 0; step < 1 + rng.Below(8); ++step) {
      const std::uint64_t bytes = 128 * (1 + rng.Below(4000));
      const StepWork work{
          .start = VirtualDuration(static_cast<std::int64_t>(rng.Below(500'000))),
          .memory = VirtualDuration(static_cast<std::int64_t>(rng.Below(3'000'000)))};
      outline.push_back({.outline = {.link = TransferTime(bytes, 128'000'000'000)}, .work = work});
      schedule.Add({{.from = torus::ChipIndex(0), .to = torus::ChipIndex(1), .bytes = bytes}},
                   work);
    }
    const auto times = TimeSchedules({&schedule}, links);
    ASSERT_TRUE(times.ok());
    EXPECT_EQ(EstimateTime(outline, 1, links.timing()), (*times)[0].end - (*times)[0].start)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace tahoma::sim
