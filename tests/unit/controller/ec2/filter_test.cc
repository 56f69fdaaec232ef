#include "controller/ec2/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// The definition, by trying everything.
bool Oracle(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  const char c = pattern.front();
  const std::string_view rest = pattern.substr(1);
  if (c == '*') {
    return Oracle(rest, text) || (!text.empty() && Oracle(pattern, text.substr(1)));
  }
  if (c == '?') return Oracle(rest, text) || (!text.empty() && Oracle(rest, text.substr(1)));
  if (c == '\\' && !rest.empty()) {
    return !text.empty() && text.front() == rest.front() && Oracle(rest.substr(1), text.substr(1));
  }
  return !text.empty() && text.front() == c && Oracle(rest, text.substr(1));
}

TEST(PatternTest, KnownCases) {
  struct Case {
    std::string pattern, text;
    bool matches;
  };
  for (const Case& c : std::vector<Case>{{"active", "active", true},
                                         {"active", "inactive", false},
                                         {"", "", true},
                                         {"", "a", false},
                                         {"*", "", true},
                                         {"2026-11-2*", "2026-11-21T11:30:00.000Z", true},
                                         {"p4d?", "p4d", true},
                                         {"p4d?", "p4de", true},
                                         {"p4d?", "p4dee", false},
                                         {"*a*b", "xaxxb", true},
                                         {"*a*b", "xaxxbc", false},
                                         {"\\*", "*", true},
                                         {"\\*", "a", false},
                                         {"a\\", "a\\", true},
                                         {"\\\\?", "\\", true}}) {
    EXPECT_EQ(Pattern(c.pattern).Matches(c.text), c.matches) << c.pattern << " " << c.text;
  }
}

TEST(PatternTest, AgreesWithTheDefinitionOnEverySmallInput) {
  constexpr std::string_view kOfPattern = "ab*?\\";
  Rng rng(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string pattern;
    std::string text;
    for (std::uint64_t n = rng.Below(7); n > 0; --n) {
      pattern += kOfPattern[rng.Below(kOfPattern.size())];
    }
    for (std::uint64_t n = rng.Below(6); n > 0; --n) text += "ab*"[rng.Below(3)];
    ASSERT_EQ(Pattern(pattern).Matches(text), Oracle(pattern, text)) << pattern << " " << text;
  }
}

TEST(PatternTest, ALongFilterTakesNoLongTime) {
  std::string pattern;
  for (int i = 0; i < 300; ++i) pattern += "a*?";
  EXPECT_FALSE(Pattern(pattern + "b").Matches(std::string(2000, 'a')));
}

const std::vector<FilterField<Ec2Block>>& Fields() {
  static const std::vector<FilterField<Ec2Block>> fields = {
      {"state", [](const Ec2Block& b) { return std::vector<std::string>{b.state}; }},
      {"id", [](const Ec2Block& b) { return std::vector<std::string>{b.id}; }}};
  return fields;
}

struct Read {
  std::vector<Filter> filters;
  absl::Status status;
};

Read FiltersOf(const std::string& form) {
  const auto parameters = Parameters::Parse(form);
  EXPECT_TRUE(parameters.ok()) << parameters.status();
  Reader reader(*parameters);
  auto filters = ReadFilters(reader, NamesOf(Fields()), true);
  return {.filters = std::move(filters), .status = reader.Finish()};
}

bool Passes(const std::string& form, const Ec2Block& block) {
  const Read read = FiltersOf(form);
  EXPECT_TRUE(read.status.ok()) << read.status;
  return MatchesAll(read.filters, block, Fields());
}

Ec2Block TaggedBlock() {
  Ec2Block block;
  block.id = "cb-1";
  block.state = "active";
  block.tags = {{"team", "a"}, {"empty", ""}};
  return block;
}

TEST(FilterTest, ValuesAreAlternativesAndFiltersAreNot) {
  const Ec2Block block = TaggedBlock();
  EXPECT_TRUE(Passes("", block));
  EXPECT_TRUE(Passes("Filter.1.Name=state&Filter.1.Value.1=failed&Filter.1.Value.2=active", block));
  EXPECT_FALSE(
      Passes("Filter.1.Name=state&Filter.1.Value.1=active&Filter.2.Name=id&"
             "Filter.2.Value.1=cb-2",
             block));
  EXPECT_TRUE(
      Passes("Filter.1.Name=state&Filter.1.Value.1=act*&Filter.2.Name=id&"
             "Filter.2.Value.1=cb-?",
             block));
}

TEST(FilterTest, TagsAreFoundByKeyAndValue) {
  const Ec2Block block = TaggedBlock();
  EXPECT_TRUE(Passes("Filter.1.Name=tag:team&Filter.1.Value.1=a", block));
  EXPECT_FALSE(Passes("Filter.1.Name=tag:team&Filter.1.Value.1=b", block));
  EXPECT_FALSE(Passes("Filter.1.Name=tag:Team&Filter.1.Value.1=a", block));
  EXPECT_TRUE(Passes("Filter.1.Name=tag:empty&Filter.1.Value.1=", block));
  EXPECT_FALSE(Passes("Filter.1.Name=tag:none&Filter.1.Value.1=*", block));
  EXPECT_TRUE(Passes("Filter.1.Name=tag-key&Filter.1.Value.1=t*", block));
  EXPECT_FALSE(Passes("Filter.1.Name=tag-key&Filter.1.Value.1=x", block));
}

TEST(FilterTest, AnUnknownNameIsRefusedWithTheLegalOnes) {
  for (const std::string name : {"State", "tag:", "instance-type"}) {
    const Read read = FiltersOf("Filter.1.Name=" + name + "&Filter.1.Value.1=a");
    EXPECT_EQ(RefusalOf(read.status).code, "InvalidParameterValue");
    EXPECT_EQ(RefusalOf(read.status).message,
              "the filter '" + name + "' is not known here; legal are state, id, tag:KEY, tag-key");
  }
}

TEST(FilterTest, FiltersAreBounded) {
  EXPECT_EQ(RefusalOf(FiltersOf("Filter.1.Name=state").status).code, "MissingParameter");
  EXPECT_EQ(RefusalOf(FiltersOf("Filter.1.Value.1=a").status).code, "MissingParameter");
  std::string many;
  for (int i = 1; i <= 2; ++i) {
    many += fmt::format("Filter.{}.Name=state&", i);
    for (int j = 1; j <= 101; ++j) many += fmt::format("Filter.{}.Value.{}=a&", i, j);
  }
  EXPECT_EQ(RefusalOf(FiltersOf(many).status).code, "FilterLimitExceeded");
  const std::string value(kFilterValueBytesMost, 'a');
  EXPECT_TRUE(FiltersOf("Filter.1.Name=id&Filter.1.Value.1=" + value).status.ok());
  EXPECT_THAT(
      std::string(Message(FiltersOf("Filter.1.Name=id&Filter.1.Value.1=" + value + "a").status)),
      HasSubstr("at most 255"));
}

}  // namespace
}  // namespace tahoma::controller::ec2
