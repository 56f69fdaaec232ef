#include "lib/kube/json_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/rng.h"

namespace tahoma::kube {
namespace {

using json = Json;

std::string Dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

TEST(JsonWriterTest, WritesEveryKindOfValueAsTheLibraryDoes) {
  for (const char* text :
       {"null", "true", "false", "0", "-3", "-9223372036854775808", "18446744073709551615", "2.5e3",
        "1.0", R"("")", R"("a\u00e9\n")", R"("\u0000\u001f\u007f")", "[]", "{}",
        R"(["\"", "\\", "a\"b\\c\"", "/"])", R"([1, [2, {"a": []}], {"b": [null, false]}])",
        R"({"k:{\"name\":\"a\"}": {".": {}}, "f:x": {}, "": ""})"}) {
    const json value = ParseJson(text);
    EXPECT_EQ(JsonText(value), Dumped(value)) << text;
  }
}

TEST(JsonWriterTest, ReplacesBytesThatAreNotUtf8) {
  for (const std::string text : {"\xff", "a\xc3", "\xed\xa0\x80\"", "ok\xf0\x9f\x98\x80"}) {
    const json value = {{text, text}};
    EXPECT_EQ(JsonText(value), Dumped(value));
  }
}

TEST(JsonWriterTest, WritesRandomStringsAsTheLibraryDoes) {
  Rng rng(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::uint64_t left = rng.Below(12); left > 0; --left) {
      constexpr std::string_view kOften = "\"\\ab";
      text += rng.Below(4) == 0 ? static_cast<char>(rng.Below(256)) : kOften[rng.Below(4)];
    }
    EXPECT_EQ(JsonText(json(text)), Dumped(json(text)));
  }
}

std::string RandomText(Rng& rng) {
  static const std::vector<std::string> kPieces = {"a",
                                                   "\"",
                                                   "\\",
                                                   "/",
                                                   "\n",
                                                   "\x7f",
                                                   "\x80",
                                                   "\xff",
                                                   "\xc3\xa4",
                                                   "\xe2\x82\xac",
                                                   "\xf0\x9f\x98\x80",
                                                   "\xe2\x82",
                                                   "\xf0\x9f",
                                                   "\xc0\x80",
                                                   "\xed\xa0\x80",
                                                   "\xf4\x90\x80\x80",
                                                   std::string(1, '\0'),
                                                   "\u2028"};
  std::string text;
  for (std::uint64_t left = rng.Below(6); left > 0; --left) {
    text += kPieces[rng.Below(kPieces.size())];
  }
  return text;
}

double RandomDouble(Rng& rng) {
  switch (rng.Below(8)) {
    case 0:
      return 0.0;
    case 1:
      return -0.0;
    case 2:
      return std::numeric_limits<double>::infinity();
    case 3:
      return std::numeric_limits<double>::quiet_NaN();
    case 4:
      return static_cast<double>(rng.Next());
    default:
      return std::bit_cast<double>(rng.Next());  // any at all, denormals too
  }
}

json RandomDocument(Rng& rng, int depth) {
  switch (rng.Below(depth == 0 ? 6 : 8)) {
    case 0:
      return nullptr;
    case 1:
      return rng.Chance(1, 2);
    case 2:
      return static_cast<std::int64_t>(rng.Next() >> rng.Below(64)) * (rng.Chance(1, 2) ? 1 : -1);
    case 3:
      return rng.Next() >> rng.Below(64);
    case 4:
      return RandomDouble(rng);
    case 5:
      return RandomText(rng);
    case 6: {
      json list = json::array();
      for (std::uint64_t n = rng.Below(4); n > 0; --n) {
        list.push_back(RandomDocument(rng, depth - 1));
      }
      return list;
    }
    default: {
      json object = json::object();
      for (std::uint64_t n = rng.Below(4); n > 0; --n) {
        object[RandomText(rng)] = RandomDocument(rng, depth - 1);
      }
      return object;
    }
  }
}

TEST(JsonWriterTest, WritesRandomDocumentsAsTheLibraryDoes) {
  Rng rng(23);
  for (int round = 0; round < 20'000; ++round) {
    const json document = RandomDocument(rng, 4);
    const std::string text = JsonText(document);
    ASSERT_EQ(text, Dumped(document)) << round;
    ASSERT_TRUE(json::accept(text)) << round;
  }
}

TEST(JsonWriterTest, AppendsToWhatIsThere) {
  std::string out = "data: ";
  AppendJson({{"a", 1}}, out);
  AppendJsonString("\"", out);
  EXPECT_EQ(out, R"(data: {"a":1}"\"")");
}

}  // namespace
}  // namespace tahoma::kube
