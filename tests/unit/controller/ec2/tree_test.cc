// Answers as trees: XML, and the texts that filters compare.

#include "controller/ec2/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/json.h"

namespace tahoma::controller::ec2 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const AnswerHead kHead{.action = "DescribeThings", .request_id = "id"};

TEST(TreeTest, MembersAreElementsAndListsHaveItems) {
  const Tree tree = {{"name", "a & b"},
                     {"count", 4},
                     {"rate", 156.25},
                     {"flag", true},
                     {"absent", nullptr},
                     {"part", {{"x", 1}}},
                     {"textSet", Tree::array({"a", "b"})},
                     {"emptySet", Tree::array()},
                     {"rowSet", Tree::array({{{"key", "k"}}})}};
  EXPECT_EQ(TreeAnswer(kHead, tree),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<DescribeThingsResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">"
            "<requestId>id</requestId><name>a &amp; b</name><count>4</count><rate>156.25</rate>"
            "<flag>true</flag><part><x>1</x></part><textSet><item>a</item><item>b</item></textSet>"
            "<emptySet></emptySet><rowSet><item><key>k</key></item></rowSet>"
            "</DescribeThingsResponse>");
}

TEST(TreeTest, PathsGoThroughMembersAndLists) {
  const Tree tree = {{"part", {{"rowSet", Tree::array({{{"n", 1}}, {{"n", 2}}})}}},
                     {"flag", false}};
  EXPECT_THAT(TextsAt(tree, "part/rowSet/n"), ElementsAre("1", "2"));
  EXPECT_THAT(TextsAt(tree, "flag"), ElementsAre("false"));
  EXPECT_THAT(TextsAt(tree, "part"), IsEmpty()) << "no text";
  EXPECT_THAT(TextsAt(tree, "part/none/n"), IsEmpty());
  EXPECT_THAT(TextsAt(tree, "flag/n"), IsEmpty());
}

TEST(TreeTest, RowsAreFilteredAndPaged) {
  constexpr TreeFilter kFields[] = {{"name", "name"}, {"nothing", ""}};
  const auto answer = [&](const std::string& form, std::size_t most) {
    const auto parameters = Parameters::Parse(form);
    Reader reader(*parameters);
    const std::vector<Filter> filters = ReadFilters(reader, NamesOf(kFields), true);
    TreePage page({.rows_most = most}, filters, kFields);
    for (const char* name : {"a", "b", "c"}) {
      if (!page.Offer(name, {{"name", name}, {"key", "team"}, {"value", name}})) break;
    }
    return page.Answer(kHead, "set");
  };
  EXPECT_THAT(answer("", 2), HasSubstr("<item><name>a</name>"));
  EXPECT_THAT(answer("", 2), HasSubstr("</value></item><item><name>b</name>"));
  EXPECT_THAT(answer("", 2), HasSubstr("<nextToken>"));
  EXPECT_THAT(answer("", 3), Not(HasSubstr("<nextToken>")));
  EXPECT_THAT(answer("Filter.1.Name=name&Filter.1.Value.1=c", 1), HasSubstr("<name>c</name>"));
  EXPECT_THAT(answer("Filter.1.Name=nothing&Filter.1.Value.1=*", 1), HasSubstr("<set></set>"));
  EXPECT_THAT(answer("Filter.1.Name=tag:team&Filter.1.Value.1=b", 1), HasSubstr("<name>b</name>"));
}

}  // namespace
}  // namespace tahoma::controller::ec2
