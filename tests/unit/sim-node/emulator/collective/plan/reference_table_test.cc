// Every cell of the tables in docs/reference/collectives.md#times-of-an-all-reduce: 1.5 us a step,
// links only, one step after the other.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "sim-node/emulator/collective/algorithms/bucket.h"
#include "sim-node/emulator/collective/algorithms/channels.h"
#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;
using torus::ChipMask;

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr double kStep = 1.5;  // us

using StepsOf = std::function<std::vector<Step>(Phase, const ChipSet&, const Layout&)>;

double AllReduceUs(const StepsOf& steps_of, ChipMask mask, const TorusLinks& links,
                   std::uint64_t bytes) {
  const ChipSet set = SetOf(MembersOf(mask), links);
  const Layout layout = Layout::Weighted(std::vector<int>(set.size(), 1), bytes, 1);
  Schedule schedule;
  for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
    for (Step& step : steps_of(phase, set, layout)) schedule.steps.push_back(std::move(step));
  }
  const auto times = TimeSchedules({&schedule}, links);
  EXPECT_TRUE(times.ok());
  return Nanoseconds((*times)[0].end - (*times)[0].start) / 1e3;
}

// The bound of an all-reduce in us.
double Bound(std::uint64_t bytes, int chips, double ingress) {
  return 2.0 * static_cast<double>(bytes) * (chips - 1) / chips / ingress * 1e6;
}

// The tables print three or four digits; the closed forms must hold to a thousandth.
void ExpectCell(double time, double closed_form, double printed, const std::string& what) {
  EXPECT_NEAR(time, closed_form, closed_form * 1e-3) << what;
  EXPECT_NEAR(time, printed, printed * 6e-3) << what;
}

TEST(ReferenceTableTest, AnInstancesMeshRdhAndTwoCyclesTakeTheirClosedForms) {
  const TorusLinks links = Instance();
  struct Row {
    std::uint64_t bytes;
    double mesh, rdh, cycles;
  };
  for (const Row& row : {Row{kKiB, 3.01, 12.0, 45.0}, Row{256 * kKiB, 5.05, 13.0, 46.0},
                         Row{kMiB, 11.2, 15.8, 48.8}, Row{16 * kMiB, 134, 73.4, 106},
                         Row{64 * kMiB, 527, 258, 291}, Row{kGiB, 8390, 3944, 3977}}) {
    const auto time = [&](Algorithm algorithm) {
      return AllReduceUs(
          [&](Phase phase, const ChipSet& set, const Layout& layout) {
            return Steps(algorithm, phase, set, links, layout);
          },
          0xffff, links, row.bytes);
    };
    const double bound = Bound(row.bytes, 16, 512e9);
    const double direct = 2 * static_cast<double>(row.bytes) / 256e9 * 1e6;
    const std::string what = std::to_string(row.bytes) + " bytes";
    ExpectCell(time(Algorithm::kMesh), 2 * kStep + direct, row.mesh, "mesh, " + what);
    ExpectCell(time(Algorithm::kRdh), 8 * kStep + bound, row.rdh, "rdh, " + what);
    ExpectCell(time(Algorithm::kRing), 30 * kStep + bound, row.cycles, "two cycles, " + what);
    ExpectCell(time(Algorithm::kKangaRing), 30 * kStep + bound, row.cycles, "kangaring, " + what);
  }
}

