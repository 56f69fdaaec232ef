#include "lib/base/json_reader.h"

#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma {
namespace {

constexpr JsonBounds kBounds = {
    .depth = 128, .values = 500'000, .members = 10'000, .items = 20'000, .duplicates = 100};

absl::StatusOr<JsonRead> Read(std::string_view text) { return ReadBoundedJson(text, kBounds); }

TEST(JsonReaderTest, ReadsEveryKindOfValueAsTheLibraryDoes) {
  for (const char* text :
       {"null", "true", "-3", "18446744073709551615", "2.5e3", R"("a\u00e9\n")", "[]", "{}",
        R"([1, [2, {"a": []}], {"b": [null, false]}])",
        R"({"z": 1, "a": {"y": [{"x": 1}, {"w": {}}]}, "m": ""})", R"({"a": {"b": 1}, "a": 2})"}) {
    const auto read = Read(text);
    ASSERT_TRUE(read.ok()) << text << ": " << read.status();
    EXPECT_EQ(*read->value, ParseJson(text)) << text;
    EXPECT_EQ(read->value->dump(), ParseJson(text).dump());
  }
}

TEST(JsonReaderTest, NamesEachDuplicateOnce) {
  const auto read = Read(R"({"a": 1, "b": {"c": 1, "c": 2, "c": 3},
                                 "l": [{"x": 1}, {"x": 1, "x": 2}], "a": 2})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->duplicates, (std::vector<std::string>{"b.c", "l[1].x", "a"}));
  EXPECT_EQ(*read->value, ParseJson(R"({"a": 2, "b": {"c": 3}, "l": [{"x": 1}, {"x": 2}]})"));
  EXPECT_TRUE(Read(R"({"a": {"x": 1}, "b": {"x": 1}})")->duplicates.empty());
}

TEST(JsonReaderTest, RefusesWhatIsNotJsonInTheParsersWords) {
  for (const char* text : {"", "{", "{\"a\": ", "[1,]", "{\"a\" 1}", "1e999", "\"\xff\"", "{}x"}) {
    const auto read = Read(text);
    ASSERT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << text;
    try {
      const Json parsed = ParseJson(text);
      FAIL() << text << parsed;
    } catch (const Json::exception& error) {
      EXPECT_EQ(Message(read.status()), error.what());
    }
  }
}

TEST(JsonReaderTest, RefusesNestingBeyondTheBound) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(Read(nested(128)).ok());
  EXPECT_EQ(Read(nested(128 + 1)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Read(std::string(100000, '[')).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(JsonReaderTest, RefusesMoreValuesThanTheBound) {
  std::string list = "[0";
  for (std::size_t i = 1; i < kBounds.items; ++i) list += ",0";
  list += "]";
  const auto lists = [&](std::size_t count) {
    std::string text = "[" + list;
    for (std::size_t i = 1; i < count; ++i) text += "," + list;
    return text + "]";
  };
  const std::size_t most = kBounds.values / kBounds.items;
  EXPECT_TRUE(Read(lists(most - 1)).ok());
  EXPECT_EQ(Message(Read(lists(most)).status()), "more than 500000 values");
}

TEST(JsonReaderTest, SurvivesAnyDamage) {
  const std::string whole = R"({"metadata":{"name":"a","labels":{"x":"y"}},"l":[1,2,{"k":null}]})";
  Rng rng(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    for (std::uint64_t n = rng.Below(4) + 1; n > 0; --n) {
      text[rng.Below(text.size())] = static_cast<char>(rng.Below(256));
    }
    const auto read = Read(text);
    const Json parsed = TryParseJson(text);
    ASSERT_EQ(read.ok(), !parsed.is_discarded()) << text;
    if (read.ok()) {
      ASSERT_EQ(*read->value, parsed) << text;
    }
  }
}

}  // namespace
}  // namespace tahoma
