#include "lib/kube/json_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lib/base/rng.h"

namespace tahoma::kube {
namespace {

using nlohmann::json;

std::string Dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

TEST(JsonWriterTest, WritesEveryKindOfValueAsTheLibraryDoes) {
  for (const char* text :
       {"null", "true", "false", "0", "-3", "-9223372036854775808", "18446744073709551615", "2.5e3",
        "1.0", R"("")", R"("a\u00e9\n")", R"("\u0000\u001f\u007f")", "[]", "{}",
        R"(["\"", "\\", "a\"b\\c\"", "/"])", R"([1, [2, {"a": []}], {"b": [null, false]}])",
        R"({"k:{\"name\":\"a\"}": {".": {}}, "f:x": {}, "": ""})"}) {
    const json value = json::parse(text);
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

TEST(JsonWriterTest, AppendsToWhatIsThere) {
  std::string out = "data: ";
  AppendJson({{"a", 1}}, out);
  AppendJsonString("\"", out);
  EXPECT_EQ(out, R"(data: {"a":1}"\"")");
}

}  // namespace
}  // namespace tahoma::kube
