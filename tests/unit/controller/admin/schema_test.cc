// The schemas of the admin API: what they accept is what they say.

#include "controller/admin/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/reserve/refusal.h"
#include "lib/base/json.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;

std::string Says(const Schema& schema, const std::string& value) {
  const absl::Status status = CheckBody(schema, ParseJson(value));
  return std::string(Message(status));
}

TEST(SchemaTest, EachIsATextInJsonSchema) {
  const Schema schema = ObjectOf({{"a", Integer(1, 2, "One or two.")}, {"b?", Text("", 3)}});
  EXPECT_EQ(
      ParseJson(schema),
      (Json{
          {"type", "object"},
          {"properties",
           {{"a",
             {{"type", "integer"}, {"description", "One or two."}, {"minimum", 1}, {"maximum", 2}}},
            {"b", {{"type", "string"}, {"maxLength", 3}}}}},
          {"required", {"a"}}}));
  EXPECT_EQ(ParseJson(BodyOf({}))["additionalProperties"], false);
  EXPECT_EQ(ParseJson(Named("X")), (Json{{"$ref", "#/components/schemas/X"}}));
}

TEST(SchemaTest, IntegersAreWholeNumbersHoweverTheyAreWritten) {
  const Schema schema = BodyOf({{"n", Integer(-5, 10, "")}});
  for (const std::string good : {"-5", "0", "10", "1e1", "3.0", "-0.0"}) {
    EXPECT_EQ(Says(schema, "{\"n\":" + good + "}"), "") << good;
  }
  for (const std::string bad : {"-6", "11", "1.5", "\"3\"", "true", "null", "[]", "{}", "1e300",
                                "18446744073709551615", "-9223372036854775808"}) {
    EXPECT_THAT(Says(schema, "{\"n\":" + bad + "}"), HasSubstr("must be a whole number, -5 to 10"))
        << bad;
  }
  EXPECT_EQ(IntegerOf(Json{{"n", 3.0}}, "n"), 3);
  EXPECT_EQ(IntegerOf(Json::object(), "n"), std::nullopt);
}

TEST(SchemaTest, TextsAreCountedInCharacters) {
  const Schema schema = BodyOf({{"t", Text("", 3)}});
  EXPECT_EQ(Says(schema, R"({"t":"äöü"})"), "");
  EXPECT_THAT(Says(schema, R"({"t":"äöüx"})"), HasSubstr("at most 3 characters"));
}

TEST(SchemaTest, PlacesAreNamed) {
  const Schema schema = BodyOf(
      {{"list", ListOf(BodyOf({{"x", Flag("")}}), "", 2)}, {"map?", MapOf(Text("", 2), "", 1)}});
  EXPECT_EQ(Says(schema, R"({"list":[{"x":true}]})"), "");
  EXPECT_EQ(Says(schema, R"({"list":[{"x":true},{"x":1}]})"), "list[1].x 1: must be true or false");
  EXPECT_EQ(Says(schema, R"({"list":[{}]})"), "list[0].x is missing");
  EXPECT_THAT(Says(schema, R"({"list":[{"x":true},{"x":true},{"x":true}]})"),
              HasSubstr("at most 2"));
  EXPECT_EQ(Says(schema, R"({"list":7})"), "list 7: must be a list");
  EXPECT_EQ(Says(schema, R"({"list":[],"map":{"a":"xyz"}})"),
            "map.a xyz: must have at most 2 characters");
  EXPECT_THAT(Says(schema, R"({"list":[],"map":{"a":"x","b":"y"}})"),
              HasSubstr("at most 1 members"));
}

TEST(SchemaTest, WordsAndPatternsSayWhatWouldBeRight) {
  const Schema word = Word({"a", "b"}, "");
  EXPECT_TRUE(CheckParameter(word, "w", "a").ok());
  EXPECT_EQ(Message(CheckParameter(word, "w", "c")), "w c: must be one of a, b");
  const Schema name = TextLike("[a-z]+", "lower-case letters", 5);
  EXPECT_TRUE(CheckParameter(name, "n", "abc").ok());
  EXPECT_EQ(Message(CheckParameter(name, "n", "aBc")), "n aBc: must be lower-case letters");
  EXPECT_FALSE(CheckParameter(name, "n", "abc\n").ok());
  EXPECT_FALSE(CheckParameter(Time(""), "t", "2026-02-30T00:00:00Z").ok());
  EXPECT_TRUE(CheckParameter(Time(""), "t", "2026-02-28T00:00:00Z").ok());
}

TEST(SchemaTest, ALongValueIsShownInShort) {
  const std::string said(Message(CheckParameter(Word({"a"}, ""), "w", std::string(5000, 'x'))));
  EXPECT_LT(said.size(), 120U);
}

TEST(SchemaTest, ParametersAreReadAsTheirType) {
  EXPECT_TRUE(CheckParameter(Integer(0, 9, ""), "n", "7").ok());
  for (const char* bad : {"", "+7", " 7", "7 ", "0x7", "7.0", "10", "99999999999999999999"}) {
    EXPECT_FALSE(CheckParameter(Integer(0, 9, ""), "n", bad).ok()) << bad;
  }
  EXPECT_EQ(ParseInteger("-12"), -12);
  EXPECT_EQ(ParseInteger("12a"), std::nullopt);
}

}  // namespace
}  // namespace tahoma::controller