TEST(ReferenceTableTest, AnUltraServersRdhBucketAndFiveCyclesTakeTheirClosedForms) {
  const TorusLinks links = UltraServer();
  struct Row {
    std::uint64_t bytes;
    double rdh, bucket, planes_first, cycles;
  };
  for (const Row& row :
       {Row{kKiB, 18.0, 27.0, 18.0, 189}, Row{kMiB, 21.4, 30.5, 22.6, 192},
        Row{16 * kMiB, 72.9, 83.2, 91.7, 241}, Row{64 * kMiB, 237.6, 251.7, 312.9, 395},
        Row{256 * kMiB, 896, 926, 1198, 1015}, Row{kGiB, 3531, 3622, 4737, 3492}}) {
    const auto time = [&](const StepsOf& steps_of) {
      return AllReduceUs(steps_of, kAllChips, links, row.bytes);
    };
    const auto halving = [&](auto channels_of) {
      return time([&, channels_of](Phase phase, const ChipSet& set, const Layout& layout) {
        return HalvingSteps(phase, set, links.torus(), layout,
                            channels_of(*set.box(), links.torus()));
      });
    };
    const double bound = Bound(row.bytes, 64, 640e9);
    const std::string what = std::to_string(row.bytes) + " bytes";
    // The last step goes over Z links only, at a fifth of the rate: 1/64 / 128 instead of / 640.
    ExpectCell(halving(BalancedChannels), 12 * kStep + (1 + 4.0 / 63) * bound, row.rdh,
               "rdh, " + what);
    ExpectCell(halving(SlowLastChannels), 12 * kStep + bound / 0.7, row.planes_first,
               "rdh, X and Y first, " + what);
    ExpectCell(time([&](Phase phase, const ChipSet& set, const Layout& layout) {
                 return BucketSteps(phase, set, links.torus(), layout, 1);
               }),
               18 * kStep + 1.0884 * bound, row.bucket, "bucket, " + what);
    ExpectCell(time([&](Phase phase, const ChipSet& set, const Layout& layout) {
                 return Steps(Algorithm::kRing, phase, set, links, layout);
               }),
               126 * kStep + bound, row.cycles, "five cycles, " + what);
  }
}

// docs/reference/collectives.md#two-classes: 1.538 ms for each GB of a reduce-scatter.
TEST(ReferenceTableTest, APipelinedBucketComesToTheBoundAsItsStripesGrowFiner) {
  const TorusLinks links = UltraServer({.step = {}, .hop = {}});
  const double bound = Bound(kGiB, 64, 640e9);
  double last = 1.3;
  for (const std::size_t stripes : {std::size_t{4}, std::size_t{16}, std::size_t{64}}) {
    const double ratio = AllReduceUs(
                             [&](Phase phase, const ChipSet& set, const Layout& layout) {
                               return BucketSteps(phase, set, links.torus(), layout, stripes);
                             },
                             kAllChips, links, kGiB) /
                         bound;
    EXPECT_GT(ratio, 1.0);
    EXPECT_LT(ratio - 1, (last - 1) / 2) << stripes;
    last = ratio;
  }
  EXPECT_LT(last, 1.02);
}

// Step times of staggered channels as multiples of the bound, as the linear programme has them.
TEST(ReferenceTableTest, StaggeredChannelsComeAsCloseToTheBoundAsTheirLinearProgramme) {
  const TorusLinks links = UltraServer({.step = {}, .hop = {}});
  struct Case {
    const char* box;
    double ingress;  // GB/s
    double ratio;
  };
  for (const Case& one :
       {Case{"2x1x2", 192, 1.144}, Case{"2x2x2", 320, 1.050}, Case{"4x2x2", 448, 1.015},
        Case{"4x4x2", 576, 1.0012}, Case{"2x1x4", 256, 1.056}, Case{"2x2x4", 384, 1.016},
        Case{"4x2x4", 512, 1.004}, Case{"4x4x4", 640, 1.0003}}) {
    for (const torus::Box& box : torus::BoxTable::Of(links.torus()).all()) {
      if (box.ToString() != std::string(one.box) + "+0,0,0") continue;
      const double time = AllReduceUs(
          [&](Phase phase, const ChipSet& set, const Layout& layout) {
            return HalvingSteps(phase, set, links.torus(), layout,
                                StaggeredChannels(box, links.torus()));
          },
          box.mask, links, kGiB);
      EXPECT_NEAR(time / Bound(kGiB, box.size.chip_count(), one.ingress * 1e9), one.ratio, 1e-3)
          << one.box;
    }
  }
}

}  // namespace
}  // namespace tahoma::sim
