#include "lib/base/json_part.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/json_cursor.h"
#include "lib/base/rng.h"

namespace tahoma {
namespace {

// The part of a value: the slow oracle.
Json PartOf(const Json& value, const JsonPart& part) {
  if (part.keep == JsonPart::Keep::kText || part.members.empty()) return value;
  if (value.is_array()) {
    Json items = Json::array();
    for (const Json& item : value) items.push_back(PartOf(item, part));
    return items;
  }
  if (!value.is_object()) return value;
  Json members = Json::object();
  for (const JsonPart::Member& member : part.members) {
    const Json* const found = FindMember(value, member.name);
    if (found != nullptr) members[member.name] = PartOf(*found, member.part);
  }
  return members;
}

// Replaces binary values by the values of their texts.
void ReadTexts(Json& value) {
  if (value.is_binary()) {
    const Json::binary_t& bytes = value.get_binary();
    value = ParseJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } else if (value.is_structured()) {
    for (auto& member : value) ReadTexts(member);
  }
}

const std::vector<std::string>& Names() {
  static const std::vector<std::string> names = {"a", "name", "metadata", "a/long.name.of-13", ""};
  return names;
}

Json AnyValue(Rng& rng, int depth) {
  static const std::vector<std::string> texts = {"",
                                                 "x",
                                                 "12345678",
                                                 "ends at eight \"quoted\" \\",
                                                 "\xc3\xa9t\xc3\xa9",
                                                 "a\nb\tc",
                                                 "]}{[,:\"\\",
                                                 "a plain text that is longer than a word"};
  switch (rng.Below(depth == 0 ? 6 : 9)) {
    case 0:
      return nullptr;
    case 1:
      return rng.Chance(1, 2);
    case 2:
      return static_cast<std::int64_t>(rng.Next());
    case 3:
      return static_cast<double>(rng.Below(1000)) / 8;
    case 4:
    case 5:
      return texts[rng.Below(texts.size())];
    case 6: {
      Json items = Json::array();
      for (std::uint64_t i = rng.Below(4); i > 0; --i) items.push_back(AnyValue(rng, depth - 1));
      return items;
    }
    default: {
      Json members = Json::object();
      for (std::uint64_t i = rng.Below(5); i > 0; --i) {
        members[Names()[rng.Below(Names().size())]] = AnyValue(rng, depth - 1);
      }
      return members;
    }
  }
}

JsonPart AnyPart(Rng& rng, int depth) {
  JsonPart part;
  if (rng.Chance(1, 6)) part.keep = JsonPart::Keep::kText;
  for (const std::string& name : Names()) {
    if (depth > 0 && rng.Chance(1, 3)) part.members.push_back({name, AnyPart(rng, depth - 1)});
  }
  return part;
}

TEST(JsonPartTest, APartIsWhatTheWholeValueHasThere) {
  Rng rng(1);
  for (int i = 0; i < 10'000; ++i) {
    const Json value = AnyValue(rng, 4);
    const JsonPart part = AnyPart(rng, 3);
    const std::string text = value.dump(rng.Chance(1, 3) ? 1 : -1);
    Json read = TryParseJsonPart(text, part);
    ReadTexts(read);
    ASSERT_EQ(read, PartOf(value, part)) << text;
  }
}

TEST(JsonPartTest, TheWholeIsReadAsTryParseJsonReadsIt) {
  Rng rng(2);
  int broken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = AnyValue(rng, 4).dump();
    for (std::uint64_t changes = rng.Below(3); changes > 0 && !text.empty(); --changes) {
      const std::size_t at = rng.Below(text.size());
      if (rng.Chance(1, 3)) {
        text.erase(at, 1);
      } else {
        constexpr std::string_view kBytes = "\"\\{}[],: 0e-\x01\xc3\x7fnull";
        text[at] = kBytes[rng.Below(kBytes.size())];
      }
    }
    const Json whole = TryParseJson(text);
    const Json read = TryParseJsonPart(text, {});
    ASSERT_EQ(read.is_discarded(), whole.is_discarded()) << text;
    if (whole.is_discarded()) ++broken;
    if (!whole.is_discarded()) {
      ASSERT_EQ(read.dump(), whole.dump()) << text;
    }
  }
  EXPECT_GT(broken, 2'000);
}

// A skipped value may be no JSON; the rest is then read or the text is discarded.
TEST(JsonPartTest, APartOfABrokenTextIsThePartOfTheWholeOrIsDiscarded) {
  Rng rng(3);
  int good = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = AnyValue(rng, 4).dump();
    for (std::uint64_t changes = rng.Below(3); changes > 0 && !text.empty(); --changes) {
      const std::size_t at = rng.Below(text.size());
      constexpr std::string_view kBytes = "\"\\{}[],: 0e-\x01\xc3\x7fnull";
      text[at] = kBytes[rng.Below(kBytes.size())];
    }
    // Behind the text is nothing that may be read.
    const std::vector<char> exact(text.begin(), text.end());
    const JsonPart part = AnyPart(rng, 3);
    const Json read = TryParseJsonPart({exact.data(), exact.size()}, part);
    const Json whole = TryParseJson(text);
    if (whole.is_discarded()) continue;
    ++good;
    ASSERT_FALSE(read.is_discarded()) << text;
    Json values = read;
    ReadTexts(values);
    ASSERT_EQ(PartOf(values, part), PartOf(whole, part)) << text;
  }
  EXPECT_GT(good, 4'000);
}

TEST(JsonPartTest, AMistakeInThePartDiscardsTheText) {
  const JsonPart part = {.members = {{"a"}}};
  for (const char* value :
       {"",      "01",  "1.",      "+1",          "1e999",    "-",          "nul",
        "NaN",   "'x'", "\"\\x\"", "\"\\ud800\"", "\"\xff\"", "\"a\nb\"",   "[1,]",
        "[1 2]", "[1}", "{\"b\"}", "{\"b\":}",    "{b:1}",    "{\"b\":1,}", "1 2"}) {
    const std::string text = R"({"a": )" + std::string(value) + "}";
    EXPECT_TRUE(TryParseJsonPart(text, part).is_discarded()) << text;
    EXPECT_TRUE(TryParseJson(text).is_discarded()) << text;
  }
  EXPECT_TRUE(TryParseJsonPart("", part).is_discarded());
}

TEST(JsonPartTest, AValueOfAnotherTypeThanTheNamedMembersIsKept) {
  const JsonPart part = {.members = {{"a", {.members = {{"b"}}}}}};
  for (const char* value :
       {"null", "7", "18446744073709551615", "1e300", "\"x\"", "[1,\"x\",[]]"}) {
    const Json read = TryParseJsonPart(R"({"a": )" + std::string(value) + "}", part);
    EXPECT_EQ(read.at("a"), ParseJson(value));
  }
  EXPECT_EQ(TryParseJsonPart("[7]", part), ParseJson("[7]"));
}

TEST(JsonPartTest, ANameWithAnEscapeIsTheNameWithoutIt) {
  const JsonPart part = {.members = {{"a"}}};
  EXPECT_EQ(TryParseJsonPart(R"({"\u0061": 1, "b\"": {"c\\": 2}})", part).at("a"), 1);
}

TEST(JsonPartTest, OfAMemberThatComesTwiceTheLastCounts) {
  const JsonPart part = {.members = {{"a"}}};
  EXPECT_EQ(TryParseJsonPart(R"({"a": 1, "b": 2, "a": 3})", part).at("a"), 3);
}

TEST(JsonPartTest, ADeepTextIsReadOrDiscarded) {
  const std::string open(5'000, '[');
  EXPECT_TRUE(TryParseJsonPart(open, {}).is_discarded());
  EXPECT_FALSE(TryParseJsonPart(open + std::string(5'000, ']'), {}).is_discarded());
  const JsonPart part = {.members = {{"a"}}};
  const Json read =
      TryParseJsonPart(R"({"a": 1, "b": )" + open + std::string(5'000, ']') + "}", part);
  EXPECT_EQ(read.at("a"), 1);
  const JsonPart text_part = {.members = {{"b", {.members = {}, .keep = JsonPart::Keep::kText}}}};
  const Json whole =
      TryParseJsonPart(R"({"b": )" + open + std::string(5'000, ']') + "}", text_part);
  EXPECT_TRUE(whole.at("b").is_array());  // a value where the text is too deep
}

TEST(JsonPartTest, ATextThatEndsEarlyIsDiscarded) {
  const std::string text = R"({"items": [{"a": "x\"", "b": {"c": [1, 2]}}], "a": null})";
  const JsonPart part = {.members = {{"a"}, {"items", {.members = {{"a"}}}}}};
  EXPECT_EQ(TryParseJsonPart(text, part), ParseJson(R"({"items": [{"a": "x\""}], "a": null})"));
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_TRUE(TryParseJsonPart(text.substr(0, size), part).is_discarded()) << size;
  }
  EXPECT_TRUE(TryParseJsonPart(text + "}", part).is_discarded());
}

TEST(JsonCursorTest, StopsBehindEachValue) {
  JsonCursor cursor(R"( {"a": "b", "c": [1, {"d": "e\"]"}, null], "f": -2.5e3} )");
  std::string seen;
  EXPECT_TRUE(cursor.Object([&](std::string_view key) {
    seen += key;
    std::string_view text;
    if (key == "a") return cursor.PlainText(text) && text == "b";
    if (key == "f") return cursor.Word(text) && text == "-2.5e3";
    return cursor.Skip();
  }));
  EXPECT_TRUE(cursor.AtEnd());
  EXPECT_EQ(seen, "acf");
}

}  // namespace
}  // namespace tahoma
