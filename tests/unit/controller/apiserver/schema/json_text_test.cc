#include "controller/apiserver/schema/json_text.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::controller::apiserver {
namespace {

TEST(JsonTextTest, ReadsEveryKindOfValueAsTheLibraryDoes) {
  for (const char* text :
       {"null", "true", "-3", "18446744073709551615", "2.5e3", R"("a\u00e9\n")", "[]", "{}",
        R"([1, [2, {"a": []}], {"b": [null, false]}])",
        R"({"z": 1, "a": {"y": [{"x": 1}, {"w": {}}]}, "m": ""})", R"({"a": {"b": 1}, "a": 2})"}) {
    const auto read = ReadJson(text);
    ASSERT_TRUE(read.ok()) << text << ": " << read.status();
    EXPECT_EQ(*read->value, ParseJson(text)) << text;
    EXPECT_EQ(read->value->dump(), ParseJson(text).dump());
  }
}

TEST(JsonTextTest, NamesEachDuplicateOnce) {
  const auto read = ReadJson(R"({"a": 1, "b": {"c": 1, "c": 2, "c": 3},
                                 "l": [{"x": 1}, {"x": 1, "x": 2}], "a": 2})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->duplicates, (std::vector<std::string>{"b.c", "l[1].x", "a"}));
  EXPECT_EQ(*read->value, ParseJson(R"({"a": 2, "b": {"c": 3}, "l": [{"x": 1}, {"x": 2}]})"));
  EXPECT_TRUE(ReadJson(R"({"a": {"x": 1}, "b": {"x": 1}})")->duplicates.empty());
}

TEST(JsonTextTest, RefusesWhatIsNotJsonInTheParsersWords) {
  for (const char* text : {"", "{", "{\"a\": ", "[1,]", "{\"a\" 1}", "1e999", "\"\xff\"", "{}x"}) {
    const auto read = ReadJson(text);
    ASSERT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << text;
    try {
      const Json parsed = ParseJson(text);
      FAIL() << text << parsed;
    } catch (const Json::exception& error) {
      EXPECT_EQ(Message(read.status()), error.what());
    }
  }
}

TEST(JsonTextTest, RefusesNestingBeyondTheBound) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(ReadJson(nested(kNestingMax)).ok());
  EXPECT_EQ(ReadJson(nested(kNestingMax + 1)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadJson(std::string(100000, '[')).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(JsonTextTest, RefusesMoreValuesThanTheBound) {
  std::string list = "[0";
  for (std::size_t i = 1; i < kItemsMax; ++i) list += ",0";
  list += "]";
  const auto lists = [&](std::size_t count) {
    std::string text = "[" + list;
    for (std::size_t i = 1; i < count; ++i) text += "," + list;
    return text + "]";
  };
  const std::size_t most = kValuesMax / kItemsMax;
  EXPECT_TRUE(ReadJson(lists(most - 1)).ok());
  EXPECT_EQ(Message(ReadJson(lists(most)).status()), "more than 500000 values");
}

TEST(JsonTextTest, SurvivesAnyDamage) {
  const std::string whole = R"({"metadata":{"name":"a","labels":{"x":"y"}},"l":[1,2,{"k":null}]})";
  Rng rng(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    for (std::uint64_t n = rng.Below(4) + 1; n > 0; --n) {
      text[rng.Below(text.size())] = static_cast<char>(rng.Below(256));
    }
    const auto read = ReadJson(text);
    const Json parsed = TryParseJson(text);
    ASSERT_EQ(read.ok(), !parsed.is_discarded()) << text;
    if (read.ok()) {
      ASSERT_EQ(*read->value, parsed) << text;
    }
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
