#include "lib/hw/core_profile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace tahoma::hw {
namespace {

using ::testing::HasSubstr;

TEST(CoreProfileTest, EveryFigureHasAUnitAndASourceAndStandsInTheGuide) {
  std::ostringstream guide;
  guide << std::ifstream("docs/tasks/kernels.md").rdbuf();
  std::set<std::string_view> names;
  for (const auto& [name, figure] : FiguresOf(kTrainium2Core)) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_GT(figure.value, 0) << name;
    EXPECT_NE(figure.unit, "") << name;
    EXPECT_THAT(guide.str(),
                HasSubstr(fmt::format("| `{}` | {} | {} | {} | {} |\n", name, figure.value,
                                      figure.unit, figure.source, Name(figure.confidence))));
  }
  EXPECT_EQ(names.size() * sizeof(Figure) + sizeof(std::string_view), sizeof(CoreProfile));
}

}  // namespace
}  // namespace tahoma::hw
