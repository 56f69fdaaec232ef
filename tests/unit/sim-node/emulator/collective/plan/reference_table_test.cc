// Every cell of the tables in docs/reference/collectives.md#times-of-an-all-reduce: 1.5 us a step,
// links only, one step after the other.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/unit/sim-node/emulator/collective/support.h"

namespace tahoma::sim {
namespace {

using testing::Instance;
using testing::UltraServer;
using torus::ChipMask;

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

TEST(ReferenceTableTest, AnUltraServersRdhAndFiveCyclesTakeTheirClosedForms) {
  const TorusLinks links = UltraServer();
  struct Row {
    std::uint64_t bytes;
    double rdh, cycles;
  };
  for (const Row& row :
       {Row{kKiB, 18.0, 189}, Row{kMiB, 21.4, 192}, Row{16 * kMiB, 72.9, 241},
        Row{64 * kMiB, 237.6, 395}, Row{256 * kMiB, 896, 1015}, Row{kGiB, 3531, 3492}}) {
    const auto time = [&](const StepsOf& steps_of) {
      return AllReduceUs(steps_of, kAllChips, links, row.bytes);
    };
    const double bound = Bound(row.bytes, 64, 640e9);
    const std::string what = std::to_string(row.bytes) + " bytes";
    // The last step goes over Z links only, at a fifth of the rate: 1/64 / 128 instead of / 640.
    ExpectCell(time([&](Phase phase, const ChipSet& set, const Layout& layout) {
                 return Steps(Algorithm::kRdh, phase, set, links, layout);
               }),
               12 * kStep + (1 + 4.0 / 63) * bound, row.rdh, "rdh, " + what);
    ExpectCell(time([&](Phase phase, const ChipSet& set, const Layout& layout) {
                 return Steps(Algorithm::kRing, phase, set, links, layout);
               }),
               126 * kStep + bound, row.cycles, "five cycles, " + what);
  }
}

}  // namespace
}  // namespace tahoma::sim
