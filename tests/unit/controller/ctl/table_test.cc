// Tables as kubectl's, and YAML that reads as the value that was written.

#include "controller/ctl/table.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/kube/yaml.h"

namespace tahoma::controller {
namespace {

TEST(TableTest, ColumnsAreAlignedAndLinesEndWithoutSpaces) {
  EXPECT_EQ(TableText({{"NAME", "STATE"}, {"train", "active"}, {"x", ""}}),
            "NAME    STATE\ntrain   active\nx\n");
}

TEST(TableTest, RowsThatFollowKeepTheColumnsAndMayWidenThem) {
  std::vector<std::size_t> widths;
  EXPECT_EQ(TableText({{"NAME", "STATE"}, {"train", "active"}}, widths),
            "NAME    STATE\ntrain   active\n");
  EXPECT_EQ(TableText({{"x", "lost"}}, widths), "x       lost\n");
  EXPECT_EQ(TableText({{"train-long", "lost"}}, widths), "train-long   lost\n");
  EXPECT_EQ(TableText({{"x", "lost"}}, widths), "x            lost\n");
}

TEST(TableTest, YamlReadsAsItWasWritten) {
  const Json values[] = {
      Json::object(),
      Json::array(),
      nullptr,
      "text",
      {{"a", 1}, {"b", true}, {"c", nullptr}, {"d", 1.5}, {"e", "plain-word"}},
      {{"list", {1, 2, {{"x", "y"}, {"z", {1, {2, 3}}}}}}, {"empty", Json::object()}},
      Json::array({Json::array({1, 2}), Json::array({Json::object({{"a", Json::array()}})})}),
      {{"words", {"true", "no", "1", "", " x", "a: b", "# c", "-", "2026-12-01T11:30:00Z", "ä\n"}}},
      {{"yes", "~"}, {"a b", {{"c: d", "e"}}}}};
  for (const Json& value : values) {
    const auto read = kube::YamlToJson(YamlText(value));
    ASSERT_TRUE(read.ok()) << YamlText(value) << read.status();
    EXPECT_EQ(*read, value) << YamlText(value);
  }
}

}  // namespace
}  // namespace tahoma::controller
