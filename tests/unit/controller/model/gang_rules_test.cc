// The rules of a valid Gang, and the boxes that it asks for.

#include "controller/model/gang_rules.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "lib/torus/box.h"

namespace tahoma::controller {
namespace {

struct Case {
  GangRequest request;
  std::string faults;
};

class GangRulesTable : public ::testing::TestWithParam<Case> {};

TEST_P(GangRulesTable, SaysWhatIsWrong) {
  EXPECT_EQ(Describe(FaultsOf(GetParam().request)), GetParam().faults);
}

INSTANTIATE_TEST_SUITE_P(Valid, GangRulesTable,
                         ::testing::Values(Case{{}, ""},
                                           Case{{.members = 4096, .slices = 1024}, ""},
                                           Case{{.members = 4, .shape = "4x4x2", .slices = 2}, ""},
                                           Case{{.shape = "1x1"}, ""},
                                           Case{{.members = 3, .chips = 16, .slices = 3}, ""},
                                           Case{{.members = 4, .chips = 128}, ""},
                                           Case{{.members = 1024, .chips = 65536}, ""},
                                           Case{{.max_runtime = "90m"}, ""},
                                           Case{{.max_runtime = "1h0m999999999s"}, ""}));

INSTANTIATE_TEST_SUITE_P(
    Counts, GangRulesTable,
    ::testing::Values(
        Case{{.members = 0}, "members 0: must be 1 to 4096"},
        Case{{.members = 4097}, "members 4097: must be 1 to 4096"},
        Case{{.members = 2048, .slices = 1025}, "slices 1025: must be 1 to 1024"},
        Case{{.members = -1, .slices = 0},
             "members -1: must be 1 to 4096; slices 0: must be 1 to 1024"},
        Case{{.members = 4, .slices = 3},
             "slices 3: must divide spec.members (4): every slice has the same number of pods"},
        Case{{.members = 2, .slices = 4},
             "slices 4: must divide spec.members (2): every slice has the same number of pods"}));

constexpr char kChips[] = ": must be 1, 2, 4, 8, 16, 32 or 64, or a multiple of 64 up to 65536";

INSTANTIATE_TEST_SUITE_P(
    Chips, GangRulesTable,
    ::testing::Values(
        Case{{.chips = 0}, std::string("chips 0") + kChips},
        Case{{.chips = 12}, std::string("chips 12") + kChips},
        Case{{.chips = 100}, std::string("chips 100") + kChips},
        Case{{.chips = 65600}, std::string("chips 65600") + kChips},
        Case{{.chips = std::numeric_limits<std::int64_t>::min()},
             std::string("chips -9223372036854775808") + kChips},
        Case{{.members = 3, .chips = 128},
             "chips 128: the boxes of 64 chips must divide spec.members: every box has the same "
             "number of pods; 3 members, 2 boxes"},
        Case{{.members = 6, .chips = 128, .slices = 2},
             "chips 128: the boxes of 64 chips must divide spec.members: every box has the same "
             "number of pods; 6 members, 4 boxes"},
        Case{{.shape = "4x4", .chips = 16},
             "chips 16: may not be set together with spec.shape, which says how many chips a slice "
             "has"}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, GangRulesTable,
    ::testing::Values(
        Case{{.shape = "3x5x2"}, "shape 3x5x2: each side must be 1, 2 or 4; 3 and 5 are not"},
        Case{{.shape = "8x4"}, "shape 8x4: each side must be 1, 2 or 4; 8 is not"},
        Case{{.shape = "04x4"}, "shape 04x4: each side must be 1, 2 or 4; 04 is not"},
        Case{{.shape = "99x4"}, "shape 99x4: each side must be 1, 2 or 4; 99 is not"},
        Case{{.shape = "4"}, "shape 4: must be of the form AxB or AxBxC, such as 4x4x2"},
        Case{{.shape = "4x"}, "shape 4x: must be of the form AxB or AxBxC, such as 4x4x2"},
        Case{{.shape = "4X4"}, "shape 4X4: must be of the form AxB or AxBxC, such as 4x4x2"},
        Case{{.shape = "4x-2"}, "shape 4x-2: must be of the form AxB or AxBxC, such as 4x4x2"},
        Case{{.shape = "1x1x1x1"},
             "shape 1x1x1x1: must be of the form AxB or AxBxC, such as 4x4x2"}));

constexpr char kRuntime[] =
    ": must be numbers of at most nine digits, each with h, m or s, such as 90m or 1h30m";

INSTANTIATE_TEST_SUITE_P(
    Runtimes, GangRulesTable,
    ::testing::Values(Case{{.max_runtime = "soon"}, std::string("maxRuntime soon") + kRuntime},
                      Case{{.max_runtime = "90"}, std::string("maxRuntime 90") + kRuntime},
                      Case{{.max_runtime = "-5m"}, std::string("maxRuntime -5m") + kRuntime},
                      Case{{.max_runtime = "h"}, std::string("maxRuntime h") + kRuntime},
                      Case{{.max_runtime = "1000000000s"},
                           std::string("maxRuntime 1000000000s") + kRuntime},
                      Case{{.max_runtime = "1d"}, std::string("maxRuntime 1d") + kRuntime},
                      Case{{.min_runtime = "1d"}, std::string("minRuntime 1d") + kRuntime}));

INSTANTIATE_TEST_SUITE_P(
    PreemptionPolicies, GangRulesTable,
    ::testing::Values(Case{{.preemption_policy = "Never"}, ""},
                      Case{{.preemption_policy = "PreemptLowerPriority"}, ""},
                      Case{{.preemption_policy = "never"},
                           "preemptionPolicy never: must be PreemptLowerPriority or Never"}));

TEST(GangRulesTest, ALongValueIsNotRepeatedWhole) {
  const GangRequest request{.shape = std::string(1 << 20, '4'),
                            .max_runtime = std::string(1 << 20, '9')};
  EXPECT_LT(Describe(FaultsOf(request)).size(), 500U);
}

TEST(GangRulesTest, AShapeIsOneBox) {
  const GangBoxes boxes = BoxesOf({.members = 4, .shape = "4x4x2", .slices = 2});
  EXPECT_EQ(boxes.shapes, std::vector{(torus::Shape::Of<4, 4, 2>())});
  EXPECT_EQ(boxes.per_slice, 1);
}

TEST(GangRulesTest, ChipsAreOneBoxOfAnyShapeOrSeveralWholeUltraServers) {
  EXPECT_EQ(BoxesOf({.chips = 16}).shapes, torus::ShapesOf(16));
  EXPECT_EQ(BoxesOf({.chips = 16}).per_slice, 1);
  EXPECT_EQ(BoxesOf({.chips = 64}).per_slice, 1);
  const GangBoxes three = BoxesOf({.members = 3, .chips = 192});
  EXPECT_EQ(three.shapes, std::vector{torus::kUltraServerShape});
  EXPECT_EQ(three.per_slice, 3);
}

TEST(GangRulesTest, WithoutShapeAndChipsThereIsNoBox) {
  EXPECT_TRUE(BoxesOf({.members = 4}).shapes.empty());
}

TEST(GangRulesTest, ARuntimeIsTheSumOfItsParts) {
  using std::chrono::seconds;
  EXPECT_EQ(ParseRuntime("90m"), seconds(5400));
  EXPECT_EQ(ParseRuntime("1h30m"), seconds(5400));
  EXPECT_EQ(ParseRuntime("1s1s000000001h"), seconds(3602));
  EXPECT_EQ(ParseRuntime("999999999h"), seconds(999'999'999LL * 3600));
  EXPECT_EQ(ParseRuntime(""), std::nullopt);
}

}  // namespace
}  // namespace tahoma::controller
